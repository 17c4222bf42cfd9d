from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra

from graphsys.core.errors import InvalidGraphError, UnknownNameError
from graphsys.core.threads import ThreadTeam
from graphsys.engine.algorithms import shortest_paths
from graphsys.engine.algorithms.shortest_paths import delta_stepping, sssp
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.algorithms import shortest_path_team as team
from graphsys.kernels.cpu.algorithms import shortest_path_windows as windows
from graphsys.kernels.cpu.algorithms import shortest_paths as kernels
from graphsys.kernels.cpu.bits import as_mask
from tests.unit.engine.algorithms import ldbc
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values


@settings(max_examples=80)
@given(
    graph=small_graphs().filter(lambda graph: bool(graph.ids)),
    order=st.integers(0, 3),
    threads=st.integers(1, 2),
    settings_=st.fixed_dictionaries(
        {
            "SERIAL_EDGES": st.sampled_from([0, 1 << 14]),
            "TEAM_EDGES": st.sampled_from([0, 256]),
            "NUM_BINS": st.sampled_from([2, 5, 4096]),
            "POOL_SHARE": st.sampled_from([1, 4]),
            "PULL_COST": st.sampled_from([0, 1, 4, 10**6]),
        }
    ),
)
def test_distances_are_those_of_networkx(
    graph: SmallGraph, order: int, threads: int, settings_: dict[str, int]
) -> None:
    source = graph.ids[0]
    reached = nx.single_source_dijkstra_path_length(graph.networkx(), source)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings_.items():
            patch.setattr(shortest_paths, name, value)
        result = sssp(graph.topology(order), source=source, num_threads=threads)
    assert values(result) == {node: reached.get(node) for node in graph.ids}


def weighted(
    rng: np.random.Generator, num_nodes: int, num_edges: int, weight: np.ndarray[Any, Any]
) -> tuple[Topology, Any]:
    """A skewed directed graph without repetitions, and the same for SciPy."""
    pairs = np.unique(rng.zipf(1.6, (num_edges, 2)) % num_nodes, axis=0)
    src, dst = pairs.T
    weight = weight[: len(src)]
    matrix = sp.csr_matrix((weight, (src, dst)), shape=(num_nodes, num_nodes))
    return Topology.from_edges(src, dst, num_nodes, weight=weight), matrix


