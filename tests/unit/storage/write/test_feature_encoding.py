"""Features stored narrower, or each distinct row once: what is read is what was given."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from graphsys import gnn
from graphsys.cli.main import app
from graphsys.core.errors import ConfigError, InputError, InvalidGraphError
from graphsys.facade.columns import NodeColumns
from graphsys.gnn import GnnConfig
from graphsys.sampling import CachedFeatures, FeatureTable
from graphsys.storage import Graph, NodeChunk, ingest
from graphsys.storage.grouped.merged_view import JoinedGraph
from graphsys.storage.info import details, info, shared_bytes
from graphsys.storage.ingest.append import append
from graphsys.storage.ingest.repartition import repartition
from graphsys.storage.manifest import Manifest
from graphsys.storage.verify.verify import verify
from tests.stores import ListSource, edge_chunk, make_store
from tests.unit.storage.verify.test_verify import problems, rewrite

NUM_NODES, DIM = 90, 5


def repeating(dtype: Any = np.float32) -> Any:
    """Return rows of which there are 7, with one that is not a number and a -0."""
    few = np.random.default_rng(0).normal(0, 3, (7, DIM)).astype(np.float32)
    few[3, 1], few[4], few[5] = np.nan, 0.0, -0.0
    return few.astype(dtype)[np.random.default_rng(1).integers(0, 7, NUM_NODES)]


def columns_of(count: int) -> dict[str, Any]:
    return {"label": np.arange(count) % 3, "split": pa.array(["train"] * count)}


def store(path: Path, x: Any, form: str, **options: Any) -> Graph:
    chunks = [
        NodeChunk(
            ids=np.arange(begin, min(begin + 40, NUM_NODES)),
            columns=columns_of(len(x[begin : begin + 40])),
            features={"x": x[begin : begin + 40]},
        )
        for begin in range(0, NUM_NODES, 40)
    ]
    pairs = [(v, (v + step) % NUM_NODES) for v in range(NUM_NODES) for step in (1, 7)]
    make_store(path, *chunks, edge_chunk(pairs), features_as=form, **options)
    return Graph(path)


def by_id(graph: Graph, rows: Any) -> Any:
    """Return rows, which are by number, in the order of the users' ids."""
    found = np.empty_like(rows)
    found[graph.node_ids("node").to_numpy()] = rows
    return found


def are_same(a: Any, b: Any) -> bool:
    return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("partitions", [1, 4])
def test_shared_rows_are_read_as_given(tmp_path: Path, dtype: Any, partitions: int) -> None:
    x = repeating(dtype)
    graph = store(tmp_path / "g", x, "shared", partitions=partitions, order="original")
    assert verify(tmp_path / "g").problems == []
    parts = range(partitions)
    read = np.concatenate([graph.features("node", part, "x") for part in parts])
    assert are_same(by_id(graph, read), x)
    for part in parts:
        rows, places = graph.feature_rows("node", part, "x")
        assert places is not None
        assert len(rows) <= 7
        assert len(places) == np.diff(graph.offsets("node"))[part]
    gathered = FeatureTable(graph, "node").gather(np.arange(NUM_NODES))
    assert are_same(by_id(graph, gathered), x.astype(np.float32))
    joined = JoinedGraph(graph)
    assert are_same(joined.features("node", 0, "x"), read)
    joined_rows = FeatureTable(joined, "node").gather(np.arange(NUM_NODES))
    assert are_same(joined_rows, gathered)


def test_caches_and_other_libraries_read_shared_rows(tmp_path: Path) -> None:
    x = np.nan_to_num(repeating())
    graph = store(tmp_path / "g", x, "shared", partitions=3)
    assert are_same(by_id(graph, NodeColumns(graph, "node").get("x")), x)
    rows = FeatureTable(graph, "node")
    cached = CachedFeatures(rows, "lru", 4 * NUM_NODES + 20 * (4 * DIM + 17))
    nodes = np.random.default_rng(2).integers(0, NUM_NODES, 300)
    assert are_same(cached.gather(nodes), rows.gather(nodes))
    assert are_same(cached.gather(nodes), rows.gather(nodes))


