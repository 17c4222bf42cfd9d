"""What the host's own counters say: launches, work, transfers, waiting, threads' shares."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphsys.analysis.intervals import Intervals
from graphsys.analysis.sides import (
    OF_BATCH,
    is_by_batch,
    is_transfer,
    observing_of,
    sides_of,
    working_clock,
)
from graphsys.core.events import Event
from graphsys.core.visits import DEVICE_ARRAYS
from graphsys.metrics.overlap import overlap_alpha, overlap_shares

_NESTED = ("kernel_launches", "observing", "operator", "epoch")
_TRANSFERS = ("bytes_read", "bytes_written", "bytes_copied")


@dataclass(slots=True)
class KernelTotals:
    """All launches of one kernel.

    Attributes:
        name: Its name.
        calls: Launches.
        seconds: Until their last thread was done.
        busy_s: Of all threads together.
        longest_s: Sum over launches of the busiest thread.
        threads_s: Sum over launches of their time, times the threads.
        mean_s: Sum over launches of the mean thread.
        sigma_s: Sum over launches of the threads' standard deviation.
        device: ``cpu`` or ``cuda``.
    """

    name: str
    calls: int = 0
    seconds: float = 0.0
    busy_s: float = 0.0
    longest_s: float = 0.0
    threads_s: float = 0.0
    mean_s: float = 0.0
    sigma_s: float = 0.0
    device: str = "cpu"

    @property
    def imbalance(self) -> float | None:
        """The busiest thread over the mean one."""
        return self.longest_s / self.mean_s if self.mean_s > 0 else None

    @property
    def waiting(self) -> float | None:
        """Share of the threads' time in which they waited for the others."""
        return 1.0 - self.busy_s / self.threads_s if self.threads_s > 0 else None


@dataclass(slots=True)
class HostStep:
    """One superstep, or one unit of a training.

    Attributes:
        facts: What the emitter said of it.
        start_ns: When it began.
        seconds: Its length without compiling; None where nobody could measure it.
        edges: Entries of rows that were visited; None where unknown.
        at_most: Whether they are an upper bound.
        kernels: Launches inside it.
        kernel_s: Their time, in seconds.
        launches: Numbers of the modelled launches over rows.
        sent: What a training said that a device would get, and give back.
    """

    facts: dict[str, Any]
    start_ns: int
    seconds: float | None
    edges: int | None = None
    at_most: bool = False
    kernels: int = 0
    kernel_s: float = 0.0
    launches: list[int] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class HostFigures:
    """What the events of a run say.

    Attributes:
        steps: Supersteps, or units of a training.
        kernels: Totals by kernel.
        num_launches: Launches of all kernels.
        edges: Entries of rows, or edges trained.
        has_edges: Whether anybody counted them.
        at_most: Whether ``edges`` is an upper bound.
        transfers: Sizes in bytes of what was read, written or copied.
        transfer_s: Time of reading and writing; None for copies to a device.
        prepare_s: In which something was read or written, or a batch sampled or gathered,
            in whichever thread; None for copies to a device.
        waiting_s: What the work waited for.
        compute_s: In which the work itself went on.
        both_s: In which both did.
        compile_s: In which some thread compiled, or loaded compiled code, and no observer
            was at work.
        swaps: Partitions replaced in the buffer.
        wanted: Partitions that units of a training asked for.
        loaded: Of them, those that were not in memory.
        parts: Edges trained of every partition, by its name.
        spans: Seconds of all spans by name.
    """

    steps: list[HostStep] = field(default_factory=list)
    kernels: dict[str, KernelTotals] = field(default_factory=dict)
    num_launches: int = 0
    edges: int = 0
    has_edges: bool = False
    at_most: bool = False
    transfers: list[int] = field(default_factory=list)
    transfer_s: float | None = 0.0
    prepare_s: float | None = 0.0
    waiting_s: float = 0.0
    compute_s: float = 0.0
    both_s: float = 0.0
    compile_s: float = 0.0
    swaps: int = 0
    wanted: int = 0
    loaded: int = 0
    parts: dict[str, int] = field(default_factory=dict)
    spans: dict[str, float] = field(default_factory=dict)

    @property
    def overlap_shares(self) -> tuple[float | None, float | None]:
        """N / C, and C / T; None without either."""
        if self.prepare_s is None:
            return None, None
        return overlap_shares(self.prepare_s, self.compute_s, self.both_s)

    @property
    def overlap_alpha(self) -> float | None:
        """(N + C - T) / min(N, C): 0 one after the other, 1 fully side by side."""
        if self.prepare_s is None:
            return None
        return overlap_alpha(self.prepare_s, self.compute_s, self.both_s)


def figures_of(events: Sequence[Event]) -> HostFigures:
    """Add up the events of a run.

    Args:
        events: In the order of their ends.
    """
    found = HostFigures()
    compiling = Intervals(_span(event) for event in events if event.name == "compile")
    observing = observing_of(events)
    found.compile_s = compiling.without(observing).length / 1e9
    for event in events:
        if event.name == "kernel_launches":
            _add_launch(found, event, compiling)
    for event in events:
        if event.duration_ns > 0 and event.name not in _NESTED:
            seconds = found.spans.get(event.name, 0.0) + event.duration_ns / 1e9
            found.spans[event.name] = seconds
    if found.compile_s:  # told by whoever compiles, and by numba inside
        found.spans["compile"] = found.compile_s
    found.steps = _steps(events, compiling)
    edges = [event for event in events if event.name == "edges"]
    found.has_edges = bool(edges)
    found.edges = int(sum(event.value for event in edges))
    found.at_most = any(event.attributes.get("at_most") for event in edges)
    for event in edges:  # a bucket is work on both of its partitions
        for part in dict.fromkeys(map(str, _parts(event))):
            found.parts[part] = found.parts.get(part, 0) + int(event.value)
    _add_transfers(found, events)
    prepare, work = sides_of(events, working_clock(events))
    found.prepare_s, found.compute_s = prepare.length / 1e9, work.length / 1e9
    found.both_s = prepare.shared(work) / 1e9
    if is_by_batch(events):
        found.waiting_s = prepare.without(work).length / 1e9
    elif found.transfer_s is None:
        found.prepare_s = None
    return found


