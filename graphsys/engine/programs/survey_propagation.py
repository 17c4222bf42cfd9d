"""Survey propagation: how many clauses of a formula insist on a variable being true.

Nodes are the variables and the clauses of a formula in conjunctive normal form; an edge
leads from a clause to each of its variables, with a positive ``weight`` where the variable
stands plain and a negative one where it stands negated. Every edge keeps a message for each
of its ways, as a logarithm: a clause tells a variable one minus its survey, the share of
the clusters of solutions in which all others of the clause fail it; a variable tells a
clause the share in which it fails it itself.

All nodes send in every superstep, so two iterations, each begun at random, run interleaved.

Result: ``value``, the bias of a variable: the share of clusters in which it is bound to be
true, less that in which it is bound to be false, from -1 to 1; 0 for clauses.

Complexity:
    O(E) messages per superstep, 16 bytes per edge and direction.

References:
    Braunstein, Mezard, Zecchina, "Survey propagation: an algorithm for satisfiability",
    Random Structures & Algorithms 27, 2005, equations 11 to 17.
"""

import math
from typing import Any

from graphsys.core.errors import ConfigError
from graphsys.engine import program as gs
from graphsys.engine.edge_weights import refuse_infinite, refuse_negative, refuse_no_formula

_TINY = 1e-300


def _log(x: float) -> float:
    return math.log(max(x, _TINY))


def _failing(same: float, other: float) -> float:
    """Return how often a variable fails a clause.

    Args:
        same: Logarithm of how often no other clause insists on the clause's sign.
        other: Logarithm of how often no clause insists on the other sign.
    """
    is_same_free, is_other_free = math.exp(min(same, 0.0)), math.exp(min(other, 0.0))
    fails = (1 - is_other_free) * is_same_free
    total = fails + (1 - is_same_free) * is_other_free + is_same_free * is_other_free
    return fails / total if total > 0 else 0.0


class SurveyPropagation(gs.VertexProgram):
    """Which variables all solutions nearby agree on."""

    seed: int = 0
    tolerance: float = 0.001
    told = gs.edge_state("float64")
    value = gs.state("float64")
    is_clause = gs.state("bool")
    plain = gs.state("float64")
    negated = gs.state("float64")
    moved = gs.state("float64")
    largest = gs.aggregator(gs.maximum)
    results = ("value",)
    direction, schedule, stores = "both", "all", "told"
    max_supersteps = 2000
    combine = gs.sum_

    def init(self, node: Any) -> Any:
        return 0.0, node.out_degree > 0, 0.0, 0.0, 0.0

    def start(self, graph: Any) -> None:
        """Check the tolerance and that the graph is a formula."""
        refuse_negative(graph, "survey_propagation", only_nan=True)
        refuse_infinite(graph, "survey_propagation")
        refuse_no_formula(graph)
        if not self.tolerance > 0:
            raise ConfigError(f"tolerance is {self.tolerance!r}, expected a number > 0")

    def message(self, src: Any, edge: Any, dst: Any) -> Any:
        is_plain = edge.weight > 0
        if self.superstep == 0:
            likely = gs.random(self.seed, src.id, dst.id)
        elif src.is_clause:
            likely = 1 - math.exp(min(src.plain - edge.reverse.told, 0.0))
        else:
            same = (src.plain if is_plain else src.negated) - edge.reverse.told
            likely = _failing(same, src.negated if is_plain else src.plain)
        new = _log(likely)
        before = 1.0 if self.superstep == 0 else math.exp(edge.told)
        if src.is_clause and not is_plain:
            return new, 0.0, new, abs(likely - before)
        return new, new, 0.0, abs(likely - before)

    def update(self, node: Any, message: Any) -> Any:
        bias = 0.0
        if not node.is_clause:
            # bound to a sign: some clause insists on it and none on the other
            plain = math.exp(min(message[1], 0.0))
            negated = math.exp(min(message[2], 0.0))
            true, false = (1 - plain) * negated, (1 - negated) * plain
            total = true + false + plain * negated
            bias = (true - false) / total if total > 0 else 0.0
        return bias, node.is_clause, message[1], message[2], message[3]

    def aggregate(self, before: Any, node: Any) -> Any:
        return node.moved

    def until(self, totals: Any) -> bool:
        """Stop when no message moved by more than the tolerance."""
        return bool(totals["largest"] <= self.tolerance)
