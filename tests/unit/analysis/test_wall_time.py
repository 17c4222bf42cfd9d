"""Parts of the wall time: every moment counts once, and they add up to all of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsys.analysis.page.page import page_of
from graphsys.analysis.wall_time import wall_parts
from graphsys.core.events import Event
from tests.unit.analysis.test_host import MS, launch, span
from tests.unit.analysis.test_page import report_of_many

TURNS = ("compile", "kernel", "wait", "read", "write_back", "superstep")
"""What counts first where several go on."""
PARTS = {
    "compile": "compiling",
    "kernel": "kernel",
    "wait": "waiting",
    "read": "reading",
    "write_back": "writing",
    "superstep": "host",
}


def parts_of(events: list[Event], end: int, wall: int | None = None) -> dict[str, float]:
    """Return milliseconds by part."""
    whole = (end if wall is None else wall) / 1e3
    found: dict[str, float] = {}
    for row in wall_parts(events, 0, end * MS, whole):
        found[row["part"]] = found.get(row["part"], 0.0) + 1e3 * row["seconds"]
    assert sum(found.values()) == pytest.approx(1e3 * whole)
    return found


@given(
    st.lists(
        st.tuples(st.sampled_from(TURNS), st.integers(0, 50), st.integers(1, 20)),
        max_size=12,
    )
)
def test_every_moment_has_the_part_that_counts_first(
    drawn: list[tuple[str, int, int]],
) -> None:
    moments: list[set[str]] = [set() for _ in range(60)]
    for name, begin, length in drawn:
        for moment in range(begin, min(begin + length, 60)):
            moments[moment].add(name)
    works = [k for k, on in enumerate(moments) if on - {"compile", "write_back"}]
    is_known = any(name != "compile" for name, *_ in drawn)
    first = (works[0] if works else 60) if is_known else 0
    wanted: dict[str, float] = {}
    for k, on in enumerate(moments):
        known = [it for it in TURNS if it in on]
        part = PARTS[known[0]] if known else ("start" if k < first else "other")
        wanted[part] = wanted.get(part, 0) + 1
    events = [
        launch(begin, begin + length, 1, 1)
        if name == "kernel"
        else span(name, begin, begin + length)
        for name, begin, length in drawn
    ]
    found = {part: took for part, took in parts_of(events, 60).items() if took > 1e-9}
    assert found == pytest.approx(wanted)


def test_observers_take_none_of_it() -> None:
    events = [
        launch(10, 20, 9, 9),
        span("observing", 20, 50),
        span("superstep", 5, 30),  # 25 of its own, the observer's 30 besides
        launch(50, 55, 5, 5),
    ]
    found = parts_of(events, 60, wall=30)
    assert found == pytest.approx({"start": 5, "kernel": 15, "host": 10})


def test_the_longest_kernels_have_parts_of_their_own() -> None:
    events = [launch(10 * k, 10 * k + k, 1, 1, kernel=f"k{k}") for k in range(1, 8)]
    rows = wall_parts(events, 0, 80 * MS, 0.08)
    kernels = [(row["name"], round(1e3 * row["seconds"])) for row in rows[1:-1]]
    assert kernels == [("k7", 7), ("k6", 6), ("k5", 5), ("4 other kernels", 10)]
    assert [rows[0]["part"], rows[-1]["part"]] == ["start", "other"]
    assert all(row["part"] == "kernel" for row in rows[1:-1])


def test_the_page_has_a_bar_of_all_parts() -> None:
    report: dict[str, Any] = report_of_many(3)
    rows = report["wall_time"]
    wall = next(it["value"] for it in report["metrics"] if it["name"] == "wall_seconds")
    assert sum(row["seconds"] for row in rows) == pytest.approx(wall)
    page = page_of(report)
    for row in rows:
        assert f'title="{row["name"]}: ' in page
    assert 'id="wall"' in page
    assert 'id="wall"' not in page_of({**report, "wall_time": []})  # of an old report
