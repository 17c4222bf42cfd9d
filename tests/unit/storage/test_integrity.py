"""Damaged files are refused when they are mapped; sound ones are looked at once."""

import dataclasses
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.checksums import file_digest
from graphsys.core.errors import CorruptStoreError
from graphsys.storage import Graph, NodeChunk, checked_files
from graphsys.storage.manifest import MANIFEST_NAME, Manifest, checksum_of
from tests.stores import edge_chunk, make_store


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's cache of this test's own, empty, that takes files of any size."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("GRAPHSYS_CACHE", str(folder))
    monkeypatch.setattr(checked_files, "_WORTH_BYTES", 0)
    checked_files._cache_of.cache_clear()
    yield folder
    checked_files._cache_of.cache_clear()


@pytest.fixture
def store(tmp_path: Path, cache: Path) -> Path:
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 40, (300, 2)).tolist()
    nodes = NodeChunk(
        ids=np.arange(40),
        features={"x": rng.random((40, 3), dtype=np.float32)},
    )
    relation = pa.array([f"r{k % 3}" for k in range(300)])
    weight = rng.random(300, dtype=np.float32)
    chunk = edge_chunk(pairs, weight=weight, relation=relation)
    make_store(tmp_path / "g", nodes, chunk, partitions=2)
    # as if it came from elsewhere: nobody here remembers that it was written
    shutil.rmtree(cache / "checked", ignore_errors=True)
    checked_files._cache_of.cache_clear()
    return tmp_path / "g"


def read_all(graph: Graph) -> None:
    """Map every file of a graph."""
    for part in range(2):
        graph.nodes("node", part)
        graph.features("node", part, "x")
        graph.out_index("edge", part)
        graph.in_index("edge", part)
        for other in range(2):
            graph.bucket("edge", part, other)


def reseal(store: Path, change: Callable[[Manifest], Manifest] = lambda m: m) -> None:
    """Write a manifest whose checksums fit the files: what a forger would do."""
    manifest = change(Manifest.read(store))
    files = [
        dataclasses.replace(
            entry,
            bytes=(store / entry.path).stat().st_size,
            checksum="sha256:"
            + hashlib.sha256((store / entry.path).read_bytes()).hexdigest(),
            xxh3=file_digest(store / entry.path),
        )
        for entry in manifest.files
    ]
    (store / MANIFEST_NAME).write_text(dataclasses.replace(manifest, files=files).to_json())


