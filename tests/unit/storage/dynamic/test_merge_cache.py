"""What one reader merged is mapped by others, and is never trusted where it may not be."""

import errno
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.engine.algorithms import get
from graphsys.facade.graph import Graph
from graphsys.storage.deltas import changes, merge_cache
from graphsys.storage.deltas.merge_cache import FileWriter
from graphsys.storage.dynamic.compact import compact
from graphsys.storage.grouped.merged_view import GroupedGraph
from graphsys.storage.info import details
from graphsys.storage.verify.verify import verify
from tests.stores import edge_chunk, make_store, pairs_of
from tests.unit.storage.dynamic.test_append import add

COLUMNS = ("indptr", "indices", "weight", "time")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Small stores keep rows, too, in a cache of the test's own."""
    monkeypatch.setattr(merge_cache, "_WORTH_KEEPING", 1)
    caches = tmp_path / "cache"
    monkeypatch.setattr(merge_cache, "user_cache", lambda name: _made(caches / name))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def chunk(rng: np.random.Generator, size: int, ids: int) -> Any:
    return edge_chunk(
        rng.integers(0, ids, (size, 2)).tolist(),
        weight=rng.random(size),
        time=rng.integers(0, 100, size),
    )


@pytest.fixture(scope="module", params=[1, 3])
def template(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a store with ten deltas of new nodes and edges, of one or three partitions."""
    rng, store = np.random.default_rng(0), tmp_path_factory.mktemp("kept") / "g"
    make_store(store, chunk(rng, 300, 40), partitions=request.param).graph.close()
    for k in range(10):
        new = edge_chunk([(100 + k, 1)], weight=[1.0], time=[k])
        add(store, chunk(rng, 20, 45 + k), new).graph.close()
    return store


@pytest.fixture
def changed(template: Path, tmp_path: Path) -> Path:
    """Return a copy of it."""
    return Path(shutil.copytree(template, tmp_path / "g"))


def rows_of(graph: Graph) -> list[Any]:
    """Return all rows of both directions, and the ids."""
    found: list[Any] = [graph.node_ids("node").to_pylist()]
    for read in (graph.out_index, graph.in_index):
        for part in range(graph.num_partitions("node")):
            index = read("edge", part)
            found += [
                getattr(index, name).tolist() for name in COLUMNS if len(index.indices)
            ]
    return found


def read(store: Path) -> list[Any]:
    with Graph(store) as graph:
        return rows_of(graph)


def files_of(store: Path) -> list[Path]:
    own = merge_cache._cache_of(store)
    assert own is not None
    return sorted(own.rglob("*.arrow"))


def merged_by_hand(store: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what is read where nothing is kept."""
    with monkeypatch.context() as patch:
        patch.setattr(merge_cache.MergeCache, "_mapped", lambda *_: iter(()))
        patch.setattr(merge_cache.MergeCache, "_keep", lambda *_: None)
        return read(store)


class Count:
    """Counts how often rows are merged."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.merges = 0
        real = changes.DeltaMerge._merged

        def merged(*args: Any) -> Any:
            self.merges += 1
            return real(*args)

        monkeypatch.setattr(changes.DeltaMerge, "_merged", merged)


def test_a_second_reader_maps_what_the_first_merged(
    changed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = merged_by_hand(changed, monkeypatch)
    assert not files_of(changed)
    assert read(changed) == wanted
    files = files_of(changed)
    assert {it.name.split("-")[0] for it in files} == {"out", "in", "ids"}
    count = Count(monkeypatch)
    opened: list[Any] = []
    real = Graph.nodes

    def nodes(self: Graph, *key: Any) -> Any:
        opened.append(key)
        return real(self, *key)

    monkeypatch.setattr(Graph, "nodes", nodes)
    with Graph(changed) as graph:
        assert rows_of(graph) == wanted
        assert graph.out_index("edge", 0).indices.flags.writeable is False
        num_first = len(graph.offsets("node")) - 1 - 10
    assert len(opened) == num_first  # not one file for each delta
    assert (
        count.merges <= 2 * (num_first + 10) - len(files) + 1
    )  # those that did not change
    if num_first == 1:
        assert count.merges == 0
    assert files_of(changed) == files
    assert verify(changed).problems == []
    sizes = details(changed)["bytes"]
    assert sizes["merged"] == sum(file.stat().st_size for file in files)


def test_an_append_removes_it_and_nobody_reads_the_past(
    changed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Graph(changed) as before:
        old = rows_of(before)
        stale = files_of(changed)
        copies = {file: file.read_bytes() for file in stale}
        gone = [edge_chunk([(100, 1)])]
        add(
            changed, edge_chunk([(7, 8)], weight=[2.0], time=[3]), deletes=gone
        ).graph.close()
        assert not files_of(changed)
        wanted = merged_by_hand(changed, monkeypatch)
        assert wanted != old
        for file, content in copies.items():  # as a slow reader might leave them
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        assert read(changed) == wanted
        assert verify(changed).problems == []  # they are of the past, and no fault
        assert rows_of(before) == old
    with Graph(changed) as after:
        pairs = pairs_of(after)
        assert pairs[7, 8] >= 1
        assert (100, 1) not in pairs
    add(changed, edge_chunk([(1, 1)], weight=[2.0], time=[3])).graph.close()
    assert not files_of(changed)


def test_a_reader_of_an_old_state_keeps_nothing(changed: Path) -> None:
    with Graph(changed) as before:
        add(changed, edge_chunk([(7, 8)], weight=[2.0], time=[3])).graph.close()
        rows_of(before)
    assert not files_of(changed)


def test_compacting_leaves_none(changed: Path) -> None:
    read(changed)
    assert files_of(changed)
    compact(changed).graph.close()
    assert not files_of(changed)
    read(changed)  # without deltas there is nothing to merge
    assert not files_of(changed)


@pytest.mark.parametrize("place", [0.02, 0.5, 0.98])
def test_a_damaged_one_is_found_and_not_read(
    changed: Path, place: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = read(changed)
    for file in files_of(changed):
        data = bytearray(file.read_bytes())
        data[int(len(data) * place)] ^= 255
        file.write_bytes(data)
    damaged = {file: file.read_bytes() for file in files_of(changed)}
    assert read(changed) == wanted  # and whoever reads removes it
    assert all(it.read_bytes() != damaged.get(it) for it in files_of(changed))
    assert read(changed) == wanted
    assert verify(changed).problems == []


def test_of_a_file_cut_short_nothing_is_read(changed: Path) -> None:
    wanted = read(changed)
    for file in files_of(changed):
        os.truncate(file, file.stat().st_size // 2)
    assert read(changed) == wanted


def test_beside_the_graph_nothing_lies_that_it_does_not_list(changed: Path) -> None:
    before = sorted(changed.rglob("*"))
    read(changed)
    assert files_of(changed)
    assert sorted(changed.rglob("*")) == before


def test_what_is_of_graphs_that_are_gone_goes_and_each_has_one_state(
    changed: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(changed, tmp_path / "copy"))
    read(copy)
    assert files_of(copy)
    assert not files_of(changed)  # each has its own
    own = merge_cache._cache_of(changed)
    assert own is not None
    stale = own / ("0" * 32) / "index"
    stale.mkdir(parents=True)
    shutil.rmtree(copy)
    read(changed)
    assert files_of(changed)
    assert not files_of(copy)
    assert not stale.exists()


@pytest.mark.parametrize("refused", ["cache", "open", "link", "room", "write"])
def test_where_it_cannot_be_written_reading_goes_on(
    changed: Path, refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is read-only, files that cannot be named, a disk that is full."""
    wanted = merged_by_hand(changed, monkeypatch)
    full = OSError(errno.ENOSPC, "No space left on device")
    real, room = os.open, os.statvfs(changed)

    def no_open(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EROFS, "Read-only file system")
        return real(path, flags, *more, **named)

    def is_full(*_: Any, **__: Any) -> None:
        raise full

    class NoRoom:
        f_bavail, f_frsize = 1, room.f_frsize // 4096

    if refused == "cache":
        monkeypatch.setattr(merge_cache, "user_cache", lambda _: None)
    elif refused == "open":
        monkeypatch.setattr(os, "open", no_open)
    elif refused == "link":
        monkeypatch.setattr(os, "link", is_full)
    elif refused == "room":
        monkeypatch.setattr(os, "statvfs", lambda _: NoRoom)
    else:
        monkeypatch.setattr(FileWriter, "write", is_full)
    assert read(changed) == wanted
    assert read(changed) == wanted
    if refused != "cache":
        assert not files_of(changed)
    monkeypatch.undo()
    assert verify(changed).problems == []


def test_a_kill_before_the_name_leaves_nothing(changed: Path) -> None:
    """The process ends between the last byte and the name."""
    own = merge_cache._cache_of(changed)
    assert own is not None
    cache = own.parent
    code = f"""
import os
from graphsys.facade.graph import Graph
from graphsys.storage.deltas import merge_cache
merge_cache._WORTH_KEEPING = 1
from pathlib import Path
merge_cache.user_cache = lambda name: Path({str(cache)!r})
os.link = lambda *_, **__: os.kill(os.getpid(), 9)
with Graph({str(changed)!r}) as graph:
    graph.node_ids("node")
    for part in range(graph.num_partitions("node")):
        graph.out_index("edge", part)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], check=False)
    assert done.returncode == -9
    assert not files_of(changed)
    assert verify(changed).problems == []
    assert read(changed)
    assert files_of(changed)


def test_groups_of_partitions_have_ids_in_their_own_order(changed: Path) -> None:
    read(changed)  # keeps the ids of new nodes in the order of the store
    with Graph(changed) as graph:
        last = graph.num_partitions("node") - 1
        grouped = GroupedGraph(graph, {"node": [[last], list(range(last))]})
        ids = [grouped.nodes("node", k)["id"].to_pylist() for k in range(2)]
        assert grouped.node_ids("node").to_pylist() == [*ids[0], *ids[1]]


def test_views_and_algorithms_read_what_is_kept(
    changed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers() -> list[Any]:
        with Graph(changed) as graph:
            found: list[Any] = [get("wcc")(graph).table.to_pydict()]
            for view in (graph.at(40), graph.between(20, 60)):
                found += [pairs_of(view), get("bfs")(view, source=1).table.to_pydict()]
                found += [view.num_edges]
            return found

    first = answers()
    assert files_of(changed)
    monkeypatch.setattr(changes.DeltaMerge, "_merged_index", _never)
    assert answers() == first


def _never(*_: Any) -> None:
    raise AssertionError("merged again")


def test_views_of_deletions_with_times_merge_for_themselves(tmp_path: Path) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk([(1, 2), (2, 3)], time=[1, 2])).graph.close()
    add(
        store, edge_chunk([(3, 4)], time=[3]), deletes=[edge_chunk([(1, 2)], time=[5])]
    ).graph.close()
    for _ in range(2):
        with Graph(store) as graph:
            assert len(graph.out_index("edge", 0).indices) == 2
            assert pairs_of(graph) == Counter([(2, 3), (3, 4)])
            view = graph.at(4)
            assert pairs_of(view) == Counter([(1, 2), (2, 3), (3, 4)])
            rows = [view.out_index("edge", k) for k in range(view.num_partitions("node"))]
            assert sum(len(index.indices) for index in rows) == 3