def _parts(event: Event) -> tuple[object, ...]:
    parts = event.attributes.get("parts", ())
    return parts if isinstance(parts, tuple) else ()


def _span(event: Event) -> tuple[int, int]:
    return event.start_ns, event.start_ns + event.duration_ns


def _add_launch(found: HostFigures, event: Event, compiling: Intervals) -> None:
    name = str(event.attributes.get("kernel", "kernel"))
    kernel = found.kernels.setdefault(name, KernelTotals(name))
    kernel.calls += int(event.value)
    found.num_launches += int(event.value)
    busy = event.attributes.get("busy_ns")
    if not isinstance(busy, tuple):
        kernel.device = "cuda"  # asynchronous: the host knows no times
        return
    inside = compiling.inside(*_span(event))
    kernel.seconds += (event.duration_ns - inside) / 1e9
    if inside:  # threads that wait for a compiler say nothing about the work
        return
    kernel.busy_s += sum(busy) / 1e9
    kernel.longest_s += max(busy) / 1e9
    kernel.mean_s += sum(busy) / len(busy) / 1e9
    kernel.sigma_s += statistics.pstdev(busy) / 1e9
    kernel.threads_s += event.duration_ns * len(busy) / 1e9


def _steps(events: Sequence[Event], compiling: Intervals) -> list[HostStep]:
    """Return supersteps, units or batches of a training, with what belongs to each.

    Edges, rows and launches are told before the superstep ends that they belong to; the
    edges of a unit or a batch after its end.
    """
    names = {event.name for event in events}
    name = next((it for it in ("superstep", "compute") if it in names), "step")
    steps: list[HostStep] = []
    pending, launches, parts = HostStep({}, 0, None), list[Event](), list[Event]()
    for event in events:
        if event.name == "edges":
            owner = pending if name == "superstep" or not steps else steps[-1]
            owner.edges = (owner.edges or 0) + int(event.value)
            owner.at_most |= bool(event.attributes.get("at_most"))
        elif event.name == "rows":
            pending.launches.append(int(str(event.attributes["launch"])))
        elif event.name == "kernel_launches":
            launches.append(event)
        elif event.name == DEVICE_ARRAYS:
            pending.sent.append(dict(event.attributes))
        elif event.name in OF_BATCH and name == "step":
            parts.append(event)
        if event.name == name:
            _end_step(pending, _whole(parts) if parts else event, launches, compiling)
            steps.append(pending)
            pending, launches, parts = HostStep({}, 0, None), [], []
    if name == "step":
        _number_epochs(steps)
    return steps


def _whole(parts: list[Event]) -> Event:
    """Return the parts of a batch as one event."""
    took = sum(event.duration_ns for event in parts)
    return replace(parts[-1], start_ns=parts[0].start_ns, duration_ns=took)


def _number_epochs(batches: list[HostStep]) -> None:
    """An epoch begins where the numbers of the batches begin again."""
    epoch, before = -1, 0
    for step in batches:
        number = int(step.facts.get("batch", 0))
        if epoch < 0 or number <= before:
            epoch += 1
        before = number
        step.facts |= {"number": number, "epoch": epoch}


def _end_step(
    step: HostStep, event: Event, launches: list[Event], compiling: Intervals
) -> None:
    step.facts, step.start_ns = dict(event.attributes), event.start_ns
    told = event.attributes.get("compile_s")
    inside = compiling.inside(*_span(event))
    if isinstance(told, float):
        inside = int(1e9 * told)
    if event.attributes.get("is_timed", True):
        step.seconds = max(event.duration_ns - inside, 0) / 1e9
    for launch in launches:
        if launch.start_ns >= event.start_ns:
            step.kernels += int(launch.value)
            took = launch.duration_ns - compiling.inside(*_span(launch))
            step.kernel_s += took / 1e9


def _add_transfers(found: HostFigures, events: Sequence[Event]) -> None:
    moved = [e for e in events if is_transfer(e)]
    found.transfers = [int(e.value) for e in events if e.name in _TRANSFERS]
    found.transfer_s = sum(e.duration_ns for e in moved) / 1e9
    if any(e.name == "bytes_copied" for e in events):
        found.transfer_s = None
    found.swaps = int(sum(e.value for e in events if e.name == "swaps"))
    found.wanted = int(sum(e.value for e in events if e.name == "partitions_wanted"))
    found.loaded = int(sum(e.value for e in events if e.name == "partitions_loaded"))
    checkpoints = Intervals(_span(e) for e in events if e.name == "checkpoint")
    stored = sum(checkpoints.inside(*_span(e)) for e in moved)
    waits = sum(e.duration_ns for e in events if e.name == "wait")
    found.waiting_s = (waits + stored) / 1e9
