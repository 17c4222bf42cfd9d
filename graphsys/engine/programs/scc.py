"""Strongly connected components by trimming and forward coloring.

A node that no remaining node points to, or that points to none, is a component by itself
and is trimmed; that may free others. Then the smallest id is spread along the edges: all
nodes with the color r can be reached from r, and r is the smallest that reaches them. So
those of them that reach r, found by going backward from r inside its color, are r's
component, with r its smallest id. Repeated on what remains.

Result: ``value`` is the smallest user id of the component; ``result`` the number of
components. Loops and repeated edges change nothing.

The listed ``scc`` runs natively, in linear time; this is how a program finds the same.

Complexity:
    At least one component of every color goes in every round; a round takes as many
    supersteps as its longest paths and O(E) messages each. Few rounds on graphs with a
    giant component, up to the number of components on adversarial ones.

References:
    Orzan, "On distributed verification and verified distribution", 2004, chapter 6.
    Trimming: McLendon, Hendrickson, Plimpton, Rauchwerger, "Finding strongly connected
    components in distributed graphs", JPDC 65, 2005; used with coloring by Slota,
    Rajamanickam, Madduri, "BFS and coloring-based parallel algorithms for strongly
    connected components and related problems", IPDPS 2014.
"""

from typing import Any

from graphsys.engine import program as gs

_OUT = 2**32
"""Counts of both directions share one number, so that they can be pushed."""


def _remains(self: Any, node: Any) -> Any:
    return node.component < 0


class StrongComponents(gs.VertexProgram):
    """Which nodes reach each other."""

    component = gs.state(gs.NodeId, default=gs.NO_NODE)
    color = gs.state(gs.NodeId, default=gs.own_id)
    left = gs.state("int64")
    trimmed = gs.state("bool")
    components = gs.aggregator(gs.sum_)
    remaining = gs.aggregator(gs.sum_)
    results = ("component",)
    loop = True

    class Count(gs.Phase):
        """Count the remaining neighbors of both directions."""

        direction, updates = "both", ("component", "color", "left", "trimmed")
        combine = gs.sum_

        active = _remains

        def message(self, src: Any, edge: Any, dst: Any) -> Any:
            if src.id == dst.id:
                return 0
            return int(edge.forward) + _OUT * int(edge.reverse.forward)

        def update(self, node: Any, message: Any) -> Any:
            if node.component >= 0:
                return node.component, node.color, node.left, False
            is_alone = message % _OUT == 0 or message // _OUT == 0
            return (node.id if is_alone else -1), node.id, message, is_alone

        def aggregate(self, before: Any, node: Any) -> Any:
            return int(node.component == node.id), int(node.component < 0)

    class Trim(gs.Phase):
        """Uncount trimmed nodes, which may trim their neighbors."""

        direction, schedule, repeat = "both", "changed", True
        updates = ("component", "left", "trimmed")
        combine = gs.sum_

        def active(self, node: Any) -> Any:
            return node.trimmed

        accepts = _remains

        def message(self, src: Any, edge: Any) -> Any:
            return int(edge.forward) + _OUT * int(edge.reverse.forward)

        def update(self, node: Any, message: Any) -> Any:
            left = node.left - message
            is_alone = left % _OUT == 0 or left // _OUT == 0
            return (node.id if is_alone else -1), left, is_alone

    class Color(gs.Phase):
        """Spread the smallest id along the edges."""

        repeat, updates = True, ("color",)
        combine = gs.minimum
        active = accepts = _remains

        def message(self, src: Any, edge: Any) -> Any:
            return src.color

        def update(self, node: Any, message: Any) -> Any:
            return min(node.color, message)

    class Root(gs.Phase):
        """A node with its own color is the first of its component."""

        updates = ("component",)

        def update(self, node: Any) -> Any:
            is_root = node.component < 0 and node.color == node.id
            return node.id if is_root else node.component

    class Back(gs.Phase):
        """Collect the component against the edges, inside the color."""

        direction, repeat, updates = "in", True, ("component",)
        combine = gs.any_
        accepts = _remains

        def active(self, node: Any) -> Any:
            return node.component == node.color

        def message(self, src: Any, edge: Any, dst: Any) -> Any:
            return src.color if src.color == dst.color else None

        def update(self, node: Any, message: Any) -> Any:
            return message

    phases = (Count, Trim, Color, Root, Back)

    def until(self, totals: Any) -> bool:
        """Stop when a round began with nothing to do."""
        return bool(totals["remaining"] == 0)

    def answer(self, table: Any) -> int:
        """Return the number of components."""
        return int(self.total("components"))
