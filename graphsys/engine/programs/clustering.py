"""Graph clustering by a low-diameter decomposition: shifted searches from every node.

Every node draws a head start from an exponential distribution of rate ``beta``, by (seed,
id); each node then joins the cluster of the node whose search, one hop per unit of time,
reaches it first (ties to the smallest id). Every cluster is connected, no node is farther
from its center than the center's head start, which is at most about ln N / beta, and an
edge lies between two clusters with a probability of at most ``beta``. Direction, weights,
loops and repetitions do not count.

Result: ``value`` is the id of the cluster's center; ``result`` the number of clusters.

Complexity:
    O(log N / beta) supersteps with high probability, O(N + E) messages that change anything
    in expectation per unit of time.

References:
    Miller, Peng, Xu, "Parallel graph decompositions using random shifts", SPAA 2013.
"""

import math
from typing import Any

from graphsys.core.errors import ConfigError
from graphsys.engine import program as gs


class Clustering(gs.VertexProgram):
    """Connected clusters of small diameter between which few edges run."""

    beta: float = 0.2
    seed: int = 0
    center = gs.state(gs.NodeId)
    arrival = gs.state("float64")
    clusters = gs.aggregator(gs.sum_)
    results = ("center",)

    def init(self, node: Any) -> Any:
        return node.id, math.log(1 - gs.random(self.seed, node.id, 0)) / self.beta

    def start(self, graph: Any) -> None:
        if not 0 < self.beta < math.inf:
            raise ConfigError(f"beta must be above 0 and finite, got {self.beta}")

    class Spread(gs.Phase):
        """Join the search that comes first."""

        direction, repeat, updates = "both", True, ("center", "arrival")
        combine = gs.argmin

        def message(self, src: Any, edge: Any) -> Any:
            return src.arrival + 1, src.center

        def update(self, node: Any, message: Any) -> Any:
            arrival, center = message
            if arrival > node.arrival or (
                arrival == node.arrival and center >= node.center
            ):
                return node.center, node.arrival
            return center, arrival

    class Count(gs.Phase):
        """Count the centers, which lie in their own clusters."""

        updates = ("center",)

        def update(self, node: Any) -> Any:
            return node.center

        def aggregate(self, before: Any, node: Any) -> Any:
            return 1 if node.center == node.id else 0

    phases = (Spread, Count)

    def answer(self, table: Any) -> int:
        """Return the number of clusters."""
        return int(self.total("clusters"))
