"""Rows sorted by time: what is strictly older is found, the latest of it first."""

import numpy as np
import pytest

from graphsys.core.errors import ConfigError
from graphsys.sampling import recent_rows


def test_the_latest_older_entries_are_those_of_a_full_scan() -> None:
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 12, (2, 300))
    time = np.sort(rng.integers(0, 60, 300))
    rows = recent_rows(src, dst, time, 12)
    nodes, before = rng.integers(0, 12, 200), rng.integers(-5, 70, 200)
    found = rows.latest(nodes, before, 4)
    for node, limit, entries in zip(nodes, before, found, strict=True):
        events = [
            k for k in range(300) if time[k] < limit for v in (src[k], dst[k]) if v == node
        ]
        wanted = events[::-1][:4]
        assert rows.events[entries[entries >= 0]].tolist() == wanted
        assert (entries >= 0).sum() == len(wanted)
        for entry in entries[entries >= 0]:
            event = rows.events[entry]
            assert {node, rows.others[entry]} == {src[event], dst[event]}
            assert rows.times[entry] == time[event]


def test_an_event_of_the_same_time_is_not_older() -> None:
    rows = recent_rows(np.array([0]), np.array([1]), np.array([7]), 2)
    asked = np.array([0, 0]), np.array([7, 8])
    assert rows.latest(*asked, 1).tolist() == [[-1], [0]]


def test_rows_of_sources_alone() -> None:
    rows = recent_rows(
        np.array([0, 0]), np.array([1, 2]), np.array([1, 2]), 3, is_both_ways=False
    )
    assert np.diff(rows.indptr).tolist() == [2, 0, 0]


def test_no_events_at_all() -> None:
    none = np.empty(0, np.int64)
    rows = recent_rows(none, none, none, 2)
    assert rows.latest(np.array([0, 1]), np.array([5, 5]), 2).tolist() == [[-1, -1]] * 2


def test_times_that_fall_are_refused() -> None:
    two = np.array([0, 1])
    with pytest.raises(ConfigError, match="times: got 3 after 5, expected times in order"):
        recent_rows(two, two, np.array([5, 3]), 2)
