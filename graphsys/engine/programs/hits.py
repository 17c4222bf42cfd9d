"""HITS: hubs point to good authorities, authorities are pointed to by good hubs.

Kleinberg, "Authoritative sources in a hyperlinked environment", JACM 46(5), 1999, by power
iteration from equal scores. Both scores sum to 1, or are 0 throughout in a graph without
edges. Repeated edges count as often as they are stored. O(N + E) per superstep, two
supersteps per iteration.
"""

from typing import Any

from graphsys.engine import program as gs


class Hits(gs.VertexProgram):
    """Scores ``hub`` and ``authority``; stops when hubs moved less than ``tolerance``.

    A score's sum is known one superstep ahead: the sum over nodes of authority times
    in-degree is that of the next hubs. So nothing is normalized afterwards.
    """

    tolerance: float = 1e-8
    iterations: int | None = None
    hub = gs.state("float64")
    authority = gs.state("float64")
    mass = gs.aggregator(gs.sum_)
    change = gs.aggregator(gs.sum_)
    loop = True
    max_supersteps: int | None = 2000

    class Authorities(gs.Phase):
        """Sum the hubs that point here."""

        combine = gs.sum_
        updates = ("authority",)

        def message(self, src: Any, edge: Any) -> Any:
            return src.hub

        def update(self, node: Any, message: Any) -> Any:
            return message / self.total("mass") if self.total("mass") > 0 else 0.0

        def aggregate(self, before: Any, node: Any) -> Any:
            return node.authority * node.in_degree, 0.0

    class Hubs(gs.Phase):
        """Sum the authorities pointed to."""

        combine = gs.sum_
        direction = "in"
        updates = ("hub",)

        def message(self, src: Any, edge: Any) -> Any:
            return src.authority

        def update(self, node: Any, message: Any) -> Any:
            return message / self.total("mass") if self.total("mass") > 0 else 0.0

        def aggregate(self, before: Any, node: Any) -> Any:
            return node.hub * node.out_degree, abs(node.hub - before.hub)

    phases = (Authorities, Hubs)

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        if self.iterations is not None:
            self.max_supersteps = None

    def init(self, node: Any) -> Any:
        # equal, so that the first total, made of authorities, is also that of the hubs
        return 1.0 / self.num_nodes, 1.0 / self.num_nodes

    def until(self, totals: Any) -> bool:
        if self.iterations is not None:
            return self.superstep >= 2 * self.iterations
        return bool(totals["change"] < self.tolerance)
