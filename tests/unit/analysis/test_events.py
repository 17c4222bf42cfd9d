"""Spans, counters and observations."""

import time

import pytest

from graphsys.core.events import (
    count,
    ended,
    launched,
    observe,
    observing_seconds,
    recording,
    span,
)


def test_nobody_listens_and_nothing_is_made() -> None:
    observe("rows", lambda: 1 / 0)
    launched("k", 0, (1,), wall_ns=1)
    ended("s", 0, 1)
    count("edges", 1)
    with span("read") as seen:
        seen.add(bytes=1)
    assert observing_seconds() == 0.0


def test_the_time_of_observers_is_in_no_span() -> None:
    with recording({"rows": lambda _: time.sleep(0.05)}) as recorder, span("superstep"):
        observe("rows", list)
        time.sleep(0.01)
    events = {event.name: event for event in recorder.events}
    assert events["observing"].duration_ns >= 50e6
    assert 10e6 <= events["superstep"].duration_ns < 45e6


def test_an_observer_that_fails_stops_the_run() -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    with recording({"rows": fail}), pytest.raises(ZeroDivisionError):
        observe("rows", list)


def test_a_span_takes_facts_until_it_ends_and_may_have_no_time() -> None:
    with recording() as recorder:
        with span("superstep", number=3) as seen:
            seen.add(mode="pull")
        ended("superstep", 5, None, number=4)
    first, second = recorder.events
    assert first.attributes == {"number": 3, "mode": "pull"}
    assert (second.duration_ns, second.attributes["is_timed"]) == (0, False)
