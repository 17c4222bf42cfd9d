"""States of edges: what phases store, and what the way back reads."""

from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphsys
from graphsys.core.errors import CompileError, ConfigError
from graphsys.engine import program as gs
from graphsys.engine.run import run
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values

MISSING = 100.0


class Weights(gs.VertexProgram):
    """Every edge keeps its weight; every node sums what its senders' ways back keep."""

    kept = gs.edge_state("float64", default=MISSING)
    back = gs.state("float64")
    results = ("back",)

    class Keep(gs.Phase):
        stores = "kept"
        updates = ("back",)

        def message(self, src: Any, edge: Any) -> Any:
            return edge.weight

        combine = gs.sum_

        def update(self, node: Any, message: Any) -> Any:
            return 0.0

    class Read(gs.Phase):
        updates = ("back",)

        def message(self, src: Any, edge: Any) -> Any:
            return edge.reverse.kept * edge.weight

        combine = gs.sum_

        def update(self, node: Any, message: Any) -> Any:
            return message

    phases = (Keep, Read)


class WeightsAgainst(Weights):
    """The same against the edges' direction."""

    class Keep(Weights.Keep):
        direction = "in"

    class Read(Weights.Read):
        direction = "in"

    phases = (Keep, Read)


class WeightsBothWays(Weights):
    """The same both ways."""

    class Keep(Weights.Keep):
        direction = "both"

    class Read(Weights.Read):
        direction = "both"

    phases = (Keep, Read)


def expected_sums(graph: SmallGraph, direction: str) -> dict[Any, float]:
    """Multi-edges are matched by weight; both ways, an edge is its own way back."""
    sums = dict.fromkeys(graph.ids, 0.0)
    between = defaultdict(list)
    both = direction == "both" or not graph.is_directed
    for a, b, w in graph.edges:
        if both:
            sums[b] += w * w
            sums[a] += w * w if graph.is_directed or a != b else 0
        else:
            between[(a, b) if direction == "out" else (b, a)].append(w)
    for (a, b), weights in between.items():
        back = sorted(between.get((b, a), []))
        for k, w in enumerate(sorted(weights)):
            sums[b] += w * (back[k] if k < len(back) else MISSING)
    return sums


PROGRAMS = [(Weights, "out"), (WeightsAgainst, "in"), (WeightsBothWays, "both")]


@settings(max_examples=40)
@given(graph=small_graphs(), order=st.integers(0, 3), case=st.sampled_from(PROGRAMS))
def test_the_way_back_is_read(
    graph: SmallGraph, order: int, case: tuple[type[gs.VertexProgram], str]
) -> None:
    program, direction = case
    result = run(program, graph.topology(order), num_threads=1)
    assert values(result) == pytest.approx(expected_sums(graph, direction))


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("undirected", [False, True])
def test_stores_keep_states_of_edges(
    tmp_path: Path, partitions: int, undirected: bool
) -> None:
    rng = np.random.default_rng(1)
    src, dst = rng.integers(0, 30, 200), rng.integers(0, 30, 200)
    weight = rng.integers(1, 5, 200) / 2
    graph = SmallGraph(
        ids=sorted({*src.tolist(), *dst.tolist()}),
        edges=list(zip(src.tolist(), dst.tolist(), weight.tolist(), strict=True)),
        is_directed=not undirected,
    )
    graphsys.ingest(
        (src, dst, weight), tmp_path / "g", partitions=partitions, undirected=undirected
    )
    for program, direction in PROGRAMS:
        for threads in (1, 2):
            result = run(program, tmp_path / "g", num_threads=threads)
            assert values(result) == pytest.approx(expected_sums(graph, direction))


class Ways(gs.VertexProgram):
    """Counts ways along the edges, and those with an edge back."""

    direction: ClassVar[Any] = "both"
    schedule = "all"
    max_supersteps = 1
    along = gs.state("int64")
    back = gs.state("int64")

    def message(self, src: Any, edge: Any) -> Any:
        return int(edge.forward), int(edge.reverse.forward)

    combine = gs.sum_

    def update(self, node: Any, message: Any) -> Any:
        return message[0], message[1]


class WaysOut(Ways):
    """The same along the edges."""

    direction = "out"


