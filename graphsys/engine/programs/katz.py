"""Katz centrality: walks of all lengths that end at a node, longer ones counting less.

Katz, "A new status index derived from sociometric analysis", 1953, by the iteration
x <- alpha A' x + beta. It converges where ``alpha`` is below 1 / the largest eigenvalue
of the adjacency matrix. O(N + E) per superstep.

With M = alpha A', superstep k adds M^k beta to the scores. If no node gains more than
q beta by it, then M^k 1 <= q 1, entry by entry. So for q < 1 the spectral radius of M is
below 1, and all later supersteps together add at most q / (1 - q) of a score: q is a
bound of the relative error, and what is returned has converged for certain.
"""

import math
from typing import Any

from graphsys.core.errors import ConfigError, NotConvergedError
from graphsys.engine import program as gs
from graphsys.engine.edge_weights import ONCE, refuse_infinite, refuse_negative

_MOST_GAIN = 1e100
"""A gain, in units of beta, that does not come down again before numbers overflow."""
_SETTLING = 0.9
"""A gain, in units of beta, below which the scores are known to converge."""
_PATIENCE = 1000
"""Supersteps after which gains have to have come down to that."""


class Katz(gs.VertexProgram):
    """Scores, of Euclidean norm 1 if ``normalized``.

    Stops when no score will grow by more than a share ``tolerance`` of itself.
    """

    alpha: float = 0.1
    beta: float = 1.0
    tolerance: float = 1e-9
    normalized: bool = True
    score = gs.state("float64")
    squares = gs.aggregator(gs.sum_)
    gain = gs.aggregator(gs.maximum)

    class Iterate(gs.Phase):
        """Add what the in-neighbors have."""

        combine = gs.sum_
        repeat = True

        def message(self, src: Any, edge: Any) -> Any:
            return src.score

        def update(self, node: Any, message: Any) -> Any:
            return self.alpha * message + self.beta

        def aggregate(self, before: Any, node: Any) -> Any:
            return node.score * node.score, abs(node.score - before.score)

        def until(self, totals: Any) -> bool:
            gain, unit = totals["gain"], abs(self.beta)
            if not gain <= _MOST_GAIN * unit:
                raise NotConvergedError(
                    f"katz grows without bound at alpha = {self.alpha}; {_remedy(self)}"
                )
            last = self.superstep_limit or _PATIENCE
            if gain > _SETTLING * unit and self.superstep >= last - 1:
                raise NotConvergedError(
                    f"katz does not settle in {self.superstep} supersteps at alpha = "
                    f"{self.alpha}; {_remedy(self)}, or max_supersteps={200 * last} "
                    f"(--max-supersteps {200 * last}) if it is but little below"
                )
            return bool(gain <= min(self.tolerance, _SETTLING) * unit)

    class Scale(gs.Phase):
        """Bring the norm to 1."""

        def update(self, node: Any) -> Any:
            if not self.normalized or self.total("squares") == 0.0:
                return node.score
            return node.score / math.sqrt(self.total("squares"))

    phases = (Iterate, Scale)

    def start(self, graph: Any) -> None:
        for name in ("alpha", "beta"):
            if not math.isfinite(getattr(self, name)):
                raise ConfigError(f"{name} is {getattr(self, name)}, expected a number")
        if not self.tolerance > 0:
            raise ConfigError(f"tolerance is {self.tolerance}, expected a number > 0")


class WeightedKatz(Katz):
    """Scores of walks that count as much as the product of their edges' weights."""

    class Iterate(Katz.Iterate):
        """Add what the in-neighbors have, times the weights."""

        def message(self, src: Any, edge: Any) -> Any:
            return src.score * edge.weight

    phases = (Iterate, Katz.Scale)

    def start(self, graph: Any) -> None:
        super().start(graph)
        refuse_negative(graph, "katz", remedy=ONCE)
        refuse_infinite(graph, "katz")


def katz_centrality(
    *,
    alpha: float = 0.1,
    beta: float = 1.0,
    tolerance: float = 1e-9,
    normalized: bool = True,
    weighted: bool = False,
) -> Katz:
    """Return the program with or without weights."""
    made = WeightedKatz if weighted else Katz
    return made(alpha=alpha, beta=beta, tolerance=tolerance, normalized=normalized)


def _remedy(program: Any) -> str:
    """Return which ``alpha`` converges: for certain, as the gain is a norm of M^k."""
    text = "it must be below 1 / the largest eigenvalue of the adjacency matrix"
    steps, gain = program.superstep - 1, program.totals["gain"]
    if not (0 < gain < math.inf and steps > 0 and program.beta):
        return text
    safe = 0.9 * program.alpha / (gain / abs(program.beta)) ** (1 / steps)
    return f"{text}: take alpha={safe:.2g}"