def test_rows_that_do_not_repeat_are_stored_as_ever(tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((NUM_NODES, DIM), dtype=np.float32)
    shared, given = (store(tmp_path / form, x, form) for form in ("shared", "given"))
    paths = [entry.path for entry in given.manifest.files]
    assert [entry.path for entry in shared.manifest.files] == paths
    assert shared.fingerprint == given.fingerprint
    assert shared.manifest.format_version == given.manifest.format_version == 1
    assert shared_bytes(shared.manifest) == 0


def test_a_partition_is_shared_only_where_that_is_smaller(tmp_path: Path) -> None:
    """The nodes of the first two partitions have one row, those of the last their own."""
    x = np.random.default_rng(0).random((NUM_NODES, DIM), dtype=np.float32)
    x[:60] = x[0]
    options = {"partitions": 3, "partitioner": "range", "order": "original"}
    graph = store(tmp_path / "g", x, "shared", **options)
    shared = [graph.feature_rows("node", part, "x")[1] is not None for part in range(3)]
    assert shared == [True, True, False]
    assert graph.manifest.node_types["node"].features["x"]["stored_rows"] == 1 + 1 + 30
    found = FeatureTable(graph, "node").gather(np.arange(NUM_NODES))
    assert are_same(by_id(graph, found), x)


def test_what_is_saved_is_said(tmp_path: Path) -> None:
    x = np.tile(np.arange(100, dtype=np.float32), (NUM_NODES, 1))
    nodes = NodeChunk(ids=np.arange(NUM_NODES), features={"x": x})
    source = ListSource([nodes, edge_chunk([(0, 1)])])
    report = ingest(source, tmp_path / "g", features_as="shared")
    assert report.shared_bytes == 89 * 400 - 4 * NUM_NODES
    shown = details(tmp_path / "g")["nodes"]["node"]["features"]
    assert shown == {"x": "float32[100] (1 rows shared, 34.4 KiB saved)"}
    assert info(tmp_path / "g")["num_nodes"] == NUM_NODES
    plain = ingest(source, tmp_path / "plain")
    sizes = [
        sum(e.bytes for e in r.graph.manifest.files if "/features/" in e.path)
        for r in (plain, report)
    ]
    assert sizes[0] - sizes[1] == pytest.approx(report.shared_bytes, abs=2000)


def test_writing_a_store_again_keeps_rows_shared(tmp_path: Path) -> None:
    x = repeating()
    graph = store(tmp_path / "g", x, "shared", partitions=2)
    repartition(graph, tmp_path / "other", partitioner="random", partitions=3)
    other = Graph(tmp_path / "other")
    found = FeatureTable(other, "node").gather(np.arange(NUM_NODES))
    assert are_same(by_id(other, found), x)
    assert other.manifest.format_version == 2
    more = NodeChunk(
        ids=np.array([NUM_NODES]),
        columns=columns_of(1),
        features={"x": x[:1]},
    )
    append(graph, ListSource([more]), tmp_path / "more")
    appended = Graph(tmp_path / "more")
    rows = FeatureTable(appended, "node").gather(np.arange(NUM_NODES + 1))
    assert are_same(by_id(appended, rows), np.concatenate([x, x[:1]]))
    assert appended.manifest.format_version == 2


def test_nodes_of_a_row_that_is_not_finite_are_counted(tmp_path: Path) -> None:
    x = repeating()
    graph = store(tmp_path / "g", x, "shared", partitions=3)
    odd = np.isnan(x).any(axis=1)
    count, first = FeatureTable(graph, "node").find_odd()
    assert count == odd.sum() > 5
    ids = graph.node_ids("node").to_numpy()
    assert odd[ids[first]].all()
    assert len(set(first)) == 5
    plain = store(tmp_path / "plain", x, "given", partitions=3)
    assert FeatureTable(plain, "node").find_odd() == (count, first)
    with pytest.raises(InvalidGraphError, match=rf"x of {count} of 90 nodes .* not finite"):
        gnn.train(graph, GnnConfig(epochs=1), tmp_path / "run")


@pytest.mark.parametrize("partitioner", ["hash", "fennel"])
def test_int8_rows_have_scales_and_may_be_shared(tmp_path: Path, partitioner: str) -> None:
    x = np.nan_to_num(repeating())
    step = np.abs(x).max(axis=1, keepdims=True) / 127
    for form in ("int8", "int8,shared"):
        graph = store(tmp_path / form, x, form, partitions=2, partitioner=partitioner)
        assert verify(tmp_path / form).problems == []
        assert graph.feature_names("node") == ["x", "x_scale"]
        entry = graph.manifest.node_types["node"].features["x"]
        assert entry["dtype"] == "int8"
        assert ("stored_rows" in entry) == (form == "int8,shared" and DIM > 4)
        rows = FeatureTable(graph, "node")
        assert rows.names == ("x",)
        found = by_id(graph, rows.gather(np.arange(NUM_NODES)))
        assert (np.abs(found - x) <= step / 2 * (1 + 1e-4)).all()


def test_float16_rows_are_rounded(tmp_path: Path) -> None:
    x = repeating()
    graph = store(tmp_path / "g", x, "float16")
    found = by_id(graph, FeatureTable(graph, "node").gather(np.arange(NUM_NODES)))
    assert are_same(found, x.astype(np.float16).astype(np.float32))
    large = x.copy()
    large[45, 2] = 70_000
    message = r"beyond float16 \(65504\) in 1 rows, counted from 0: 45; mend them"
    with pytest.raises(InputError, match=message):
        store(tmp_path / "large", large, "float16")
    assert not (tmp_path / "large").exists()


def test_what_would_not_be_narrower_stays(tmp_path: Path) -> None:
    """One float32 a row takes 4 bytes, as int8 with its scale 5."""
    x = np.arange(NUM_NODES, dtype=np.float32)[:, None]
    graph = store(tmp_path / "g", x, "int8")
    assert graph.manifest.node_types["node"].features == {
        "x": {"dim": 1, "dtype": "float32"}
    }


def test_features_that_cannot_be_narrowed_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"'x' of node type 'node' is not finite in \d+ rows"
    ):
        store(tmp_path / "g", repeating(), "int8")
    x = np.ones((NUM_NODES, DIM), np.float32)
    chunk = NodeChunk(ids=np.arange(NUM_NODES), features={"x": x, "x_scale": x})
    with pytest.raises(InputError, match="gets its scale in x_scale, which is another"):
        make_store(tmp_path / "g", chunk, features_as="int8")
    for form in ("int4", "int8,float16", "shared,shared", "given,int8", ""):
        with pytest.raises(
            ConfigError, match=r"features_as: got .* expected given, float16"
        ):
            make_store(tmp_path / "g", chunk, features_as=form)


