"""Negatives of splits: no edges, none twice, none of both splits, and refused if too many.

What PyG's RandomLinkSplit is known to fail on: negatives drawn before the split, shared by
valid and test of undirected graphs, failure on dense graphs, sizes that surprise.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphsys as gs
from graphsys.core.errors import BudgetError, ConfigError
from tests.unit.storage.ingest.test_split import edges_of, random_graph, sizes

NEGATIVE = ("valid_negative", "test_negative")


@pytest.mark.parametrize("num_nodes", [300, 5000])  # all pairs listed; pairs tried
@pytest.mark.parametrize("is_directed", [True, False])
def test_pairs_are_no_edges_and_none_is_drawn_twice(
    tmp_path: Path, num_nodes: int, is_directed: bool
) -> None:
    table = random_graph(num_nodes, 4000)
    options: dict[str, Any] = {"partitions": 3, "undirected": not is_directed}
    gs.ingest(table, tmp_path / "g", **options)
    graph = gs.split(tmp_path / "g", tmp_path / "h", "0.8,0.15,0.05", negatives=2).graph
    edges = edges_of(graph)
    assert sizes(edges) == {
        "train": 3200,
        "valid": 600,
        "test": 200,
        "valid_negative": 1200,
        "test_negative": 400,
    }
    known = {pair for split in ("train", "valid", "test") for pair in edges[split]}
    drawn = [pair for split in NEGATIVE for pair in edges[split]]
    if not is_directed:
        known = {tuple(sorted(pair)) for pair in known}
        drawn = [(min(pair), max(pair)) for pair in drawn]
    assert len(set(drawn)) == len(drawn) == 1600
    assert not known & set(drawn)
    assert all(src != dst for src, dst in drawn)


def test_pairs_have_the_relation_and_columns_of_their_edges(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    names = np.array(["likes", "knows", "hates"])
    table = {
        "src": draw.integers(0, 60, 900),
        "dst": draw.integers(0, 60, 900),
        "relation": names[draw.integers(0, 3, 900)],
        "weight": draw.random(900),
        "time": draw.integers(0, 5, 900),
    }
    gs.ingest(table, tmp_path / "g")
    graph = gs.split(tmp_path / "g", tmp_path / "h", by="relation", negatives=1).graph
    edges = edges_of(graph, "relation", "weight", "time")
    for split in ("valid", "test"):
        own, drawn = (
            Counter((r, w, t) for _, _, r, w, t in edges[name])
            for name in (split, f"{split}_negative")
        )
        assert own == drawn
    known = {row[:3] for split in ("train", "valid", "test") for row in edges[split]}
    drawn_rows = [row[:3] for split in NEGATIVE for row in edges[split]]
    assert len(set(drawn_rows)) == len(drawn_rows)
    assert not known & set(drawn_rows)
    ends = {row[:2] for row in known}  # another relation may join the same nodes
    assert any(row[:2] in ends for row in drawn_rows)


def test_too_many_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    dense = [(a, b) for a in range(30) for b in range(30) if a != b and (a + b) % 9]
    src, dst = np.array(dense).T
    gs.ingest({"src": src, "dst": dst}, tmp_path / "g")
    free = 30 * 29 - len(dense)
    asked = 3 * sum(int(share * len(dense)) for share in (0.1, 0.1))
    assert free < asked
    with pytest.raises(
        ConfigError, match=f"negatives: {asked} pairs were asked for, {free} that are no"
    ):
        gs.split(tmp_path / "g", tmp_path / "h", negatives=3)
    assert not (tmp_path / "h").exists()
    for wrong in (-1, 1.5, 2**16):
        with pytest.raises(ConfigError, match=f"negatives: got {wrong}, expected an int"):
            gs.split(tmp_path / "g", tmp_path / "h", negatives=wrong)  # type: ignore[arg-type]


def test_memory_is_asked_for_as_many_pairs_as_there_are(tmp_path: Path) -> None:
    for size in (30, 3000):
        nodes = np.arange(size)
        gs.ingest({"src": nodes, "dst": (nodes + 1) % size}, tmp_path / f"{size}")
    gs.split(tmp_path / "30", tmp_path / "h", memory="80MB", negatives=1)
    splitting = "memory: splitting the edges of 3000 nodes needs .* give --memory"
    with pytest.raises(BudgetError, match=splitting) as refused:
        gs.split(tmp_path / "3000", tmp_path / "i", memory="300MB", negatives=1)
    enough = str(refused.value).rpartition("memory='")[2].partition("'")[0]
    gs.split(tmp_path / "3000", tmp_path / "enough", memory=enough, negatives=1)
    gs.split(tmp_path / "3000", tmp_path / "i", memory="300MB")


def test_reverse_edges_of_another_type_are_held_out_together(tmp_path: Path) -> None:
    draw = np.random.default_rng(2)
    users, items = draw.integers(0, 80, 1200), draw.integers(0, 50, 1200)
    edges = {
        ("user", "buys", "item"): {"src": users, "dst": items},
        ("item", "bought_by", "user"): {"src": items[::-1], "dst": users[::-1]},
    }
    gs.ingest(out=tmp_path / "g", edges=edges)
    graph = gs.split(tmp_path / "g", tmp_path / "h", negatives=1).graph
    by_type: dict[tuple[str, str], Any] = {}
    for kind in graph.edge_types:
        ids = [graph.node_ids(name).to_numpy() for name in (kind.src_type, kind.dst_type)]
        for split in graph.splits(kind):
            bucket = graph.bucket(kind, 0, 0, split)
            ends = [ids[0][bucket.src], ids[1][bucket.dst]]
            pairs = zip(*ends[:: 1 if kind.src_type == "user" else -1], strict=True)
            by_type[kind.relation, split] = sorted(pairs)
    for split in ("train", "valid", "test"):
        assert by_type["buys", split] == by_type["bought_by", split]
    assert len(by_type["buys", "test"]) == 120
    every = {*by_type["buys", "train"], *by_type["buys", "valid"], *by_type["buys", "test"]}
    assert not every & set(by_type["buys", "test_negative"])


def test_negatives_are_no_known_answers_of_rankings(tmp_path: Path) -> None:
    gs.ingest(random_graph(60, 600), tmp_path / "g")
    found = {}
    for count in (0, 3):
        gs.split(tmp_path / "g", tmp_path / f"h{count}", negatives=count, seed=4)
        options = {"task": "link_prediction", "epochs": 1, "dim": 8, "eval_every": 0}
        config = gs.gnn.GnnConfig(**options)  # type: ignore[arg-type]
        run = tmp_path / f"r{count}"
        gs.gnn.train(tmp_path / f"h{count}", config, run)
        found[count] = gs.gnn.evaluate(run, split="test")["metrics"]["mrr"]
    assert found[0] == found[3]
