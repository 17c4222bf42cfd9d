"""Splits of edges: sizes, coverage, no leaks, and the same whatever the partitions.

The cases that other libraries' splits are known to fail on (PyG's RandomLinkSplit: leaks on
undirected bipartite graphs and without valid edges, dense graphs, surprising sizes;
PyKEEN's: coverage that cannot be had) are tests of their own.
"""

import itertools
import re
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import graphsys as gs
from graphsys.core.errors import BudgetError, ConfigError, InputError
from graphsys.datasets.recipes import build
from graphsys.storage.ingest.split_plan import thresholds
from graphsys.storage.ingest.split_spec import split_spec
from tests.advice.case import advised

Edges = dict[str, list[tuple[Any, ...]]]


def edges_of(graph: gs.Graph, *columns: str) -> Edges:
    """The edges of every split as the user's ids and some columns."""
    found: Edges = {}
    for kind in graph.edge_types:
        ends = [graph.node_ids(name).to_pylist() for name in (kind.src_type, kind.dst_type)]
        starts = [graph.offsets(name) for name in (kind.src_type, kind.dst_type)]
        for split in graph.splits(kind):
            for i, j in graph.buckets(kind, split):
                bucket = graph.bucket(kind, i, j, split)
                src = [ends[0][k] for k in bucket.src.astype(int) + starts[0][i]]
                dst = [ends[1][k] for k in bucket.dst.astype(int) + starts[1][j]]
                more: list[Any] = [getattr(bucket, name) for name in columns]
                found.setdefault(split, []).extend(zip(src, dst, *more, strict=True))
    return {split: sorted(rows) for split, rows in found.items()}


def random_graph(num_nodes: int, num_edges: int, seed: int = 0) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    src, dst = draw.integers(0, num_nodes, (2, num_edges))
    return {"src": src, "dst": dst}


def ends(rows: Iterable[tuple[Any, ...]]) -> set[Any]:
    return {end for row in rows for end in row[:2]}


def sizes(edges: Edges) -> dict[str, int]:
    return {split: len(rows) for split, rows in edges.items()}


