"""Patterns with arrows, labels and anti-edges, beside maps that are tried one by one."""

from itertools import permutations
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphsys as gs
from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.core.types import EdgeType
from graphsys.mining import Pattern, SimpleGraph, count, estimate, explain_count, matches
from graphsys.mining.compiler.choose import choose_schedule
from graphsys.mining.compiler.emit import CountTask
from graphsys.mining.compiler.schedule import schedules
from graphsys.mining.compiler.tail import longest_tail
from graphsys.mining.labeled_graph import LabeledGraph
from graphsys.mining.loops import count_by_loops
from graphsys.mining.pattern import Word, words_of
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store
from tests.unit.mining.compiler.test_loops import in_python
from tests.unit.mining.test_counting import as_rows

LABELS = ("x", "y")
RELATIONS = ("likes", "knows")
TEXTS = (
    "a>b",
    "a<-b",
    "a<->b",
    "a>b b>c",
    "a>b b>c c>a",
    "a>b a>c b>c",
    "a>b c>b",
    "a-b b>c",
    "a>b b-c a!c",
    "a-b b-c a!c",
    "a-b b-c c-d d-a a!c b!d",
    "a>b b>c c>d a!d",
    "a:x-b:y",
    "a:x>b",
    "a:x>b:x b>c:y",
    "a:x-b a-c:x",
    "a-[likes]-b",
    "a-[likes]->b",
    "a<-[knows]-b b-[likes]-c",
    "a-[likes]->b a-[knows]->b",
    "a:x-[likes]->b:y b>c a!c",
    "a-[likes]-b b-[likes]-c c-[knows]-a",
    "a>b, a>c, a>d",
    "a:x<->b:x b-c:y",
    "a<-[likes]->b",
)


class Drawn:
    """A small directed graph with labeled nodes and edges, as lists and as a store."""

    def __init__(self, folder: Path, seed: int, num_nodes: int, num_edges: int) -> None:
        rng = np.random.default_rng(seed)
        self.labels = [LABELS[k] for k in rng.integers(0, 2, num_nodes)]
        ends = rng.integers(0, num_nodes, (num_edges, 2)).tolist()
        names = [RELATIONS[k] for k in rng.integers(0, 2, num_edges)]
        self.edges = {(a, b, name) for (a, b), name in zip(ends, names, strict=True)}
        ids = np.arange(num_nodes) * 10
        nodes = NodeChunk(ids=ids, columns={"label": pa.array(self.labels)})
        pairs = [(10 * a, 10 * b) for a, b in ends]
        chunk = edge_chunk(pairs, relation=pa.array(names))
        # both labels are there, on nodes and edges of their own
        spare = NodeChunk(
            ids=np.array([1001, 1002]), columns={"label": pa.array(list(LABELS))}
        )
        far = edge_chunk([(1001, 1002), (1002, 1001)], relation=pa.array(list(RELATIONS)))
        self.labels += list(LABELS)
        n = num_nodes
        self.edges |= {(n, n + 1, RELATIONS[0]), (n + 1, n, RELATIONS[1])}
        make_store(folder, nodes, spare, chunk, far, partitions=2)
        self.store = Graph(folder)

    def has(self, src: int, dst: int, name: str | None = None) -> bool:
        return any((src, dst, it) in self.edges for it in RELATIONS if name in (None, it))

    def fits(self, words: list[Word], at: dict[Any, int], is_induced: bool) -> bool:
        joined = {frozenset((it.src, it.dst)) for it in words if it.way is not None}
        for word in words:
            a, b = at[word.src], at[word.dst]
            forth, back = self.has(a, b, word.label), self.has(b, a, word.label)
            good = {
                0: forth or back,
                1: forth,
                -1: back,
                2: forth and back,
                None: not (forth or back),
            }[word.way]
            for node, label in zip((a, b), word.labels, strict=True):
                good &= label is None or self.labels[node] == label
            if is_induced and word.way in (1, -1):
                src, dst = (a, b) if word.way == 1 else (b, a)
                asked = any(
                    it.way == 2
                    or (at[it.src], at[it.dst], it.way) == (dst, src, 1)
                    or (at[it.src], at[it.dst], it.way) == (src, dst, -1)
                    for it in words
                )
                good &= asked or not self.has(dst, src)
            if not good:
                return False
        if is_induced:
            names = sorted(at)
            for k, a in enumerate(names):
                for b in names[:k]:
                    u, v = at[a], at[b]
                    if frozenset((a, b)) not in joined and (
                        self.has(u, v) or self.has(v, u)
                    ):
                        return False
        return True

    def maps(self, words: list[Word], is_induced: bool) -> int:
        names = sorted({it.src for it in words} | {it.dst for it in words})
        return sum(
            self.fits(words, dict(zip(names, image, strict=True)), is_induced)
            for image in permutations(range(len(self.labels)), len(names))
        )


