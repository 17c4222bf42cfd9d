"""Overlap by stage and epoch, of events whose times are known."""

from typing import Any

import pytest

from graphsys.analysis.overlaps import overlap_tables
from graphsys.core.events import Event
from graphsys.metrics.overlap import Overlap

S = 1_000_000_000
WORKER, AHEAD = 1, 2


def span(name: str, begin: float, end: float, thread: int, **attributes: Any) -> Event:
    length = int((end - begin) * S)
    return Event(name, int(begin * S), length, thread_id=thread, attributes=attributes)


def rows_of(table: list[dict[str, Any]]) -> dict[Any, tuple[Any, ...]]:
    return {
        (row.get("epoch"), row["stage"]): (
            row["prepare_seconds"],
            row["compute_seconds"],
            row["alpha"],
            row["rho"],
            row["utilization"],
        )
        for row in table
    }


def test_stages_and_epochs_of_a_training_by_batches() -> None:
    events = [
        span("sample", 0, 4, AHEAD),
        span("gather", 4, 6, AHEAD),
        span("forward", 6, 9, WORKER, batch=0),
        span("step", 9, 10, WORKER, batch=0),
        span("epoch", 0, 10, WORKER, epoch=0),
        span("sample", 10, 12, AHEAD),
        span("forward", 11, 19, WORKER, batch=0),
        span("step", 19, 19, WORKER, batch=0),
        span("gather", 12, 13, AHEAD),
        span("epoch", 10, 20, WORKER, epoch=1),
    ]
    found = overlap_tables(events)
    # N = 4 + 2 + 2 + 1, C = 4 + 8, both from 11 to 13
    assert rows_of(found["stages"]) == {
        (None, "all"): (9, 12, 2 / 9, 9 / 12, 12 / 19),
        (None, "sample"): (6, 12, 1 / 6, 0.5, 12 / 17),
        (None, "gather"): (3, 12, 1 / 3, 0.25, 12 / 14),
    }
    assert rows_of(found["epochs"]) == {
        (1, "all"): (6, 4, 0.0, 1.5, 0.4),
        (1, "sample"): (4, 4, 0.0, 1.0, 0.5),
        (1, "gather"): (2, 4, 0.0, 0.5, 4 / 6),
        (2, "all"): (3, 8, 2 / 3, 3 / 8, 8 / 9),
        (2, "sample"): (2, 8, 0.5, 0.25, 8 / 9),
        (2, "gather"): (1, 8, 1.0, 1 / 8, 1.0),
    }


def test_an_observer_that_keeps_the_work_waiting_takes_no_time() -> None:
    alone = [span("read", 0, 2, AHEAD), span("compute", 1, 3, WORKER)]
    watched = [
        span("read", 0, 2, AHEAD),
        span("observing", 2, 7, WORKER),
        span("compute", 1, 3, WORKER),  # from 1 to 8, less the observer
    ]
    assert overlap_tables(watched) == overlap_tables(alone)
    # one in a thread that prepares keeps nobody waiting: the work went on
    ahead = [span("observing", 1, 2, AHEAD), *alone]
    assert overlap_tables(ahead) == overlap_tables(alone)


def test_what_has_only_one_side_has_no_overlap() -> None:
    (row,) = overlap_tables([span("superstep", 0, 1, WORKER)])["stages"]
    assert (row["alpha"], row["rho"], row["utilization"]) == (None, None, None)
    assert overlap_tables([])["epochs"] == []


def test_laps_of_a_clock_are_its_epochs() -> None:
    now = 0
    overlap = Overlap(lambda: now)
    with overlap.preparing():
        now = 4 * S
        with overlap.working():
            now = 6 * S
        first = overlap.lap()
        now = 9 * S
    second = overlap.lap()
    assert (first["prepare_seconds"], first["alpha"], first["rho"]) == (6, 1.0, 3)
    assert first["utilization"] == pytest.approx(1 / 3)
    # what goes on while an epoch ends is divided there
    assert (second["prepare_seconds"], second["alpha"]) == (3, None)
