"""Compacting: the store is what it would be, had all come at once."""

import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.errors import ConfigError, StoreBusyError
from graphsys.core.progress import Progress
from graphsys.storage import Graph, NodeChunk
from graphsys.storage.deltas import merge_cache
from graphsys.storage.dynamic.compact import compact
from graphsys.storage.locks import WriterLock
from graphsys.storage.verify.verify import verify
from tests.stores import edge_chunk, make_store, pairs_of
from tests.unit.storage.dynamic.test_append import add, random_chunk


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("is_directed", [True, False])
def test_a_compacted_store_is_byte_for_byte_a_store_of_all(
    tmp_path: Path, partitions: int, is_directed: bool
) -> None:
    rng = np.random.default_rng(1)
    chunks = [random_chunk(rng, 100, 40, False), random_chunk(rng, 50, 60, False)]
    one, all_ = tmp_path / "one", tmp_path / "all"
    kind: dict[str, Any] = {"partitions": partitions, "is_directed": is_directed}
    make_store(one, chunks[0], **kind).graph.close()
    add(one, chunks[1], is_directed=is_directed).graph.close()
    make_store(all_, *chunks, **kind).graph.close()
    report = compact(one)
    with report.graph as found, Graph(all_) as wanted:
        assert found.manifest.fingerprint == wanted.manifest.fingerprint
        assert found.manifest.format_version == 1
        assert found.num_partitions("node") == partitions
        assert found.generation == 2
    assert report.folded == 1
    assert report.bytes_written > 0
    assert sorted(path.name for path in one.iterdir()) == ["gen-2", "graph.json"]
    assert verify(one).problems == []


def test_what_was_removed_goes(tmp_path: Path) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk([(1, 2), (2, 3), (3, 1)])).graph.close()
    add(store, edge_chunk([(9, 1)]), deletes=[edge_chunk([(2, 3)])]).graph.close()
    with Graph(store) as reader:
        compact(store).graph.close()
        assert pairs_of(reader) == Counter([(1, 2), (3, 1), (9, 1)])  # its generation stays
        assert verify(store).problems == []
    with Graph(store) as graph:
        assert pairs_of(graph) == Counter([(1, 2), (3, 1), (9, 1)])
        assert not graph.manifest.deltas
        assert len(graph.out_index("edge", 0).indices) == 3
    assert not (store / "gen-1").exists()


def test_a_store_without_deltas_is_left_as_it_is(tmp_path: Path) -> None:
    make_store(tmp_path / "g", edge_chunk([(1, 2)])).graph.close()
    before = (tmp_path / "g/graph.json").read_bytes()
    report = compact(tmp_path / "g")
    report.graph.close()
    assert (report.folded, report.bytes_written) == (0, 0)
    assert (tmp_path / "g/graph.json").read_bytes() == before


def test_columns_features_and_splits_survive(store: Path) -> None:
    rows = NodeChunk(
        ids=pa.array(["new"]),
        node_type="user",
        columns={"label": [7], "split": pa.array(["test"])},
        features={"x": np.full((1, 2), 5, np.float32)},
    )
    add(store, rows).graph.close()
    with compact(store).graph as graph:
        number = int(graph.lookup("user", ["new"])[0])
        part = int(np.searchsorted(graph.offsets("user"), number, side="right")) - 1
        local = number - int(graph.offsets("user")[part])
        assert graph.nodes("user", part).slice(local, 1).to_pylist() == [
            {"id": "new", "label": 7, "split": "test"}
        ]
        features: Any = graph.features("user", part, "x")
        assert features[local].tolist() == [5, 5]
        assert sorted(graph.splits("likes")) == ["test", "train"]
        assert graph.manifest.source == "test"
    assert verify(store).problems == []


def test_a_writer_is_waited_for_by_nobody(tmp_path: Path) -> None:
    make_store(tmp_path / "g", edge_chunk([(1, 2)])).graph.close()
    add(tmp_path / "g", edge_chunk([(1, 3)])).graph.close()
    lock = WriterLock(tmp_path / "g")
    try:
        with pytest.raises(StoreBusyError, match="is being written by another process"):
            compact(tmp_path / "g")
    finally:
        lock.release()


def test_what_was_written_and_how_long_it_took_are_reported(tmp_path: Path) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk([(1, 2), (2, 3)])).graph.close()
    for folded in (1, 0):  # the second time there is nothing to do
        if folded:
            add(store, edge_chunk([(3, 1)])).graph.close()
        began = time.perf_counter()
        report = compact(store)
        report.graph.close()
        assert 0 < report.seconds <= time.perf_counter() - began
        assert report.folded == folded
        files = sum(it.stat().st_size for it in store.rglob("*") if it.is_file())
        assert report.bytes_written == (files if folded else 0)


@pytest.mark.parametrize("order", ["original", "degree", "rcm"])
def test_the_order_and_the_seed_of_the_first_generation_are_kept(
    tmp_path: Path, order: str
) -> None:
    store = tmp_path / "g"
    pairs = [(k, (3 * k + 1) % 8) for k in (5, 2, 7, 0, 3, 1, 6, 4)]
    more: dict[str, Any] = {"order": order, "seed": 7, "partitions": 2}
    with make_store(store, edge_chunk(pairs), **more).graph as graph:
        before = graph.manifest
    add(store, edge_chunk([(5, 2)])).graph.close()
    with compact(store).graph as graph:
        assert graph.manifest.order == before.order == {"node": order}
        assert graph.manifest.partitioning["seed"] == 7
        assert graph.manifest.partitioning["method"] == before.partitioning["method"]


def test_merged_rows_kept_for_others_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, store = tmp_path / "cache", tmp_path / "g"
    cache.mkdir()
    monkeypatch.setattr(merge_cache, "_WORTH_KEEPING", 1)
    monkeypatch.setattr(merge_cache, "user_cache", lambda name: cache)
    make_store(store, edge_chunk([(1, 2), (2, 3)])).graph.close()
    with add(store, edge_chunk([(3, 1)])).graph as graph:
        graph.out_index("edge", 0)
    assert merge_cache.kept_bytes(store) > 0
    compact(store).graph.close()
    assert list(cache.iterdir()) == []


def test_the_last_stage_is_ended(tmp_path: Path) -> None:
    class Told(Progress):
        is_open = False

        def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
            self.is_open = True

        def close(self) -> None:
            self.is_open = False

    make_store(tmp_path / "g", edge_chunk([(1, 2)])).graph.close()
    add(tmp_path / "g", edge_chunk([(1, 3)])).graph.close()
    told = Told()
    compact(tmp_path / "g", progress=told).graph.close()
    assert not told.is_open


def test_a_graph_within_a_graph_is_not_written_again(tmp_path: Path) -> None:
    make_store(tmp_path / "g", edge_chunk([(1, 2)])).graph.close()
    inner = tmp_path / "g/gen-1/copy"
    shutil.copytree(tmp_path / "g", tmp_path / "copy")
    shutil.move(tmp_path / "copy", inner)
    before = (inner / "graph.json").read_bytes()
    with pytest.raises(ConfigError, match=r"lies inside .*, which is a graph"):
        compact(inner)
    assert (inner / "graph.json").read_bytes() == before
