"""Several relations: walks, rows and metrics of each, against plain Python."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from graphsys.core.errors import UnknownNameError
from graphsys.core.types import EdgeType
from graphsys.gnn.data.loader import Loader
from graphsys.gnn.data.positive_pairs import read_pairs
from graphsys.gnn.process_group import ProcessGroup
from graphsys.gnn.tasks.multiplex_links import MultiplexLinks, tell_edges
from graphsys.gnn.tasks.skipgram import WalkWindows
from graphsys.gnn.training.api import build_context
from graphsys.metrics import pair_metrics
from graphsys.sampling import NeighborSampler, relation_rows
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store
from tests.unit.gnn.multiplex_graphs import (
    ALSO,
    NUM,
    RELATIONS,
    config_of,
    neighbors_of,
    numbers,
    shop_store,
)


def test_relations_of_an_edge_type_have_rows_of_their_own(items: Graph) -> None:
    rows = relation_rows(items)
    assert tuple(each.name for each in rows) == RELATIONS
    for each, lists in zip(rows, neighbors_of(items), strict=True):
        assert each.degrees().tolist() == [len(own) for own in lists]
        sample = NeighborSampler([each], [-1]).sample(np.arange(NUM))
        block = sample.layers[0][each.name]
        for i, own in enumerate(lists):
            span = slice(block.indptr[i], block.indptr[i + 1])
            found = block.src_nodes[block.indices[span]]
            assert sorted(found.tolist()) == sorted(own)
        codes = {int(code) for code in each.column("relation", np.arange(each.num_entries))}
        assert len(codes) == 1


def test_directed_relations_keep_weights_and_both_ways(tmp_path: Path) -> None:
    pairs, names = [(0, 1), (0, 2), (1, 2), (3, 0)], ["a", "b", "a", "b"]
    weight = np.array([1, 2, 3, 4], np.float32)
    make_store(
        tmp_path / "g",
        NodeChunk(ids=np.arange(4), node_type="item"),
        edge_chunk(pairs, ALSO, relation=pa.array(names), weight=weight),
    )
    graph = Graph(tmp_path / "g")
    rows = {each.name: each for each in relation_rows(graph)}
    assert sorted(rows) == ["also/a", "also/a:reversed", "also/b", "also/b:reversed"]
    ids = graph.node_ids("item").to_pylist()
    assert rows["also/b"].degrees()[[ids.index(0), ids.index(2)]].tolist() == [1, 1]
    assert rows["also/b:reversed"].degrees()[ids.index(0)] == 1
    found = rows["also/a"].column("weight", np.arange(2))
    assert sorted(found.tolist()) == [1, 3]
    assert len(relation_rows(graph, reverse=False)) == 2


def test_windows_are_those_of_plain_python(items: Graph) -> None:
    rows = relation_rows(items)
    names = {"item": list(RELATIONS)}
    made = WalkWindows(rows=rows, names=names, walk_length=3, window=2, seed=5)
    starts = made.starts(0)
    assert len(starts) == NUM
    assert sorted(starts[:, 1].tolist()) == list(range(NUM))
    (found,) = made.pairs(starts[:6], epoch=0, batch=2).values()
    # 4 nodes of a walk: 6 pairs one step apart, 4 two steps; two relations, 6 starts
    assert len(found) == 2 * 6 * 10
    for r, lists in enumerate(neighbors_of(items)):
        two = {(i, k) for i in range(NUM) for j in lists[i] for k in lists[j]}
        near = two | {(i, j) for i in range(NUM) for j in lists[i]}
        own = [(int(a), int(b)) for a, b, relation in found if relation == r]
        assert len(own) == 60
        assert set(own) <= near
        assert sorted(own) == sorted((b, a) for a, b in own)  # both are the first once
    assert (made.pairs(starts[:6], epoch=0, batch=2)[("item", "item")] == found).all()
    other = made.pairs(starts[:6], epoch=0, batch=3)[("item", "item")]
    assert not (other == found).all()


def test_p_keeps_walks_from_going_back(items: Graph) -> None:
    returns = []
    for p in (1.0, 1e9):
        task: Any = build_context(items, config_of(walk_length=2, p=p)).task
        windows = task._windows
        (found,) = windows.pairs(windows.starts(0), epoch=0, batch=0).values()
        returns.append(int((found[:, 0] == found[:, 1]).sum()))
    has_one = [sum(len(near) == 1 for near in lists) for lists in neighbors_of(items)]
    assert returns[1] <= 2 * sum(has_one) < returns[0]  # dead ends are left by going back


def test_walks_lead_to_another_type_and_back(tmp_path: Path) -> None:
    graph = shop_store(tmp_path / "shop")
    rows = relation_rows(graph)
    names = {"user": ["clicks", "buys"], "item": ["clicks", "buys"]}
    made = WalkWindows(rows=rows, names=names, walk_length=2, window=2, seed=0)
    found = made.pairs(made.starts(0), epoch=0, batch=0)
    ends = {("user", "item"), ("item", "user"), ("user", "user"), ("item", "item")}
    assert set(found) == ends
    clicks = set(map(tuple, read_pairs(graph, "clicks").tolist()))
    buys = set(map(tuple, read_pairs(graph, "buys").tolist()))
    for user, item, relation in found["user", "item"].tolist():
        assert (user, item) in (clicks, buys)[relation]
    for item, user, relation in found["item", "user"].tolist():
        assert (user, item) in (clicks, buys)[relation]


def test_shared_negatives_are_compared_with_every_pair(items: Graph) -> None:
    context = build_context(
        items, config_of(negatives_of="batch", loss="margin", margin=0.3)
    )
    task = context.task
    seeds = task.seeds(0)[0]
    loader = Loader(context.message_graph, context.features, 0)
    batch = loader.make(seeds, epoch=0, number=0)
    rows = context.network(batch.hops, batch.x)
    (group,) = seeds.groups  # type: ignore[attr-defined]
    others = numbers(context.network)["decoder.rows.item"]
    query = rows["item"].detach().double().numpy().reshape(-1, 12)
    losses = []
    for row in range(group.rows.num_dst):
        for other in group.rows.indices[
            group.rows.indptr[row] : group.rows.indptr[row + 1]
        ]:
            for shared in group.negatives:
                gap = query[row] @ (others[shared] - others[other])
                losses.append(max(0.0, gap + 0.3))
    assert len(group.negatives) == 4
    assert task.loss(rows, batch).item() == pytest.approx(np.mean(losses), abs=1e-5)


def test_processes_share_the_pairs_of_a_batch(items: Graph) -> None:
    def pairs(task: MultiplexLinks) -> list[tuple[int, int, int]]:
        found = []
        seeds = task.seeds(0)[1]
        assert seeds.num_pairs == 20 * 2 * 14  # 5 nodes of a walk, windows of 2
        for group in seeds.groups:
            for row in range(group.rows.num_dst):
                span = slice(group.rows.indptr[row], group.rows.indptr[row + 1])
                node = int(seeds["item"][row // 2])
                found += [(node, row % 2, int(j)) for j in group.rows.indices[span]]
        return found

    task = MultiplexLinks(items, config_of())
    whole = pairs(task)
    context = []
    for rank in range(2):
        task.process_group = ProcessGroup(rank, 2)
        context += pairs(task)
    assert sorted(context) == sorted(whole)


def test_metrics_of_pairs_are_those_of_plain_python() -> None:
    rng = np.random.default_rng(2)
    positive = rng.integers(0, 8, 30) / 8 + 0.2
    negative = rng.integers(0, 9, 50) / 8
    found = pair_metrics(positive, negative)
    wins = [(p > n) + (p == n) / 2 for p in positive for n in negative]
    assert found["roc_auc"] == pytest.approx(np.mean(wins))
    points = [(0.0, 1.0)]
    for threshold in sorted({*positive, *negative}, reverse=True):
        hits, falls = (positive >= threshold).sum(), (negative >= threshold).sum()
        points.append((hits / 30, hits / (hits + falls)))
    area = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points))
    assert found["pr_auc"] == pytest.approx(area)
    threshold = np.sort(np.concatenate([positive, negative]))[-30]
    hits = (positive >= threshold).sum()
    taken = hits + (negative >= threshold).sum()
    assert found["f1"] == pytest.approx(2 * hits / (taken + 30))


def test_given_pairs_that_are_no_edges_come_before_drawn_ones(tmp_path: Path) -> None:
    pairs = [(0, 1), (1, 2), (2, 3), (3, 4)]
    a, b = (EdgeType("n", name, "n") for name in "ab")
    make_store(
        tmp_path / "g",
        NodeChunk(ids=np.arange(5), node_type="n"),
        edge_chunk(pairs, a),
        edge_chunk(pairs, b),
        edge_chunk([(0, 2)], a, "test"),
        edge_chunk([(4, 0), (4, 1)], a, "test_negative"),
        edge_chunk([(1, 3)], b, "test"),
        edge_chunk([], b, "valid"),
        is_directed=False,
    )
    graph = Graph(tmp_path / "g")
    asked: dict[str, list[list[int]]] = {"a": [], "b": []}
    ids = np.array(graph.node_ids("n").to_pylist())

    def score(relation: str, pairs: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        asked[relation] += ids[pairs].tolist()
        return np.arange(len(pairs)) + 1.0

    relations: dict[str, tuple[str, int | None]] = {"a": ("a", None), "b": ("b", None)}
    found = tell_edges(graph, relations, "test", score, seed=1)
    assert [sorted(pair) for pair in asked["a"]] == [[0, 2], [0, 4], [1, 4]]
    (edge, drawn) = asked["b"]
    assert sorted(edge) == [1, 3]
    assert drawn[0] == edge[0]
    assert drawn not in [[u, v] for u, v in pairs] + [[v, u] for u, v in pairs]
    assert found["relations"]["a"]["roc_auc"] == 0.25
    with pytest.raises(UnknownNameError, match=r"unknown split 'dev'; known: .*test"):
        tell_edges(graph, relations, "dev", score, seed=1)


def test_an_empty_split_is_told(tmp_path: Path) -> None:
    graph = shop_store(tmp_path / "shop")
    relations: dict[str, tuple[str, int | None]] = {"clicks": ("clicks", None)}
    with pytest.raises(UnknownNameError, match="unknown split 'test'; known: train"):
        tell_edges(graph, relations, "test", lambda _, pairs: pairs[:, 0], seed=0)
