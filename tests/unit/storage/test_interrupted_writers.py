"""Ctrl-C at any line of a commit: the old graph or the new one, and no litter."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from graphsys.core.errors import GraphsysError
from graphsys.core.ownership import owner
from graphsys.facade.graph import Graph
from graphsys.storage import locks, transaction
from graphsys.storage.dynamic import delta_transaction
from graphsys.storage.dynamic.append import append
from graphsys.storage.verify.verify import verify
from tests.stores import ListSource, edge_chunk, make_store, pairs_of

WATCHED = {it.__file__ for it in (transaction, delta_transaction, locks, owner)}
READERS = ("Pin.", "is_pinned")
"""What has nothing to undo: a pin that is lost in a line of it is held until the end."""
OLD, NEW = [(1, 2)], [(3, 4), (5, 6)]


class Interrupter:
    """Raises KeyboardInterrupt at the n-th line that writers of stores run.

    Python raises it between any two of its instructions; lines are those at which what is
    there on disk can differ. Returns are no lines: a trace that raises there keeps what the
    function made, where a signal lets it go.
    """

    def __init__(self, at: int) -> None:
        self.at, self.seen = at, 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code.co_filename not in WATCHED or code.co_qualname.startswith(READERS):
            return None
        if event == "line":
            self.seen += 1
            if self.seen == self.at and not is_finalizing(frame):
                raise KeyboardInterrupt
        return self


def is_finalizing(frame: FrameType | None) -> bool:
    """Whether an object is being removed: Python tells nobody of what is raised there."""
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None


@contextlib.contextmanager
def interrupted(at: int) -> Iterator[Interrupter]:
    before = sys.gettrace()
    tracer = Interrupter(at)
    sys.settrace(tracer)
    try:
        yield tracer
    finally:
        sys.settrace(before)


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


EVERY = pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.slow)])
"""How many lines lie between two at which writers are interrupted."""


@EVERY
def test_an_interrupted_ingest_leaves_a_graph_or_nothing(
    tmp_path: Path, every: int
) -> None:
    def write(out: Path) -> None:
        make_store(out, edge_chunk(NEW)).graph.close()

    for out in interruptions(tmp_path, write, every):
        assert everything(out.parent) == [] or edges(out) == NEW
        write_again(out)


@EVERY
def test_an_interrupted_overwrite_leaves_the_old_graph_or_the_new(
    tmp_path: Path, every: int
) -> None:
    def write(out: Path) -> None:
        make_store(out, edge_chunk(NEW), overwrite=True).graph.close()

    for out in interruptions(tmp_path, write, every, OLD):
        assert edges(out) in (OLD, NEW)
        if edges(out) == OLD:
            assert not (out / "gen-2").exists()
        write_again(out)


@EVERY
def test_an_interrupted_append_leaves_the_old_graph_or_the_new(
    tmp_path: Path, every: int
) -> None:
    def write(out: Path) -> None:
        append(out, ListSource([edge_chunk(NEW)])).graph.close()

    for out in interruptions(tmp_path, write, every, OLD):
        assert edges(out) in (OLD, sorted(OLD + NEW))
        write_again(out)


def interruptions(
    folder: Path,
    write: Callable[[Path], None],
    every: int,
    old: list[tuple[int, int]] | None = None,
) -> Iterator[Path]:
    """Interrupt a writer at lines in turn, and yield where its output is."""
    at, is_over = 0, False
    while not is_over:
        at += every
        out = folder / str(at) / "graph"
        out.parent.mkdir()
        if old is not None:
            make_store(out, edge_chunk(old)).graph.close()
        with interrupted(at) as tracer, contextlib.suppress(KeyboardInterrupt):
            write(out)
        is_over = tracer.seen < at
        yield out
    assert at > 150  # as many lines as there are, by and by


def edges(out: Path) -> list[tuple[int, int]]:
    assert verify(out).ok or all("writer left" in it.what for it in verify(out).problems)
    with Graph(out) as graph:
        return sorted(pairs_of(graph).elements())


def write_again(out: Path) -> None:
    """Nobody holds the lock, and what was left is taken for nobody's and goes."""
    try:
        make_store(out, edge_chunk(OLD), overwrite=True).graph.close()
    except GraphsysError as err:
        pytest.fail(f"after an interruption: {err}")
    assert verify(out).ok
    assert len([it for it in out.iterdir() if it.name.startswith("gen-")]) == 1


def test_an_empty_generation_is_what_a_kill_left_and_goes(tmp_path: Path) -> None:
    """Of a writer that had made the folder, or removed its claim, and came no further."""
    out = tmp_path / "graph"
    make_store(out, edge_chunk(OLD)).graph.close()
    (out / "gen-7").mkdir()
    (out / "gen-9").mkdir()
    (out / "gen-9" / "mine.txt").write_text("a user's")
    told = {it.file: it.what for it in verify(out).problems}
    assert "a killed writer left it, and the next one removes it" in told["gen-7"]
    assert "no writer of ours left it" in told["gen-9"]
    make_store(out, edge_chunk(NEW), overwrite=True).graph.close()
    assert [it.file for it in verify(out).problems] == ["gen-9"]
    assert everything(out / "gen-9") == ["mine.txt"]
