"""What each verb would take on a graph of some size: bytes, memory, time.

Bytes and memory come from what the verbs themselves plan with, asked about a graph of
which there are sizes only; CPU seconds from rates.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from graphsys.core.errors import BudgetError
from graphsys.planning.probes import DIM, ITERATIONS, QUERIES
from graphsys.planning.rates import GATHERED, SCALES, Rate, Rates
from graphsys.planning.sized_graph import NODE, SizedGraph, sized_topology
from graphsys.planning.task import Outlook, Workload, index_bytes, store_bytes

if TYPE_CHECKING:
    from graphsys.engine.memory_plan import MemoryPlan
    from graphsys.storage.reader import GraphReader

_STATE_BYTES: Final = 8
_MOST_PLANNED: Final = 16
"""Partitions up to which the swaps of a training are walked through."""
_MODES: Final = {
    "memory": "in memory",
    "streamed": "rows streamed",
    "paged": "states paged",
}
_TEXT_BYTES: Final = 2 * 11


def _work(rate: Rate, amount: float, small: float, large: float) -> float:
    """Return CPU seconds for an amount of work: on the line through two measured ones."""
    slope = (rate.large - rate.small) / (large - small)
    slope = max(slope, rate.large / large / 4)  # so much at least, whatever the clock said
    fixed = max(rate.large - slope * large, 0.0)
    return fixed + slope * amount


def _slower(rates: Rates, num_nodes: int) -> float:
    """Return how much slower random reads of states are than when it was measured."""
    sizes = np.log(np.array(GATHERED, dtype=np.float64))
    seconds = [1 / rates.gather[size] for size in GATHERED]

    def cost(nodes: int) -> float:
        return float(np.interp(math.log(max(_STATE_BYTES * nodes, 1)), sizes, seconds))

    return max(cost(num_nodes) / cost(1 << SCALES[1]), 1.0)


def _edges(scale: int) -> int:
    return 16 << scale


def _timed(
    found: Outlook, rates: Rates, rate: Rate, cpu: float, kind: str, network: float
) -> Outlook:
    """Add times: computing, disk and network one after the other."""
    start = rates.start[kind]
    disk = found.read_bytes / rates.disk_read + found.written_bytes / rates.disk_write
    sent = found.network_bytes / network
    share = cpu / found.machines
    return replace(
        found,
        cpu_seconds=start + share,
        seconds=start + share * rate.parallel + disk + sent,
    )


def _per_edge(task: Workload, rate: Rate, times: float = 1.0) -> float:
    small, large = (_edges(scale) for scale in SCALES)
    return _work(rate, task.num_edges, small, large) * times


def ingest(task: Workload, rates: Rates, network: float) -> Outlook:
    """From text with two integers a line."""
    rate, size = rates.verbs["ingest"], store_bytes(task)
    measured = rate.peak_bytes / _edges(SCALES[1])
    memory = min(int(_base() + measured * task.num_edges), task.memory)
    found = Outlook(
        verb="ingest",
        memory_bytes=memory,
        disk_bytes=size + 16 * task.num_edges,
        read_bytes=_TEXT_BYTES * task.num_edges,
        written_bytes=size + 16 * task.num_edges,
        notes=("scratch files of 16 B an edge are counted", "one machine"),
    )
    return _timed(found, rates, rate, _per_edge(task, rate), "run", network)


def verify(task: Workload, rates: Rates, network: float) -> Outlook:
    """All checksums, all bounds."""
    rate = rates.verbs["verify"]
    found = Outlook(
        verb="verify",
        memory_bytes=min(_base() + rate.peak_bytes, task.memory),
        read_bytes=store_bytes(task),
        notes=("one machine",),
    )
    return _timed(found, rates, rate, _per_edge(task, rate), "run", network)


def algorithm(name: str) -> Callable[[Workload, Rates, float], Outlook]:
    """Return the outlook of an algorithm of ``graphsys run``."""

    def outlook(task: Workload, rates: Rates, network: float) -> Outlook:
        from graphsys.engine.algorithms import ALGORITHMS

        rate = rates.verbs[f"run {name}"]
        machines = task.machines if ALGORITHMS[name].program else 1  # programs only
        own = _share(task, machines)
        times, steps = _slower(rates, task.num_nodes), 1
        if name == "pagerank":
            steps = task.supersteps
            times *= steps / ITERATIONS
        choice, fits = _planned_run(name, own)
        is_read_again = choice.mode != "memory" and (
            choice.needed + choice.index_bytes > task.memory
        )
        rows = (1 if name == "pagerank" else 2) * index_bytes(own)
        found = Outlook(
            verb=f"run {name}",
            memory_bytes=choice.needed,
            fits=fits,
            read_bytes=rows * (steps if is_read_again else 1),
            written_bytes=16 * task.num_nodes // machines,
            machines=machines,
            network_bytes=_halo_bytes(task, machines) * steps,
            disk_bytes=16 * task.num_nodes // machines,
            notes=(_MODES[choice.mode],),
        )
        cpu = _per_edge(task, rate, times)
        return _timed(found, rates, rate, cpu, "run", network)

    return outlook


def _planned_run(name: str, task: Workload) -> tuple["MemoryPlan", bool]:
    """Return how it would use memory, and whether that fits."""
    from graphsys.engine.algorithms import ALGORITHMS

    options: dict[str, Any] = {"source": 0} if name in ("bfs", "sssp") else {}
    topology, algorithm = sized_topology(task.graph), ALGORITHMS[name]
    try:
        return algorithm.prepare(topology, memory=task.memory, **options).choice, True
    except BudgetError as error:
        needed = 2 * (error.smallest or 0)  # the process has grown a little since
        choice = algorithm.prepare(topology, memory=needed, **options).choice
        mode = min(choice.needs, key=lambda it: choice.needs[it])
        return replace(choice, mode=mode), False


def _share(task: Workload, machines: int) -> Workload:
    """Return the part of a machine: its edges; it has the states of all nodes."""
    if machines == 1:
        return task
    partitions = max(task.partitions // machines, 1)
    return replace(task, num_edges=task.num_edges // machines, partitions=partitions)


def _halo_bytes(task: Workload, machines: int) -> int:
    """Return what a machine sends in a superstep in which all nodes change.

    Each node's state goes to every other machine that has one of its neighbors; nodes lie
    on machines at random, and all have the mean degree (skewed degrees need less).
    """
    if machines == 1:
        return 0
    degree = task.num_edges / max(task.num_nodes, 1)
    others = (machines - 1) * (1 - (1 - 1 / machines) ** degree)
    return int(task.num_nodes / machines * others * (_STATE_BYTES + 4))


def mine(task: Workload, rates: Rates, network: float) -> Outlook:
    """Triangles: rows are in memory, or mapped from a file."""
    from graphsys.mining.simple_graph import bytes_needed

    rate = rates.verbs["mine --pattern triangle"]
    kept, rows = bytes_needed(task.num_nodes, 2 * task.num_edges)
    is_mapped = kept + rows > task.memory
    memory = kept if is_mapped else kept + rows
    found = Outlook(
        verb="mine --pattern triangle",
        memory_bytes=memory,
        fits=memory <= task.memory,
        read_bytes=2 * index_bytes(task) + (rows if is_mapped else 0),
        written_bytes=rows if is_mapped else 0,
        disk_bytes=rows if is_mapped else 0,
        notes=("rows mapped from a file" if is_mapped else "in memory", "one machine"),
    )
    return _timed(found, rates, rate, _power(task, rate), "run", network)


def _power(task: Workload, rate: Rate) -> float:
    """Return CPU seconds of work that grows faster than edges, by the power measured."""
    small, large = (_edges(scale) for scale in SCALES)
    power = math.log(rate.large / max(rate.small, 1e-6)) / math.log(large / small)
    return float(rate.large * (task.num_edges / large) ** min(max(power, 1.0), 1.5))


def train_embedding(task: Workload, rates: Rates, network: float) -> Outlook:
    """One epoch; tables in as many partitions as the memory asks for."""
    rate = rates.verbs["train embedding"]
    planned = _planned_training(task)
    cpu = _per_edge(task, rate, task.dim / DIM)
    return _timed(planned, rates, rate, cpu, "train", network)


def _planned_training(task: Workload) -> Outlook:
    from graphsys.embedding.config import EmbeddingConfig
    from graphsys.embedding.rows.table_files import table_bytes

    config = EmbeddingConfig(dim=task.dim, epochs=2)
    tables = table_bytes(config, NODE, task.num_nodes)
    with contextlib.suppress(BudgetError):
        plan = _walked(task, config)
        buffer = f"{plan.layout.capacity} of {task.partitions} partitions in memory"
        notes = (f"{buffer}, order {plan.layout.order}", "one machine")
        times = (task.partitions / min(task.partitions, _MOST_PLANNED)) ** 2
        return Outlook(
            verb="train embedding",
            memory_bytes=plan.memory_bytes,
            disk_bytes=2 * tables,
            read_bytes=int(plan.read_bytes * times) + 8 * task.num_edges,
            written_bytes=int(plan.write_bytes * times),
            notes=notes,
        )
    least = 2 * tables // task.partitions + _base()
    return Outlook(
        verb="train embedding",
        memory_bytes=least,
        fits=False,
        disk_bytes=2 * tables,
        notes=("two partitions do not fit: more are needed",),
    )


def _walked(task: Workload, config: Any) -> Any:
    """Return the plan of the training itself, of at most so many partitions.

    With more partitions than are walked through, as many nodes and edges are taken as
    so many of these partitions have; a partition's bytes are the same.

    Raises:
        BudgetError: two partitions do not fit.
    """
    from graphsys.embedding.context import EmbeddingContext
    from graphsys.embedding.model import relation_sets
    from graphsys.embedding.training.edge_sets import list_steps
    from graphsys.embedding.training.plan import Planner

    few = min(task.partitions, _MOST_PLANNED)
    share = few / task.partitions
    graph = SizedGraph(
        int(task.num_nodes * share), max(int(task.num_edges * share**2), few**2), few
    )
    own = cast("GraphReader", graph)
    model = relation_sets(own, config)
    context = EmbeddingContext(
        path=Path.cwd(),
        graph=own,
        config=config,
        model=model,
        steps=list_steps(own, model, config),
    )
    planner = Planner(context, _base())
    return planner.plan(planner.choose(task.memory, is_stated=True))


def train_gnn(task: Workload, rates: Rates, network: float) -> Outlook:
    """One epoch of link prediction over all edges, rows learned, in memory."""
    rate = rates.verbs["train gnn"]
    rows = 4 * task.dim * task.num_nodes * 3
    memory = int(_base() + rate.peak_bytes + rows)
    found = Outlook(
        verb="train gnn",
        memory_bytes=memory,
        fits=memory <= task.memory,
        disk_bytes=2 * 4 * task.dim * task.num_nodes,
        read_bytes=2 * index_bytes(task),
        written_bytes=4 * task.dim * task.num_nodes,
        notes=("learned rows in memory; --set learned_rows=disk keeps them there",),
    )
    times = _slower(rates, task.num_nodes) * task.dim / DIM
    return _timed(found, rates, rate, _per_edge(task, rate, times), "train", network)


def over_rows(verb: str, *, writes: bool = False) -> Callable[..., Outlook]:
    """Return the outlook of a verb that goes over all rows of a run."""

    def outlook(task: Workload, rates: Rates, network: float) -> Outlook:
        rate, size = rates.verbs[verb], 4 * task.dim * task.num_nodes
        small, large = (DIM << scale for scale in SCALES)
        cpu = _work(rate, task.dim * task.num_nodes, small, large)
        notes = ["one machine"]
        notes += [f"{QUERIES} edges ranked among all nodes"] if verb == "evaluate" else []
        notes += ["as raw rows; Parquet takes a tenth more"] if writes else []
        found = Outlook(
            verb=verb,
            memory_bytes=_base() + rate.peak_bytes,
            read_bytes=size,
            written_bytes=size if writes else 0,
            disk_bytes=size if writes else 0,
            notes=tuple(notes),
        )
        return _timed(found, rates, rate, cpu, "run", network)

    return outlook


def _base() -> int:
    """Return what a process takes before its work."""
    from graphsys.core.memory import release_free_memory, resident_bytes

    release_free_memory()
    return resident_bytes()


VERBS: Final[Mapping[str, Callable[[Workload, Rates, float], Outlook]]] = {
    "ingest": ingest,
    "verify": verify,
    **{f"run {name}": algorithm(name) for name in ("pagerank", "bfs", "wcc", "sssp")},
    "run triangle_count": algorithm("triangle_count"),
    "mine --pattern triangle": mine,
    "train embedding": train_embedding,
    "train gnn": train_gnn,
    "evaluate": over_rows("evaluate"),
    "nearest": over_rows("nearest"),
    "export": over_rows("export", writes=True),
}


def outlooks(task: Workload, rates: Rates, network: float) -> Iterator[Outlook]:
    """Yield what every verb would take."""
    for predict in VERBS.values():
        yield predict(task, rates, network)
