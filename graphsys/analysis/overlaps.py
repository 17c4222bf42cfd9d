"""How far preparing and work went on side by side: stage by stage, epoch by epoch.

A stage is a kind of preparing: ``sample`` and ``gather`` of a training by batches, ``read``
and ``write_back`` of one by partitions. Times are of one clock, those of observers taken
out of it; see :mod:`graphsys.metrics.overlap` for what they say.
"""

from collections.abc import Sequence
from typing import Any

from graphsys.analysis.intervals import Intervals
from graphsys.analysis.sides import (
    PREPARING,
    is_by_batch,
    is_transfer,
    own_span,
    sides_of,
    working_clock,
)
from graphsys.core.events import Event
from graphsys.metrics.overlap import overlap_facts

ALL = "all"
_NEVER = 2**62


def overlap_tables(events: Sequence[Event]) -> dict[str, Any]:
    """Return the report's part about overlap.

    Returns:
        ``stages``: rows of the whole run, the first of all stages together; ``epochs``: the
        same within each epoch, from where a trainer begins it to where it begins the next.
    """
    clock = working_clock(events)
    prepare, work = sides_of(events, clock)
    by_batch = is_by_batch(events)
    spans: dict[str, list[tuple[int, int]]] = {}
    for e in events:
        if e.name in PREPARING if by_batch else is_transfer(e):
            spans.setdefault(e.name, []).append(own_span(e, clock))
    stages = {ALL: prepare} | {name: Intervals(own) for name, own in spans.items()}
    begun = [e for e in events if e.name == "epoch"]
    begins = [own_span(e, clock)[0] for e in begun]
    epochs = [
        {"epoch": int(str(e.attributes["epoch"])) + 1, **row}
        for e, begin, end in zip(begun, begins, [*begins, _NEVER][1:], strict=True)
        for row in _rows(stages, work, (begin, end))
    ]
    return {"stages": _rows(stages, work, None), "epochs": epochs}


def _rows(
    stages: dict[str, Intervals], work: Intervals, window: tuple[int, int] | None
) -> list[dict[str, Any]]:
    """Return a row for each stage, within a window."""
    if window is not None:
        work = work.within(*window)
    rows = []
    for name, prepare in stages.items():
        if window is not None:
            prepare = prepare.within(*window)
        times = prepare.length / 1e9, work.length / 1e9, prepare.shared(work) / 1e9
        rows.append({"stage": name, **overlap_facts(*times)})
    return rows
