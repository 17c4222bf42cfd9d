"""Programs of one's own, one for each thing that a program can read, with oracles."""

from collections.abc import Callable
from typing import Any, Final

from graphsys.engine import program as gs
from tests.unit.engine.algorithms.small_graphs import SmallGraph
from tests.unit.engine.test_edge_states import WeightsBothWays, expected_sums

ROUNDS = 4
"""Supersteps of :class:`Shares`."""


class Heaviest(gs.VertexProgram):
    """Columns of edges: the heaviest edge that comes in, -1 without any."""

    heaviest = gs.state("float64", default=-1.0)
    combine, schedule = gs.maximum, "all"

    def message(self, src: Any, edge: Any) -> Any:
        return edge.weight

    def update(self, node: Any, message: Any) -> Any:
        return max(node.heaviest, message)

    def until(self, totals: Any) -> bool:
        return bool(self.superstep >= 1)


class Coming(gs.VertexProgram):
    """``edge.forward``: how many edges lead to the node, of those at it."""

    coming = gs.state("int64")
    combine, direction, schedule = gs.sum_, "both", "all"

    def message(self, src: Any, edge: Any) -> Any:
        return int(edge.forward)

    def update(self, node: Any, message: Any) -> Any:
        return message

    def until(self, totals: Any) -> bool:
        return bool(self.superstep >= 1)


class Going(Coming):
    """``edge.reverse.forward``: how many edges lead away from it."""

    def message(self, src: Any, edge: Any) -> Any:
        return int(edge.reverse.forward)


class Jumps(gs.VertexProgram):
    """``node.at``: from each node to its smallest successor, and four times on."""

    next_node = gs.state(gs.NodeId, default=gs.own_id)
    results = ("next_node",)
    loop = True

    class Point(gs.Phase):
        direction, schedule, updates = "in", "all", ("next_node",)
        combine = gs.minimum

        def active(self, node: Any) -> Any:
            return self.superstep == 0

        def message(self, src: Any, edge: Any) -> Any:
            return src.id

        def update(self, node: Any, message: Any) -> Any:
            return min(node.next_node, message)

    class Jump(gs.Phase):
        updates = ("next_node",)

        def update(self, node: Any) -> Any:
            return node.at(node.next_node).next_node

    phases = (Point, Jump)

    def until(self, totals: Any) -> bool:
        return bool(self.superstep >= 4)


class Shares(gs.VertexProgram):
    """Aggregators: values shared along edges, divided by what all nodes had together."""

    value = gs.state("float64", default=1.0)
    total_value = gs.aggregator(gs.sum_)
    combine, schedule = gs.sum_, "all"

    def message(self, src: Any, edge: Any) -> Any:
        return src.value

    def update(self, node: Any, message: Any) -> Any:
        total = self.total("total_value") if self.superstep > 0 else self.num_nodes
        return (1.0 + message) / (1.0 + total)

    def aggregate(self, before: Any, node: Any) -> Any:
        return node.value

    def until(self, totals: Any) -> bool:
        return bool(self.superstep >= ROUNDS)


def _arcs(graph: SmallGraph) -> list[tuple[Any, Any, float]]:
    """Return each way of each edge; an undirected loop has one."""
    if graph.is_directed:
        return graph.edges
    back = [(b, a, w) for a, b, w in graph.edges if a != b]
    return graph.edges + back


def heaviest(graph: SmallGraph) -> dict[Any, float]:
    found = dict.fromkeys(graph.ids, -1.0)
    for _, b, w in _arcs(graph):
        found[b] = max(found[b], w)
    return found


def coming(graph: SmallGraph) -> dict[Any, int]:
    found = dict.fromkeys(graph.ids, 0)
    for _, b, _ in _arcs(graph):
        found[b] += 1
    return found


def going(graph: SmallGraph) -> dict[Any, int]:
    found = dict.fromkeys(graph.ids, 0)
    for a, _, _ in _arcs(graph):
        found[a] += 1
    return found


def jumps(graph: SmallGraph) -> dict[Any, Any]:
    following = {node: node for node in graph.ids}
    for a, b, _ in _arcs(graph):
        following[a] = min(following[a], b)
    for _ in range(2):
        following = {node: following[other] for node, other in following.items()}
    return following


def shares(graph: SmallGraph) -> dict[Any, float]:
    value = dict.fromkeys(graph.ids, 1.0)
    for _ in range(ROUNDS):
        sums = dict.fromkeys(graph.ids, 0.0)
        for a, b, _ in _arcs(graph):
            sums[b] += value[a]
        total = sum(value.values())
        value = {node: (1 + sums[node]) / (1 + total) for node in graph.ids}
    return value


Expected = Callable[[SmallGraph], dict[Any, Any]]
PROGRAMS: Final[dict[str, tuple[type[gs.VertexProgram], Expected]]] = {
    "edge columns": (Heaviest, heaviest),
    "forward": (Coming, coming),
    "reverse": (Going, going),
    "node.at": (Jumps, jumps),
    "aggregators": (Shares, shares),
    "edge states": (WeightsBothWays, lambda graph: expected_sums(graph, "both")),
}
