"""Whether a graph has a cycle, in memory and in stores of all kinds, as NetworkX says."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsys.core.types import EdgeType
from graphsys.engine.programs.eigenvector import has_cycle
from graphsys.engine.topology import Topology
from tests.deltas import append_chunks
from tests.stores import edge_chunk, make_store

LIKES, BY = EdgeType("user", "likes", "item"), EdgeType("item", "by", "user")


@given(st.integers(1, 9), st.data())
def test_edges_in_memory(num: int, data: st.DataObject) -> None:
    node = st.integers(0, num - 1)
    pairs = data.draw(st.lists(st.tuples(node, node), max_size=14))
    src, dst = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    graph = nx.MultiDiGraph(pairs)
    expected = not nx.is_directed_acyclic_graph(graph)
    assert has_cycle(Topology.from_edges(src, dst, num)) == expected


@pytest.mark.parametrize("closes", [False, True])
@pytest.mark.parametrize("partitions", [1, 3])
def test_a_path_that_goes_from_partition_to_partition(
    tmp_path: Path, partitions: int, closes: bool
) -> None:
    path = [(k, k + 1) for k in range(50)]
    store = tmp_path / "graph"
    make_store(store, edge_chunk(path[:40]), partitions=partitions).graph.close()
    append_chunks(store, edge_chunk(path[40:] + [(50, 0)] * closes))
    assert has_cycle(Topology.of(str(store))) == closes


@pytest.mark.parametrize("closes", [False, True])
def test_types_are_one_graph_and_their_rows_are_not_copied(
    tmp_path: Path, closes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    likes = edge_chunk([(0, 100), (1, 101), (2, 101)], LIKES)
    by = edge_chunk([(100, 1), (101, 0 if closes else 3)], BY)
    make_store(tmp_path / "graph", likes, by, partitions=2).graph.close()
    monkeypatch.setattr(Topology, "csr", None)  # which would make one of all rows
    assert has_cycle(Topology.of(str(tmp_path / "graph"))) == closes
