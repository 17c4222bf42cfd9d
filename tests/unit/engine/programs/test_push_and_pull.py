"""Whether a superstep pushes or pulls is the engine's choice, and nobody can tell."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, shortest_path

from graphsys.engine import program as gs
from graphsys.engine import run as runs
from graphsys.engine.algorithms.k_core import k_core as native_k_core
from graphsys.engine.codegen.cpu import module_source
from graphsys.engine.codegen.plan import plan_of
from graphsys.engine.codegen.spec import spec_of
from graphsys.engine.execute import supersteps
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import values
from tests.unit.engine.programs.runs import random_graph, run

GRAPHS = {
    "directed": random_graph(is_directed=True, is_text=True),
    "undirected": random_graph(is_directed=False, is_text=False),
}
PROGRAMS: list[tuple[str, dict[str, Any]]] = [
    ("bfs", {}),
    ("bfs", {"parents": True}),
    ("sssp", {}),
    ("wcc", {}),
    ("k_core", {}),
    ("coloring", {}),
    ("mis", {}),
]


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize(("name", "options"), PROGRAMS)
def test_results_do_not_depend_on_it(
    monkeypatch: pytest.MonkeyPatch, kind: str, name: str, options: dict[str, Any]
) -> None:
    graph = GRAPHS[kind]
    if name in ("bfs", "sssp"):
        options = {**options, "source": graph.ids[5]}
    found = []
    for share in (0, 10**9):  # push whenever possible; pull always
        monkeypatch.setattr(supersteps, "PULL_SHARE", share)
        for threads in (1, 2):
            result = run(name, graph.topology(order=3), num_threads=threads, **options)
            found.append((result.table, result.result, result.supersteps))
    assert all(other == found[0] for other in found)
    if name in ("bfs", "sssp"):
        assert any(value is None for value in values(result).values())


class Widest(gs.VertexProgram):
    """A state that only grows: the widest path's narrowest edge."""

    source: gs.NodeId
    width = gs.state("float64", default=0.0)
    combine = gs.maximum

    def start(self, graph: Any) -> Any:
        return {self.source: {"width": np.inf}}

    def message(self, src: Any, edge: Any) -> Any:
        return min(src.width, edge.weight)

    def update(self, node: Any, message: Any) -> Any:
        return max(node.width, message)


class Counted(Widest):
    """The same, and how many nodes got a message in the last superstep."""

    heard = gs.aggregator(gs.sum_)

    def aggregate(self, before: Any, node: Any) -> Any:
        return 1


@pytest.mark.parametrize("kind", GRAPHS)
def test_states_that_only_grow_are_those_of_relaxing_all_edges(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    graph = GRAPHS[kind]
    source = graph.ids[5]
    expected = dict.fromkeys(graph.ids, 0.0) | {source: np.inf}
    ways = [*graph.edges]
    if not graph.is_directed:
        ways += [(b, a, w) for a, b, w in graph.edges]
    for _ in graph.ids:  # as many rounds as a path has nodes, at most
        for a, b, w in ways:
            expected[b] = max(expected[b], min(expected[a], w))
    for share in (0, 10**9):
        monkeypatch.setattr(supersteps, "PULL_SHARE", share)
        for program in (Widest, Counted):
            found = runs.run(program(source=source), graph.topology(order=3))
            assert values(found) == expected


def test_rows_start_from_a_state_that_is_only_lowered_and_counted_by_nobody() -> None:
    def pull_of(program: Any) -> str:
        text = module_source(plan_of(spec_of(program), {"weight": np.dtype(np.float64)}))
        return text.partition("def pull_0")[2].partition("KERNELS")[0]

    assert "a_0 = row__width[v]" in pull_of(Widest)
    assert "a_0 = row__width[v]" not in pull_of(Counted)


@pytest.mark.parametrize("share", [0, 10, 10**9])
def test_two_threads_agree_with_scipy_on_a_larger_graph(
    monkeypatch: pytest.MonkeyPatch, share: int
) -> None:
    rng = np.random.default_rng(8)
    num = 20_000
    src, dst = rng.integers(0, num, 150_000), rng.integers(0, num, 150_000) ** 2 // num
    once = coo_array((np.ones(len(src)), (src, dst)), shape=(num, num)).tocsr()
    src, dst = once.nonzero()
    weight = rng.integers(1, 9, len(src)).astype(np.float64)
    matrix = csr_array((weight, (src, dst)), shape=(num, num))
    topology = Topology.from_edges(src, dst, num, weight=weight)
    monkeypatch.setattr(supersteps, "PULL_SHARE", share)
    source = int(src[0])

    def value(name: str, **options: Any) -> Any:
        result = run(name, topology, num_threads=2, **options)
        return result.table["value"].to_numpy()

    hops = shortest_path(matrix, indices=source, unweighted=True)
    np.testing.assert_array_equal(
        value("bfs", source=source), np.where(hops < np.inf, hops, np.nan)
    )
    far = shortest_path(matrix, indices=source)
    np.testing.assert_array_equal(
        value("sssp", source=source), np.where(far < np.inf, far, np.nan)
    )
    _, component = connected_components(matrix)
    smallest = np.full(num, num)
    np.minimum.at(smallest, component, np.arange(num))
    np.testing.assert_array_equal(value("wcc"), smallest[component])
    np.testing.assert_array_equal(
        value("k_core"), native_k_core(topology).table["value"].to_numpy()
    )
