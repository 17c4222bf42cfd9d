from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.errors import ConfigError
from graphsys.core.types import EdgeType
from graphsys.engine.topology import Topology
from graphsys.storage import NodeChunk
from tests.stores import edge_chunk, make_store
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values
from tests.unit.engine.programs.runs import Stored, run


def spread(graph: SmallGraph, known: dict[Any, int], iterations: int) -> dict[Any, Any]:
    """The definition, node by node."""
    around: dict[Any, list[Any]] = {node: [] for node in graph.ids}
    for a, b, _ in graph.edges:
        around[b].append(a)
        if graph.is_directed or a != b:
            around[a].append(b)
    labels = {node: known.get(node) for node in graph.ids}
    for _ in range(iterations):
        heard = {
            node: Counter(labels[n] for n in around[node] if labels[n] is not None)
            for node in graph.ids
        }
        labels = {
            node: labels[node]
            if node in known or not tally
            else min(label for label, n in tally.items() if n == max(tally.values()))  # type: ignore[type-var]
            for node, tally in heard.items()
        }
    return labels


@settings(max_examples=40)
@given(graph=small_graphs(), data=st.data())
def test_labels_follow_the_definition(graph: SmallGraph, data: st.DataObject) -> None:
    if not graph.ids:
        return
    some = st.dictionaries(st.sampled_from(graph.ids), st.integers(0, 3), min_size=1)
    known = data.draw(some)
    iterations = data.draw(st.integers(1, 5))
    result = run("label_propagation", graph, labels=known, iterations=iterations)
    assert values(result) == spread(graph, known, iterations)
    settled = run("label_propagation", graph, labels=known, max_supersteps=60)
    if settled.converged:
        assert values(settled) == spread(graph, known, settled.supersteps)


def test_layouts_and_threads_do_not_matter(stored: Stored) -> None:
    known = {node: k % 3 for k, node in enumerate(stored.graph.ids[:12])}
    labels = stored.same("label_propagation", labels=known, iterations=8)
    assert labels == spread(stored.graph, known, 8)


def test_labels_of_the_training_split_come_from_the_store(tmp_path: Path) -> None:
    nodes = NodeChunk(
        ids=np.arange(5),
        columns={
            "label": pa.array([4, 9, None, None, None], type=pa.int64()),
            "split": pa.array(["train", "test", None, None, None], type=pa.string()),
        },
    )
    edges = edge_chunk([(0, 1), (1, 2), (3, 2)])
    make_store(tmp_path / "store", nodes, edges, is_directed=True)
    result = run("label_propagation", Topology.of(tmp_path / "store"))
    assert values(result) == {0: 4, 1: 4, 2: 4, 3: 4, 4: None}


def test_labels_of_types_with_the_same_ids_stay_apart_in_every_partition(
    tmp_path: Path,
) -> None:
    def labels(node_type: str, *known: int | None) -> NodeChunk:
        column = pa.array(known, type=pa.int16())
        ids = np.arange(len(known))
        return NodeChunk(ids=ids, node_type=node_type, columns={"label": column})

    likes = edge_chunk([(0, 0), (1, 1), (2, 2)], EdgeType("user", "likes", "item"))
    make_store(
        tmp_path / "store",
        labels("user", 7, None, 5),
        labels("item", None, 3, None),
        likes,
        partitions=2,
    )
    found = run("label_propagation", Topology.of(tmp_path / "store")).table.to_pydict()
    kinds = [str(kind) for kind in found["type"]]
    assert dict(zip(zip(kinds, found["id"], strict=True), found["value"], strict=True)) == {
        ("user", 0): 7,
        ("user", 1): 3,
        ("user", 2): 5,
        ("item", 0): 7,
        ("item", 1): 3,
        ("item", 2): 5,
    }


def test_a_negative_label_of_a_store_is_named(tmp_path: Path) -> None:
    column = pa.array([4, None, -2], type=pa.int64())
    nodes = NodeChunk(ids=np.array([10, 20, 30]), columns={"label": column})
    make_store(tmp_path / "store", nodes, edge_chunk([(10, 20), (20, 30)]))
    with pytest.raises(ConfigError, match="label of 30 is -2"):
        run("label_propagation", Topology.of(tmp_path / "store"))


def test_no_labels_and_negative_labels_are_refused() -> None:
    graph = SmallGraph([1], [], True)
    with pytest.raises(ConfigError, match=r"no node of .* has a label"):
        run("label_propagation", graph)
    with pytest.raises(ConfigError, match="label of 1 is -3"):
        run("label_propagation", graph, labels={1: -3})


@pytest.mark.parametrize("labels", [[1, 2], "label", 3])
def test_labels_that_map_nothing_are_refused(labels: Any) -> None:
    graph = SmallGraph([1, 2], [(1, 2, 1.0)], True)
    with pytest.raises(
        ConfigError, match=r"labels of label_propagation: got .* numbers by id"
    ):
        run("label_propagation", graph, labels=labels)
