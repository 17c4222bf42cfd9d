"""Programs of one's own, one for each thing that a program can read, with oracles."""

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from graphsys.engine import program as gs
from tests.matrix.stores import columns_of, edge_columns_of
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


class Debts(gs.VertexProgram):
    """Further columns of edges: what comes in, by status."""

    owed = gs.state("int64")
    combine, schedule = gs.sum_, "all"

    def message(self, src: Any, edge: Any) -> Any:
        return int(edge.amount) * (1 if edge.status == 1 else 1000 * (edge.status < 0))

    def update(self, node: Any, message: Any) -> Any:
        return message

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


class Walks(gs.VertexProgram):
    """Vectors, sums along weights and a norm: walks from the first five nodes at once."""

    share = gs.state("float64", shape=(5,))
    largest = gs.state("int64")
    spread = gs.aggregator(gs.maximum)
    combine, results = gs.sum_, ("share",)

    def init(self, node: Any) -> Any:
        return 1.0 if node.id == gs.component else 0.0, 0

    def message(self, src: Any, edge: Any) -> Any:
        return src.share * edge.weight

    def update(self, node: Any, message: Any) -> Any:
        share = 0.5 * node.share + message
        norm = math.sqrt(np.sum(share * share))
        return share / norm if norm > 0 else share, int(np.argmax(message))

    def aggregate(self, before: Any, node: Any) -> Any:
        return np.max(abs(node.share - before.share))

    def until(self, totals: Any) -> bool:
        return bool(self.superstep >= ROUNDS or totals["spread"] == 0)


class Hops(gs.VertexProgram):
    """Vectors of changed nodes: hops from the first three nodes, whichever way."""

    hops = gs.state("float64", default=math.inf, shape=(3,))
    combine, direction = gs.minimum, "both"

    def init(self, node: Any) -> Any:
        return 0.0 if node.id == gs.component else math.inf

    def message(self, src: Any) -> Any:
        return src.hops + 1

    def update(self, node: Any, message: Any) -> Any:
        return min(node.hops, message)


class Means(gs.VertexProgram):
    """The mean of vectors, against the edges, and of numbers in a second phase."""

    place = gs.state("float64", shape=(2,))
    height = gs.state("float64")
    results = ("place", "height")

    class Place(gs.Phase):
        combine, direction, updates = gs.mean, "in", ("place",)

        def message(self, src: Any) -> Any:
            return src.place

        def update(self, node: Any, message: Any) -> Any:
            return 0.5 * node.place + message

    class Height(gs.Phase):
        combine, updates = gs.mean, ("height",)

        def message(self, src: Any) -> Any:
            return np.sum(src.place)

        def update(self, node: Any, message: Any) -> Any:
            return message

    phases = (Place, Height)

    def init(self, node: Any) -> Any:
        return node.id + 10.0 * gs.component, 0.0


class Neighbors(gs.VertexProgram):
    """Columns of nodes: ages of those of the same color, nulls left out; half one's own."""

    found = gs.state("float64")
    combine, schedule, max_supersteps = gs.sum_, "all", 1

    def message(self, src: Any, edge: Any, dst: Any) -> Any:
        is_alike = src.color == dst.color and src.color >= 0
        return src.age + 0.0 if is_alike and src.height == src.height else 0.0

    def update(self, node: Any, message: Any) -> Any:
        return message + 0.5 * node.age + 1000 * node.color


