"""Programs of vectors that between them use every kind of kernel that these have."""

import math
from typing import Any

import numpy as np

from graphsys.engine import program as gs


class Walkers(gs.VertexProgram):
    """Sums once per sender, a norm, totals before and after; 40 components: two a lane."""

    share = gs.state("float64", shape=(40,))
    largest = gs.state("int64")
    moved = gs.aggregator(gs.sum_)
    most = gs.aggregator(gs.maximum)
    combine, max_supersteps = gs.sum_, 3

    def init(self, node: Any) -> Any:
        return gs.random(5, node.id, gs.component), -1

    def message(self, src: Any) -> Any:
        return src.share / src.out_degree

    def update(self, node: Any, message: Any) -> Any:
        share = 0.5 * node.share + message + 0.001 * self.total("most")
        norm = math.sqrt(np.sum(share * share))
        return share / norm, int(np.argmax(share))

    def aggregate(self, before: Any, node: Any) -> Any:
        return np.sum(abs(node.share - before.share)), np.max(node.share) + node.largest

    def until(self, totals: Any) -> bool:
        return bool(totals["moved"] < 0)


def _largest(one: Any, other: Any) -> Any:
    return one if abs(one) > abs(other) else other


class Features(gs.VertexProgram):
    """A combiner of one's own, messages of weights and receivers; 33 float32."""

    place = gs.state("float32", shape=(33,))
    combine = gs.combiner(_largest, identity=0.0, idempotent=True)
    schedule, max_supersteps = "all", 2

    def init(self, node: Any) -> Any:
        return gs.random(7, node.id, gs.component) - 0.5

    def message(self, src: Any, edge: Any, dst: Any) -> Any:
        return edge.weight * (src.place + 0.25 * dst.place)

    def update(self, node: Any, message: Any) -> Any:
        return 0.5 * node.place + message


class Nearest(gs.VertexProgram):
    """Changed nodes send, which pulls rows; receivers that are done accept nothing."""

    far = gs.state("float64", default=np.inf, shape=(3,))
    combine = gs.minimum

    def init(self, node: Any) -> Any:
        return 0.0 if node.id % 17 == gs.component else np.inf

    def active(self, node: Any) -> Any:
        return np.min(node.far) < 2.5

    def accepts(self, node: Any) -> Any:
        return np.max(node.far) > 0.75

    def message(self, src: Any, edge: Any) -> Any:
        return src.far + edge.weight

    def update(self, node: Any, message: Any) -> Any:
        return min(node.far, message)


class BothWays(gs.VertexProgram):
    """Rows gathered along both directions; whole numbers, a boolean beside them."""

    count = gs.state("int32", shape=(32,))
    is_hub = gs.state("bool")
    combine, direction, max_supersteps = gs.sum_, "both", 2

    def init(self, node: Any) -> Any:
        return (node.id + gs.component) % 5, False

    def message(self, src: Any) -> Any:
        return src.count

    def update(self, node: Any, message: Any) -> Any:
        return message % 1000, np.sum(message) > 500


class Alike(gs.VertexProgram):
    """Numbers made of two whole vectors: along edges, all lanes together.

    Each phase combines in another way: the best, a sum that edges keep, any.
    """

    place = gs.state("float64", shape=(5,))
    best = gs.state("float64")
    friend = gs.state("int64", default=-1)
    total = gs.state("float64")
    found = gs.state("int32", default=-1)
    score = gs.edge_state("float64", default=0.0)
    results = ("best", "friend", "total", "found", "place")

    def init(self, node: Any) -> Any:
        return gs.random(3, node.id, gs.component), 0.0, -1, 0.0, -1

    class Best(gs.Phase):
        combine, updates, schedule = gs.argmax, ("best", "friend"), "all"
        max_supersteps = 1

        def message(self, src: Any, edge: Any, dst: Any) -> Any:
            return np.dot(src.place, dst.place), src.id

        def update(self, node: Any, message: Any) -> Any:
            best, friend = message
            return best, friend

    class Total(gs.Phase):
        combine, updates, schedule = gs.sum_, ("total", "place"), "all"
        stores, max_supersteps = "score", 1

        def message(self, src: Any, edge: Any, dst: Any) -> Any:
            return np.dot(src.place, dst.place) * edge.weight

        def update(self, node: Any, message: Any) -> Any:
            return message, node.place * message

    class Some(gs.Phase):
        combine, updates, schedule = gs.any_, ("found",), "all"
        max_supersteps = 1

        def message(self, src: Any, edge: Any, dst: Any) -> Any:
            return 7 if np.sum(src.place) + edge.score > np.max(dst.place) else None

        def update(self, node: Any, message: Any) -> Any:
            return message

    phases = (Best, Total, Some)


class Votes(gs.VertexProgram):
    """The most frequent number beside vectors, an own pass, a search by any message."""

    votes = gs.state("float32", shape=(6,))
    label = gs.state("int64")
    level = gs.state("int32", default=-1)
    results = ("label", "votes", "level")

    def init(self, node: Any) -> Any:
        return gs.random(4, node.id, gs.component), 0, 0 if node.id == 10 else -1

    class Own(gs.Phase):
        updates, max_supersteps = ("label",), 1

        def active(self, node: Any) -> Any:
            return np.min(node.votes) < 0.4

        def update(self, node: Any) -> Any:
            return int(np.argmin(node.votes))

    class Most(gs.Phase):
        combine, updates, schedule, max_supersteps = gs.mode, ("label", "votes"), "all", 2
        repeat = True

        def message(self, src: Any) -> Any:
            return src.label

        def update(self, node: Any, message: Any) -> Any:
            return message, 0.5 * node.votes + (gs.component == message)

    class Search(gs.Phase):
        combine, updates, direction = gs.any_, ("level",), "both"
        repeat = True

        def accepts(self, node: Any) -> Any:
            return node.level < 0

        def message(self, src: Any) -> Any:
            return src.level + 1

        def update(self, node: Any, message: Any) -> Any:
            return message

    class Least(gs.Phase):
        combine, updates, max_supersteps = gs.minimum, ("label",), 3
        repeat = True

        def message(self, src: Any, edge: Any) -> Any:
            return src.label

        def update(self, node: Any, message: Any) -> Any:
            return min(node.label, message + int(np.mean(node.votes)))

    phases = (Own, Most, Search, Least)


class Reduced(gs.VertexProgram):
    """Every reduction of a vector."""

    x = gs.state("float64", shape=(6,))
    least = gs.state("float64")
    most = gs.state("float64")
    mean = gs.state("float64")
    first = gs.state("int64")
    last = gs.state("int64")
    square = gs.state("float64")

    def init(self, node: Any) -> Any:
        return gs.random(3, node.id, gs.component), 0.0, 0.0, 0.0, 0, 0, 0.0

    def update(self, node: Any) -> Any:
        x = 2 * node.x
        return (
            node.x,
            min(x),
            np.max(x),
            np.mean(x),
            int(np.argmin(x)),
            int(np.argmax(x)),
            np.dot(x, node.x),
        )


def reductions(x: Any) -> dict[str, Any]:
    """Return what :class:`Reduced` finds of vectors ``[N, K]``."""
    return {
        "least": 2 * x.min(axis=1),
        "most": 2 * x.max(axis=1),
        "mean": 2 * x.mean(axis=1),
        "first": x.argmin(axis=1),
        "last": x.argmax(axis=1),
        "square": 2 * (x * x).sum(axis=1),
    }


VECTOR_PROGRAMS: dict[str, type[gs.VertexProgram]] = {
    kind.__name__: kind for kind in (Walkers, Features, Nearest, BothWays, Alike, Votes)
}