def rewrite(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the columns of an Arrow file of one record batch, given as numpy or Arrow."""
    batch = pa.ipc.open_file(file.read_bytes()).get_batch(0)
    columns: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
    is_index = all(pa.types.is_large_list(c.type) for c in batch.columns)
    if is_index:
        columns = {name: c.values.to_numpy().copy() for name, c in columns.items()}
    change(columns)
    arrays = [
        pa.LargeListArray.from_arrays([0, len(c)], pa.array(c)) if is_index else c
        for c in columns.values()
    ]
    made = pa.record_batch(arrays, names=list(columns))
    with pa.ipc.new_file(file, made.schema) as writer:
        writer.write_batch(made)


def test_a_flipped_bit_in_any_file_is_refused_or_harmless(
    store: Path, rng: np.random.Generator
) -> None:
    files = sorted(store.rglob("*.arrow"))
    assert len(files) == 12
    for file in files:
        sound = file.read_bytes()
        for place in rng.integers(8, len(sound) - 8, 6).tolist():
            damaged = bytearray(sound)
            damaged[place] ^= 1 << rng.integers(8)
            file.write_bytes(damaged)
            with pytest.raises(CorruptStoreError, match=file.name), Graph(store) as graph:
                read_all(graph)
        file.write_bytes(sound)
    with Graph(store) as graph:
        read_all(graph)


def test_stores_without_fast_checksums_are_compared_by_sha256(store: Path) -> None:
    manifest = Manifest.read(store)
    files = [dataclasses.replace(entry, xxh3="") for entry in manifest.files]
    (store / MANIFEST_NAME).write_text(dataclasses.replace(manifest, files=files).to_json())
    with Graph(store) as graph:
        read_all(graph)
    file = store / "gen-1/index/edge/out-0.arrow"
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    file.write_bytes(damaged)
    with Graph(store) as graph, pytest.raises(CorruptStoreError, match="its checksum"):
        graph.out_index("edge", 0)


def _put(name: str, place: int, value: int) -> Callable[[dict[str, Any]], None]:
    def change(columns: dict[str, Any]) -> None:
        columns[name][place] = value

    return change


def _cut(columns: dict[str, Any]) -> None:
    columns["weight"] = columns["weight"][:-1]


FORGED = {
    "neighbor out of bounds": (
        _put("indices", 3, 40),
        "indices holds 40, expected 0 to 39",
    ),
    "offset out of bounds": (_put("indptr", -1, 999), "indptr goes from 0 to 999"),
    "offsets that descend": (_put("indptr", 4, 0), "indptr descends"),
    "offsets from one": (_put("indptr", 0, 1), "indptr goes from 1"),
    "unknown relation": (_put("relation", 0, 7), "relation holds 7, expected 0 to 2"),
    "short column": (_cut, "weight has"),
}


@pytest.mark.parametrize("name", FORGED)
def test_indexes_out_of_bounds_are_refused_though_checksums_fit(
    store: Path, name: str
) -> None:
    change, message = FORGED[name]
    rewrite(store / "gen-1/index/edge/out-1.arrow", change)
    reseal(store)
    with Graph(store) as graph, pytest.raises(CorruptStoreError, match=message):
        graph.out_index("edge", 1)


def test_buckets_and_nodes_out_of_bounds_are_refused(store: Path) -> None:
    def raise_src(columns: dict[str, Any]) -> None:
        values = columns["src"].to_numpy().copy()
        values[0] = 1 << 20
        columns["src"] = pa.array(values)

    def lose_ids(columns: dict[str, Any]) -> None:
        columns["id"] = pa.array([None] * len(columns["id"]), pa.int64())

    rewrite(store / "gen-1/edges/edge/train/bucket-0-1.arrow", raise_src)
    rewrite(store / "gen-1/nodes/node/part-1.arrow", lose_ids)
    reseal(store)
    with Graph(store) as graph:
        with pytest.raises(CorruptStoreError, match="src holds 1048576"):
            graph.bucket("edge", 0, 1)
        with pytest.raises(CorruptStoreError, match="missing; expected int64"):
            graph.nodes("node", 1)


def test_a_manifest_with_other_bounds_makes_files_be_looked_at_again(store: Path) -> None:
    def grow(manifest: Manifest) -> Manifest:
        node = manifest.node_types["node"]
        more = dataclasses.replace(node, offsets=[*node.offsets[:-1], node.offsets[-1] + 1])
        return dataclasses.replace(manifest, node_types={"node": more})

    time.sleep(0.06)
    with Graph(store) as graph:
        read_all(graph)
    reseal(store, grow)
    with Graph(store) as graph, pytest.raises(CorruptStoreError, match="indptr has"):
        graph.out_index("edge", 1)


def test_files_that_the_manifest_does_not_list_are_missed(store: Path) -> None:
    def lose(manifest: Manifest) -> Manifest:
        kept = [
            entry
            for entry in manifest.files
            if "/out-0" not in entry.path and "nodes/node/part-0" not in entry.path
        ]
        return dataclasses.replace(manifest, files=kept)

    reseal(store, lose)
    with Graph(store) as graph:
        with pytest.raises(CorruptStoreError, match="lists no gen-1/index/edge/out-0"):
            graph.out_index("edge", 0)
        with pytest.raises(CorruptStoreError, match="lists no gen-1/nodes/node/part-0"):
            graph.node_ids("node")


# ---- what is remembered


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose checksums were computed, in order."""
    seen: list[str] = []
    compare = checked_files.require_checksum

    def note(entry: Any, data: Any) -> None:
        seen.append(entry.path)
        compare(entry, data)

    monkeypatch.setattr(checked_files, "require_checksum", note)
    return seen


def test_a_file_is_looked_at_once_even_by_later_processes(
    store: Path, hashed: list[str], cache: Path
) -> None:
    time.sleep(0.06)  # a file is believed to be settled after a twentieth of a second
    for _ in range(2):
        with Graph(store) as graph:
            read_all(graph)
        assert sorted(hashed) == sorted(
            str(p.relative_to(store)) for p in store.rglob("*.arrow")
        )
        checked_files._cache_of.cache_clear()  # as in another process
    assert len(list((cache / "checked").iterdir())) == 1
    assert not list(store.glob("*.jsonl"))


def test_a_file_changed_in_place_is_looked_at_again(store: Path, hashed: list[str]) -> None:
    file = store / "gen-1/index/edge/out-0.arrow"
    time.sleep(0.06)
    with Graph(store) as graph:
        graph.out_index("edge", 0)
    before = file.stat()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    with file.open("r+b") as out:
        out.write(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # it still shows
    with Graph(store) as graph, pytest.raises(CorruptStoreError, match="its checksum"):
        graph.out_index("edge", 0)
    assert len(hashed) == 2


def test_a_store_just_ingested_is_not_read_again(
    tmp_path: Path, hashed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checked_files, "_SETTLED_NS", -(10**9))
    make_store(tmp_path / "g", edge_chunk([(0, 1), (1, 2)]))
    with Graph(tmp_path / "g") as graph:
        graph.out_index("edge", 0)
    assert hashed == []


@pytest.mark.parametrize("obstacle", ["read-only", "garbage", "no folder"])
def test_a_cache_that_cannot_be_used_costs_nothing_but_time(
    store: Path, hashed: list[str], cache: Path, obstacle: str
) -> None:
    time.sleep(0.06)
    with Graph(store) as graph:
        graph.out_index("edge", 0)
    if obstacle == "garbage":
        (file,) = (cache / "checked").iterdir()
        file.write_bytes(b'[1, 2\n["a"]\n\xff\xfe\n' + b"[" * 100_000 + b"\n{}\n")
    else:
        shutil.rmtree(cache)
        cache.write_text("not a folder")
    checked_files._cache_of.cache_clear()
    with Graph(store) as graph:
        graph.out_index("edge", 0)
    assert len(hashed) == 2


def test_caches_of_many_folders_and_many_changes_stay_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setattr(checked_files, "_SETTLED_NS", -(10**9))
    monkeypatch.setattr(checked_files, "_MOST_FOLDERS", 5)
    for k in range(9):
        (tmp_path / f"{k}").mkdir()
        (tmp_path / f"{k}" / "a").write_text("x")
        known = checked_files.CheckedFiles(tmp_path / f"{k}")
        known.remember("a", "what")
        assert known.is_known("a", "what")
        assert not known.is_known("a", "else")
    assert len(list((cache / "checked").iterdir())) == 6
    for k in range(300):
        known.remember("a", f"{k}")
    last = max((cache / "checked").iterdir(), key=lambda f: f.stat().st_mtime_ns)
    assert len(last.read_bytes().splitlines()) < 80
    checked_files._cache_of.cache_clear()
    assert checked_files.CheckedFiles(tmp_path / "8").is_known("a", "299")


def test_forged_checksum_of_a_manifest_is_found(store: Path) -> None:
    text = (store / MANIFEST_NAME).read_text().replace('"xxh3:', '"xxh3:0', 1)
    (store / MANIFEST_NAME).write_text(text)
    with pytest.raises(CorruptStoreError, match="own checksum"):
        Graph(store)
    assert checksum_of({}) != ""
