"""When what was done: spans in lanes, without the time that observers took."""

from collections.abc import Sequence
from itertools import pairwise

from graphsys.analysis.intervals import Intervals
from graphsys.analysis.sides import observing_of
from graphsys.core.events import Event

_LANES = {
    "superstep": "supersteps",
    "compute": "training",
    "kernel_launches": "kernels",
    "operator": "operators",
    "forward": "forward",
    "backward": "backward",
    "step": "updating",
    "sample": "sampling",
    "gather": "gathering",
    "read": "reading",
    "write_back": "writing",
    "communication": "exchanging",
    "wait": "waiting",
    "checkpoint": "checkpoints",
    "evaluate": "evaluation",
    "compile": "compiling",
}
NUM_BINS = 240
OF_WORKER = ("at work", "waiting", "compiling")
"""What a worker of a cluster does, one at a time."""
_OF_WORKER = {
    "exchange": "waiting",
    "communication": "waiting",
    "wait": "waiting",
    "compile": "compiling",
}
_AROUND = ("epoch", "observing")
"""Spans around what a worker does, which say nothing of it."""


def lanes_of(
    events: Sequence[Event], start_ns: int, end_ns: int, num_bins: int = NUM_BINS
) -> list[tuple[str, list[float]]]:
    """Return the share of every bin of time that each kind of span fills.

    Args:
        events: All of a run.
        start_ns: When it began.
        end_ns: When it ended.
        num_bins: Equal bins that the run's own time is cut into.
    """
    observing = observing_of(events)
    length = end_ns - start_ns - observing.inside(start_ns, end_ns)
    if length <= 0:
        return []
    found = []
    timed = [event for event in events if event.duration_ns > 0]
    others = dict.fromkeys(event.name for event in timed if event.name not in _LANES)
    others.pop("observing", None)
    for name, label in {**_LANES, **{name: name for name in others}}.items():
        spans = []
        for event in timed:
            if event.name != name:
                continue
            begin = event.start_ns - start_ns - observing.inside(start_ns, event.start_ns)
            spans.append((begin, begin + event.duration_ns))
        if spans:
            found.append((label, _shares(Intervals(spans), length, num_bins)))
    return found


def span_of_workers(workers: Sequence[Sequence[Event]]) -> tuple[int, int]:
    """Return when the first worker of a cluster began to work, and the last one ended."""
    spans = [
        (event.start_ns, event.start_ns + event.duration_ns)
        for events in workers
        for event in events
        if event.duration_ns > 0 and event.name not in _AROUND
    ]
    if not spans:
        return 0, 0
    return min(begin for begin, _ in spans), max(end for _, end in spans)


def worker_lanes(
    events: Sequence[Event], begin_ns: int, end_ns: int, num_bins: int = NUM_BINS
) -> list[tuple[str, list[float]]]:
    """Return the share of every bin of time in which a worker worked, waited, compiled.

    At most one at a time: compiling counts first, then waiting for others.

    Args:
        events: What the worker recorded, which has no observers.
        begin_ns: When the first bin begins.
        end_ns: When the last one ends.
        num_bins: Equal bins that the time is cut into.
    """
    if end_ns <= begin_ns:
        return []
    spans: dict[str, list[tuple[int, int]]] = {name: [] for name in OF_WORKER}
    for event in events:
        if event.duration_ns > 0 and event.name not in _AROUND:
            begin = event.start_ns - begin_ns
            name = _OF_WORKER.get(event.name, "at work")
            spans[name].append((begin, begin + event.duration_ns))
    compiling = Intervals(spans["compiling"])
    waiting = Intervals(spans["waiting"]).without(compiling)
    work = Intervals(spans["at work"]).without(compiling).without(waiting)
    lanes = zip(OF_WORKER, (work, waiting, compiling), strict=True)
    length = end_ns - begin_ns
    return [(name, _shares(filled, length, num_bins)) for name, filled in lanes]


def _shares(filled: Intervals, length: int, num_bins: int) -> list[float]:
    """Return how much of each bin is filled, 0 to 1."""
    edges = [length * k // num_bins for k in range(num_bins + 1)]
    return [filled.inside(low, high) / max(high - low, 1) for low, high in pairwise(edges)]


def trace_of(events: Sequence[Event], start_ns: int) -> list[dict[str, object]]:
    """Return spans as events of the Chrome trace format, times in microseconds.

    Source: Trace Event Format, Google (complete events, ``ph: X``).
    """
    rows: list[dict[str, object]] = []
    for event in events:
        if event.duration_ns <= 0:
            continue
        rows.append(
            {
                "ph": "X",
                "name": str(event.attributes.get("kernel", event.name)),
                "cat": event.name,
                "pid": 1,
                "tid": event.thread_id,
                "ts": (event.start_ns - start_ns) / 1e3,
                "dur": event.duration_ns / 1e3,
                "args": {k: plain(v) for k, v in event.attributes.items()},
            }
        )
    return rows


def plain(value: object) -> object:
    """Return an attribute as JSON has it."""
    if isinstance(value, str | bool | int | float) or value is None:
        return value
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return str(value)
