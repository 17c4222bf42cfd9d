"""Which rows the messages of a phase travel along."""

from graphsys.engine.codegen.plan import PhasePlan
from graphsys.engine.execute.arrays import Array, RunArrays
from graphsys.engine.topology import Topology
from graphsys.engine.united_rows import Direction


def pull_directions(topology: Topology, phase: PhasePlan) -> list[Direction]:
    """Return the rows in which a receiver finds its senders."""
    if phase.spec.direction == "both" and topology.is_directed:
        return ["in", "out"]
    return ["out" if phase.spec.direction == "in" else "in"]


def push_directions(topology: Topology, phase: PhasePlan) -> list[Direction]:
    """Return the rows in which a sender finds its receivers."""
    opposite: dict[Direction, Direction] = {"in": "out", "out": "in"}
    return [opposite[direction] for direction in pull_directions(topology, phase)]


def out_going(arrays: RunArrays, phase: PhasePlan) -> Array:
    """Return how many messages each node sends in a phase ``[N]``."""
    directions = push_directions(arrays.topology, phase)
    return arrays.column("degree" if len(directions) == 2 else f"{directions[0]}_degree")


def in_coming(arrays: RunArrays, phase: PhasePlan) -> Array:
    """Return how many messages each node can get in a phase ``[N]``."""
    directions = pull_directions(arrays.topology, phase)
    return arrays.column("degree" if len(directions) == 2 else f"{directions[0]}_degree")


def num_messages(topology: Topology, phase: PhasePlan) -> int:
    """Return how many messages a phase sends when all nodes send."""
    if phase.kind == "local":
        return 0
    return topology.num_edges * len(pull_directions(topology, phase))
