"""The program of vectors that a card runs."""

from typing import Any

import numpy as np

from graphsys.engine import program as gs


class Mixing(gs.VertexProgram):
    """Forty random numbers a node, which follow those of neighbors; and the largest."""

    place = gs.state("float32", shape=(40,))
    peak = gs.state("float32")
    moved = gs.aggregator(gs.maximum)
    combine, max_supersteps = gs.sum_, 4
    results = ("place", "peak")

    def init(self, node: Any) -> Any:
        return gs.random(1, node.id, gs.component), 0.0

    def message(self, src: Any) -> Any:
        return src.place / src.out_degree

    def update(self, node: Any, message: Any) -> Any:
        place = 0.5 * node.place + 0.5 * message
        return place, np.max(place)

    def aggregate(self, before: Any, node: Any) -> Any:
        return np.max(abs(node.place - before.place))
