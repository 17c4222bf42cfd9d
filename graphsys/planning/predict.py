"""``graphsys plan``: memory, storage, network and time of every verb, predicted."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from graphsys.core.errors import ConfigError
from graphsys.core.memory import available_bytes, format_bytes, parse_bytes, resident_bytes
from graphsys.core.progress import SILENT, Progress
from graphsys.planning.rates import SCALES, Rates, known_rates
from graphsys.planning.task import Outlook, Workload
from graphsys.planning.verbs import outlooks
from graphsys.storage.manifest import MAX_PARTITIONS

_MOST: Final = 10**15
_TIMES_MEASURED: Final = 16
"""A prediction of up to so many times the edges measured is not called extrapolated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What verbs would take on a graph.

    Attributes:
        task: The graph and the machines.
        verbs: Outlooks in the order in which verbs are used.
        assumptions: What is taken for granted.
        is_extrapolated: Whether the graph is far larger than what was measured.
        rates: What was measured.
    """

    task: Workload
    verbs: Sequence[Outlook]
    assumptions: Sequence[str]
    is_extrapolated: bool
    rates: Rates

    def as_json(self) -> dict[str, Any]:
        """Return the plan as printed with ``--json``."""
        task = asdict(self.task)
        return {
            **{name: task.pop(name) for name in ("num_nodes", "num_edges", "machines")},
            "memory_bytes": task.pop("memory"),
            **task,
            "verbs": [asdict(outlook) for outlook in self.verbs],
            "extrapolated": self.is_extrapolated,
            "assumptions": list(self.assumptions),
            "rates": asdict(self.rates),
        }


def plan(
    *,
    edges: float,
    nodes: float,
    machines: int = 1,
    memory: int | str | None = None,
    partitions: int | None = None,
    dim: int = 100,
    supersteps: int = 20,
    network: float = 10e9,
    rates: Rates | None = None,
    calibrate_again: bool = False,
    progress: Progress = SILENT,
) -> Plan:
    """Predict memory, storage, network and time of every verb on a graph.

    Args:
        edges: Edges, directed.
        nodes: Nodes.
        machines: Machines like this one, each with a part of the work where a verb runs on
            several.
        memory: What a verb may take on each, as ``"24GB"`` or in bytes; by default what
            this machine has.
        partitions: Partitions of the store; by default so many that four partitions of
            embeddings fit into half of the memory.
        dim: Length of an embedding.
        supersteps: Of PageRank.
        network: Bits per second that a machine sends at most.
        rates: What was measured; by default what this machine's user keeps, or is
            measured now.
        calibrate_again: Whether to measure, whatever is kept.
        progress: Told of what is measured.

    Raises:
        ConfigError: a size below 1, more partitions than a store has.

    Complexity:
        A second; 20 seconds, once, for the rates.
    """
    budget = available_bytes() + resident_bytes() if memory is None else parse_bytes(memory)
    sizes = {"edges": edges, "nodes": nodes, "machines": machines, "dim": dim}
    sizes |= {"supersteps": supersteps, "network": network}
    for name, value in sizes.items():
        if not 1 <= value <= _MOST:
            raise ConfigError(f"{name}={value:g}: expected a number from 1 to {_MOST:.0e}")
    if partitions is None:
        partitions = _enough(8 * dim // 2 * int(nodes), budget)
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise ConfigError(f"partitions={partitions}: expected 1 to {MAX_PARTITIONS}")
    task = Workload(
        num_nodes=int(nodes),
        num_edges=int(edges),
        machines=machines,
        memory=budget,
        partitions=min(partitions, int(nodes)),
        dim=dim,
        supersteps=supersteps,
    )
    rates = rates or known_rates(progress, calibrate_again=calibrate_again)
    return Plan(
        task=task,
        verbs=tuple(outlooks(task, rates, network / 8)),
        assumptions=_assumptions(task, rates, network),
        is_extrapolated=edges > _TIMES_MEASURED * (16 << SCALES[1]),
        rates=rates,
    )


def _enough(table_bytes: int, budget: int) -> int:
    """Return the power of two of partitions of which four fit into half of a budget."""
    partitions = 1
    while 4 * table_bytes // partitions > budget // 2 and partitions < MAX_PARTITIONS:
        partitions *= 2
    return partitions


def _assumptions(task: Workload, rates: Rates, network: float) -> tuple[str, ...]:
    """Say what is taken for granted, line by line."""
    small, large = (16 << scale for scale in SCALES)
    disk = f"{format_bytes(int(rates.disk_read))}/s read"
    disk += f", {format_bytes(int(rates.disk_write))}/s written"
    time = f"CPU seconds: measured here on R-MAT graphs of {small:,} and {large:,} edges "
    time += (
        f"with {rates.machine['cores']} cores (load {rates.load:.1f} before), grown with "
    )
    time += (
        "the edges; random reads of states get slower with their number as gathers from "
    )
    time += "tables of 1 to 256 MB do, and no slower beyond; kernels are compiled"
    sizes = (
        f"bytes and memory: what verbs plan for themselves, {task.partitions} partitions, "
    )
    sizes += (
        "integer ids from 0, no columns, directed edges (an undirected one takes as much)"
    )
    sent = f"network: {network / 1e9:g} Gbit/s a machine; nodes lie on machines at random "
    sent += "and have the mean degree; skewed degrees send less"
    shared = "machines: programs of graphsys run share their work (--cluster), and every "
    shared += "machine keeps the states of all nodes; other verbs run on one"
    work = (
        f"run pagerank: {task.supersteps} supersteps; trainings: an epoch, not the first; "
    )
    work += "train gnn: link prediction, two hops"
    io = f"disk: {disk}, not while computing"
    return (time, sizes, io, sent, shared, work)