class Divisions(gs.VertexProgram):
    """Whole numbers divided by negative ones and by 0, which gives 0 as in NumPy."""

    found = gs.state("int64")
    combine, schedule, max_supersteps = gs.sum_, "all", 1

    def message(self, src: Any) -> Any:
        by = src.id % 5 - 2
        return (src.id - 20) // by + 100 * ((src.id - 20) % by)

    def update(self, node: Any, message: Any) -> Any:
        by = node.id % 3 - 1
        return message + 10**4 * ((7 - node.id) // by) + 10**6 * ((7 - node.id) % by)


def _arcs(graph: SmallGraph) -> list[tuple[Any, Any, float]]:
    """Return each way of each edge; an undirected loop has one."""
    if graph.is_directed:
        return graph.edges
    back = [(b, a, w) for a, b, w in graph.edges if a != b]
    return graph.edges + back


def debts(graph: SmallGraph) -> dict[Any, int]:
    found = dict.fromkeys(graph.ids, 0)
    for a, b, w in _arcs(graph):
        amount, status = edge_columns_of(a, b, w)
        # texts are places in order: lent, owed, paid
        found[b] += amount * {"owed": 1, None: 1000}.get(status, 0)
    return found


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


def walks(graph: SmallGraph) -> dict[Any, list[float]]:
    places = {node: place for place, node in enumerate(sorted(graph.ids))}
    share = {node: np.eye(max(len(places), 5))[places[node], :5] for node in graph.ids}
    for _ in range(ROUNDS):
        sums = {node: 0.5 * share[node] for node in graph.ids}
        for a, b, w in _arcs(graph):
            sums[b] = sums[b] + w * share[a]
        norms = {node: np.linalg.norm(value) for node, value in sums.items()}
        share = {node: value / (norms[node] or 1) for node, value in sums.items()}
    return {node: value.tolist() for node, value in share.items()}


def hops(graph: SmallGraph) -> dict[Any, list[float]]:
    import networkx as nx

    joined = nx.Graph(graph.networkx())
    found = {node: [math.inf] * 3 for node in graph.ids}
    for place, source in enumerate(sorted(graph.ids)[:3]):
        for node, length in nx.single_source_shortest_path_length(joined, source).items():
            found[node][place] = float(length)
    return found


def means(graph: SmallGraph) -> dict[Any, list[float]]:
    first = {
        node: np.array([place, place + 10.0])
        for place, node in enumerate(sorted(graph.ids))
    }
    heard: dict[Any, list[Any]] = {node: [] for node in graph.ids}
    for a, b, _ in _arcs(graph):
        heard[a].append(first[b])
    return {
        node: (
            0.5 * first[node] + (np.mean(heard[node], axis=0) if heard[node] else 0.0)
        ).tolist()
        for node in graph.ids
    }


def neighbors(graph: SmallGraph) -> dict[Any, float]:
    known, codes = columns_of(graph), {None: -1, "blue": 0, "green": 1, "red": 2}
    found = {v: 0.5 * age + 1000 * codes[color] for v, (age, _, color) in known.items()}
    for a, b, _ in _arcs(graph):
        age, height, color = known[a]
        if color is not None and color == known[b][2] and height is not None:
            found[b] += age
    return found


def divisions(graph: SmallGraph) -> dict[Any, int]:
    place = {node: k for k, node in enumerate(sorted(graph.ids))}

    def both(value: int, by: int, left: int, right: int) -> int:
        return left * (value // by) + right * (value % by) if by else 0

    found = {v: both(7 - k, k % 3 - 1, 10**4, 10**6) for v, k in place.items()}
    for a, b, _ in _arcs(graph):
        found[b] += both(place[a] - 20, place[a] % 5 - 2, 1, 100)
    return found


Expected = Callable[[SmallGraph], dict[Any, Any]]
PROGRAMS: Final[dict[str, tuple[type[gs.VertexProgram], Expected]]] = {
    "edge columns": (Heaviest, heaviest),
    "further edge columns": (Debts, debts),
    "forward": (Coming, coming),
    "reverse": (Going, going),
    "node.at": (Jumps, jumps),
    "aggregators": (Shares, shares),
    "node columns": (Neighbors, neighbors),
    "vectors": (Walks, walks),
    "vectors of changed nodes": (Hops, hops),
    "means": (Means, means),
    "divisions": (Divisions, divisions),
    "edge states": (WeightsBothWays, lambda graph: expected_sums(graph, "both")),
}
