"""Blocks of rows, against the lists of neighbors that they were made of."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.types import EdgeType
from graphsys.engine.execute.rows import (
    NUM_CHUNKS,
    MemoryBlocks,
    RowBlock,
    all_nodes,
    block_of,
    part_of_nodes,
)
from graphsys.engine.execute.stream import PagedBlocks, StreamedBlocks, slice_rows, united
from graphsys.engine.topology import Topology
from graphsys.storage import Graph
from tests.stores import edge_chunk, make_store

NUM_NODES = 500
PAIRS = np.random.default_rng(5).integers(0, NUM_NODES, (3000, 2))


def block(
    lists: Sequence[Sequence[int]], row_base: int = 0, column_base: int = 0
) -> RowBlock:
    """Return rows of some neighbors, with weights that are those."""
    ends = np.cumsum([0, *map(len, lists)]).astype(np.uint32)
    entries = np.array([it for row in lists for it in row], dtype=np.uint32)
    size, weights = len(lists), {"weight": entries.astype(np.float64)}
    return RowBlock(
        ("test",), "out", row_base, size, column_base, ends[:-1], ends[1:], entries, weights
    )


def lists_of(rows: RowBlock) -> list[list[int]]:
    """Return the neighbors of every row, numbered in the graph."""
    spans = zip(rows.begins.tolist(), rows.ends.tolist(), strict=True)
    return [[v + rows.column_base for v in rows.indices[a:b].tolist()] for a, b in spans]


def neighbors(direction: str, pairs: Any = PAIRS) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(NUM_NODES)]
    for src, dst in pairs.tolist():
        found[src if direction == "out" else dst].append(dst if direction == "out" else src)
    return [sorted(row) for row in found]


@pytest.mark.parametrize("row_base", [0, 64, 1, 63, 65, 100])
def test_chunks_share_no_word_of_a_bitmap_and_cover_all_rows(row_base: int) -> None:
    rows = block([[0] * (k % 7) for k in range(1000)], row_base)
    bounds = rows.bounds.tolist()
    assert (bounds[0], bounds[-1]) == (0, 1000)
    assert bounds == sorted(set(bounds))
    assert [(row_base + bound) % 64 for bound in bounds[1:-1]] == [0] * (len(bounds) - 2)
    assert len(bounds) > 10
    few = block([[1], [2, 3]], row_base)
    assert few.bounds.tolist() in ([0, 2], [0, 1, 2])


def test_many_rows_are_cut_into_no_more_chunks_than_said() -> None:
    rows = block([[]] * (64 * NUM_CHUNKS * 2))
    assert len(rows.bounds) - 1 == NUM_CHUNKS == 256


def test_a_span_is_that_of_the_entries() -> None:
    assert block([[4, 5], [], [6]]).span == (0, 3)
    assert slice_rows(block([[4, 5], [], [6]]), 1, 3).span == (2, 3)
    assert block([]).span == (0, 0)


@pytest.fixture(scope="module")
def topology() -> Topology:
    return Topology.from_edges(PAIRS[:, 0], PAIRS[:, 1], NUM_NODES)


@pytest.mark.parametrize("columns", [None, ()])
def test_rows_in_memory_are_one_block_of_each_direction(
    topology: Topology, columns: Any
) -> None:
    rows = MemoryBlocks(topology, columns)
    directions: tuple[Any, ...] = ("out", "in")
    for direction in directions:
        (found,) = rows.blocks(direction)
        assert (found.direction, found.row_base) == (direction, 0)
        assert (found.num_rows, found.column_base) == (NUM_NODES, 0)
        assert [sorted(row) for row in lists_of(found)] == neighbors(direction)
        assert rows.block(direction) is found
    assert MemoryBlocks(topology, columns).block("out") is rows.block("out")
    one, both = (next(rows.groups(ways)) for ways in (("in",), ("in", "out")))
    assert one == (rows.block("in"), None)
    assert both == (rows.block("in"), rows.block("out"))


def test_rows_in_memory_have_the_columns_that_are_asked_for(tmp_path: Path) -> None:
    chunk = edge_chunk(PAIRS.tolist(), weight=np.arange(len(PAIRS)) / 2)
    topology = Topology.of(make_store(tmp_path / "g", chunk, partitions=2).graph)
    asked: list[Any] = [(), ("weight",), None]
    found = [list(MemoryBlocks(topology, it).block("in").columns) for it in asked]
    assert found == [[], ["weight"], ["weight"]]


def test_without_directions_both_are_one_block() -> None:
    topology = Topology.from_edges(PAIRS[:, 0], PAIRS[:, 1], NUM_NODES, directed=False)
    rows = MemoryBlocks(topology)
    assert rows.block("in") is rows.block("out")
    assert rows.block("in").direction == "out"


def test_all_nodes_are_rows_without_entries(topology: Topology) -> None:
    whole = all_nodes(topology)
    assert all_nodes(topology) is whole
    assert (whole.row_base, whole.num_rows, whole.column_base) == (0, NUM_NODES, 0)
    assert whole.direction is None
    assert lists_of(whole) == [[]] * NUM_NODES
    assert len(whole.indices) == 0
    some = part_of_nodes(whole, 128, 64)
    assert (some.row_base, some.num_rows, len(some.begins), len(some.ends)) == (
        128,
        64,
        64,
        64,
    )
    last = part_of_nodes(whole, 448, 64)
    assert (last.row_base, last.num_rows, len(last.begins), len(last.ends)) == (
        448,
        52,
        52,
        52,
    )
    rows = topology.csr("in")
    keys = [whole.key, some.key, block_of(rows, "in").key]
    assert keys == [("nodes",), ("some",), ("in",)]


# ---- from a store


def stored(folder: Path, partitions: int, is_directed: bool = True) -> Graph:
    pairs = [*PAIRS.tolist(), *zip(range(NUM_NODES), range(NUM_NODES), strict=True)]
    how: dict[str, Any] = {"partitioner": "range", "order": "original"}
    how |= {"partitions": partitions, "is_directed": is_directed}
    return make_store(folder / "g", edge_chunk(pairs), **how).graph


def expected_of(topology: Topology, direction: Any) -> list[list[int]]:
    csr = topology.csr(direction)
    return [
        sorted(csr.indices[a:b].tolist())
        for a, b in zip(csr.indptr[:-1].tolist(), csr.indptr[1:].tolist(), strict=True)
    ]


@pytest.mark.parametrize("rows_of", [StreamedBlocks, PagedBlocks])
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("is_directed", [True, False])
@pytest.mark.parametrize("piece_bytes", [400, None])
def test_streamed_blocks_hold_every_entry_once(
    tmp_path: Path,
    rows_of: Any,
    partitions: int,
    is_directed: bool,
    piece_bytes: int | None,
) -> None:
    graph = stored(tmp_path, partitions, is_directed)
    topology, offsets = Topology.of(graph), graph.offsets("node").tolist()
    rows = rows_of(topology, {}, piece_bytes=piece_bytes)
    is_paged = rows_of is PagedBlocks and partitions > 1
    for direction in ("out", "in"):
        found: list[list[int]] = [[] for _ in range(NUM_NODES)]
        many = 0
        for piece in rows.blocks(direction):
            many += 1
            # pieces of a partition share no word of a bitmap
            assert piece.row_base % 64 == 0 or piece.row_base in offsets
            for row, entries in enumerate(lists_of(piece), piece.row_base):
                found[row] += entries
        assert [sorted(row) for row in found] == expected_of(topology, direction)
        assert rows.are_whole(direction) == (not is_paged)
        if is_paged:  # each partition for every one that its neighbors are in
            assert many == partitions**2
        else:
            assert many == rows.num_blocks(direction)
            assert (many > partitions) == (piece_bytes is not None)
    rows.close()


@pytest.mark.parametrize("partitions", [1, 3])
def test_groups_hold_all_entries_of_a_node_at_once(tmp_path: Path, partitions: int) -> None:
    topology = Topology.of(stored(tmp_path, partitions))
    rows = StreamedBlocks(topology, {}, piece_bytes=400)
    seen: list[int] = []
    for one, other in rows.groups(("out", "in")):
        assert other is not None
        assert (one.row_base, one.num_rows) == (other.row_base, other.num_rows)
        for direction, piece in (("out", one), ("in", other)):
            wanted = expected_of(topology, direction)[one.row_base :][: one.num_rows]
            assert [sorted(row) for row in lists_of(piece)] == wanted
        seen += range(one.row_base, one.row_base + one.num_rows)
    assert sorted(seen) == list(range(NUM_NODES))
    rows.close()


def test_groups_of_several_edge_types_are_united(tmp_path: Path) -> None:
    rng, kinds = np.random.default_rng(2), ("knows", "likes", "sees")
    chunks = [
        edge_chunk(rng.integers(0, 50, (120, 2)).tolist(), EdgeType("user", it, "user"))
        for it in kinds
    ]
    buys = rng.integers(0, 50, (90, 2))
    buys[:, 1] += 100
    chunks.append(edge_chunk(buys.tolist(), EdgeType("user", "buys", "item")))
    topology = Topology.of(make_store(tmp_path / "g", *chunks).graph)
    rows = StreamedBlocks(topology, {})
    expected, found = expected_of(topology, "out"), [[] for _ in range(topology.num_nodes)]  # type: ignore[var-annotated]
    for one, other in rows.groups(("out",)):
        assert other is None
        for row, entries in enumerate(lists_of(one), one.row_base):
            found[row] += sorted(entries)
    assert found == expected
    rows.close()


def test_blocks_are_united_row_by_row() -> None:
    numbers = np.dtype(np.uint32)
    first, second = block([[1, 2], [], [3]]), block([[4], [5, 6], []])
    assert united([first], numbers) == (first, None)
    assert united([first, second], numbers) == (first, second)
    far = block([[0], [1, 2], []], column_base=10)
    one, other = united([first, far], numbers)
    assert other is None
    assert lists_of(one) == [[1, 2, 10], [11, 12], [3]]
    assert (one.direction, one.column_base, one.num_rows) == ("out", 0, 3)
    three, _ = united([slice_rows(it, 1, 3) for it in (first, second, far)], numbers)
    assert lists_of(three) == [[5, 6, 11, 12], [3]]
    assert three.row_base == 1
    assert not three.indices.flags.writeable


@pytest.mark.parametrize("rows_of", [StreamedBlocks, PagedBlocks])
def test_columns_go_with_their_entries(tmp_path: Path, rows_of: Any) -> None:
    likes, knows = EdgeType("user", "likes", "user"), EdgeType("user", "knows", "user")
    weights = np.arange(len(PAIRS)) + 0.5
    chunks = [edge_chunk(PAIRS.tolist(), likes, weight=weights)]
    chunks.append(edge_chunk([(0, 1), (2, 3)], knows))
    graph = make_store(tmp_path / "g", *chunks, partitions=2).graph
    ids = graph.node_ids("user").to_pylist()
    given = {(s, d, w) for (s, d), w in zip(PAIRS.tolist(), weights.tolist(), strict=True)}
    given |= {(0, 1, 1.0), (2, 3, 1.0)}  # edges of a type without weights weigh 1
    topology, found = Topology.of(graph), set()
    rows = rows_of(topology, {"weight": np.dtype(np.float64)}, piece_bytes=4000)
    for piece in rows.blocks("in"):
        for row in range(piece.num_rows):
            for k in range(int(piece.begins[row]), int(piece.ends[row])):
                ends = int(piece.indices[k]) + piece.column_base, piece.row_base + row
                found.add((ids[ends[0]], ids[ends[1]], float(piece.columns["weight"][k])))
    assert found == given
    rows.close()
