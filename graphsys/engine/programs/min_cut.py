"""The smallest cut between two nodes by push-relabel with exact labels.

Every edge keeps the flow along it. A round labels all nodes with their distance to the
target over edges with room left (the global relabeling of push-relabel, done every time),
then pushes all excess downhill, each node in proportion to the room of its edges, until
none can move. The source has endless excess. Labels never fall, and a round after which
nobody who has excess reaches the target is the last: every edge into the nodes that do
is full then, so they are one side of a smallest cut, and what the target got is the flow.

Capacities are the column ``weight`` (1 without) and must not be negative; an undirected
edge has its capacity both ways, repeated edges add up, loops do nothing.

Result: ``value`` is True on the source's side; ``result`` the cut's capacity, which is the
maximum flow. Computed in float64: what is below 1e-12 of an edge's capacity, or of the
capacity around a node, counts as nothing, and capacities should not span more than that.

Complexity:
    O(N^2) rounds in theory, tens in practice; each takes two supersteps per level. O(E)
    messages per superstep, 16 bytes per edge and direction.

References:
    Goldberg, Tarjan, "A new approach to the maximum-flow problem", JACM 35, 1988 (its
    parallel version works in such pulses). Cherkassky, Goldberg, "On implementing the
    push-relabel method for the maximum flow problem", Algorithmica 19, 1997.
"""

import math
from typing import Any

from graphsys.core.errors import ConfigError
from graphsys.engine import program as gs
from graphsys.engine.edge_weights import refuse_capacities, refuse_infinite

_FAR = 2**30
_NOTHING = 1e-12


def _left(capacity: float, is_open: bool, flow: float) -> float:
    left = capacity - flow if is_open else -flow
    return left if left > _NOTHING * capacity else 0.0


def _share(excess: float, room: float, least: float) -> float:
    return min(1.0, excess / room) if room > 0 and excess > least else 0.0


class MinimumCut(gs.VertexProgram):
    """Which nodes stay with the source when the cheapest edges are cut."""

    source: gs.NodeId
    target: gs.NodeId
    flow = gs.edge_state("float64")
    is_source_side = gs.state("bool")
    height = gs.state("int32")
    excess = gs.state("float64")
    room = gs.state("float64")
    share = gs.state("float64")
    moved = gs.aggregator(gs.maximum)
    moving = gs.aggregator(gs.maximum)
    arrived = gs.aggregator(gs.sum_)
    results = ("is_source_side",)
    loop = True

    def init(self, node: Any) -> Any:
        return True, 0, math.inf if node.id == self.source else 0.0, 0.0, 0.0

    def start(self, graph: Any) -> None:
        """Refuse capacities that are not numbers to add, and a cut of one node."""
        refuse_infinite(graph, "min_cut")
        refuse_capacities(graph, "min_cut")
        if self.source == self.target:
            raise ConfigError(f"source and target of a cut are both {self.source!r}")

    class Forget(gs.Phase):
        """Only the target is at the bottom."""

        updates = ("height",)

        def update(self, node: Any) -> Any:
            return 0 if node.id == self.target else _FAR

    class Label(gs.Phase):
        """Distances to the target over edges with room, from their far ends."""

        direction, repeat, updates = "both", True, ("height",)
        combine = gs.minimum

        def active(self, node: Any) -> Any:
            return node.height < _FAR

        def message(self, src: Any, edge: Any) -> Any:
            left = _left(edge.weight, edge.reverse.forward, edge.reverse.flow)
            return src.height + 1 if left > 0 else None

        def update(self, node: Any, message: Any) -> Any:
            return min(node.height, message)

    class Measure(gs.Phase):
        """How much each node can push one level down, and which share of it will go."""

        direction, updates = "both", ("is_source_side", "room", "share")
        combine = gs.sum_

        def message(self, src: Any, edge: Any, dst: Any) -> Any:
            left = _left(edge.weight, edge.reverse.forward, edge.reverse.flow)
            return (left if dst.height == src.height + 1 else 0.0), float(edge.weight)

        def update(self, node: Any, message: Any) -> Any:
            room = message[0] if node.height < _FAR else 0.0
            share = _share(node.excess, room, _NOTHING * message[1])
            return node.height >= _FAR, room, share

        def aggregate(self, before: Any, node: Any) -> Any:
            moving = node.share * node.room
            return moving, moving, node.excess if node.height == 0 else 0.0

    class Push(gs.Phase):
        """Let the excess fall until it is at the target or stuck."""

        direction, repeat, updates = "both", True, ("excess", "room", "share")
        stores = "flow"
        message_type = ("float64", "float64")
        combine = gs.sum_

        def message(self, src: Any, edge: Any, dst: Any) -> Any:
            there = _left(edge.weight, edge.forward, edge.flow)
            back = _left(edge.weight, edge.reverse.forward, edge.reverse.flow)
            sent = there * src.share if src.height == dst.height + 1 else 0.0
            returned = back * dst.share if dst.height == src.height + 1 else 0.0
            return edge.flow + sent - returned, sent

        def update(self, node: Any, message: Any) -> Any:
            sent = min(node.excess, node.room) if node.share > 0 else 0.0
            excess, room = node.excess - sent + message[1], node.room - sent
            return excess, room, _share(excess, room, _NOTHING * room)

        def aggregate(self, before: Any, node: Any) -> Any:
            arrived = node.excess if node.height == 0 else 0.0
            return self.total("moved"), node.share * node.room, arrived

        def until(self, totals: Any) -> bool:
            return bool(totals["moving"] == 0)

    phases = (Forget, Label, Measure, Push)

    def until(self, totals: Any) -> bool:
        """Stop when nothing moved in the last round."""
        return bool(totals["moved"] == 0)

    def answer(self, table: Any) -> float:
        """Return the capacity of the cut."""
        return self.total("arrived")
