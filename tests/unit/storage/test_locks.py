"""One writer, and readers whose generation stays."""

import subprocess
import sys
from pathlib import Path

import pytest

from graphsys.core.errors import StoreBusyError
from graphsys.storage import Graph
from graphsys.storage.locks import Pin, WriterLock, is_pinned
from tests.stores import edge_chunk, make_store, pairs_of


def test_a_second_writer_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    lock = WriterLock(tmp_path)
    with pytest.raises(StoreBusyError, match="is being written by another process"):
        WriterLock(tmp_path)
    lock.release()
    WriterLock(tmp_path).release()
    assert list(tmp_path.iterdir()) == []


def test_a_dead_writer_holds_nothing(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys; from graphsys.storage.locks import WriterLock; "
        "held = WriterLock(pathlib.Path(sys.argv[1])); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=False, cwd="/")
    assert (tmp_path / ".lock").exists()
    WriterLock(tmp_path).release()


def test_a_fork_of_a_writer_ends_nothing_of_it(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys\n"
        "from graphsys.storage.transaction import Transaction\n"
        "out = pathlib.Path(sys.argv[1])\n"
        "writer = Transaction(out)\n"
        "if not (child := os.fork()):\n"
        "    del writer\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "assert (out / '.lock').exists() and (out / 'gen-1').exists()\n"
        "del writer\n"
        "assert not out.exists()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "g"], check=False, cwd="/"
    )
    assert done.returncode == 0


def test_two_writers_of_one_graph_at_once(tmp_path: Path) -> None:
    lock = WriterLock(tmp_path)
    with pytest.raises(StoreBusyError):
        make_store(tmp_path, edge_chunk([(1, 2)]))
    lock.release()
    make_store(tmp_path, edge_chunk([(1, 2)]), overwrite=True).graph.close()


def test_pins_are_shared_and_seen(tmp_path: Path) -> None:
    assert not is_pinned(tmp_path)
    first, second = Pin(tmp_path), Pin(tmp_path)
    first.release()
    assert is_pinned(tmp_path)
    second.release()
    second.release()
    assert not is_pinned(tmp_path)


def test_a_reader_keeps_its_generation_through_an_overwrite(tmp_path: Path) -> None:
    out = tmp_path / "g"
    old = make_store(out, edge_chunk([(1, 2)])).graph
    for n in (3, 4):
        make_store(out, edge_chunk([(n, n)]), overwrite=True).graph.close()
    assert pairs_of(old) == {(1, 2): 1}
    assert sorted(p.name for p in out.iterdir()) == ["gen-1", "gen-3", "graph.json"]
    with Graph(out) as new:
        assert new.generation == 3
        assert pairs_of(new) == {(4, 4): 1}
    old.close()
    assert sorted(p.name for p in out.iterdir()) == ["gen-3", "graph.json"]


def test_arrays_outlive_the_files_they_map(tmp_path: Path) -> None:
    out = tmp_path / "g"
    graph = make_store(out, edge_chunk([(1, 2), (2, 1)])).graph
    bucket = graph.bucket("edge", 0, 0)
    make_store(out, edge_chunk([(7, 7)]), overwrite=True).graph.close()
    graph.close()
    assert not (out / "gen-1").exists()
    assert bucket.src.tolist() == [0, 1]


def test_two_readers_of_an_old_generation(tmp_path: Path) -> None:
    out = tmp_path / "g"
    first, second = make_store(out, edge_chunk([(1, 2)])).graph, Graph(out)
    make_store(out, edge_chunk([(7, 7)]), overwrite=True).graph.close()
    first.close()
    assert pairs_of(second) == {(1, 2): 1}
    second.close()
    assert not (out / "gen-1").exists()


def test_a_lock_whose_making_was_interrupted_goes_without_a_word() -> None:
    lock = WriterLock.__new__(WriterLock)  # Ctrl-C before its first line
    lock.__del__()
    assert not lock.is_own
