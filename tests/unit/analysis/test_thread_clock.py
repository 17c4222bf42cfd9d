"""Waiting and imbalance of threads are of one clock, and those of a planted imbalance."""

import time

import pytest

from graphsys.analysis.host import figures_of
from graphsys.analysis.measured import _threads
from graphsys.core.events import Event, launched, recording
from graphsys.core.threads import ThreadTeam

MS = 1_000_000


def metrics_of(events: list[Event]) -> dict[str, float]:
    found = {metric.name: metric.value for metric in _threads(figures_of(events))}
    return {name: float(value) for name, value in found.items() if value is not None}


@pytest.mark.parametrize(
    ("busy", "waiting"),
    [
        ((60, 20), 1 / 3),
        ((20, 60), 1 / 3),
        ((50, 50), 0.0),
        ((80, 0), 1 / 2),
        ((90, 0, 0), 2 / 3),
        ((40,), 0.0),
    ],
)
def test_a_planted_imbalance_is_found(busy: tuple[int, ...], waiting: float) -> None:
    with recording() as recorder:
        for number in range(3):  # each takes twice as long as its busiest thread
            wall = 2 * max(busy) * MS
            launched("k", number * wall, tuple(b * MS for b in busy), wall_ns=wall)
    found = metrics_of(recorder.events)
    assert found["thread_imbalance"] == pytest.approx(max(busy) * len(busy) / sum(busy))
    assert found["thread_waiting"] == pytest.approx(waiting)
    assert found["thread_waiting"] == pytest.approx(1 - 1 / found["thread_imbalance"])
    assert found["thread_handover"] == pytest.approx(0.5)


def test_waking_threads_is_no_waiting_for_each_other() -> None:
    # launches take far longer than their threads: 97 % of two threads' time could not be
    with recording() as recorder:
        launched("k", 0, (2 * MS, MS), wall_ns=100 * MS)
    found = metrics_of(recorder.events)
    assert found["thread_waiting"] == pytest.approx(0.25)
    assert found["thread_handover"] == pytest.approx(0.98)


def test_a_team_tells_its_own_imbalance() -> None:
    def work(index: int) -> None:
        time.sleep(0.2 if index == 0 else 0.0)

    with recording() as recorder, ThreadTeam(2) as team:
        team.run(work)
    found = metrics_of(recorder.events)
    assert 0.3 < found["thread_waiting"] <= 0.5
    assert 1.5 < found["thread_imbalance"] <= 2.0
