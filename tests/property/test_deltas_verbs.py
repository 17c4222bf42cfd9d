"""Every verb gives on a store with deltas what it gives on the compacted store.

Results that follow from ids are compared with those of the compacted store, which numbers
nodes anew. Trainings and samples draw by number, so they are compared, bit by bit, with a
store without deltas that has the same numbers.
"""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import graphsys as gs
from graphsys.core.errors import InvalidGraphError
from graphsys.engine.algorithms import ALGORITHMS, get
from graphsys.engine.execute import prepared, program_memory
from graphsys.engine.memory_plan import MemoryPlan
from graphsys.facade.graph import Graph
from graphsys.storage import NodeChunk
from graphsys.storage.dynamic.compact import compact
from graphsys.storage.ingest.repartition import repartition
from graphsys.storage.verify.verify import verify
from tests.deltas import assert_same_arrays, changing_store, same_numbers
from tests.layouts import counts, edge_facts, node_facts

PARAMETERS: dict[str, dict[str, Any]] = {
    "bfs": {"source": 3},
    "sssp": {"source": 3},
    "personalized_pagerank": {"source": 3},
    "min_cut": {"source": 3, "target": 57},
    "katz": {"alpha": 0.02},
    "label_propagation": {"labels": {3: 0, 20: 1, 55: 2}},
    "pagerank": {"tolerance": 1e-12},
}


def people(ids: np.ndarray[Any, Any]) -> NodeChunk:
    rows = np.stack([np.sin(ids), np.cos(ids), ids / 60], axis=1).astype(np.float32)
    split = pa.array(["train", "valid", "test", "train"] * 20).slice(0, len(ids))
    return NodeChunk(
        ids=ids, columns={"label": ids % 3, "split": split}, features={"x": rows}
    )


class Stores:
    """One graph with deltas, compacted, and without deltas by the same numbers."""

    def __init__(self, folder: Path, is_directed: bool) -> None:
        self.changed = Graph.of(
            changing_store(folder / "d", is_directed=is_directed, nodes=people)
        )
        shutil.copytree(folder / "d", folder / "c")
        self.compacted = Graph.of(compact(folder / "c").graph)
        self.same = Graph.of(same_numbers(self.changed, folder / "s"))


