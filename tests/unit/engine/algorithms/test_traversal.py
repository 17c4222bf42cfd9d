from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.errors import UnknownNameError
from graphsys.engine.algorithms import traversal
from graphsys.engine.algorithms.traversal import bfs
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.algorithms import traversal as kernels
from tests.unit.engine.algorithms import ldbc
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values


@settings(max_examples=80)
@given(
    graph=small_graphs().filter(lambda graph: bool(graph.ids)),
    order=st.integers(0, 3),
    most=st.sampled_from([0, 4, 1 << 15]),
)
def test_hops_are_those_of_networkx(graph: SmallGraph, order: int, most: int) -> None:
    source = graph.ids[0]
    reached = nx.single_source_shortest_path_length(graph.networkx(), source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traversal, "SERIAL_EDGES", most)  # 0: all threads, each level
        result = bfs(graph.topology(order), source=source, parents=True, num_threads=2)
    assert values(result) == {node: reached.get(node) for node in graph.ids}
    assert result.table["value"].type == "int64"
    check_parents(graph, source, values(result), values(result, "parent"))


def check_parents(
    graph: SmallGraph, source: Any, hops: dict[Any, Any], parents: dict[Any, Any]
) -> None:
    """The smallest in-neighbor one hop closer; nothing for others."""
    edges = [(a, b) for a, b, _ in graph.edges]
    if not graph.is_directed:
        edges += [(b, a) for a, b in edges]
    for node in graph.ids:
        if node == source or hops[node] is None:
            assert parents[node] is None
            continue
        closer = [a for a, b in edges if b == node and hops[a] == hops[node] - 1]
        assert parents[node] == min(closer)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_large_levels_are_pulled_and_pushed_by_threads(
    directed: bool, num_threads: int, rng: np.random.Generator
) -> None:
    src, dst = rng.zipf(1.6, (2, 120_000)) % 20_000
    topology = Topology.from_edges(src, dst, 20_000, directed=directed)
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(range(20_000))
    graph.add_edges_from(zip(src.tolist(), dst.tolist(), strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traversal, "SERIAL_EDGES", 200)
        result = bfs(topology, source=7, num_threads=num_threads)
    reached = nx.single_source_shortest_path_length(graph, 7)
    assert values(result) == {node: reached.get(node) for node in range(20_000)}


def test_many_tiny_levels_stay_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    kernel = kernels.push_levels

    def push_levels(*arguments: Any) -> int:
        calls.append(1)
        return kernel(*arguments)

    monkeypatch.setattr(kernels, "push_levels", push_levels)
    path = np.arange(5000)
    result = bfs(Topology.from_edges(path, path + 1, 5001), source=0)
    assert values(result) == {n: n for n in range(5001)}
    assert len(calls) < 20


def test_unknown_source_is_named() -> None:
    topology = Topology.from_edges(np.array([0]), np.array([1]), 2)
    with pytest.raises(UnknownNameError, match="99"):
        bfs(topology, source=99)


def test_isolated_source_reaches_itself() -> None:
    none = np.empty(0, dtype=np.int64)
    result = bfs(Topology.from_edges(none, none, 3), source=1, parents=True)
    assert values(result) == {0: None, 1: 0, 2: None}
    assert values(result, "parent") == {0: None, 1: None, 2: None}


@pytest.mark.parametrize("side", ["dir", "undir"])
def test_ldbc_validation(shared_data: Path, side: str) -> None:
    folder = shared_data / ldbc.VALIDATION / "bfs"
    topology = ldbc.adjacency(folder / f"{side}-input", side == "dir")
    result = bfs(topology, source=1)
    assert values(result) == ldbc.expected(folder / f"{side}-output", int)


@pytest.mark.parametrize("side", ["directed", "undirected"])
def test_ldbc_example(shared_data: Path, side: str) -> None:
    base = shared_data / ldbc.VALIDATION / "example" / f"example-{side}"
    topology = ldbc.tables(
        Path(f"{base}.v"), Path(f"{base}.e"), directed=side == "directed"
    )
    source = 1 if side == "directed" else 2
    assert values(bfs(topology, source=source)) == ldbc.expected(Path(f"{base}-BFS"), int)


@pytest.mark.parametrize("directed", [True, False])
def test_ldbc_p2p_31(shared_data: Path, directed: bool) -> None:
    base = shared_data / ldbc.P2P
    topology = ldbc.tables(Path(f"{base}.v"), Path(f"{base}.e"), directed)
    output = Path(f"{base}-BFS{'-directed' if directed else ''}")
    assert values(bfs(topology, source=6)) == ldbc.expected(output, int)
