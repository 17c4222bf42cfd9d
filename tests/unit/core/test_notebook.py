"""Tables that notebooks show are escaped; a line tells of progress, in notebooks only."""

import time
from typing import Any

import pytest

from graphsys.core import progress
from graphsys.core.notebook.tables import fields_table, html_table
from graphsys.core.progress import IN_NOTEBOOKS, SILENT, NotebookProgress, ProgressLine
from graphsys.engine import native_plan
from graphsys.engine.programs.bfs import BreadthFirst
from graphsys.engine.run import run
from graphsys.engine.topology import Topology


class Shown:
    """A place of a cell that remembers what it showed."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def update(self, shown: Any) -> None:
        self.lines.append(repr(shown))


@pytest.fixture
def displays(monkeypatch: pytest.MonkeyPatch) -> list[Shown]:
    made: list[Shown] = []

    def display() -> Shown:
        made.append(Shown())
        return made[-1]

    monkeypatch.setattr(progress, "_new_display", display)
    monkeypatch.setattr(progress, "_FIRST_S", 0.0)
    monkeypatch.setattr(progress, "_EVERY_S", 0.0)
    return made


def test_what_a_table_holds_is_escaped() -> None:
    table = html_table("<a>", [("<b>", 1234)], ["<c>"], note="<d>")
    for name in "abcd":
        assert f"<{name}>" not in table
        assert f"&lt;{name}&gt;" in table
    assert ">1234<" in table


def test_numbers_of_facts_have_separators() -> None:
    assert ">1,234<" in html_table("graph", [("nodes", 1234)])


def test_only_single_values_are_fields() -> None:
    table = fields_table("run", {"loss": 0.25, "done": True, "none": None, "many": [1]})
    assert "0.25" in table
    assert "True" in table
    assert "none" not in table
    assert "many" not in table


def test_a_line_tells_what_is_done(displays: list[Shown]) -> None:
    line = ProgressLine(1)
    line.begin("epoch 3", 40, "buckets")
    line.advance(12, {"loss": 0.31234, "edges": 12000})
    (shown,) = displays
    assert shown.lines == ["epoch 3, 12 of 40 buckets, loss 0.3123, edges 12,000, 0 s"]


def test_a_stage_that_is_soon_over_is_not_shown(
    displays: list[Shown], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_FIRST_S", 60.0)
    line = ProgressLine(1)
    line.begin("read", None, "bytes")
    line.advance(5, {})
    line.end()
    assert displays == []


def test_every_cell_has_a_line_of_its_own(
    displays: list[Shown], monkeypatch: pytest.MonkeyPatch
) -> None:
    progress = NotebookProgress()
    for cell in (1, 1, 2):
        monkeypatch.setattr("graphsys.core.progress.cell_number", lambda cell=cell: cell)
        progress.stage(f"work of {cell}")
        progress.advance(1)
    progress.close()
    assert [len(it.lines) > 0 for it in displays] == [True, True]
    assert displays[1].lines[-1].startswith("work of 2")


def test_outside_of_notebooks_nothing_is_shown(displays: list[Shown]) -> None:
    progress = NotebookProgress()
    progress.stage("read")
    progress.advance(1)
    progress.close()
    assert displays == []


def test_runs_tell_a_cell_how_far_they_are(
    displays: list[Shown], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Topology.from_edges(list(range(9)), list(range(1, 10)), 10)
    run(BreadthFirst(source=0), path)
    assert displays == []  # no notebook
    assert not IN_NOTEBOOKS.is_heard
    assert not SILENT.is_heard
    monkeypatch.setattr(progress, "cell_number", lambda: 3)
    run(BreadthFirst(source=0), path)
    assert any("supersteps" in line for line in displays[0].lines)
    monkeypatch.setattr(native_plan, "_TICK_S", 0.01)
    with native_plan._ticking(IN_NOTEBOOKS, "pagerank"):
        while not any("pagerank" in line for it in displays for line in it.lines):
            time.sleep(0.01)
