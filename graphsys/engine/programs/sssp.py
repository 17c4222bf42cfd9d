"""Shortest paths from a source by Bellman and Ford, from changed nodes only.

Every node whose distance fell tells its out-neighbors (Bellman, "On a routing problem",
1958). O(N E) in the worst case; in practice about as many supersteps as the shortest
paths have edges. The native ``sssp`` (delta-stepping) does less work on weighted graphs.
"""

from typing import Any

import numpy as np

from graphsys.core.errors import InvalidGraphError
from graphsys.engine import program as gs
from graphsys.engine.edge_weights import HOPS, refuse_negative, refuse_overflow


def _first(self: Any, graph: Any) -> None:
    """Refuse weights that the program cannot use."""
    total = refuse_negative(graph, "sssp", only_nan=self.negative_weights, remedy=HOPS)
    if total == np.inf:
        _refuse_overflow(self, graph)


def _refuse_overflow(self: Any, graph: Any) -> None:
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


def _refuse_cycle(self: Any, totals: Any) -> bool:
    """Refuse a search that goes on when it should have ended."""
    if self.negative_weights and self.superstep > self.num_nodes:
        raise InvalidGraphError(
            "a cycle of negative length is within reach of the source, distances have "
            f"not settled after {self.superstep} supersteps; change the weights"
        )
    return False


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
        _first(self, graph)
        return {self.source: {"distance": 0.0}}

    def message(self, src: Any, edge: Any) -> Any:
        return src.distance + edge.weight

    def update(self, node: Any, message: Any) -> Any:
        return min(node.distance, message)

    until = _refuse_cycle


class ShortestPathTree(gs.VertexProgram):
    """Distances, and the node before each one on a shortest path of the fewest edges.

    An edge is tight where the distance before it and its length are the distance behind
    it; the edges on the path are counted along tight ones, level by level, because those
    of length 0 may close cycles.
    """

    source: gs.NodeId
    negative_weights: bool = False
    value = gs.state("float64", default=np.inf)
    edges = gs.state("int64", default=-1)
    parent = gs.state(gs.NodeId, default=gs.NO_NODE)
    results = ("value", "parent")

    class Relax(gs.Phase):
        """Find the distances."""

        repeat = True
        updates = ("value",)
        combine = gs.minimum

        def message(self, src: Any, edge: Any) -> Any:
            return src.value + edge.weight

        def update(self, node: Any, message: Any) -> Any:
            return min(node.value, message)

        until = _refuse_cycle

    class CountEdges(gs.Phase):
        """Count the edges on the path to every node."""

        repeat, schedule, updates = True, "changed", ("edges",)
        combine = gs.minimum

        def active(self, node: Any) -> Any:
            return node.edges >= 0

        def accepts(self, node: Any) -> Any:
            return node.edges < 0

        def message(self, src: Any, edge: Any, dst: Any) -> Any:
            if src.value + edge.weight != dst.value:
                return None
            return src.edges + 1

        def update(self, node: Any, message: Any) -> Any:
            return message

    class ChooseParent(gs.Phase):
        """Take the smallest id among the nodes before this one."""

        updates = ("parent",)
        combine = gs.minimum

        def active(self, node: Any) -> Any:
            return node.edges >= 0

        def accepts(self, node: Any) -> Any:
            return node.edges > 0

        def message(self, src: Any, edge: Any, dst: Any) -> Any:
            if src.value + edge.weight != dst.value or src.edges + 1 != dst.edges:
                return None
            return src.id

        def update(self, node: Any, message: Any) -> Any:
            return message

    phases = (Relax, CountEdges, ChooseParent)

    def start(self, graph: Any) -> Any:
        _first(self, graph)
        return {self.source: {"value": 0.0, "edges": 0}}


def shortest_paths(
    *, source: Any, parents: bool = False, negative_weights: bool = False
) -> gs.VertexProgram:
    """Return the program with or without parents."""
    made = ShortestPathTree if parents else ShortestPaths
    return made(source=source, negative_weights=negative_weights)
