"""What a user sees does not depend on partitioner, number of partitions or order."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.types import EdgeType
from graphsys.embedding import EmbeddingConfig, Embeddings, evaluate, train
from graphsys.storage import EdgeChunk, Graph, NodeChunk
from graphsys.storage.verify.verify import verify
from tests.layouts import (
    LAYOUTS,
    REWRITTEN,
    Chunks,
    counts,
    edge_facts,
    node_facts,
    same_in_every_layout,
    stored,
)
from tests.runs import reseal
from tests.stores import edge_chunk
from tests.strategies import PlainGraph, plain_graphs

TRIPLE = EdgeType("entity", "triple", "entity")


@settings(max_examples=10)
@given(plain_graphs(), st.sampled_from([*LAYOUTS, REWRITTEN][1:]))
def test_nodes_edges_and_counts_are_the_same_in_any_layout(
    plain: PlainGraph, layout: str
) -> None:
    if not any(plain.edges.values()) and not any(plain.nodes.values()):
        return  # nothing at all is an error

    with tempfile.TemporaryDirectory() as folder:
        nodes, edges, _ = same_in_every_layout(
            Path(folder),
            plain.chunks,
            everything,
            is_directed=plain.is_directed,
            only=[layout],
        )
    assert {name: set(rows) for name, rows in nodes.items()} == {
        name: set(rows) for name, rows in plain.nodes.items()
    }
    assert sum(sum(found.values()) for found in edges.values()) == sum(
        map(len, plain.edges.values())
    )


def everything(graph: Graph) -> Any:
    return node_facts(graph), edge_facts(graph), counts(graph)


@pytest.mark.parametrize("is_directed", [True, False])
def test_a_graph_of_all_kinds_is_the_same_in_every_layout(
    tmp_path: Path, is_directed: bool
) -> None:
    rng = np.random.default_rng(1)
    people, works = EdgeType("person", "knows", "person"), EdgeType("person", "at", "firm")
    ends, held_out = rng.integers(95, 150, (200, 2)), rng.integers(100, 150, (20, 2))
    jobs = np.stack([np.arange(95, 150), np.arange(55) % 7], axis=1)
    chunks: Chunks = [
        NodeChunk(
            ids=np.arange(95, 152),
            node_type="person",
            columns={
                "label": np.arange(57) % 3,
                "split": pa.array(["train", None, "test"] * 19),
            },
            features={"x": rng.normal(size=(57, 4)).astype(np.float32)},
        ),
        edge_chunk(ends.tolist(), people, weight=rng.random(200)),
        edge_chunk(held_out.tolist(), people, "test", weight=rng.random(20)),
        edge_chunk(jobs.tolist(), works),
    ]
    nodes, edges, found = same_in_every_layout(
        tmp_path, chunks, everything, is_directed=is_directed
    )
    assert found["num_edges_by_split"] == {"train": 255, "test": 20}
    assert len(nodes["person"]) == 57
    assert len(nodes["firm"]) == 7
    assert nodes["person"][107]["label"] == 12 % 3
    assert sum(edges["at", "train"].values()) == 55


def test_layouts_differ_and_are_sound(tmp_path: Path) -> None:
    """Else the tests above would compare a thing with itself."""
    rng = np.random.default_rng(0)
    chunk = edge_chunk(rng.integers(0, 60, (300, 2)).tolist())
    with stored(tmp_path, [chunk], is_directed=False) as graphs:
        numberings = {tuple(g.node_ids("node").to_pylist()) for g in graphs.values()}
        assert len(numberings) == len(graphs) == len(LAYOUTS) + 1
        assert {graph.num_partitions("node") for graph in graphs.values()} >= {
            1,
            2,
            3,
            4,
            5,
        }
        for graph in graphs.values():
            assert verify(graph.path).ok


def test_a_layout_that_gives_something_else_is_named(tmp_path: Path) -> None:
    chunk = edge_chunk([(k, (3 * k + 1) % 10) for k in range(10)])
    with pytest.raises(AssertionError, match=r"layout '.*': .*expected \[0, 1, 2"):
        same_in_every_layout(
            tmp_path, [chunk], lambda graph: graph.node_ids("node").to_pylist()
        )


def knowledge_graph() -> Chunks:
    """Return triples over 30 entities and four relations, in three splits."""
    rng = np.random.default_rng(0)
    chunks = []
    for split, size in (("train", 240), ("valid", 30), ("test", 50)):
        ends = rng.integers(0, 30, (size, 2))
        relation = rng.choice(["likes", "knows", "of", "in"], size)
        chunks.append(
            EdgeChunk(
                src=pa.array([f"e{k}" for k in ends[:, 0]]),
                dst=pa.array([f"e{k}" for k in ends[:, 1]]),
                edge_type=TRIPLE,
                split=split,
                columns={"relation": pa.array(relation.tolist())},
            )
        )
    return chunks


@pytest.mark.parametrize("operator", ["diagonal", "translation"])
def test_a_fixed_embedding_has_the_same_ranks_in_every_layout(
    tmp_path: Path, operator: Any
) -> None:
    rows = np.random.default_rng(0).normal(size=(30, 8)).astype(np.float32)
    rows[20:] = rows[10:20]  # ties

    def metrics(graph: Graph) -> Any:
        run = tmp_path / f"run of {graph.path.name}"
        train(graph, EmbeddingConfig(dim=8, epochs=1, operator=operator), run)
        write_embedding(run, graph, rows)
        return evaluate(run, split="test", threads=1)

    found = same_in_every_layout(tmp_path, knowledge_graph(), metrics)
    assert 0 < found["metrics"]["mrr"] < 1


def write_embedding(run: Path, graph: Graph, rows: np.ndarray[Any, Any]) -> None:
    """Replace what was trained: the row of e<k> is ``rows[k]``, relations by name."""
    numbers = [int(key[1:]) for key in graph.node_ids("entity").to_pylist()]
    offsets = graph.offsets("entity")
    names = graph.relations(TRIPLE)
    assert names is not None
    for name in Embeddings(run).state.files:
        if name.startswith("rows/"):
            part = int(name.rsplit("part-")[1].split(".")[0])
            np.save(run / name, rows[numbers[offsets[part] : offsets[part + 1]]])
        if name.startswith("relations/"):
            table = np.load(run / name)
            values = [np.full(8, len(relation) / 4, np.float32) for relation in names]
            table[0] = np.concatenate(values)
            np.save(run / name, table)
    reseal(run)
