"""Programs that between them use every kind of CUDA kernel."""

from typing import Any

import numpy as np

from graphsys.engine import program as gs


class Distances(gs.VertexProgram):
    """Messages of edges, combined by an atomic minimum."""

    source: gs.NodeId
    distance = gs.state("float64", default=np.inf)

    def start(self, graph: Any) -> Any:
        return {self.source: {"distance": 0.0}}

    def message(self, src: Any, edge: Any) -> Any:
        return src.distance + edge.weight

    combine = gs.minimum

    def update(self, node: Any, message: Any) -> Any:
        return min(node.distance, message)


class Hops(gs.VertexProgram):
    """Early exit; receivers refuse a second message."""

    source: gs.NodeId
    hops = gs.state("int32", default=-1, null=-1)

    def start(self, graph: Any) -> Any:
        return {self.source: {"hops": 0}}

    def message(self, src: Any, edge: Any) -> Any:
        return src.hops + 1

    combine = gs.any_

    def accepts(self, node: Any) -> Any:
        return node.hops < 0

    def update(self, node: Any, message: Any) -> Any:
        return message


class Components(gs.VertexProgram):
    """Messages along both directions, so that rows are gathered twice."""

    direction = "both"
    label = gs.state(gs.NodeId, default=gs.own_id)

    def message(self, src: Any, edge: Any) -> Any:
        return src.label

    combine = gs.minimum

    def update(self, node: Any, message: Any) -> Any:
        return min(node.label, message)


class Ranks(gs.VertexProgram):
    """Floating sums, two aggregators, a total read by the next superstep."""

    max_supersteps = 5
    rank = gs.state("float64")
    dangling = gs.aggregator(gs.sum_)
    largest = gs.aggregator(gs.maximum)

    def init(self, node: Any) -> Any:
        return 1.0 / self.num_nodes

    def message(self, src: Any, edge: Any) -> Any:
        return src.rank / src.out_degree

    combine = gs.sum_

    def update(self, node: Any, message: Any) -> Any:
        lost = self.total("dangling") / self.num_nodes
        return 0.15 / self.num_nodes + 0.85 * (message + lost)

    def aggregate(self, before: Any, node: Any) -> Any:
        return (node.rank if node.out_degree == 0 else 0.0), node.rank


class Communities(gs.VertexProgram):
    """The most frequent message."""

    direction = "both"
    max_supersteps = 3
    label = gs.state(gs.NodeId, default=gs.own_id)

    def message(self, src: Any, edge: Any) -> Any:
        return src.label

    combine = gs.mode

    def update(self, node: Any, message: Any) -> Any:
        return message


class Parents(gs.VertexProgram):
    """Messages of two values: the nearest neighbor and its id."""

    source: gs.NodeId
    distance = gs.state("float64", default=np.inf)
    parent = gs.state(gs.NodeId, default=gs.NO_NODE)

    def start(self, graph: Any) -> Any:
        return {self.source: {"distance": 0.0}}

    def message(self, src: Any, edge: Any) -> Any:
        return src.distance + edge.weight, src.id

    combine = gs.argmin

    def update(self, node: Any, message: Any) -> Any:
        if message[0] < node.distance:
            return message[0], message[1]
        return node.distance, node.parent


def _wider(one: Any, other: Any) -> Any:
    return one if one > other else other


class Widths(gs.VertexProgram):
    """A combiner of one's own on floats: compare-and-swap on their bits."""

    source: gs.NodeId
    width = gs.state("float32", default=0.0)

    def start(self, graph: Any) -> Any:
        return {self.source: {"width": 1e9}}

    def message(self, src: Any, edge: Any) -> Any:
        return min(src.width, edge.weight)

    combine = gs.combiner(_wider, identity=0.0, idempotent=True)

    def update(self, node: Any, message: Any) -> Any:
        return max(node.width, message)


class Lottery(gs.VertexProgram):
    """Two phases: draws by ``gs.random``, then nodes that may send; reads another node."""

    loop = True
    draw = gs.state("float64")
    best = gs.state("float64", default=2.0)
    next_node = gs.state("float64")

    class Draw(gs.Phase):
        updates = ("draw", "next_node")

        def update(self, node: Any) -> Any:
            following = node.at((node.id + 1) % self.num_nodes).draw
            return gs.random(7, node.id, self.superstep), following

    class Hear(gs.Phase):
        updates = ("best",)
        schedule = "all"

        def active(self, node: Any) -> Any:
            return node.draw < 0.5

        def message(self, src: Any, edge: Any) -> Any:
            return src.draw

        combine = gs.minimum

        def update(self, node: Any, message: Any) -> Any:
            return message

    phases = (Draw, Hear)

    def until(self, totals: Any) -> bool:
        return bool(self.superstep >= 4)


class Doublings(gs.VertexProgram):
    """All send along edges that read the receiver, so that states are held twice."""

    max_supersteps = 7
    value = gs.state("float64")

    def init(self, node: Any) -> Any:
        return node.id + 1.0

    def message(self, src: Any, edge: Any, dst: Any) -> Any:
        return abs(src.value - dst.value) * edge.weight

    combine = gs.maximum
    schedule = "all"

    def update(self, node: Any, message: Any) -> Any:
        return 0.5 * node.value + max(message, 0.0) / (1.0 + self.superstep)


class Means(gs.VertexProgram):
    """The mean of what the neighbors on the way in have."""

    max_supersteps = 3
    value = gs.state("float64")
    combine = gs.mean

    def init(self, node: Any) -> Any:
        return node.id

    def message(self, src: Any) -> Any:
        return src.value

    def update(self, node: Any, message: Any) -> Any:
        return 0.5 * node.value + message


PROGRAMS = {
    program.__name__: program
    for program in (
        Distances,
        Hops,
        Components,
        Ranks,
        Communities,
        Parents,
        Widths,
        Lottery,
        Doublings,
        Means,
    )
}
