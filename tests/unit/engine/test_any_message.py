"""Programs to which any one message is enough: senders may update, or must not."""

from typing import Any

import numpy as np
import pytest

import graphsys as gs
from graphsys.engine.codegen.plan import plan_of
from graphsys.engine.codegen.spec import spec_of
from graphsys.engine.execute.launch import Launch
from graphsys.engine.execute.launcher import Launcher
from graphsys.engine.topology import Topology

NUM_NODES = 3000
LAST = 6


class Waves(gs.VertexProgram):
    """Nodes are reached again and again: senders accept, too, so none may update others."""

    wave = gs.state("int64", default=-1)
    combine = gs.any

    def start(self, graph: Any) -> Any:
        return {0: {"wave": 0}}

    def message(self, src: Any, edge: Any) -> Any:
        return src.wave

    def accepts(self, node: Any) -> Any:
        return node.wave < LAST

    def update(self, node: Any, message: Any) -> Any:
        return message + 1


class FoundBy(gs.VertexProgram):
    """Every node keeps the id of one that found it: messages differ."""

    hops = gs.state("int64", default=-1)
    finder = gs.state("int64", default=-1)
    combine = gs.any

    def start(self, graph: Any) -> Any:
        return {0: {"hops": 0, "finder": 0}}

    def message(self, src: Any, edge: Any) -> Any:
        return src.id

    def accepts(self, node: Any) -> Any:
        return node.hops < 0

    def update(self, node: Any, message: Any) -> Any:
        return self.superstep + 1, message


class Offset(Waves):
    """What a node takes over depends on the node: a level holds different states."""

    def update(self, node: Any, message: Any) -> Any:
        return message + 1 + node.id % 2


@pytest.mark.parametrize(
    ("program", "expected"), [(Waves, True), (FoundBy, False), (Offset, False)]
)
def test_levels_are_alike_where_nothing_else_is_read(
    program: type[gs.VertexProgram], expected: bool
) -> None:
    assert plan_of(spec_of(program), {}).phases[0].spreads_alike is expected


def test_levels_that_are_alike_are_asked_for_one_message(
    edges: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    kernels: set[str] = set()
    call = Launcher.call

    def noted(self: Launcher, launch: Launch) -> Any:
        kernels.add(launch.kernel)
        if launch.kernel == "same":
            asked.append(launch.block.num_rows)
        return call(self, launch)

    monkeypatch.setattr(Launcher, "call", noted)
    run(Waves(), edges, 1)
    assert max(asked, default=64) <= 64
    assert ("look" in kernels) == bool(asked)
    assert not kernels & {"send", "pull"}
    asked.clear()
    kernels.clear()
    run(FoundBy(), edges, 1)
    assert all(num == NUM_NODES for num in asked)
    assert "look" not in kernels


@pytest.fixture(scope="module", params=[2, 40])
def edges(request: pytest.FixtureRequest) -> Any:
    """Sparse edges keep to pushes; dense ones pull in between."""
    rng = np.random.default_rng(5)
    return rng.integers(0, NUM_NODES, (2, request.param * NUM_NODES))


def run(program: gs.VertexProgram, edges: Any, threads: int) -> Any:
    src, dst = edges
    topology = Topology.from_edges(src, dst, NUM_NODES)
    return gs.run(program, topology, num_threads=threads).table


def levels(edges: Any) -> Any:
    """Hops from node 0, by a search in plain Python."""
    hops, frontier, level = np.full(NUM_NODES, -1), np.array([0]), 0
    hops[0] = 0
    while len(frontier):
        level += 1
        found = np.unique(edges[1][np.isin(edges[0], frontier)])
        frontier = found[hops[found] < 0]
        hops[frontier] = level
    return hops


@pytest.mark.parametrize("threads", [1, 2])
def test_senders_that_accept_do_not_update(edges: Any, threads: int) -> None:
    expected, frontier, wave = np.full(NUM_NODES, -1), np.array([0]), 0
    while len(frontier):
        expected[frontier] = wave
        reached = np.unique(edges[1][np.isin(edges[0], frontier)])
        frontier, wave = reached[expected[reached] < LAST], wave + 1
    found = run(Waves(), edges, threads)
    assert found["value"].to_pylist() == expected.tolist()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_finder_is_a_neighbor_one_hop_closer(edges: Any, threads: int) -> None:
    found = run(FoundBy(), edges, threads)
    hops, finder = found["hops"].to_numpy(), found["finder"].to_numpy()
    assert hops.tolist() == levels(edges).tolist()
    reached = np.flatnonzero(hops > 0)
    assert len(set(finder[reached].tolist())) > 1
    pairs = set(zip(*edges.tolist(), strict=True))
    assert all((finder[v], v) in pairs for v in reached)
    assert (hops[finder[reached]] == hops[reached] - 1).all()