def same_ways(words: list[Word]) -> int:
    """Count the renamings of a pattern's nodes that leave what is asked as it is."""

    def asked(at: dict[Any, Any]) -> set[Any]:
        told: set[Any] = set()
        for it in words:
            a, b = at[it.src], at[it.dst]
            told |= {(a, it.labels[0])} if it.labels[0] else set()
            told |= {(b, it.labels[1])} if it.labels[1] else set()
            if it.way in (1, 2):
                told.add((a, b, it.label))
            if it.way in (-1, 2):
                told.add((b, a, it.label))
            if it.way in (0, None):
                told.add((frozenset((a, b)), it.way, it.label))
        return told

    names = sorted({it.src for it in words} | {it.dst for it in words})
    own = asked({name: name for name in names})
    return sum(
        asked(dict(zip(names, order, strict=True))) == own for order in permutations(names)
    )


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    num_nodes=st.integers(2, 6),
    num_edges=st.integers(1, 22),
    text=st.sampled_from(TEXTS),
    induced=st.sampled_from(["edge", "vertex"]),
)
def test_counts_are_those_of_all_maps(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    num_nodes: int,
    num_edges: int,
    text: str,
    induced: str,
) -> None:
    folder = tmp_path_factory.mktemp("drawn") / "graph"
    drawn = Drawn(folder, seed, num_nodes, num_edges)
    words = words_of(text)
    assert words is not None
    ways = same_ways(words)
    assert Pattern.of(text).num_automorphisms() == ways
    expected = drawn.maps(words, induced == "vertex") / ways
    assert count(drawn.store, text, induced=induced) == expected
    listed = sum(t.num_rows for t in matches(drawn.store, text, induced=induced))
    assert listed == expected
    pattern = Pattern.of(text)
    graph = LabeledGraph.of(drawn.store, pattern)
    for schedule in schedules(pattern, is_induced=induced == "vertex"):
        for tail in range(1, longest_tail(schedule, graph.rows.num_nodes) + 1):
            assert in_python([CountTask(schedule, tail)], graph) == [expected]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Users who buy items and follow users."""
    buys, follows = EdgeType("user", "buys", "item"), EdgeType("user", "follows", "user")
    folder = tmp_path_factory.mktemp("shop") / "graph"
    make_store(
        folder,
        edge_chunk([("u1", "i1"), ("u2", "i1"), ("u2", "i2"), ("u3", "i2")], buys),
        edge_chunk([("u1", "u2"), ("u2", "u1"), ("u3", "u2")], follows),
    )
    return Graph(folder)


def test_types_are_labels(shop: Graph) -> None:
    assert count(shop, "a:user-[buys]->b:item") == 4
    assert count(shop, "a:user>b:user") == 3
    assert count(shop, "a:user<->b:user") == 1
    assert count(shop, "a:user>b:item c:user>b c>a") == 3
    assert count(shop, "a:user>b:item c:user>b c>a", induced="vertex") == 1
    assert count(shop, "a:user-[buys]-b:item c:user-[buys]-b a!c") == 0
    assert count(shop, "a:user-[buys]-b:item c:user-[buys]-b a-c") == 2


def test_a_listing_names_the_ends_of_arrows(shop: Graph) -> None:
    rows = [row for t in matches(shop, "a:user>b:user", limit=9) for row in t.to_pylist()]
    assert sorted((row["a"], row["b"]) for row in rows) == [
        ("u1", "u2"),
        ("u2", "u1"),
        ("u3", "u2"),
    ]


def test_loops_are_compiled_for_labels(tmp_path: Path) -> None:
    drawn = Drawn(tmp_path / "graph", 3, 60, 700)
    for text in ("a:x>b:y b>c c-d a!d", "a-[likes]->b b-[likes]->c c!a", "a:x-b:y b-c"):
        pattern = Pattern.of(text)
        graph = LabeledGraph.of(drawn.store, pattern)
        choice = choose_schedule(graph.rows, pattern, is_induced=False, labels=graph.labels)
        expected = sum(table.num_rows for table in matches(drawn.store, text))
        assert count_by_loops(graph, [choice]) == [expected] != [0]


def test_a_rare_label_is_looked_for_first() -> None:
    rows = as_rows(nx.gnp_random_graph(200, 0.2, seed=1))
    labels = np.zeros(200, dtype=np.int64)
    labels[:3] = 1
    pattern = Pattern.of("a:x-b:x b-c:y c-d:x")
    for seldom, first in ((labels, [2]), (1 - labels, [0, 1])):
        choice = choose_schedule(rows, pattern, is_induced=False, labels=seldom)
        assert set(first) <= set(choice.schedule.order[:2])


def test_an_estimate_of_a_labeled_pattern_is_near(tmp_path: Path) -> None:
    drawn = Drawn(tmp_path / "graph", 3, 60, 700)
    for text in ("a:x>b:y b>c", "a-[likes]->b b-[likes]->c c!a"):
        truth = count(drawn.store, text)
        found = estimate(drawn.store, text, relative_error=0.05)
        assert truth > 100
        assert found.low <= truth <= found.high


def test_a_column_of_labels_is_chosen(tmp_path: Path) -> None:
    columns = {
        "label": pa.array(["x", "x", "y"]),
        "color": pa.array(["red", None, "two words"]),
    }
    nodes = NodeChunk(ids=np.arange(3), columns=columns)
    make_store(tmp_path / "graph", nodes, edge_chunk([(0, 1), (1, 2), (0, 2)]))
    graph = Graph(tmp_path / "graph")
    assert count(graph, "a:x-b:y") == 2
    assert count(graph, "a:red-b", labels="color") == 2
    assert count(graph, 'a:red-b:"two words"', labels="color") == 1
    assert count(graph, "a:node>b:node", labels="type") == 3
    with pytest.raises(UnknownNameError, match="label of nodes 'green'"):
        count(graph, "a:green-b", labels="color")
    with pytest.raises(UnknownNameError, match="column of nodes 'colour'"):
        count(graph, "a:red-b", labels="colour")
    with pytest.raises(UnknownNameError, match="label of edges 'likes'"):
        count(graph, "a-[likes]-b")


def test_arrows_need_a_direction(tmp_path: Path) -> None:
    make_store(tmp_path / "graph", edge_chunk([(0, 1), (1, 2)]), is_directed=False)
    with pytest.raises(ConfigError, match="has arrows, but no edge of the graph has a dir"):
        count(tmp_path / "graph", "a>b")
    assert count(tmp_path / "graph", "a-b b-c a!c") == 1


def test_a_simple_graph_has_no_labels() -> None:
    rows = SimpleGraph.of((np.array([0, 1]), np.array([1, 2])))
    for text in ("a>b", "a:x-b", "a-[y]-b"):
        with pytest.raises(ConfigError, match="SimpleGraph has no labels and directions"):
            count(rows, text)
    assert count(rows, "a-b b-c a!c") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:x-b a:y-c", "node a of the pattern is called 'x' and 'y'"),
        ("a-b a!b", "says that a and b have an edge and that they have none"),
        ("a!b", "at least one edge"),
        ("a-b b!c", "in several parts: no path of its edges leads to c"),
        ("a>a", "no loops"),
        ("a-[likes>b", "unknown pattern"),
        ("a>b>c", "unknown pattern"),
    ],
)
def test_what_is_no_labeled_pattern_is_refused(text: str, message: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        Pattern.of(text)


def test_a_plan_says_what_is_asked(shop: Graph) -> None:
    lines, code = explain_count(shop, "a:user-[buys]->b:item c:user-b a!c")
    said = " ".join(lines)
    assert code == ""
    for words in ("called user", "called item", "edge buys", "not of"):
        assert words in said


def test_a_directed_pattern_of_networkx_has_arrows(shop: Graph) -> None:
    import networkx as nx

    assert Pattern.of(nx.DiGraph([(0, 1), (1, 2)])).num_automorphisms() == 1
    assert Pattern.of(nx.Graph([(0, 1), (1, 2)])).num_automorphisms() == 2
    assert gs.mining.count(shop, nx.DiGraph([(0, 1), (1, 0)])) == 1
