"""Reading: views of mapped files, typed empties, and names that are not there."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import graphsys as gs
from graphsys.cli.main import main
from graphsys.cli.report import print_graph
from graphsys.core.errors import CorruptStoreError, InvalidGraphError, UnknownNameError
from graphsys.storage import Graph
from graphsys.storage.info import details, info
from tests.stores import edge_chunk, make_store
from tests.unit.storage.conftest import LIKES


@pytest.fixture
def graph(sound_store: Path) -> Graph:
    return Graph(sound_store)


def test_arrays_are_views_that_cannot_be_written(graph: Graph) -> None:
    before = pa.total_allocated_bytes()
    index = graph.out_index("knows", 0)
    assert pa.total_allocated_bytes() == before
    for array in (index.indptr, index.indices, graph.features("user", 0, "x")):
        assert not array.flags.owndata
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_an_empty_bucket_has_the_columns_of_the_others(tmp_path: Path) -> None:
    chunk = edge_chunk(
        [(0, 1)], weight=np.array([0.5]), time=np.array([3]), relation=pa.array(["a"])
    )
    with make_store(tmp_path / "g", chunk, partitions=4).graph as graph:
        buckets = [graph.bucket("edge", i, j) for i in range(4) for j in range(4)]
    for name in ("src", "dst", "weight", "time", "relation"):
        arrays = [getattr(bucket, name) for bucket in buckets]
        assert sorted(len(array) for array in arrays) == [0] * 15 + [1]
        assert len({array.dtype for array in arrays}) == 1


def test_counts_by_bucket_add_up(graph: Graph) -> None:
    assert graph.bucket_counts(LIKES).sum() == graph.num_edges_of(LIKES) == 15
    assert graph.bucket_counts("likes", "test").sum() == 1
    assert graph.num_edges == 15 + 15
    assert graph.splits("likes") == ["test", "train"]
    assert graph.default_split("likes") == "train"


def test_a_graph_says_what_it_is(graph: Graph) -> None:
    assert graph.edge_type("likes") == LIKES
    assert graph.edge_type_name(LIKES) == "likes"
    assert graph.node_types == ["item/x", "user"]
    assert graph.is_directed
    assert "10 nodes" in repr(graph)
    assert gs.open(graph.path).fingerprint == graph.fingerprint


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: g.nodes("usr", 0), "unknown node type 'usr'.*did you mean 'user'"),
        (
            lambda g: g.bucket("like", 0, 0),
            "unknown edge type 'like'.*did you mean 'likes'",
        ),
        (lambda g: g.bucket("likes", 0, 0, "tst"), "unknown split.*did you mean 'test'"),
        (lambda g: g.features("user", 0, "y"), "unknown feature 'y'; known: x"),
        (lambda g: g.edge_type_name(("a", "b", "c")), "unknown edge type"),
    ],
)
def test_names_that_are_not_there(call: Any, message: str, graph: Graph) -> None:
    with pytest.raises(UnknownNameError, match=message):
        call(graph)


def test_partitions_that_are_not_there(graph: Graph) -> None:
    with pytest.raises(InvalidGraphError, match="'user' has partitions 0 to 2, got 3"):
        graph.out_index("likes", 3)
    with pytest.raises(InvalidGraphError, match="'item/x' has partitions 0 to 1, got -1"):
        graph.bucket("likes", 0, -1)


def read_everything(store: Path) -> None:
    with Graph(store) as graph:
        for name in graph.node_types:
            graph.node_ids(name)
            for part in range(graph.num_partitions(name)):
                for feature in graph.feature_names(name):
                    graph.features(name, part, feature)
        for kind in graph.edge_types:
            for split in graph.splits(kind):
                for bucket in graph.buckets(kind, split):
                    graph.bucket(kind, *bucket, split)
            for part in range(graph.num_partitions(kind.src_type)):
                graph.out_index(kind, part)
            for part in range(graph.num_partitions(kind.dst_type)):
                graph.in_index(kind, part)


def test_altered_files_are_read_or_refused_but_never_crash(
    store: Path, rng: np.random.Generator
) -> None:
    """Of values nobody but verify can tell; metadata and sizes are checked on the way."""
    files = sorted(store.rglob("*.arrow"))
    refused = 0
    for _ in range(300):
        victim = files[rng.integers(len(files))]
        data = victim.read_bytes()
        changed = bytearray(data)
        changed[rng.integers(len(data))] = rng.integers(256)
        victim.write_bytes(changed)
        try:
            read_everything(store)
        except CorruptStoreError:
            refused += 1
        victim.write_bytes(data)
    assert refused > 50
    read_everything(store)


def test_ids_are_looked_up_in_any_form(tmp_path: Path) -> None:
    chunk = edge_chunk([(30, 10), (20, 2**63 - 1)])
    with make_store(tmp_path / "g", chunk).graph as graph:
        for ids in ([30, 10], np.array([30, 10], "u1"), ["30", "10"], (np.int32(30), 10)):
            numbers = graph.lookup("node", ids)
            assert numbers.dtype == np.int64
            assert graph.node_ids("node").take(numbers).to_pylist() == [30, 10]
        assert graph.lookup("node", []).tolist() == []
        unknown: list[tuple[Any, str]] = [
            ([10, 11, 12], "node 11 and 1 more is not among the 4 nodes"),
            (np.array([5]), "node 5 is not"),
            ([2**70], "node 1180591620717411303424 is not among"),
            ([-1], "node -1 is not among"),
            ([10, "ten"], "node 'ten' is not an integer"),
            ([10.5], r"node 10\.5 is not an integer"),
        ]
        for ids, message in unknown:
            with pytest.raises(UnknownNameError, match=message):
                graph.lookup("node", ids)


def test_text_ids_are_looked_up(graph: Graph) -> None:
    numbers = graph.lookup("user", ["u3", "u0"])
    assert graph.node_ids("user").take(numbers).to_pylist() == ["u3", "u0"]
    with pytest.raises(UnknownNameError, match="node 'nobody' is not among the 6 nodes"):
        graph.lookup("user", ["u1", "nobody"])


def test_info_has_the_keys_of_the_contract(sound_store: Path) -> None:
    facts = info(sound_store)
    size = facts.pop("bytes_per_edge")
    assert facts == {
        "num_nodes": 10,
        "num_edges": 30,
        "num_edges_by_split": {"train": 30, "test": 1},
        "directed": True,
        "node_types": {"user": 6, "item/x": 4},
        "edge_types": {"likes": 15, "knows": 15},
        "partitions": 3,
    }
    assert size > 0


def test_details_say_how_a_graph_is_made(
    sound_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = details(sound_store)
    assert facts["partitioner"] == "hash"
    user, item = (facts["nodes"][name] for name in ("user", "item/x"))
    assert (user["partitions"], user["columns"]["label"]) == (3, "int64")
    assert item["features"] == {"words": "uint32[bag]"}
    likes = facts["edges"]["likes"]
    assert (likes["src_type"], likes["dst_type"]) == ("user", "item/x")
    assert (likes["directed"], likes["relations"]) == (True, 3)
    assert likes["columns"]["note"] == "large_string"
    assert facts["bytes"]["buckets"] > 0
    print_graph({**info(sound_store), **facts})
    shown = capsys.readouterr().out
    assert "3 partitions; columns label int64" in shown
    assert "features words uint32[bag]" in shown
    assert "user -> item/x; 3 relations; columns note large_string" in shown
    assert "size" in shown
    assert "buckets" in shown


def test_json_of_info_has_all_that_is_printed(
    sound_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["info", str(sound_store), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads(json.dumps({**info(sound_store), **details(sound_store)}))


def test_size_keeps_its_bound(tmp_path: Path, rng: np.random.Generator) -> None:
    """At most 9 bytes an edge for the buckets, 17 and 16 a node with both indexes."""
    num_nodes, num_edges = 2000, 100_000
    pairs = rng.integers(0, num_nodes, (num_edges, 2)).tolist()
    make_store(tmp_path / "g", edge_chunk(pairs)).graph.close()
    assert 8 <= info(tmp_path / "g")["bytes_per_edge"] <= 9
    total = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert total <= 17 * num_edges + (16 + 8) * num_nodes
