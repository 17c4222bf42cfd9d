"""What appends and compactions do on full disks, beside each other, and out of order."""

import errno
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import CorruptStoreError, StorageFullError, StoreBusyError
from graphsys.facade.graph import Graph
from graphsys.storage.deltas import splice
from graphsys.storage.dynamic.compact import compact
from graphsys.storage.verify.verify import verify
from tests.stores import edge_chunk, make_store, pairs_of
from tests.unit.storage.dynamic.test_append import add

PAIRS = [(1, 2), (2, 3), (3, 1)]


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """Return a store with a delta that added an edge, and removed one."""
    make_store(tmp_path / "g", edge_chunk(PAIRS), partitions=2).graph.close()
    add(tmp_path / "g", edge_chunk([(4, 1)]), deletes=[edge_chunk([(2, 3)])]).graph.close()
    return tmp_path / "g"


LEFT = Counter([(1, 2), (3, 1), (4, 1)])


@pytest.mark.parametrize("what", ["append", "compact"])
def test_a_full_disk_at_any_flush_keeps_the_graph(
    changed: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, refused, failing = 0, 0, 0
    said: list[str] = []

    def fsync(fd: int) -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    while failing < 100:
        failing += 1
        calls = 0
        try:
            if what == "append":
                gone = [edge_chunk([(3, 1)])]
                add(changed, edge_chunk([(9, 1)]), deletes=gone).graph.close()
            else:
                compact(changed).graph.close()
        except StorageFullError as err:
            said.append(str(err))
            with Graph(changed) as graph:
                found = pairs_of(graph)
            assert verify(changed).problems == []
            if found == LEFT:
                refused += 1
                continue
        break
    assert refused > 4
    assert all("no space left on device; free some space" in text for text in said)


def test_of_two_appenders_one_is_refused_and_none_is_lost(tmp_path: Path) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk(PAIRS)).graph.close()
    done: list[int] = []
    refused: list[str] = []

    def work(first: int) -> None:
        for k in range(first, first + 15):
            while True:
                try:
                    add(store, edge_chunk([(k, k + 1)])).graph.close()
                except StoreBusyError as err:
                    refused.append(str(err))
                    continue
                done.append(k)
                break

    threads = [threading.Thread(target=work, args=(first,)) for first in (100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Graph(store) as graph:
        wanted = Counter(PAIRS) + Counter((k, k + 1) for k in done)
        assert pairs_of(graph) == wanted
        assert len(graph.manifest.deltas) == len(done) == 30
    assert all("is being written by another process; wait" in text for text in refused)
    assert verify(store).problems == []


def test_readers_beside_a_writer_see_whole_graphs_only(tmp_path: Path) -> None:
    """Every append adds a ring of three; a torn read would show a part of one."""
    store = tmp_path / "g"
    make_store(store, edge_chunk(PAIRS)).graph.close()
    is_over = threading.Event()
    seen: list[int] = []
    torn: list[Any] = []

    def read() -> None:
        while not is_over.is_set():
            with Graph(store) as graph:
                found = pairs_of(graph)
                index = sum(
                    len(graph.in_index("edge", part).indices)
                    for part in range(graph.num_partitions("node"))
                )
                if {found.total(), index} != {graph.num_edges} or graph.num_edges % 3:
                    torn.append((found, index, graph.num_edges))
                seen.append(graph.num_edges)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for k in range(10, 60, 3):
        ring = [(k, k + 1), (k + 1, k + 2), (k + 2, k)]
        add(store, edge_chunk(ring)).graph.close()
        if k % 4 == 0:
            compact(store).graph.close()
    is_over.set()
    for reader in readers:
        reader.join()
    assert not torn
    assert len(set(seen)) > 2


def test_an_edge_older_than_the_newest_is_in_its_place(tmp_path: Path) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk([(1, 2), (1, 4)], time=[50, 60])).graph.close()
    add(store, edge_chunk([(1, 3), (1, 2)], time=[5, 1])).graph.close()
    with Graph(store) as graph:
        index = graph.out_index("edge", 0)
        assert index.indices.tolist() == sorted(index.indices.tolist())
        assert sorted(zip(graph.neighbors(1), index.time.tolist(), strict=True)) == [  # type: ignore[union-attr] # there are times
            (2, 1),
            (2, 50),
            (3, 5),
            (4, 60),
        ]
        assert pairs_of(graph.at(5)) == Counter([(1, 2), (1, 3)])


def test_what_is_merged_beyond_a_megabyte_lies_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is the same there; nothing of it stays when the graph is closed."""
    store, rng = tmp_path / "g", np.random.default_rng(0)
    pairs = rng.integers(0, 50, (400, 2)).tolist()
    make_store(store, edge_chunk(pairs[:300])).graph.close()
    add(store, edge_chunk(pairs[300:])).graph.close()

    def rows() -> list[list[int]]:
        with Graph(store) as graph:
            index = graph.out_index("edge", 0)
            assert not index.indices.flags.writeable
            return [index.indptr.tolist(), index.indices.tolist()]

    in_memory = rows()
    monkeypatch.setattr(splice, "_IN_MEMORY", 8)
    assert rows() == in_memory
    for piece in (1, 7, 300):
        monkeypatch.setattr(splice, "_PIECE", piece)
        assert rows() == in_memory

    real = os.open

    def nameless(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "no files without names here")
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", nameless)
    assert rows() == in_memory  # in the folder for temporary files
    monkeypatch.setattr(os, "open", real)

    def full(fd: int, begin: int, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(StorageFullError, match=r"merging the deltas of .* bytes of disk"):
        rows()
    assert verify(store).problems == []


# ---- damage


def test_damage_to_any_file_of_a_delta_is_found(changed: Path) -> None:
    files = sorted((changed / "gen-1/deltas").rglob("*.arrow"))
    assert len(files) == 3
    for file in files:
        whole = file.read_bytes()
        place = len(whole) // 2
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        name = file.relative_to(changed).as_posix()
        assert name in {problem.file for problem in verify(changed).problems}
        with (
            pytest.raises(CorruptStoreError, match="cannot be read"),
            Graph(changed) as graph,
        ):
            read_everything(graph)
        file.write_bytes(whole)
    assert verify(changed).problems == []


def read_everything(graph: Graph) -> None:
    pairs_of(graph)
    for part in range(graph.num_partitions("node")):
        graph.out_index("edge", part)
        graph.nodes("node", part)


def test_files_that_no_delta_has_are_problems(changed: Path) -> None:
    (changed / "gen-1/deltas/1/more.arrow").write_bytes(b"x")
    (problem,) = verify(changed).problems
    assert problem.file == "gen-1/deltas/1/more.arrow"
    assert "is not listed in graph.json" in problem.what