@pytest.fixture(scope="module", params=[True, False], ids=["directed", "undirected"])
def stores(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    made = Stores(tmp_path_factory.mktemp("deltas"), request.param)
    yield made
    for graph in (made.changed, made.compacted, made.same):
        graph.close()


def test_the_stores_are_what_they_should_be(stores: Stores) -> None:
    """Else the tests below would compare a thing with itself."""
    assert [len(g.manifest.deltas) for g in (stores.changed, stores.compacted)] == [3, 0]
    assert stores.changed.num_partitions("node") == 4
    assert stores.compacted.num_partitions("node") == 2
    for graph in (stores.changed, stores.compacted, stores.same):
        assert verify(graph.path).problems == []


def test_all_that_is_read_is_the_same(stores: Stores) -> None:
    assert_same_arrays(stores.changed, stores.same)
    for facts in (node_facts, edge_facts, counts):
        assert facts(stores.changed) == facts(stores.compacted)


def rows(table: Any) -> list[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in table.columns]
    return sorted(zip(*columns, strict=True), key=repr)


def assert_alike(found: Any, wanted: Any) -> None:
    assert found.column_names == wanted.column_names
    one, other = rows(found), rows(wanted)
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        for x, y in zip(a, b, strict=True):
            assert x == (
                pytest.approx(y, rel=1e-6, abs=1e-9) if isinstance(y, float) else y
            )


BY_NUMBER = {"random_walks", "leiden", "clustering"}
"""What draws or breaks ties by numbers; compared where these are the same."""


def variants() -> list[tuple[str, str]]:
    made = [(name, kind) for name in sorted(ALGORITHMS) for kind in ("native", "program")]
    return [(name, kind) for name, kind in made if getattr(get(name), kind)]


@pytest.mark.parametrize(("name", "kind"), variants())
def test_algorithms(stores: Stores, name: str, kind: str) -> None:
    wanted = stores.same if name in BY_NUMBER else stores.compacted
    both = (stores.changed, wanted)

    def rows_of(graph: Graph) -> Any:
        options = PARAMETERS.get(name, dict(get(name).example.parameters))
        return get(name)(graph, implementation=kind, num_threads=1, **options).table

    tables, said = [], []
    for graph in both:
        try:
            tables.append(rows_of(graph))
        except InvalidGraphError as err:  # it takes other graphs; says so of both, alike
            said.append(str(err).replace(str(graph.path), "graph"))
    if tables:
        assert_alike(*tables)
    else:
        assert said[0] == said[1]


@pytest.mark.parametrize("mode", ["streamed", "paged"])
@pytest.mark.parametrize("name", ["bfs", "sssp", "pagerank", "wcc"])
def test_streamed_programs(stores: Stores, name: str, mode: str) -> None:
    def choose(plan: Any, topology: Any, _: int | None) -> MemoryPlan:
        choice = program_memory.choose(plan, topology, None)
        return replace(choice, mode=mode, budget=0)  # type: ignore[arg-type] # one of them

    program = get(name).program_class()(**PARAMETERS.get(name, {}))
    with (
        patch.object(prepared, "choose", choose),
        patch("graphsys.engine.execute.stream.PIECE_BYTES", 64),
    ):
        found = [gs.run(program, g).table for g in (stores.changed, stores.compacted)]
    assert_alike(*found)


def test_mining(stores: Stores) -> None:
    mining = gs.mining

    def answers(graph: Graph) -> Any:
        counts = [mining.count(graph, it) for it in ("triangle", "a-b b-c c-d d-a")]
        found = mining.matches(graph, "triangle")
        lines = (row for batch in found for row in batch.to_pylist())
        listed = sorted(sorted(map(str, row.values())) for row in lines)
        frequent = mining.frequent_patterns(graph, 20, max_edges=2, labels="label")
        return counts, mining.motif_census(graph, 4), listed, str(frequent)

    assert answers(stores.changed) == answers(stores.compacted)


def test_other_libraries(stores: Stores) -> None:
    one, other = (graph.to_networkx() for graph in (stores.changed, stores.compacted))
    assert nx.utils.graphs_equal(nx.Graph(one), nx.Graph(other))
    assert one.number_of_edges() == other.number_of_edges() == stores.changed.num_edges
    matrices = [graph.to_scipy() for graph in (stores.changed, stores.same)]
    assert (matrices[0] != matrices[1]).nnz == 0
    edges = [graph.edge_index().tolist() for graph in (stores.changed, stores.same)]
    assert edges[0] == edges[1]
    frames = [g.to_pandas().to_dict("list") for g in (stores.changed, stores.same)]
    assert frames[0] == frames[1]


def test_pyg(stores: Stores) -> None:
    pytest.importorskip("torch_geometric")
    one, other = (graph.to_pyg() for graph in (stores.changed, stores.same))
    assert one.to_dict().keys() == other.to_dict().keys()
    for name, value in one.to_dict().items():
        assert str(value) == str(other[name])
    assert one.edge_index.equal(other.edge_index)
    assert one.x.equal(other.x)


def test_questions_to_a_graph(stores: Stores) -> None:
    def answers(graph: Graph) -> Any:
        near = [
            sorted(graph.neighbors(n, direction=way))
            for n in range(0, 60, 7)
            for way in ("out", "in", "both")
        ]
        with graph.subgraph(list(range(30, 55))) as part:
            return near, edge_facts(part), graph.degree(50)

    assert answers(stores.changed) == answers(stores.compacted)


def test_writing_again(stores: Stores, tmp_path: Path) -> None:
    found = []
    for k, graph in enumerate((stores.changed, stores.compacted)):
        options: dict[str, Any] = {"partitioner": "fennel", "partitions": 3}
        repartition(graph, tmp_path / f"p{k}", **options)
        gs.split(graph, tmp_path / f"s{k}", "0.8,0.1,0.1", seed=1).graph.close()
        with Graph(tmp_path / f"p{k}") as parts, Graph(tmp_path / f"s{k}") as splits:
            found.append((node_facts(parts), edge_facts(parts), edge_facts(splits)))
    assert found[0] == found[1]


def test_embeddings(stores: Stores, tmp_path: Path) -> None:
    answers = []
    for k, graph in enumerate((stores.changed, stores.same)):
        config = gs.embedding.EmbeddingConfig(
            dim=8, epochs=3, threads=1, deterministic=True
        )
        run = tmp_path / str(k)
        gs.embedding.train(graph, config, run)
        table = gs.embedding.Embeddings(run).lookup(list(range(60))).tolist()
        metrics = gs.embedding.evaluate(run, split="train", threads=1)["metrics"]
        near = gs.embedding.nearest(run, 55, k=5)["id"].to_pylist()
        answers.append((table, metrics, near))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("model", ["gcn", "sage"])
def test_networks(stores: Stores, tmp_path: Path, model: str) -> None:
    answers = []
    for k, graph in enumerate((stores.changed, stores.same)):
        config = gs.gnn.GnnConfig(model=model, dim=8, epochs=3, threads=1, features=("x",))
        run = tmp_path / str(k)
        gs.gnn.train(graph, config, run)
        metrics = gs.gnn.evaluate(run, split="test")["metrics"]
        answers.append((metrics, gs.gnn.predict(run, [1, 47, 55]).to_pydict()))
    assert answers[0] == answers[1]


def test_sampling(stores: Stores) -> None:
    from graphsys.sampling import NeighborSampler

    found = []
    for graph in (stores.changed, stores.same):
        sampler = NeighborSampler(graph, [4, 3], seed=2)
        sample = sampler.sample(np.arange(0, 60, 5))
        found.append(
            repr(
                [
                    {k: str(v) for k, v in vars(b).items()}
                    if hasattr(b, "__dict__")
                    else str(b)
                    for b in sample.blocks
                ]
            )
        )
    assert found[0] == found[1]
