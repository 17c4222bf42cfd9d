"""Core numbers by peeling: the largest k such that the node is in the k-core.

Remove the nodes of least degree, and those that fall to that degree, and so on (Matula and
Beck, "Smallest-last ordering and clustering and graph coloring algorithms", JACM 30, 1983;
in parallel: Montresor et al., 2013, ask neighbors instead). O(N + E) for the removals, and
three passes over the nodes per distinct core number.
"""

import math
from typing import Any

from graphsys.engine import program as gs


class KCore(gs.VertexProgram):
    """Core numbers in the simple undirected graph; the answer is the largest."""

    core = gs.state("int64", default=-1)
    left = gs.state("int64")
    is_fresh = gs.state("bool")
    least = gs.aggregator(gs.minimum)
    results = ("core",)
    simple = True
    loop = True

    class Measure(gs.Phase):
        """Find the least degree that is left."""

        updates = ("is_fresh",)

        def update(self, node: Any) -> Any:
            return False

        def aggregate(self, before: Any, node: Any) -> Any:
            return node.left if node.core < 0 else math.inf

    class Collect(gs.Phase):
        """Remove the nodes of that degree."""

        updates = ("core", "is_fresh")

        def update(self, node: Any) -> Any:
            if node.core < 0 and node.left <= self.total("least"):
                return node.left, True
            return node.core, False

    class Peel(gs.Phase):
        """Tell their neighbors, some of which follow."""

        combine = gs.sum_
        schedule = "changed"
        repeat = True

        def active(self, node: Any) -> Any:
            return node.is_fresh

        def accepts(self, node: Any) -> Any:
            return node.core < 0

        def message(self, src: Any, edge: Any) -> Any:
            return 1

        def update(self, node: Any, message: Any) -> Any:
            left = node.left - message
            if left > self.total("least"):
                return -1, left, False
            return int(self.total("least")), left, True

    phases = (Measure, Collect, Peel)

    def init(self, node: Any) -> Any:
        return -1, node.degree, False

    def until(self, totals: Any) -> bool:
        return bool(totals["least"] == math.inf)

    def answer(self, table: Any) -> int:
        return int(max(table.column("value").to_numpy(), default=0))
