"""Minimum spanning forest by Boruvka's rounds.

Every tree looks for its lightest edge to another tree: its nodes start from their own
edges and pass the best one they know on to the neighbors in the tree until all know it.
Then the tree's root hooks onto the other tree's root, and every node finds its new root by
pointer jumping. Edges are compared by (weight, smaller id, larger id), a total order, so
that no cycle can arise and the forest is the same for every partitioning.

Direction does not count; loops are never chosen, and of repeated edges the lightest is.

Result: a row per node; a row with a ``weight`` is the edge ``source`` - ``target`` of the
forest (each edge once, one row without for every tree). ``result`` is the total weight.

Complexity:
    At most log2 N rounds of two to 2 + D + log2 N supersteps, D the largest diameter of a
    tree, O(E) messages each.

References:
    Boruvka, "O jistem problemu minimalnim", 1926; Nesetril, Milkova, Nesetrilova, "Otakar
    Boruvka on minimum spanning tree problem", Discrete Mathematics 233, 2001.
    Pointer jumping: Wyllie, "The complexity of parallel computations", 1979.
"""

import contextlib
import math
from typing import Any

from graphsys.core.errors import InvalidGraphError
from graphsys.engine import program as gs
from graphsys.engine.edge_weights import refuse_infinite, refuse_negative


class SpanningForest(gs.VertexProgram):
    """The lightest forest that connects what is connected."""

    tree = gs.state(gs.NodeId, default=gs.own_id)
    best = gs.state("float64", default=math.inf)
    low = gs.state(gs.NodeId)
    high = gs.state(gs.NodeId)
    other = gs.state(gs.NodeId)
    source = gs.state(gs.NodeId, default=gs.NO_NODE)
    target = gs.state(gs.NodeId, default=gs.NO_NODE)
    weight = gs.state("float64", default=math.inf)
    results = ("source", "target", "weight")
    loop = True

    def start(self, graph: Any) -> None:
        """Refuse weights that are no numbers, which have no order."""
        refuse_negative(graph, "mst", only_nan=True)
        refuse_infinite(graph, "mst")

    class Find(gs.Phase):
        """Spread each tree's lightest edge to another tree among its nodes."""

        direction, repeat = "both", True
        updates = ("best", "low", "high", "other")
        combine = gs.argmin

        def message(self, src: Any, edge: Any, dst: Any) -> Any:
            if src.tree != dst.tree:
                return (
                    float(edge.weight),
                    min(src.id, dst.id),
                    max(src.id, dst.id),
                    src.tree,
                )
            if src.best == math.inf:
                return None
            return src.best, src.low, src.high, src.other

        def update(self, node: Any, message: Any) -> Any:
            weight, low, high, other = message
            if weight > node.best or (weight == node.best and low > node.low):
                return node.best, node.low, node.high, node.other
            if weight == node.best and low == node.low and high >= node.high:
                return node.best, node.low, node.high, node.other
            return weight, low, high, other

    class Hook(gs.Phase):
        """Roots point to the other tree's; of two that point to each other one stays."""

        def update(self, node: Any) -> Any:
            tree, source, target, weight = node.tree, node.source, node.target, node.weight
            if node.tree == node.id and node.best < math.inf:
                is_mutual = node.at(node.other).other == node.id
                if not is_mutual or node.other < node.id:
                    tree, source, target = node.other, node.low, node.high
                    weight = node.best
            return tree, math.inf, -1, -1, -1, source, target, weight

    class Jump(gs.Phase):
        """Skip to the root of the root until nothing is left to skip."""

        repeat = True
        updates = ("tree",)

        def update(self, node: Any) -> Any:
            return node.at(node.tree).tree

    phases = (Find, Hook, Jump)

    def answer(self, table: Any) -> float:
        """Return the total weight, rounded once.

        Raises:
            InvalidGraphError: it is more than float64 holds.
        """
        weights = table["weight"].drop_null().to_pylist()
        try:
            with contextlib.suppress(OverflowError):  # on the way, not for certain in all
                return math.fsum(weights)
            return math.ldexp(math.fsum(math.ldexp(it, -64) for it in weights), 64)
        except OverflowError:
            raise InvalidGraphError(
                "the weights of the minimum spanning forest add up to more than float64 "
                "holds; scale the weights down"
            ) from None
