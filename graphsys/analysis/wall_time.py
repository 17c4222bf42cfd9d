"""Where the wall time went: parts that exclude each other and add up to all of it."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

from graphsys.analysis.intervals import Intervals
from graphsys.analysis.sides import observing_of, own_span
from graphsys.core.events import Event

PARTS: Final = (
    "start",
    "compiling",
    "reading",
    "kernel",
    "host",
    "evaluation",
    "waiting",
    "writing",
    "other",
)
"""In the order in which a run does them, which is that of the page's bar."""
_SPANS: Final = {
    "operator": ("kernel", ""),
    "wait": ("waiting", "waiting"),
    "exchange": ("waiting", "waiting"),
    "communication": ("waiting", "exchanging"),
    "fetch": ("waiting", "fetching"),
    "read": ("reading", "reading"),
    "sample": ("reading", "sampling"),
    "gather": ("reading", "gathering"),
    "upload": ("reading", "copying to the device"),
    "write_back": ("writing", "writing"),
    "checkpoint": ("writing", "writing"),
    "write": ("writing", "writing"),
    "evaluate": ("evaluation", "evaluation"),
    "forward": ("host", "between kernels"),
    "backward": ("host", "between kernels"),
    "step": ("host", "between kernels"),
    "compute": ("host", "between kernels"),
    "superstep": ("host", "between kernels"),
    "scan": ("host", "scanning"),
    "number": ("host", "numbering"),
    "group": ("host", "grouping"),
}
"""The part and the name of a span's time; earlier ones have it where several go on."""
_MOST_KERNELS = 3
"""Kernels with a part of their own."""
_OTHERS: Final = " other kernels"


def wall_parts(
    events: Sequence[Event], start_ns: int, end_ns: int, wall_s: float
) -> list[dict[str, Any]]:
    """Return what the wall time went into; every moment counts once.

    Where several things went on at once, in other threads too, compiling counts first,
    then kernels, then what the table of spans lists first. Time that nobody explains is
    ``start`` until the work begins, and ``other`` after that.

    Args:
        events: All of a run.
        start_ns: When it began.
        end_ns: When it ended.
        wall_s: Its length without the time of observers, in seconds.

    Returns:
        ``part`` (one of :data:`PARTS`), ``name`` and ``seconds`` of each, in the order of
        the parts, kernels the longest first; the seconds add up to ``wall_s``.
    """
    observing = observing_of(events)
    offset = start_ns - observing.before(start_ns)
    end = end_ns - observing.before(end_ns) - offset
    spans: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for event in events:
        key = _part_of(event)
        if key is None or event.duration_ns <= 0:
            continue
        begin, stop = (it - offset for it in own_span(event, observing))
        begin, stop = max(begin, 0), min(stop, end)
        if stop > begin:
            spans.setdefault(key, []).append((begin, stop))
    claimed = Intervals([])
    seconds: dict[tuple[str, str], float] = {}
    first = end
    for key in sorted(spans, key=lambda it: _turn(it, spans[it])):
        own = Intervals(spans[key]).without(claimed)
        seconds[key] = own.length / 1e9
        claimed = Intervals(chain(claimed, own))
        if key[0] not in ("compiling", "writing"):
            first = min(first, *(begin for begin, _ in spans[key]))
    if not spans.keys() - {("compiling", "compiling")}:
        first = 0  # nothing says when the work began
    seconds["start", "start"] = (first - claimed.inside(0, first)) / 1e9
    known = sum(seconds.values())
    seconds["other", "other"] = max(wall_s - known, 0.0)
    return _rows(seconds)


def _part_of(event: Event) -> tuple[str, str] | None:
    """Return the part and the name that an event's time counts for; None for none."""
    if event.name == "compile":
        return "compiling", "compiling"
    if event.name == "kernel_launches":
        return "kernel", str(event.attributes.get("kernel", "kernel"))
    found = _SPANS.get(event.name)
    if found is not None and event.name == "operator":
        return "kernel", str(event.attributes.get("kind", "operator"))
    return found


def _turn(key: tuple[str, str], spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return when a part's time is counted: kernels before all that they run inside."""
    part, _ = key
    if part == "compiling":
        return 0, 0
    if part == "kernel":  # the longest last: it may be an operator that calls others
        return 1, sum(stop - begin for begin, stop in spans)
    names = list(dict.fromkeys(_SPANS.values()))
    return 2, names.index(key)


def _rows(seconds: dict[tuple[str, str], float]) -> list[dict[str, Any]]:
    """Return the parts as the report has them; kernels beyond the first ones as one."""
    kernels = {name: took for (part, name), took in seconds.items() if part == "kernel"}
    longest = sorted(kernels, key=lambda name: -kernels[name])
    if len(longest) > _MOST_KERNELS + 1:
        rest = longest[_MOST_KERNELS:]
        for name in rest:
            del seconds["kernel", name]
        seconds["kernel", f"{len(rest)}{_OTHERS}"] = sum(kernels[it] for it in rest)
    rows = [
        {"part": part, "name": name, "seconds": took}
        for (part, name), took in seconds.items()
        if took > 0
    ]
    return sorted(
        rows,
        key=lambda row: (
            PARTS.index(row["part"]),
            row["name"].endswith(_OTHERS),
            -row["seconds"],
        ),
    )
