"""Buckets and rows with deltas in them are, number by number, those of a store of all."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.types import EdgeType
from graphsys.storage import EdgeChunk, Graph, NodeChunk
from graphsys.storage.deltas import changes
from tests.deltas import append_chunks, assert_same_arrays, same_numbers
from tests.stores import edge_chunk, make_store

PLAIN: tuple[str, ...] = ()
ALL = ("relation", "time", "weight", "note")
BUYS, KNOWS = EdgeType("user", "buys", "item"), EdgeType("user", "knows", "user")


def chunk(
    rng: np.random.Generator, size: int, ids: int, columns: tuple[str, ...], first: int = 0
) -> EdgeChunk:
    """Return edges among ``first .. ids``, many of them twice, with some columns."""
    pairs = rng.integers(first, ids, (size, 2))
    pairs[size // 2 :] = pairs[: size - size // 2]
    values: dict[str, Any] = {
        "relation": pa.array([f"r{k}" for k in rng.integers(0, 3, size)]),
        "time": rng.integers(0, 100, size),
        "weight": rng.integers(0, 9, size) / 2,
        "note": pa.array([f"x{k}" for k in rng.integers(0, 99, size)]),
    }
    return edge_chunk(pairs.tolist(), **{name: values[name] for name in columns})


def some(pairs: EdgeChunk, count: int) -> EdgeChunk:
    """Return the first pairs of a chunk as deletions."""
    ends = np.unique(np.stack([pairs.src[:count], pairs.dst[:count]]), axis=1)
    return EdgeChunk(src=ends[0], dst=ends[1])


def assert_as_rewritten(store: Path) -> None:
    with Graph(store) as graph, same_numbers(graph, store.parent / "same") as same:
        assert_same_arrays(graph, same)


@pytest.mark.parametrize("is_directed", [True, False])
@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("columns", [PLAIN, ("relation",), ("weight", "note"), ALL])
def test_added_and_removed_edges_are_merged_in_order(
    tmp_path: Path, is_directed: bool, partitions: int, columns: tuple[str, ...]
) -> None:
    rng, store = np.random.default_rng(partitions), tmp_path / "g"
    kind: dict[str, Any] = {"is_directed": is_directed}
    first = chunk(rng, 60, 12, columns)
    make_store(store, first, partitions=partitions, **kind).graph.close()
    second = chunk(rng, 20, 15, columns)
    append_chunks(store, second, deletes=[some(first, 9)], **kind)
    new = chunk(rng, 12, 20, columns, first=15)  # among themselves: a bucket of their own
    append_chunks(store, new, chunk(rng, 8, 20, columns), **kind)
    append_chunks(store, deletes=[some(second, 6)], missing_deletes="count", **kind)
    assert_as_rewritten(store)


@pytest.mark.parametrize("what", ["add", "remove"])
@pytest.mark.parametrize("columns", [PLAIN, ALL])
def test_a_bucket_that_only_gains_or_only_loses_is_merged_too(
    tmp_path: Path, what: str, columns: tuple[str, ...]
) -> None:
    rng, store = np.random.default_rng(0), tmp_path / "g"
    first = chunk(rng, 60, 12, columns)
    make_store(store, first, partitions=2).graph.close()
    if what == "add":
        append_chunks(store, chunk(rng, 1, 12, columns))
    else:
        append_chunks(store, deletes=[some(first, 1)])
    assert_as_rewritten(store)


@pytest.mark.parametrize("read_first", ["out", "in"])
def test_two_types_of_nodes_have_partitions_of_their_own(
    tmp_path: Path, read_first: str
) -> None:
    rng, store = np.random.default_rng(3), tmp_path / "g"

    def buys(size: int, users: int, items: int) -> EdgeChunk:
        src, dst = rng.integers(0, users, size), rng.integers(0, items, size)
        notes = pa.array([str(k) for k in range(size)])
        return edge_chunk(zip(src, dst, strict=True), BUYS, note=notes)

    def knows(size: int, users: int) -> EdgeChunk:
        return edge_chunk(rng.integers(0, users, (size, 2)).tolist(), KNOWS)

    first = buys(50, 10, 6)
    made = make_store(store, first, knows(20, 10), partitions={"user": 3, "item": 1})
    made.graph.close()
    gone = edge_chunk([(first.src[0], first.dst[0])], BUYS)
    append_chunks(store, buys(15, 13, 6), deletes=[gone])
    append_chunks(store, buys(9, 13, 9))
    append_chunks(store, NodeChunk(ids=np.array([70]), node_type="item"), knows(5, 16))
    with Graph(store) as graph, same_numbers(graph, tmp_path / "same") as same:
        getattr(graph, f"{read_first}_index")("buys", 0)
        assert_same_arrays(graph, same)


def test_what_no_delta_touched_is_handed_out_as_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "g"
    pairs = [(a, b) for a in range(8) for b in range(8)]
    make_store(store, edge_chunk(pairs), partitions=2, partitioner="range").graph.close()
    append_chunks(store, edge_chunk([(0, 1)]))
    with Graph(store) as graph:
        number = int(graph.lookup("node", [0])[0])
        assert graph.bucket("edge", 0, 0).num_edges == 16 + (number < 4)
        merged = graph.out_index("edge", 0)

        def forbidden(*_: Any) -> Any:
            raise AssertionError("nothing is left to merge")

        monkeypatch.setattr(changes, "spliced", forbidden)
        part = 0 if number >= 4 else 1
        assert graph.bucket("edge", part, part).num_edges == 16
        assert len(graph.out_index("edge", part).indices) == 32
        assert graph.out_index("edge", 0) is merged
