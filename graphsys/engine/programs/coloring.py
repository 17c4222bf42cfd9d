"""Graph coloring: neighbors get different colors, few colors in all.

Jones and Plassmann, "A parallel graph coloring heuristic", SIAM J. Sci. Comput. 14, 1993: a
node picks the smallest free color when all neighbors before it have theirs. The order is
the largest logarithm of the degree first, then by lot (Hasenplaugh et al., "Ordering
heuristics for parallel graph coloring", SPAA 2014): nearly as few colors as the largest
degree first, and far shorter chains of nodes that wait for each other. At most one color
more than the largest degree. O(N + E) work beside a pass over the nodes per superstep.
"""

import math
from typing import Any

from graphsys.engine import program as gs

WINDOW = 63
FULL = 2**63 - 1


def before(order: Any, node: Any, other_order: Any, other: Any) -> Any:
    """Whether a node picks its color before another; ids break ties."""
    return order > other_order or (order == other_order and node < other)


def union(some: Any, others: Any) -> Any:
    """Unite sets of colors, held as bits."""
    return some | others


class Coloring(gs.VertexProgram):
    """Colors 0, 1, ...; the answer is their number. Direction and loops do not count."""

    seed: int = 0
    color = gs.state("int32", default=-1)
    waits_for = gs.state("int32")
    window = gs.state("int32")
    colored_in = gs.state("int32", default=-1)
    order = gs.state("float64")
    results = ("color",)
    loop = True

    class Count(gs.Phase):
        """Count the neighbors to wait for; later, count off those that have a color."""

        combine = gs.sum_
        schedule = "changed"
        direction = "both"
        updates = ("waits_for",)

        def active(self, node: Any) -> Any:
            return node.colored_in == self.superstep - 1

        def message(self, src: Any, edge: Any, dst: Any) -> Any:
            if not before(src.order, src.id, dst.order, dst.id):
                return None
            return 1 if self.superstep == 0 else -1

        def update(self, node: Any, message: Any) -> Any:
            return node.waits_for + message

    class Pick(gs.Phase):
        """Take the smallest color that is free, or look at the next 63 colors."""

        combine = gs.combiner(union, identity=0, idempotent=True)
        schedule = "all"
        direction = "both"
        updates = ("color", "window", "colored_in")

        def active(self, node: Any) -> Any:
            return node.color >= 0

        def accepts(self, node: Any) -> Any:
            return node.color < 0 and node.waits_for == 0

        def message(self, src: Any, edge: Any, dst: Any) -> Any:
            if src.color < dst.window or src.color >= dst.window + WINDOW:
                return None
            return 1 << (src.color - dst.window)

        def update(self, node: Any, message: Any) -> Any:
            if message == FULL:
                return -1, node.window + WINDOW, -1
            color = node.window
            while message & 1:
                message >>= 1
                color += 1
            return color, node.window, self.superstep

    phases = (Count, Pick)

    def init(self, node: Any) -> Any:
        order = math.floor(math.log2(node.degree + 1)) + gs.random(self.seed, node.id, 0)
        return -1, 0, 0, -1, order

    def answer(self, table: Any) -> int:
        return 1 + int(max(table.column("value").to_numpy(), default=-1))
