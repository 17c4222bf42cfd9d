"""A large matching by handshakes along locally dominant edges.

Every free node offers its hand to the free neighbor across its heaviest edge; two that
offer each other are matched. Edges of equal weight are ordered at random by (seed, ids),
which lets a share of the edges decide at once, then by ids: a total order, so every round
matches at least the first free edge, and the result does not depend on partitions.

Direction does not count; loops are never matched. The matching is maximal: its weight is
at least half of the largest possible (weights must not be negative), and so is its number
of pairs half of the largest possible number.

Result: ``value`` is the partner's id, null for those left alone; ``result`` the number of
pairs.

Complexity:
    O(log E) rounds of two supersteps expected where weights are equal, O(E) messages each;
    as many rounds as the longest path of rising weights in the worst case.

References:
    Preis, "Linear time 1/2-approximation algorithm for maximum weighted matching in
    general graphs", STACS 1999. Hoepman, "Simple distributed weighted matchings", 2004.
    Birn, Osipov, Sanders, Schulz, Sitchinava, "Efficient parallel and external matching",
    Euro-Par 2013.
"""

import math
from typing import Any

import pyarrow.compute as pc

from graphsys.engine import program as gs
from graphsys.engine.edge_weights import refuse_negative


class Matching(gs.VertexProgram):
    """Pairs of neighbors, no node in two of them."""

    seed: int = 0
    mate = gs.state(gs.NodeId, default=gs.NO_NODE)
    offer = gs.state(gs.NodeId, default=gs.NO_NODE)
    results = ("mate",)
    loop = True

    def start(self, graph: Any) -> None:
        """Refuse negative weights."""
        refuse_negative(graph, "matching")

    class Offer(gs.Phase):
        """Point to the free neighbor across the heaviest edge."""

        direction, schedule, updates = "both", "all", ("offer",)
        combine = gs.argmax

        def active(self, node: Any) -> Any:
            return node.mate < 0

        accepts = active

        def message(self, src: Any, edge: Any, dst: Any) -> Any:
            if src.id == dst.id:
                return None
            low, high = min(src.id, dst.id), max(src.id, dst.id)
            draw = gs.random(self.seed, low, high)
            # lighter than -inf does not exist: ties go to the smaller draw, then ids
            return float(edge.weight), draw, low, high

        def update(self, node: Any, message: Any) -> Any:
            if message[1] == math.inf:
                return -1
            return message[2] + message[3] - node.id

    class Shake(gs.Phase):
        """Match those that point to each other."""

        updates = ("mate",)

        def update(self, node: Any) -> Any:
            if node.mate >= 0 or node.offer < 0 or node.at(node.offer).offer != node.id:
                return node.mate
            return node.offer

    phases = (Offer, Shake)

    def answer(self, table: Any) -> int:
        """Return the number of pairs."""
        return int(pc.count(table["value"]).as_py()) // 2
