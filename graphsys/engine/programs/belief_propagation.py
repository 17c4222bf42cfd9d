"""Belief propagation on a pairwise model of two-valued nodes (Ising model, Markov field).

Node i is up (+1) or down (-1); a configuration x has probability proportional to

    exp(sum over nodes of h_i x_i + sum over edges of J_ij x_i x_j),

J being ``coupling`` times the column ``weight`` (1 without) and h the parameter ``field``,
or the node's value in ``evidence``. Every edge keeps a message for each of its two ways:
how much the sender pulls the receiver up, half the log-odds, without what the receiver
itself told it. Direction does not count and loops do nothing.

Result: ``value`` is the probability of being up. On trees it is exact after as many
supersteps as the diameter. With cycles (repeated edges are cycles too: coalesce them) it is
an approximation, and may not converge for strong couplings: ``damping`` helps, and
``iterations`` asks for exactly so many supersteps.

Complexity:
    O(E) messages per superstep, 16 bytes per edge and direction.

References:
    Pearl, "Probabilistic reasoning in intelligent systems", 1988, chapter 4. In this form:
    Mezard, Montanari, "Information, physics, and computation", 2009, section 14.2.
"""

import math
from typing import Any

from graphsys.engine import program as gs
from graphsys.engine.edge_weights import refuse_infinite, refuse_negative


def _passed_on(coupling: float, pull: float) -> float:
    """Return atanh(tanh(coupling) tanh(pull)) without overflow."""
    same, other = abs(coupling + pull), abs(coupling - pull)
    tails = math.log1p(math.exp(-2 * same)) - math.log1p(math.exp(-2 * other))
    return (same - other + tails) / 2


class BeliefPropagation(gs.VertexProgram):
    """How likely each node is to be up."""

    coupling: float = 1.0
    field: float = 0.0
    evidence: dict[Any, float] | None = None
    damping: float = 0.0
    tolerance: float = 1e-9
    iterations: int | None = None
    pull = gs.edge_state("float64")
    value = gs.state("float64")
    own = gs.state("float64")
    total = gs.state("float64")
    moved = gs.state("float64")
    largest = gs.aggregator(gs.maximum)
    results = ("value",)
    direction, schedule, stores = "both", "all", "pull"
    max_supersteps = 10_000
    combine = gs.sum_

    def init(self, node: Any) -> Any:
        return 1 / (1 + math.exp(-2 * self.field)), self.field, self.field, 0.0

    def start(self, graph: Any) -> Any:
        """Refuse couplings that are no numbers; give nodes of the evidence their field."""
        refuse_negative(graph, "belief_propagation", only_nan=True)
        refuse_infinite(graph, "belief_propagation")
        evidence = {} if self.evidence is None else self.evidence
        return {
            node: {"own": field, "total": field, "value": 1 / (1 + math.exp(-2 * field))}
            for node, field in evidence.items()
        } or None

    def message(self, src: Any, edge: Any, dst: Any) -> Any:
        if src.id == dst.id:
            return 0.0, 0.0
        new = _passed_on(self.coupling * edge.weight, src.total - edge.reverse.pull)
        new = (1 - self.damping) * new + self.damping * edge.pull
        return new, abs(new - edge.pull)

    def update(self, node: Any, message: Any) -> Any:
        total = node.own + message[0]
        return 1 / (1 + math.exp(-2 * total)), node.own, total, message[1]

    def aggregate(self, before: Any, node: Any) -> Any:
        return node.moved

    def until(self, totals: Any) -> bool:
        """Stop when no message moved by more than the tolerance."""
        if self.iterations is not None:
            return self.superstep >= self.iterations
        return bool(totals["largest"] <= self.tolerance)
