"""Community detection by label propagation, as LDBC Graphalytics defines it.

Synchronous and deterministic (Raghavan, Albert, Kumara, Phys. Rev. E 76, 2007, made so by
the Graphalytics specification, arXiv 2011.15028): labels start as the nodes' own ids, every
node takes the most frequent label among its neighbors, the smallest among equals; in a
directed graph an edge each way counts twice. O(N + E) per superstep.
"""

from typing import Any

from graphsys.core.errors import ConfigError
from graphsys.engine import program as gs


class Cdlp(gs.VertexProgram):
    """Labels, which are user ids, after exactly ``iterations`` rounds."""

    iterations: int = 10
    label = gs.state(gs.NodeId, default=gs.own_id)
    direction = "both"
    combine = gs.mode

    def start(self, graph: Any) -> None:
        if self.iterations < 1:
            raise ConfigError(f"iterations is {self.iterations}, expected at least 1")

    def message(self, src: Any, edge: Any) -> Any:
        return src.label

    def update(self, node: Any, message: Any) -> Any:
        return message

    def until(self, totals: Any) -> bool:
        return self.superstep >= self.iterations
