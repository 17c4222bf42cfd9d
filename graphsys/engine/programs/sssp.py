"""Shortest paths from a source by Bellman and Ford, from changed nodes only.

Every node whose distance fell tells its out-neighbors (Bellman, "On a routing problem",
1958). O(N E) in the worst case; in practice about as many supersteps as the shortest
paths have edges. The native ``sssp`` (delta-stepping) does less work on weighted graphs.
"""

from typing import Any

import numpy as np

from graphsys.core.errors import InvalidGraphError
from graphsys.engine import program as gs
from graphsys.engine.edge_weights import refuse_negative, refuse_overflow


class ShortestPaths(gs.VertexProgram):
    """Distances over ``weight`` (1 if there is none); null where not reached.

    Negative weights are refused unless ``negative_weights`` allows them; then a negative
    cycle within reach of the source is refused.
    """

    source: gs.NodeId
    negative_weights: bool = False
    distance = gs.state("float64", default=np.inf)
    combine = gs.minimum

    def start(self, graph: Any) -> Any:
        total = refuse_negative(graph, "sssp", only_nan=self.negative_weights)
        if total == np.inf:
            self._refuse_overflow(graph)
        return {self.source: {"distance": 0.0}}

    def _refuse_overflow(self, graph: Any) -> None:
        """Refuse paths that float64 does not hold: their ends would seem unreached."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        if self.negative_weights:
            raise InvalidGraphError(
                "the weights add up to more than float64 holds, some of them below 0; "
                "scale the weights down"
            )
        csr = graph.csr("out")  # an input so rare is searched by SciPy, and then again
        parts = csr.weight.astype(np.float64), csr.indices.astype(np.int64), csr.indptr
        matrix = csr_array(parts, shape=(graph.num_nodes, graph.num_nodes))
        distance = dijkstra(matrix, indices=graph.number(self.source))
        refuse_overflow(graph.rows("out", ("weight",)), distance)

    def message(self, src: Any, edge: Any) -> Any:
        return src.distance + edge.weight

    def update(self, node: Any, message: Any) -> Any:
        return min(node.distance, message)

    def until(self, totals: Any) -> bool:
        if self.negative_weights and self.superstep > self.num_nodes:
            raise InvalidGraphError(
                "a cycle of negative length is within reach of the source, distances have "
                f"not settled after {self.superstep} supersteps; change the weights"
            )
        return False