def test_wrong_shared_rows_are_found(tmp_path: Path) -> None:
    """With checksums that match: places outside the rows, missing ones, another count."""
    path, file = tmp_path / "g", "gen-1/features/node/x/part-0.arrow"
    store(path, np.nan_to_num(repeating()), "shared").close()

    def placed(places: Any) -> Any:
        def change(batch: pa.RecordBatch) -> pa.RecordBatch:
            rows = batch.column(0).dictionary
            column = pa.DictionaryArray.from_arrays(places, rows, safe=False)
            return pa.record_batch([column], names=["x"])

        return change

    sound = (path / file).read_bytes()
    for places, what in (
        (np.full(NUM_NODES, 99, np.uint32), "out of bounds"),
        (np.zeros(NUM_NODES, np.uint64), "has places uint64, expected uint32"),
        (pa.array([None] + [0] * (NUM_NODES - 1), pa.uint32()), "has missing places"),
    ):
        rewrite(path, file, placed(pa.array(places)))
        assert re.search(what, problems(path)[file])
        (path / file).write_bytes(sound)
    rewrite(path, file, lambda batch: batch)
    assert problems(path) == {}
    manifest = Manifest.read(path)
    manifest.node_types["node"].features["x"]["stored_rows"] = 3
    (path / "graph.json").write_text(manifest.to_json())
    assert re.search(
        "says 3 stored rows, files of feature 'x' of 'node' have 7",
        problems(path)["graph.json"],
    )


def test_the_command_line_stores_features_as_told(tmp_path: Path) -> None:
    x = np.tile(np.arange(40, dtype=np.float32), (NUM_NODES, 1))
    edges = np.stack([np.arange(NUM_NODES - 1), np.arange(1, NUM_NODES)], axis=1)
    np.savez(
        tmp_path / "g.npz", edges=edges, node_features=x, node_labels=np.zeros(NUM_NODES)
    )
    command = ["ingest", str(tmp_path / "g.npz"), "-o", str(tmp_path / "g")]
    result = CliRunner().invoke(app, [*command, "--features-as", "int8,shared"])
    assert result.exit_code == 0, result.output
    assert "saved by shared rows" in result.output
    graph = Graph(tmp_path / "g")
    assert graph.manifest.node_types["node"].features["x"]["stored_rows"] == 1
    found = FeatureTable(graph, "node").gather(np.arange(NUM_NODES))
    assert np.abs(found - x).max() <= 39 / 254 * 1.001
