"""Breadth-first search: hops from a source, and optionally who found whom.

Level by level; the engine pushes from small frontiers and pulls from large ones, where a
row ends at the first neighbor found (Beamer, Asanovic, Patterson, "Direction-optimizing
breadth-first search", SC 2012). O(N + E) time when every level is cheap to find, O(N E)
never: each node is found once.
"""

from typing import Any

from graphsys.engine import program as gs


class BreadthFirst(gs.VertexProgram):
    """Hops from ``source`` along the edges' direction; null where not reached."""

    source: gs.NodeId
    hops = gs.state("int64", default=-1, null=-1)
    combine = gs.any_

    def start(self, graph: Any) -> Any:
        return {self.source: {"hops": 0}}

    def message(self, src: Any, edge: Any) -> Any:
        return src.hops + 1

    def accepts(self, node: Any) -> Any:
        return node.hops < 0

    def update(self, node: Any, message: Any) -> Any:
        return message


class BreadthFirstTree(gs.VertexProgram):
    """Hops, and the in-neighbor one hop closer: the first one in the order of ids."""

    source: gs.NodeId
    value = gs.state("int64", default=-1, null=-1)
    parent = gs.state(gs.NodeId, default=gs.NO_NODE)

    class Search(gs.Phase):
        """Find the hops."""

        repeat = True
        updates = ("value",)
        combine = gs.any_

        def message(self, src: Any, edge: Any) -> Any:
            return src.value + 1

        def accepts(self, node: Any) -> Any:
            return node.value < 0

        def update(self, node: Any, message: Any) -> Any:
            return message

    class Choose(gs.Phase):
        """Ask all in-neighbors for the smallest id one hop closer."""

        updates = ("parent",)
        combine = gs.minimum

        def message(self, src: Any, edge: Any, dst: Any) -> Any:
            if src.value + 1 != dst.value:
                return None
            return src.id

        def active(self, node: Any) -> Any:
            return node.value >= 0

        def accepts(self, node: Any) -> Any:
            return node.value > 0

        def update(self, node: Any, message: Any) -> Any:
            return message

    phases = (Search, Choose)

    def start(self, graph: Any) -> Any:
        return {self.source: {"value": 0}}


def breadth_first(*, source: Any, parents: bool = False) -> gs.VertexProgram:
    """Return the program with or without parents."""
    return (BreadthFirstTree if parents else BreadthFirst)(source=source)
