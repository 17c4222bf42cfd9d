"""Importance neighborhoods walk by walk: plain Python is given the same random words."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ConfigError
from graphsys.core.rng import draw_key
from graphsys.core.types import EdgeType
from graphsys.kernels.cpu.hashing import mix64
from graphsys.sampling import ImportanceSampler, rows_of
from graphsys.sampling.adjacency import PartitionedCsr
from graphsys.sampling.blocks import Buffers
from graphsys.storage import Graph
from tests.stores import edge_chunk, make_store
from tests.unit.sampling.conftest import Store
from tests.unit.sampling.test_pinsage import boards as boards  # a fixture

WORD = 1 << 64
GOLDEN = 0x9E3779B97F4A7C15


def mixed(word: int) -> int:
    return int(mix64(np.uint64(word % WORD)))


def lists_of(rows: PartitionedCsr) -> list[list[int]]:
    """Return the entries of all rows, in the order of the index."""
    return [
        index.indices[low:high].tolist()
        for index in rows.indexes
        for low, high in zip(index.indptr[:-1], index.indptr[1:], strict=True)
    ]


def visits(rows: Any, back: Any, seed: int, key: int, sampler: ImportanceSampler) -> Any:
    """Return how often walks from a node visit others, most visited first."""
    counts: Counter[int] = Counter()
    own = mixed(key ^ seed)
    for number in range(sampler.num_walks):
        walk, node = mixed(own ^ (number * GOLDEN % WORD)), seed
        for step in range(sampler.walk_length):
            word = mixed(walk + 2 * step * GOLDEN)
            if node < 0 or (step and word % 2**32 < int(sampler.restart * 2**32)):
                node = seed
            ways = [(rows, word), (back, mixed(walk + (2 * step + 1) * GOLDEN))]
            for near, drawn in ways[: 1 + (back is not None)]:
                size = len(near[node]) if node >= 0 else 0
                node = near[node][(drawn >> 32) * size >> 32] if size else -1
            if node not in (-1, seed):
                counts[node] += 1
    return sorted(counts.items(), key=lambda found: (-found[1], found[0]))


def sides(graph: Graph, kind: str) -> tuple[PartitionedCsr, PartitionedCsr | None]:
    if kind == "edge":
        return rows_of(graph, "edge"), None
    return rows_of(graph, "holds"), rows_of(graph, "holds", "out")


@pytest.mark.parametrize("kind", ["edge", "holds"])
@pytest.mark.parametrize("skip", [None, 2])
def test_ranks_are_those_of_the_walks(
    store: Store, boards: Graph, kind: str, skip: int | None
) -> None:
    rows, back = sides(store(2) if kind == "edge" else boards, kind)
    nodes = np.array([3, 29, 8, 3, 0])
    for seed, epoch, batch in ((0, 0, 0), (5, 1, 2)):
        told: dict[str, Any] = {"seed": seed} if seed else {}
        sampler = ImportanceSampler(rows, back, num_walks=7, walk_length=4, **told)
        options: dict[str, Any] = {"epoch": epoch, "batch": batch} if epoch else {}
        options |= {} if skip is None else {"skip": skip}
        indptr, found, weights = sampler.neighborhoods(nodes, 6, **options)
        assert (len(indptr), indptr[0], len(found)) == (6, 0, indptr[-1])
        key = int(draw_key(seed, "ranks", epoch, batch))
        lists = lists_of(rows), None if back is None else lists_of(back)
        for k, node in enumerate(nodes.tolist()):
            best = visits(*lists, node, key, sampler)[skip or 0 :][:6]
            span = slice(indptr[k], indptr[k + 1])
            assert found[span].tolist() == [other for other, _ in best]
            total = sum(count for _, count in best)
            shares = [np.float32(count / total) for _, count in best]
            assert weights[span].tolist() == shares


@pytest.mark.parametrize("frontier", ["all", "new"])
@pytest.mark.parametrize("kind", ["edge", "holds"])
def test_blocks_are_those_of_the_walks(
    store: Store, boards: Graph, kind: str, frontier: Any
) -> None:
    rows, back = sides(store(1) if kind == "edge" else boards, kind)
    sampler = ImportanceSampler(
        rows,
        back,
        num_neighbors=(3, 40),
        num_walks=6,
        walk_length=3,
        seed=3,
        restart=0,
        frontier=frontier,
    )
    seeds = np.array([4, 11, 2])
    lists = lists_of(rows), None if back is None else lists_of(back)
    with sampler.sample(seeds, epoch=2, batch=1) as sample:
        for hop, block in enumerate(reversed(sample.blocks)):
            assert block.weight is not None
            assert len(block.weight) == block.num_edges
            for k, node in enumerate(block.dst_nodes.tolist()):
                span = slice(int(block.indptr[k]), int(block.indptr[k + 1]))
                own = 0 if frontier == "new" and k < len(seeds) else hop
                key = int(draw_key(3, "visits", 2, 1, own))
                best = visits(*lists, node, key, sampler)[: (3, 40)[own]]
                near = block.src_nodes[block.indices[span]].tolist()
                assert near == [other for other, _ in best]
                total = sum(count for _, count in best)
                wanted = [np.float32(count / total) for _, count in best]
                assert block.weight[span].tolist() == wanted


def test_many_seeds_have_room(tmp_path: Path) -> None:
    size = 1300
    pairs = [(v, (v * 7 + k) % size) for v in range(size) for k in (1, 2)]
    make_store(tmp_path / "g", edge_chunk(pairs, EdgeType("node", "edge", "node")))
    rows = rows_of(Graph(tmp_path / "g"), "edge", "out")
    sampler = ImportanceSampler(rows, num_neighbors=(1,), num_walks=1, walk_length=1)
    with sampler.sample(np.arange(size)) as sample:
        block = sample.blocks[0]
        lists = lists_of(rows)
        near = block.src_nodes[block.indices]
        ends = np.repeat(block.dst_nodes, np.diff(block.indptr))
        assert len(near) >= size - 2  # who walks to itself visits nobody
        assert all(int(u) in lists[v] for u, v in zip(near, ends, strict=True))
        assert block.weight is not None
        assert block.weight.tolist() == [1.0] * len(near)


def test_settings_are_the_paper_s_and_have_bounds(store: Store) -> None:
    rows = rows_of(store(1), "edge")
    sampler = ImportanceSampler(rows)
    assert (sampler.num_neighbors, sampler.num_hops) == ((50, 50), 2)
    assert (sampler.num_walks, sampler.walk_length, sampler.restart) == (100, 3, 0.5)
    assert (sampler.seed, sampler.frontier) == (0, "all")
    for name in ("num_walks", "walk_length"):
        for value in (1, np.int32(2), 2**24 - 1):
            options: dict[str, Any] = {name: value}
            assert getattr(ImportanceSampler(rows, **options), name) == value
        for wrong in (0, 2**24, 1.5, "3"):
            options = {name: wrong}
            with pytest.raises(ConfigError, match=f"{name}: got {wrong!r}, expected an"):
                ImportanceSampler(rows, **options)
    with pytest.raises(ConfigError, match="num_neighbors: got 0, expected an int >= 1"):
        ImportanceSampler(rows, num_neighbors=(3, 0))
    assert ImportanceSampler(rows, restart=0).restart == 0
    for restart in (-0.1, 1, 1.5):
        with pytest.raises(ConfigError, match=f"restart: got {restart}, expected a number"):
            ImportanceSampler(rows, restart=restart)


def test_rows_that_lead_elsewhere_are_named(boards: Graph) -> None:
    to_board, to_pin = sides(boards, "holds")
    assert to_pin is not None
    assert ImportanceSampler(to_board, to_pin).back is to_pin
    assert ImportanceSampler(to_pin, to_board).back is to_board
    way = "walks go from pin to board"
    with pytest.raises(ConfigError, match=f"{way}; give rows that lead back to pin"):
        ImportanceSampler(to_board)
    with pytest.raises(ConfigError, match=f"{way}, then pin to board; give rows that"):
        ImportanceSampler(to_board, to_board)


def test_rows_that_end_give_nobody(tmp_path: Path) -> None:
    make_store(tmp_path / "g", edge_chunk([(0, 1)], EdgeType("node", "edge", "node")))
    rows = rows_of(Graph(tmp_path / "g"), "edge", "out")
    nodes = Graph(tmp_path / "g").lookup("node", [1]).astype(np.int64)  # no edge leaves it
    indptr, found, weights = ImportanceSampler(rows).neighborhoods(nodes, 4)
    assert (indptr.tolist(), len(found), len(weights)) == ([0, 0], 0, 0)


def test_no_more_room_is_taken_than_walks_can_fill(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(store(1), "edge")
    sampler = ImportanceSampler(
        rows, num_neighbors=(2**20, 4), num_walks=5, walk_length=3, frontier="new"
    )
    found = sampler.neighborhoods(np.array([3, 29]), 2**60)[1]  # 2**60 would not fit
    assert 0 < len(found) <= 2 * 15
    asked: dict[Any, list[int]] = {}
    room = Buffers.room

    def recorded(self: Buffers, name: Any, size: int, dtype: Any) -> Any:
        asked.setdefault(name[0] if isinstance(name, tuple) else name, []).append(size)
        return room(self, name, size, dtype)

    monkeypatch.setattr(Buffers, "room", recorded)
    filled = Buffers.filled

    def filling(self: Buffers, name: Any, size: int, dtype: Any, value: int) -> Any:
        asked.setdefault(name, []).append(size)
        return filled(self, name, size, dtype, value)

    monkeypatch.setattr(Buffers, "filled", filling)
    with sampler.sample(np.array([3, 29, 8])) as sample:
        inner, outer = sample.blocks[1], sample.blocks[0]
        first, last = inner.num_edges, outer.num_dst
    # hop 0: 3 seeds, of each at most 15 visits; hop 1: of each new node at most 4
    assert asked["indptr"][0] == 3 + 1
    assert asked["neighbors"][0] == 3 * 15
    assert last + 1 in asked["indptr"]
    assert first + (last - 3) * 4 in asked["neighbors"]
    assert {*asked["visited"], *asked["visits"], *asked["used"]} == {32}  # > 2 * 5 * 3