def test_sizes_are_the_ones_asked_for_and_every_node_is_in_train(tmp_path: Path) -> None:
    table = random_graph(2000, 20_000)
    graph = gs.ingest(table, tmp_path / "g", split="0.8,0.15,0.05").graph
    found = edges_of(graph)
    # copies of an edge stay together: a boundary may move by one
    assert abs(len(found["valid"]) - 3000) <= 1
    assert abs(len(found["test"]) - 1000) <= 1
    every = Counter(zip(table["src"].tolist(), table["dst"].tolist(), strict=True))
    assert Counter(itertools.chain(*found.values())) == every
    assert ends(found["train"]) == ends(every)
    counts = edges_of(gs.ingest(table, tmp_path / "n", split=[700, 300]).graph)
    assert abs(len(counts["valid"]) - 700) <= 1
    assert abs(len(counts["test"]) - 300) <= 1


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("shares", ["0.7,0,0.3", "0.7,0.15,0.15"])
def test_copies_and_reverse_edges_leak_into_no_other_split(
    tmp_path: Path, undirected: bool, shares: str
) -> None:
    once = random_graph(300, 3000)
    both = {
        "src": np.concatenate([once["src"], once["dst"], once["src"][:500]]),
        "dst": np.concatenate([once["dst"], once["src"], once["dst"][:500]]),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that edges are there twice
        graph = gs.ingest(both, tmp_path / "g", undirected=undirected, split=shares).graph
    found = edges_of(graph)
    pairs = [{frozenset(row) for row in rows} for rows in found.values()]
    assert len(pairs) == (2 if ",0," in shares else 3)
    assert sum(map(len, pairs)) == len(set.union(*pairs))


def test_undirected_bipartite_edges_do_not_leak(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    table = {"src": draw.integers(0, 50, 800), "dst": draw.integers(0, 50, 800)}
    graph = gs.ingest(
        table,
        tmp_path / "g",
        undirected=True,
        edge_type=("user", "likes", "item"),
        split="0.6,0.2,0.2",
    ).graph
    found = [set(rows) for rows in edges_of(graph).values()]  # users and items share ids
    assert len(found) == 3
    assert sum(map(len, found)) == len(set.union(*found))


def test_a_dense_graph_is_split_like_any_other(tmp_path: Path) -> None:
    pairs = np.array(list(itertools.permutations(range(30), 2)))
    found = edges_of(gs.ingest(pairs, tmp_path / "g", split="0.5,0.25,0.25").graph)
    assert abs(len(found["test"]) - 870 // 4) <= 2
    assert abs(len(found["valid"]) - 870 // 4) <= 2
    assert ends(found["train"]) == set(range(30))


def test_coverage_that_cannot_be_had_keeps_edges_in_train_and_says_so(
    tmp_path: Path,
) -> None:
    star = {"src": [0] * 100, "dst": list(range(1, 101))}  # every edge is a node's only one
    with pytest.warns(
        UserWarning, match="20 edges of 'edge' were asked for in valid and test, 0 are: the"
    ):
        graph = gs.ingest(star, tmp_path / "g", split="0.8,0.1,0.1").graph
    assert sizes(edges_of(graph)) == {"train": 100}
    more = {"src": star["src"] + [1] * 10, "dst": star["dst"] + list(range(2, 12))}
    with pytest.warns(UserWarning, match="22 edges of 'edge' were asked .*, 1[0-9]? are"):
        found = edges_of(gs.ingest(more, tmp_path / "m", split="0.8,0.1,0.1").graph)
    assert ends(found["train"]) == set(range(101))
    assert 1 <= len(found["test"]) <= 10


@pytest.mark.parametrize(
    ("shares", "by", "told"),
    [
        (
            "0.8,0.1,0.1",
            "random",
            "valid and test: of so few 0.1 and 0.1 are less than one",
        ),
        ("0.7,0.2,0.1", "random", "test: of so few 0.1 is less than one edge; ask for num"),
        ("0.4,0.3,0.3", "relation", "valid and test: of so few 0.3 and 0.3 are less"),
    ],
)
def test_shares_of_less_than_an_edge_are_said_once(
    tmp_path: Path, shares: str, by: str, told: str
) -> None:
    pairs = [(a, b) for a in range(4) for b in range(a)]
    columns = {"src": [a for a, _ in pairs], "dst": [b for _, b in pairs]}
    table = pa.table({**columns, "relation": ["a", "a", "b", "b", "c", "c"]})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        gs.ingest(table, tmp_path / "g", split=split_spec(shares, by=by))
    (once,) = (str(it.message) for it in said)
    assert once.startswith(f"split: none of the 6 edges of 'edge' are in {told}")
    gs.ingest(table, tmp_path / "h", split="1,1")  # which it advises, says nothing


def test_every_relation_of_valid_and_test_is_in_train(tmp_path: Path) -> None:
    draw = np.random.default_rng(2)
    relations = np.minimum(draw.geometric(0.02, 5000), 200)  # many of few edges
    table = pa.table(
        {**random_graph(100, 5000), "relation": [f"r{it}" for it in relations.tolist()]}
    )
    graph = gs.ingest(table, tmp_path / "g", split="0.6,0.2,0.2").graph
    found = edges_of(graph, "relation")
    assert {row[2] for row in found["train"]} == set(range(len(set(relations.tolist()))))
    assert abs(len(found["test"]) - 1000) <= 1


def test_by_relation_each_has_its_share(tmp_path: Path) -> None:
    names = ["often"] * 900 + ["seldom"] * 100
    gs.ingest(pa.table({**random_graph(60, 1000), "relation": names}), tmp_path / "g")
    graph = gs.split(tmp_path / "g", tmp_path / "s", "0.5,0.2,0.3", by="relation").graph
    found = {
        split: Counter(row[2] for row in rows)
        for split, rows in edges_of(graph, "relation").items()
    }
    assert abs(found["valid"][0] - 180) <= 1
    assert abs(found["test"][0] - 270) <= 1
    assert abs(found["valid"][1] - 20) <= 1
    assert abs(found["test"][1] - 30) <= 1


def test_by_time_the_last_are_held_out_and_one_time_stays_together(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    table = {**random_graph(50, 1000), "time": draw.integers(-500, 500, 1000)}
    gs.ingest(table, tmp_path / "g", partitions=3)
    graph = gs.split(tmp_path / "g", tmp_path / "s", "0.8,0.1,0.1", by="time").graph
    found = {
        split: [row[2] for row in rows] for split, rows in edges_of(graph, "time").items()
    }
    assert max(found["train"]) < min(found["valid"])
    assert max(found["valid"]) < min(found["test"])
    assert 90 <= len(found["test"]) <= 110
    assert graph.num_partitions("node") == 3
    gs.ingest(random_graph(9, 9), tmp_path / "n")
    with pytest.raises(ConfigError, match="edges of 'edge' have no column time; name it"):
        gs.split(tmp_path / "n", tmp_path / "n2", by="time")
    same = {**random_graph(9, 9), "time": [7] * 9}
    gs.ingest(same, tmp_path / "same")
    with pytest.raises(
        InputError, match=r"1 of the 9 edges .* which leaves none in train; ask"
    ):
        gs.split(tmp_path / "same", tmp_path / "same2", "0.8,0,0.2", by="time")


@pytest.mark.parametrize("kind", ["int", "string"])
def test_the_outcome_depends_on_seed_and_ids_alone(tmp_path: Path, kind: str) -> None:
    table = random_graph(200, 2000)
    outcomes = []
    for k, (partitions, order) in enumerate([(1, "original"), (4, "degree"), (3, "rcm")]):
        rows = np.random.default_rng(k).permutation(2000)
        shuffled = {name: values[rows] for name, values in table.items()}
        gs.ingest(shuffled, tmp_path / f"{k}", partitions=partitions, order=order, ids=kind)
        outcomes.append(edges_of(gs.split(tmp_path / f"{k}", tmp_path / f"{k}s").graph))
        graph = gs.ingest(
            shuffled,
            tmp_path / f"{k}i",
            partitions=partitions,
            order=order,
            ids=kind,
            split="0.8,0.1,0.1",
            num_threads=1 + k,
        ).graph
        outcomes.append(edges_of(graph))
    assert all(outcome == outcomes[0] for outcome in outcomes)
    other = gs.split(tmp_path / "0", tmp_path / "other", seed=1).graph
    assert edges_of(other) != outcomes[0]
    assert sizes(edges_of(other)) == sizes(outcomes[0])


def test_nodes_features_and_columns_stay_as_they_are(tmp_path: Path) -> None:
    graph = build("planted", tmp_path / "g", partitions=2).graph
    new = gs.split(graph, tmp_path / "s", "0.9,0.05,0.05").graph
    (kind,) = new.node_types
    for part in range(2):
        assert new.nodes(kind, part).equals(graph.nodes(kind, part))
        for name in graph.feature_names(kind):
            np.testing.assert_array_equal(
                new.features(kind, part, name), graph.features(kind, part, name)
            )
    assert new.is_directed == graph.is_directed
    assert new.manifest.partitioning["method"] == graph.manifest.partitioning["method"]


def test_a_graph_with_splits_is_refused(tmp_path: Path) -> None:
    gs.ingest(random_graph(20, 200), tmp_path / "g", split="0.8,0.1,0.1")
    with pytest.raises(
        InputError, match=r"are in .*valid.* already, expected all in train"
    ):
        gs.split(tmp_path / "g", tmp_path / "s")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("first", "second", "held"),
    [("0.8,0,0.2", "0.9,0.1,0", "valid"), ("0.8,0.2,0", "0.9,0,0.1", "test")],
)
@pytest.mark.parametrize("by", ["random", "time", "relation"])
@pytest.mark.parametrize("memory", ["4GB", "120MB"])
def test_what_was_held_out_before_stays(
    tmp_path: Path, first: str, second: str, held: str, by: str, memory: str
) -> None:
    draw = np.random.default_rng(0)
    relation = draw.choice(["a", "b", "c"], 1500)
    time = draw.permutation(1500)
    table = pa.table({**random_graph(60, 1500), "relation": relation, "time": time})
    gs.ingest(table, tmp_path / "g", partitions=2)
    once = gs.split(tmp_path / "g", tmp_path / "once", first, seed=1).graph
    twice = gs.split(
        tmp_path / "once", tmp_path / "twice", second, by=by, memory=memory, negatives=1
    ).graph
    old, new = (edges_of(graph, "relation", "time") for graph in (once, twice))
    (kept,) = {"valid", "test"} - {held}
    assert set(new) == {"train", "valid", "test", f"{held}_negative"}
    assert new[kept] == old[kept]
    assert sorted(new["train"] + new[held]) == old["train"]
    assert len(new[held]) == pytest.approx(len(old["train"]) / 10, rel=0.1)


def test_by_time_edges_of_a_type_without_times_stay_in_train(tmp_path: Path) -> None:
    rates = {"src": [0, 1, 2, 0], "dst": [0, 1, 0, 1], "time": [4, 1, 3, 2]}
    kinds = {"src": [0, 1], "dst": [0, 0]}
    gs.ingest(
        edges={("user", "rates", "item"): rates, ("item", "is", "kind"): kinds},
        out=tmp_path / "g",
    )
    with pytest.warns(UserWarning, match="edges of 'is' have no times, so all stay"):
        graph = gs.split(tmp_path / "g", tmp_path / "s", "1,1", by="time").graph
    assert sizes(edges_of(graph)) == {"train": 2 + 2, "valid": 1, "test": 1}
    found = {split: graph.bucket("rates", 0, 0, split).time for split in ("valid", "test")}
    np.testing.assert_array_equal([found["valid"], found["test"]], [[3], [4]])
    gs.ingest(edges={("item", "is", "kind"): kinds}, out=tmp_path / "k")
    with pytest.raises(ConfigError, match=r"no column time; .*TYPE\.time=NAME of tables"):
        gs.split(tmp_path / "k", tmp_path / "k2", by="time")


def test_a_split_that_is_there_is_not_drawn_again(tmp_path: Path) -> None:
    gs.ingest(random_graph(20, 200), tmp_path / "g", split="0.8,0,0.2")
    with pytest.raises(InputError) as refused:
        gs.split(tmp_path / "g", tmp_path / "s")
    ratio = advised(
        str(refused.value),
        "graphsys/storage/ingest/split_source.py",
        r"--ratio (\S+) holds valid out of train",
    )
    gs.split(tmp_path / "g", tmp_path / "s", ratio[1])
    assert set(edges_of(gs.Graph(tmp_path / "s"))) == {"train", "valid", "test"}


def test_memory_that_is_too_little_is_refused(tmp_path: Path) -> None:
    gs.ingest(random_graph(20, 200), tmp_path / "g")
    with pytest.raises(BudgetError, match=r"splitting the edges of 20 nodes needs"):
        gs.split(tmp_path / "g", tmp_path / "s", memory="20MB")


@pytest.mark.parametrize(
    "shares",
    [
        "0.8,0.1",
        "0.5,0.1,0.1",
        "1,0,0",
        "0,0.5,0.5",
        "a,b,c",
        "-0.1,0.6,0.5",
        "0,0",
        "1.5,2",
        "nan,0.5,0.5",
        "",
        "1,2,3,4",
    ],
)
def test_shares_that_are_none_are_refused(shares: str) -> None:
    with pytest.raises(ConfigError, match=r"split: got .*, expected three shares that add"):
        split_spec(shares)


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(ConfigError, match="split by: got 'size', expected one of random, "):
        split_spec("0.8,0.1,0.1", by="size")


@pytest.mark.parametrize(
    ("num_groups", "top"), [(1, 2**64 - 1), (3, 40), (700, 2**64 - 1), (5, 0)]
)
def test_thresholds_are_those_of_sorting(num_groups: int, top: int) -> None:
    draw = np.random.default_rng(4)
    keys = draw.integers(0, top, 4000, dtype=np.uint64, endpoint=True)
    groups = draw.integers(0, num_groups, 4000)
    totals = np.bincount(groups, minlength=num_groups)
    wanted = np.stack([totals // 3, totals // 7, np.zeros_like(totals)])

    def stream() -> Iterator[tuple[Any, Any]]:
        yield keys[:1500], groups[:1500]
        yield keys[1500:], groups[1500:]

    lowest, is_any, taken = thresholds(stream, totals, wanted)
    for (k, group), count in np.ndenumerate(wanted):
        own = keys[groups == group]
        here = own[own >= lowest[k, group]] if is_any[k, group] else own[:0]
        assert len(here) == taken[k, group]
        if count:
            others = [int((own >= it).sum()) for it in set(own.tolist())]
            assert abs(len(here) - count) == min(abs(it - count) for it in others)


def test_the_amount_that_a_refusal_names_is_enough(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    gs.ingest(
        (rng.integers(0, 40_000, 90_000), rng.integers(0, 40_000, 90_000)), tmp_path / "g"
    )
    words = [sys.executable, "-m", "graphsys", "split", str(tmp_path / "g")]
    words += ["-o", str(tmp_path / "s"), "--negatives", "3", "--memory"]
    refused = subprocess.run([*words, "60MB"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    (amount,) = re.findall(r"give --memory (\d+MB)", refused.stderr)
    done = subprocess.run([*words, amount], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
