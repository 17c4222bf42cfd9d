"""Katz centrality: walks of all lengths that end at a node, longer ones counting less.

Katz, "A new status index derived from sociometric analysis", 1953, by the iteration
x <- alpha A' x + beta. It converges where ``alpha`` is below 1 / the largest eigenvalue
of the adjacency matrix. O(N + E) per superstep.
"""

import math
from typing import Any

from graphsys.core.errors import NotConvergedError
from graphsys.engine import program as gs


class Katz(gs.VertexProgram):
    """Scores, of Euclidean norm 1 if ``normalized``.

    Stops when scores moved by less than N times ``tolerance`` in all, as NetworkX does.
    """

    alpha: float = 0.1
    beta: float = 1.0
    tolerance: float = 1e-6
    normalized: bool = True
    score = gs.state("float64")
    squares = gs.aggregator(gs.sum_)
    change = gs.aggregator(gs.sum_)

    class Iterate(gs.Phase):
        """Add what the in-neighbors have."""

        combine = gs.sum_
        repeat = True
        max_supersteps = 1000

        def message(self, src: Any, edge: Any) -> Any:
            return src.score

        def update(self, node: Any, message: Any) -> Any:
            return self.alpha * message + self.beta

        def aggregate(self, before: Any, node: Any) -> Any:
            return node.score * node.score, abs(node.score - before.score)

        def until(self, totals: Any) -> bool:
            if not math.isfinite(totals["squares"]):
                raise NotConvergedError(
                    f"katz grows without bound at alpha = {self.alpha}; it must be below "
                    "1 / the largest eigenvalue of the adjacency matrix"
                )
            return bool(totals["change"] < self.num_nodes * self.tolerance)

    class Scale(gs.Phase):
        """Bring the norm to 1."""

        def update(self, node: Any) -> Any:
            if not self.normalized:
                return node.score
            return node.score / math.sqrt(self.total("squares"))

    phases = (Iterate, Scale)