@settings(max_examples=40)
@given(graph=small_graphs())
def test_forward_says_which_way(graph: SmallGraph) -> None:
    both, out = run(Ways, graph.topology()), run(WaysOut, graph.topology())
    net = graph.networkx()
    into = dict(net.in_degree() if graph.is_directed else net.degree())
    if not graph.is_directed:  # a loop appears once
        into = {v: d - net.number_of_edges(v, v) for v, d in into.items()}
    assert values(both, "along") == into
    assert values(out, "along") == into
    assert values(both, "back") == (dict(net.out_degree()) if graph.is_directed else into)
    mutual = {
        v: sum(
            min(net.number_of_edges(u, v), net.number_of_edges(v, u))
            for u in set(net.predecessors(v) if graph.is_directed else net[v])
        )
        for v in net
    }
    assert values(out, "back") == mutual


class Once(gs.VertexProgram):
    """Only edges from even nodes to nodes above 1 change what they keep."""

    schedule = "all"
    max_supersteps = 2
    kept = gs.edge_state("int64", default=-1)
    stores = "kept"
    sum = gs.state("int64")

    def active(self, node: Any) -> Any:
        return node.id % 2 == 0

    def accepts(self, node: Any) -> Any:
        return node.id > 1

    def message(self, src: Any, edge: Any) -> Any:
        return edge.kept * 10

    combine = gs.sum_

    def update(self, node: Any, message: Any) -> Any:
        return message


class ReadOnce(gs.VertexProgram):
    """Runs :class:`Once` in phases, then shows all that the edges keep."""

    kept = gs.edge_state("int64", default=-1)
    sum = gs.state("int64")

    class Change(gs.Phase):
        schedule = "all"
        stores = "kept"
        active, accepts = Once.active, Once.accepts
        message, combine, update = Once.message, gs.sum_, Once.update

    class Show(gs.Phase):
        schedule = "all"
        combine, update = gs.sum_, Once.update

        def message(self, src: Any, edge: Any) -> Any:
            return edge.kept

    phases = (Change, Change, Change, Show)


def test_edges_without_a_message_keep_their_state() -> None:
    src, dst = np.array([0, 1, 2, 0, 3]), np.array([1, 2, 3, 3, 0])
    topology = Topology.from_edges(src, dst, 4)
    # 0 -> 1 is not taken, 1 -> 2 and 3 -> 0 are not sent, the others are three times
    assert values(run(ReadOnce, topology)) == {0: -1, 1: -1, 2: -1, 3: -2000}
    assert values(run(Once, topology))[3] == -200


class Heavy(gs.VertexProgram):
    """Finds out who has a heavy edge coming in; the light ones send nothing."""

    source: gs.NodeId
    found = gs.state("int64", default=-1)
    schedule = "changed"
    combine = gs.any_

    def start(self, graph: Any) -> Any:
        return {self.source: {"found": 0}}

    def message(self, src: Any, edge: Any) -> Any:
        return 0 if edge.weight > 1 else None

    def update(self, node: Any, message: Any) -> Any:
        return message


@settings(max_examples=40)
@given(graph=small_graphs())
def test_any_does_not_take_a_message_that_was_not_sent(graph: SmallGraph) -> None:
    if not graph.ids:
        return
    net = graph.networkx()
    net.remove_edges_from([e for e in net.edges(keys=True, data="weight") if e[3] <= 1])
    source = graph.ids[0]
    expected = {source, *nx.descendants(net, source)}
    found = values(run(Heavy(source=source), graph.topology()))
    assert {node for node, value in found.items() if value == 0} == expected


class Mixed(Weights):
    """Keeps along the edges, reads against them: entries would not be the same."""

    class Read(Weights.Read):
        direction = "in"

    phases = (Weights.Keep, Read)


class Silent(Weights):
    """Stores messages that there may be none of."""

    class Keep(Weights.Keep):
        def message(self, src: Any, edge: Any) -> Any:
            if edge.weight > 1:
                return None
            return edge.weight

    phases = (Keep, Weights.Read)


def test_what_has_no_meaning_is_refused() -> None:
    topology = Topology.from_edges(np.array([0]), np.array([1]), 2)
    with pytest.raises(ConfigError, match="must have one direction, got in, out"):
        run(Mixed, topology)
    with pytest.raises(CompileError, match=r"stores 'kept' .* return a number, not None"):
        run(Silent, topology)
