"""Supersteps of a run, and batches or units of a training, with what belongs to each."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphsys.analysis.intervals import Intervals
from graphsys.analysis.sides import OF_BATCH
from graphsys.core.events import Event
from graphsys.core.row_trace import DEVICE_ARRAYS


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


def span_of(event: Event) -> tuple[int, int]:
    """Return when an event began and ended, in nanoseconds."""
    return event.start_ns, event.start_ns + event.duration_ns


def steps_of(events: Sequence[Event], compiling: Intervals) -> list[HostStep]:
    """Return supersteps, units or batches of a training, with what belongs to each.

    Edges, rows and launches are told before the superstep or the batch ends that they
    belong to; the edges of a unit after its end. What is told between two batches is an
    evaluation's, and belongs to neither.
    """
    names = {event.name for event in events}
    name = next((it for it in ("superstep", "compute") if it in names), "step")
    steps: list[HostStep] = []
    pending, launches, parts = HostStep({}, 0, None), list[Event](), list[Event]()
    rows: list[Event] = []
    for event in events:
        if event.name == "edges" and name == "compute" and steps:
            _add_rows(steps[-1], [event])
        elif event.name in ("edges", "rows"):
            rows.append(event)
        elif event.name == "kernel_launches":
            launches.append(event)
        elif event.name == DEVICE_ARRAYS:
            pending.sent.append(dict(event.attributes))
        elif event.name in OF_BATCH and name == "step":
            parts.append(event)
        if event.name == name:
            whole = _whole(parts) if parts else event
            if name == "step":
                rows = [it for it in rows if it.start_ns >= whole.start_ns]
            _add_rows(pending, rows)
            _end_step(pending, whole, launches, compiling)
            steps.append(pending)
            pending, launches, parts, rows = HostStep({}, 0, None), [], [], []
    if name == "step":
        _number_epochs(steps)
    return steps


def _add_rows(step: HostStep, told: Sequence[Event]) -> None:
    """Count entries and launches over rows that were told of a step."""
    for event in told:
        if event.name == "rows":
            step.launches.append(int(str(event.attributes["launch"])))
        else:
            step.edges = (step.edges or 0) + int(event.value)
            step.at_most |= bool(event.attributes.get("at_most"))


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
    inside = compiling.inside(*span_of(event))
    if isinstance(told, float):
        inside = int(1e9 * told)
    if event.attributes.get("is_timed", True):
        step.seconds = max(event.duration_ns - inside, 0) / 1e9
    for launch in launches:
        if launch.start_ns >= event.start_ns:
            step.kernels += int(launch.value)
            took = launch.duration_ns - compiling.inside(*span_of(launch))
            step.kernel_s += took / 1e9
