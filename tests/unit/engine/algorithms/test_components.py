from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.engine.algorithms.components import wcc
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms import ldbc
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values


@settings(max_examples=80)
@given(graph=small_graphs(), order=st.integers(0, 3), threads=st.integers(1, 2))
def test_components_are_those_of_networkx(
    graph: SmallGraph, order: int, threads: int
) -> None:
    parts = list(nx.connected_components(nx.Graph(graph.networkx().to_undirected())))
    result = wcc(graph.topology(order), num_threads=threads)
    assert values(result) == smallest(parts)
    assert result.result == len(parts)


def smallest(parts: list[set[Any]]) -> dict[Any, Any]:
    """Label every node with the smallest of its part."""
    return {node: least for part in parts for least in [min(part)] for node in part}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_a_giant_and_many_small_ones(
    directed: bool, num_threads: int, rng: np.random.Generator
) -> None:
    src, dst = rng.integers(0, 60_000, (2, 40_000))
    topology = Topology.from_edges(src, dst, 60_000, directed=directed)
    graph = nx.Graph(zip(src.tolist(), dst.tolist(), strict=True))
    graph.add_nodes_from(range(60_000))
    result = wcc(topology, num_threads=num_threads)
    parts = list(nx.connected_components(graph))
    assert values(result) == smallest(parts)
    assert result.result == len(parts)


def test_a_node_that_only_points_into_the_giant_belongs_to_it() -> None:
    src = np.concatenate([np.arange(1, 5000), [5000, 5000]])
    dst = np.concatenate([np.arange(0, 4999), [4000, 4500]])
    result = wcc(Topology.from_edges(src, dst, 5002))
    assert values(result)[5000] == 0
    assert result.result == 2


def test_empty_graph_has_no_components() -> None:
    none = np.empty(0, dtype=np.int64)
    result = wcc(Topology.from_edges(none, none, 0))
    assert (len(result), result.result) == (0, 0)


@pytest.mark.parametrize("side", ["dir", "undir"])
def test_ldbc_validation(shared_data: Path, side: str) -> None:
    folder = shared_data / ldbc.VALIDATION / "wcc"
    topology = ldbc.adjacency(folder / f"{side}-input", side == "dir")
    check_partition(values(wcc(topology)), ldbc.expected(folder / f"{side}-output", int))


def test_ldbc_p2p_31(shared_data: Path) -> None:
    base = shared_data / ldbc.P2P
    topology = ldbc.tables(Path(f"{base}.v"), Path(f"{base}.e"), directed=True)
    check_partition(values(wcc(topology)), ldbc.expected(Path(f"{base}-WCC"), int))


def check_partition(found: dict[int, int], expected: dict[int, int]) -> None:
    """LDBC leaves the labels open; ours are the smallest ids."""
    least: dict[int, int] = {}
    for node, label in expected.items():
        least[label] = min(least.get(label, node), node)
    assert found == {node: least[label] for node, label in expected.items()}