KINDS = {
    "integers": lambda rng, n: rng.integers(1, 256, n).astype(np.float64),
    "fractions": lambda rng, n: rng.random(n) + 1e-9,
    "all magnitudes": lambda rng, n: 10.0 ** rng.uniform(-12, 12, n),
    "huge": lambda rng, n: rng.random(n) * 1e300,
    "tiny": lambda rng, n: rng.random(n) * 1e-300 + 1e-310,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_distances_are_those_of_scipy_bit_for_bit(
    kind: str, num_threads: int, rng: np.random.Generator
) -> None:
    topology, matrix = weighted(rng, 3000, 20_000, KINDS[kind](rng, 20_000))
    expected = dijkstra(matrix, indices=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shortest_paths, "SERIAL_EDGES", 100)
        result = sssp(topology, source=3, num_threads=num_threads)
    found = result.table["value"].to_numpy()
    np.testing.assert_array_equal(np.nan_to_num(found, nan=np.inf), expected)


@pytest.mark.parametrize("kind", ["integers", "fractions"])
@pytest.mark.parametrize("num_threads", [1, 2, 5])
@pytest.mark.parametrize(
    "changes",
    [{}, {"MOST_TEAM_NODES": 40}, {"TEAM_NODES": 60}, {"NUM_BINS": 40}, {"POOL_SHARE": 0}],
)
def test_threads_that_go_from_bin_to_bin_find_them_too(
    kind: str,
    num_threads: int,
    changes: dict[str, int],
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    around = np.arange(2000)  # distances are long
    src = np.repeat(around, 20)
    dst = (src + np.tile(np.arange(-6, 14), 2000)) % 2000
    weight = KINDS[kind](rng, len(src))
    topology = Topology.from_edges(src, dst, 2000, weight=weight)
    matrix = sp.csr_matrix((weight, (src, dst)), shape=(2000, 2000))
    for name, value in ({"TEAM_EDGES": 1, "TEAM_NODES": 1} | changes).items():
        monkeypatch.setattr(shortest_paths, name, value)
    step, said = shortest_paths._Stepping._step_together, list[int]()

    def seen(self: Any) -> int:
        said.append(step(self))
        return said[-1]

    monkeypatch.setattr(shortest_paths._Stepping, "_step_together", seen)
    result = sssp(topology, source=3, num_threads=num_threads)
    found = result.table["value"].to_numpy()
    expected = dijkstra(matrix, indices=3)
    np.testing.assert_array_equal(np.nan_to_num(found, nan=np.inf), expected)
    assert bool(said) == (num_threads > 1)
    if num_threads > 1 and "TEAM_NODES" in changes:
        assert team.UNFIT in said


@pytest.mark.parametrize("first_limit", [np.inf, 64])
@pytest.mark.parametrize("branches", [1, 300])
def test_threads_leave_a_bin_when_all_of_it_is_settled(
    first_limit: float, branches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long way within one bin, of edges that take no time; put-off edges at its end."""
    monkeypatch.setattr(shortest_paths, "TEAM_EDGES", 0)
    monkeypatch.setattr(shortest_paths, "FIRST_LIMIT", first_limit)
    monkeypatch.setattr(shortest_paths, "MOST_TEAM_NODES", 100)
    first = np.arange(1500)
    ways = np.arange(1501, 1501 + branches)
    src = np.concatenate([first, np.full(branches, 20), np.repeat(first[20:1500:30], 2)])
    ends = np.arange(1501 + branches, 1501 + branches + 2 * len(first[20:1500:30]))
    dst = np.concatenate([first + 1, ways, ends])
    weight = np.concatenate(
        [np.where(first < 20, 1.0, 0.0), np.zeros(branches), np.full(len(ends), 90.0)]
    )
    topology = Topology.from_edges(src, dst, int(dst.max()) + 1, weight=weight)
    out, into = topology.rows("out", ("weight",)), topology.rows("in", ("weight",))
    expected = np.where(np.arange(out.num_nodes) < 20, np.arange(out.num_nodes), 20.0)
    expected[ends] = 110.0
    with ThreadTeam(2) as threads:
        for _ in range(5):
            distance, reached, _ = delta_stepping(out, into, 0, 1.0, 0.0, threads)
            assert as_mask(reached, out.num_nodes).all()
            np.testing.assert_array_equal(distance, expected)


def test_frontiers_with_too_many_copies_of_nodes_are_gathered_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of 60 hubs moves the next ones and 20 leaves nearer, all in one wide bin."""
    hubs = np.arange(60)
    src = np.concatenate([np.repeat(hubs, 59), np.repeat(hubs, 20)])
    dst = np.concatenate(
        [np.concatenate([np.delete(hubs, k) for k in hubs]), np.tile(60 + hubs[:20], 60)]
    )
    weight = 1.0 + (src * 37 + dst * 101) % 91 / 7
    chain = np.arange(80, 180)
    src = np.concatenate([src, chain[:-1], [chain[-1]]])
    dst = np.concatenate([dst, chain[1:], [0]])
    weight = np.concatenate([weight, np.full(len(chain), 300.0)])
    topology = Topology.from_edges(src, dst, 180, weight=weight)
    matrix = sp.csr_matrix((weight, (src, dst)), shape=(180, 180))
    monkeypatch.setattr(shortest_paths, "TEAM_EDGES", 0)
    monkeypatch.setattr(shortest_paths, "FIRST_LIMIT", np.inf)
    for delta in (1.0, 20.0, 299.0):
        with ThreadTeam(2) as threads:
            distance, _, _ = delta_stepping(
                topology.rows("out"), topology.rows("in"), 80, delta, 1.0, threads
            )
        np.testing.assert_array_equal(distance, dijkstra(matrix, indices=80))


@pytest.mark.parametrize("first_limit", [4.0, np.inf])
@pytest.mark.parametrize("num_threads", [1, 2])
def test_rows_longer_than_the_room_for_light_edges(
    num_threads: int,
    first_limit: float,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hubs, n = 3, 4 * kernels.ROOM
    src = np.concatenate([np.repeat(np.arange(hubs), n), rng.integers(0, n, n)])
    dst = np.concatenate([np.tile(np.arange(n), hubs), rng.integers(0, n, n)])
    src, dst = np.unique(np.stack([src, dst], axis=1), axis=0).T
    weight = rng.integers(1, 40, len(src)) / 8.0
    topology = Topology.from_edges(src, dst, n, weight=weight)
    matrix = sp.csr_matrix((weight, (src, dst)), shape=(n, n))
    monkeypatch.setattr(shortest_paths, "SERIAL_EDGES", -1)
    monkeypatch.setattr(shortest_paths, "FIRST_LIMIT", first_limit)
    with ThreadTeam(num_threads) as threads:
        distance, _, _ = delta_stepping(
            topology.rows("out"), topology.rows("in"), 0, 0.5, 1 / 8, threads
        )
    np.testing.assert_array_equal(distance, dijkstra(matrix, indices=0))


@pytest.mark.parametrize("delta", [1e-3, 1.0, 50.0, 1e9])
@pytest.mark.parametrize("num_bins", [3, 64])
def test_width_and_number_of_bins_do_not_change_distances(
    delta: float, num_bins: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology, matrix = weighted(rng, 500, 3000, rng.integers(0, 9, 3000) + 0.5)
    monkeypatch.setattr(shortest_paths, "NUM_BINS", num_bins)
    with ThreadTeam(2) as team:
        distance, reached, _ = delta_stepping(
            topology.rows("out"), topology.rows("in"), 3, delta, 0.5, team
        )
    expected = dijkstra(matrix, indices=3)
    np.testing.assert_array_equal(distance, expected)
    np.testing.assert_array_equal(as_mask(reached, 500), np.isfinite(expected))


@pytest.mark.parametrize("serial_edges", [-1, 1 << 14])
def test_an_exhausted_pool_is_rebuilt(
    serial_edges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hubs 1 .. 40 move 640 nodes to ever nearer bins, and leave 400 blocks behind."""
    hubs, leaves = np.arange(1, 41), np.arange(41, 681)
    src = np.concatenate([np.zeros(40, dtype=np.int64), np.repeat(hubs, 640)])
    dst = np.concatenate([hubs, np.tile(leaves, 40)])
    weight = np.concatenate([hubs, np.repeat(120 - 3 * hubs, 640)]).astype(np.float64)
    topology = Topology.from_edges(src, dst, 681, weight=weight)
    for name, value in (
        ("NUM_BINS", 130),
        ("POOL_SHARE", 1),
        ("FIRST_LIMIT", np.inf),
        ("SERIAL_EDGES", serial_edges),
    ):
        monkeypatch.setattr(shortest_paths, name, value)
    num_refills = []
    refill = windows.refill

    def counted(*arguments: Any) -> None:
        num_refills.append(1)
        refill(*arguments)

    monkeypatch.setattr(windows, "refill", counted)
    with ThreadTeam(2) as team:
        distance, _, _ = delta_stepping(
            topology.rows("out"), topology.rows("in"), 0, 1.0, 1.0, team
        )
    matrix = sp.csr_matrix((weight, (src, dst)), shape=(681, 681))
    np.testing.assert_array_equal(distance, dijkstra(matrix, indices=0))
    assert num_refills


def test_without_weights_every_edge_counts_1() -> None:
    topology = Topology.from_edges(np.array([0, 1, 0]), np.array([1, 2, 2]), 4)
    result = sssp(topology, source=0)
    assert result.table["value"].type == "double"
    assert values(result) == {0: 0.0, 1: 1.0, 2: 1.0, 3: None}


def test_weights_of_0_and_infinity() -> None:
    topology = Topology.from_edges(
        np.array([0, 1, 1, 2]),
        np.array([1, 2, 3, 0]),
        4,
        weight=np.array([0.0, 0.0, np.inf, 0.0], dtype=np.float32),
    )
    assert values(sssp(topology, source=0)) == {0: 0.0, 1: 0.0, 2: 0.0, 3: None}


@pytest.mark.parametrize("directed", [True, False])
def test_negative_weights_are_counted_and_the_first_is_named(directed: bool) -> None:
    topology = Topology.from_edges(
        np.array([0, 1, 2, 2]),
        np.array([1, 2, 0, 2]),
        3,
        weight=np.array([1.0, -2.5, -1.0, np.nan]),
        directed=directed,
        ids=["a", "b", "c"],
    )
    message = "3 are negative or NaN, the first "
    message += "-2.5 on edge b -> c" if directed else "-1.0 on edge a -> c"
    for _ in range(2):  # the second time from the summary that was kept
        with pytest.raises(InvalidGraphError, match=message):
            sssp(topology, source="a")


def test_unknown_source_is_named() -> None:
    topology = Topology.from_edges(np.array([0]), np.array([1]), 2)
    with pytest.raises(UnknownNameError, match="77"):
        sssp(topology, source=77)


@pytest.mark.parametrize("side", ["dir", "undir"])
def test_ldbc_validation(shared_data: Path, side: str) -> None:
    folder = shared_data / ldbc.VALIDATION / "sssp"
    topology = ldbc.tables(
        folder / f"{side}-input.v", folder / f"{side}-input.e", side == "dir"
    )
    expected = ldbc.expected(folder / f"{side}-output", float)
    assert values(sssp(topology, source=1)) == expected


@pytest.mark.parametrize("directed", [True, False])
def test_ldbc_p2p_31(shared_data: Path, directed: bool) -> None:
    base = shared_data / ldbc.P2P
    topology = ldbc.tables(Path(f"{base}.v"), Path(f"{base}.e"), directed)
    output = Path(f"{base}-SSSP{'-directed' if directed else ''}")
    assert values(sssp(topology, source=6)) == ldbc.expected(output, float)


def test_nodes_in_the_bin_of_the_limit_are_reached() -> None:
    # 5 -> 9 ends on the limit exactly, rounds below it, and nothing else is put off
    edges = [(0, 5, 0.5), (5, 9, 1.5), (2, 5, 1.5), (2, 4, 3.0), (4, 9, 0.0), (8, 4, 0.5)]
    edges += [(1, 5, 0.0), (8, 0, 0.0), (7, 5, 0.5), (7, 0, 0.0), (3, 5, 0.0)]
    graph = SmallGraph(ids=list(range(10)), edges=edges, is_directed=True)
    reached = {node: d for node, d in values(sssp(graph.topology(), source=0)).items() if d}
    assert reached == {5: 0.5, 9: 2.0}
