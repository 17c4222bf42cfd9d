"""What the host's own counters say: launches, work, transfers, waiting, threads' shares."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from graphsys.analysis.host_steps import HostStep, span_of, steps_of
from graphsys.analysis.intervals import Intervals
from graphsys.analysis.sides import (
    COMMUNICATION,
    is_by_batch,
    is_transfer,
    observing_of,
    sides_of,
    working_clock,
)
from graphsys.core.cuda.launch_times import DEVICE_SECONDS
from graphsys.core.events import Event
from graphsys.metrics.overlap import overlap_alpha, overlap_shares

_NESTED = ("kernel_launches", "observing", "operator", "epoch")
_TRANSFERS = ("bytes_read", "bytes_written", "bytes_copied")


@dataclass(slots=True)
class KernelTotals:
    """All launches of one kernel.

    Attributes:
        name: Its name.
        calls: Launches.
        seconds: Until their last thread was done; of a device, by its own events.
        busy_s: Of all threads together.
        longest_s: Sum over launches of the busiest thread.
        threads_s: Sum over launches of the busiest thread's time, times the threads.
        launches_s: Sum over the same launches of the time until all were done.
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
    launches_s: float = 0.0
    mean_s: float = 0.0
    sigma_s: float = 0.0
    device: str = "cpu"

    @property
    def is_timed(self) -> bool:
        """Whether anybody knows its time."""
        return self.device == "cpu" or self.seconds > 0

    @property
    def imbalance(self) -> float | None:
        """The busiest thread over the mean one."""
        return self.longest_s / self.mean_s if self.mean_s > 0 else None

    @property
    def waiting(self) -> float | None:
        """Share of the threads' time in which they waited for the busiest.

        By the threads' own clock alone: 1 - 1 / imbalance where all launches have as many,
        so at most a half of two threads'. Waking them is ``handing_over``.
        """
        return 1.0 - self.busy_s / self.threads_s if self.threads_s > 0 else None

    @property
    def handing_over(self) -> float | None:
        """Share of the launches' time in which not even the busiest thread worked."""
        if self.launches_s <= 0:
            return None
        return max(1.0 - self.longest_s / self.launches_s, 0.0)


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
        num_compiled: Kernels that were made then; the others came from the cache.
        swaps: Partitions replaced in the buffer.
        wanted: Partitions that units of a training asked for.
        loaded: Of them, those that were not in memory.
        parts: Edges trained of every partition, by its name.
        spans: Seconds of all spans by name.
    """

    steps: list[HostStep] = field(default_factory=list)
    kernels: dict[str, KernelTotals] = field(default_factory=dict)
    num_launches: int = 0
    device_s: float = 0.0
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
    num_compiled: int = 0
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
    compiling = Intervals(span_of(event) for event in events if event.name == "compile")
    observing = observing_of(events)
    found.compile_s = compiling.without(observing).length / 1e9
    found.num_compiled = sum(
        int(str(event.attributes.get("compiled", 0)))
        for event in events
        if event.name == "compile"
    )
    for event in events:
        if event.name == "kernel_launches":
            _add_launch(found, event, compiling)
    for event in events:
        if event.name == DEVICE_SECONDS:
            name = str(event.attributes["kernel"])
            kernel = found.kernels.setdefault(name, KernelTotals(name, device="cuda"))
            kernel.seconds += event.value
            found.device_s += event.value
    for event in events:
        if event.duration_ns > 0 and event.name not in _NESTED:
            seconds = found.spans.get(event.name, 0.0) + event.duration_ns / 1e9
            found.spans[event.name] = seconds
    if found.compile_s:  # told by whoever compiles, and by numba inside
        found.spans["compile"] = found.compile_s
    found.steps = steps_of(events, compiling)
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
        told = Intervals(span_of(e) for e in events if e.name == COMMUNICATION)
        found.waiting_s = prepare.without(work).without(told).length / 1e9
    elif found.transfer_s is None:
        found.prepare_s = None
    return found


def _parts(event: Event) -> tuple[object, ...]:
    parts = event.attributes.get("parts", ())
    return parts if isinstance(parts, tuple) else ()


def _add_launch(found: HostFigures, event: Event, compiling: Intervals) -> None:
    name = str(event.attributes.get("kernel", "kernel"))
    kernel = found.kernels.setdefault(name, KernelTotals(name))
    kernel.calls += int(event.value)
    found.num_launches += int(event.value)
    busy = event.attributes.get("busy_ns")
    if not isinstance(busy, tuple):
        kernel.device = "cuda"  # asynchronous: the device's events tell the times
        return
    inside = compiling.inside(*span_of(event))
    kernel.seconds += (event.duration_ns - inside) / 1e9
    if inside:  # threads that wait for a compiler say nothing about the work
        return
    kernel.busy_s += sum(busy) / 1e9
    kernel.longest_s += max(busy) / 1e9
    kernel.mean_s += sum(busy) / len(busy) / 1e9
    kernel.sigma_s += statistics.pstdev(busy) / 1e9
    kernel.threads_s += max(busy) * len(busy) / 1e9
    kernel.launches_s += event.duration_ns / 1e9


def _add_transfers(found: HostFigures, events: Sequence[Event]) -> None:
    moved = [e for e in events if is_transfer(e)]
    found.transfers = [int(e.value) for e in events if e.name in _TRANSFERS]
    found.transfer_s = sum(e.duration_ns for e in moved) / 1e9
    if any(e.name == "bytes_copied" for e in events):
        found.transfer_s = None
    found.swaps = int(sum(e.value for e in events if e.name == "swaps"))
    found.wanted = int(sum(e.value for e in events if e.name == "partitions_wanted"))
    found.loaded = int(sum(e.value for e in events if e.name == "partitions_loaded"))
    checkpoints = Intervals(span_of(e) for e in events if e.name == "checkpoint")
    stored = sum(checkpoints.inside(*span_of(e)) for e in moved)
    waits = sum(e.duration_ns for e in events if e.name == "wait")
    found.waiting_s = (waits + stored) / 1e9
