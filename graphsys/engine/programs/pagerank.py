"""PageRank by power iteration, and its personalised version.

Brin and Page, "The anatomy of a large-scale hypertextual web search engine", 1998. Starts
at 1/N; nodes without out-edges give their score to all (personalised: to the source), so
scores sum to 1. Repeated edges count as often as they are stored. O(N + E) per superstep.
"""

from typing import Any

from graphsys.core.errors import ConfigError
from graphsys.engine import program as gs


class PageRank(gs.VertexProgram):
    """Scores; stops when they moved by less than ``tolerance`` in all (L1 norm).

    With ``iterations`` it runs exactly that many supersteps instead.
    """

    damping: float = 0.85
    tolerance: float = 1e-6
    iterations: int | None = None
    score = gs.state("float64")
    dangling = gs.aggregator(gs.sum_)
    change = gs.aggregator(gs.sum_)
    combine = gs.sum_
    max_supersteps: int | None = 1000

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        if self.iterations is not None:
            self.max_supersteps = None

    def start(self, graph: Any) -> None:
        if not 0 <= self.damping <= 1:
            raise ConfigError(f"damping is {self.damping}, expected a number from 0 to 1")
        if self.iterations is not None and self.iterations < 1:
            raise ConfigError(f"iterations is {self.iterations}, expected at least 1")

    def init(self, node: Any) -> Any:
        return 1.0 / self.num_nodes

    def message(self, src: Any, edge: Any) -> Any:
        return src.score / src.out_degree

    def update(self, node: Any, message: Any) -> Any:
        lost = self.damping * self.total("dangling")
        return (1.0 - self.damping + lost) / self.num_nodes + self.damping * message

    def aggregate(self, before: Any, node: Any) -> Any:
        dangling = node.score if node.out_degree == 0 else 0.0
        return dangling, abs(node.score - before.score)

    def until(self, totals: Any) -> bool:
        if self.iterations is not None:
            return self.superstep >= self.iterations
        return bool(totals["change"] < self.tolerance)


class PersonalizedPageRank(PageRank):
    """Scores of a surfer who jumps back to ``source`` only."""

    source: gs.NodeId

    def update(self, node: Any, message: Any) -> Any:
        jump = 1.0 - self.damping + self.damping * self.total("dangling")
        return (jump if node.id == self.source else 0.0) + self.damping * message
