"""A maximal independent set: no two neighbors in it, every other node has one in it.

Luby, "A simple parallel algorithm for the maximal independent set problem", SIAM J.
Comput. 15, 1986: in every round a node joins if its lot is the smallest among undecided
neighbors. Lots depend on the seed, the user's id and the round alone. O(log N) rounds
expected, O(N + E) per round.
"""

from typing import Any

import numpy as np

from graphsys.engine import program as gs


class IndependentSet(gs.VertexProgram):
    """Whether a node is in the set; the answer is its size. Loops do not count."""

    seed: int = 0
    is_member = gs.state("bool")
    is_decided = gs.state("bool")
    results = ("is_member",)
    loop = True

    class Elect(gs.Phase):
        """Join where no undecided neighbor has a smaller lot; ids break ties."""

        combine = gs.argmin
        schedule = "all"
        direction = "both"

        def active(self, node: Any) -> Any:
            return not node.is_decided

        def accepts(self, node: Any) -> Any:
            return not node.is_decided

        def message(self, src: Any, edge: Any) -> Any:
            return gs.random(self.seed, src.id, self.superstep), src.id

        def update(self, node: Any, message: Any) -> Any:
            lot, owner = message
            own = gs.random(self.seed, node.id, self.superstep)
            wins = own < lot or (own == lot and node.id <= owner)
            return wins, wins

    class Exclude(gs.Phase):
        """Leave out the neighbors of members."""

        combine = gs.any_
        direction = "both"
        updates = ("is_decided",)

        def active(self, node: Any) -> Any:
            return node.is_member

        def accepts(self, node: Any) -> Any:
            return not node.is_decided

        def message(self, src: Any, edge: Any) -> Any:
            return True

        def update(self, node: Any, message: Any) -> Any:
            return True

    phases = (Elect, Exclude)

    def answer(self, table: Any) -> int:
        return int(np.count_nonzero(table.column("value").to_numpy()))
