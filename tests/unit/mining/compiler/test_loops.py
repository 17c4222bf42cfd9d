"""Loops made for patterns: every schedule of a pattern counts what NetworkX does.

The text is run as plain Python, with plain functions in place of kernels, so that hundreds
of programs are tried; some are compiled.
"""

import time
from collections import Counter
from collections.abc import Callable
from math import comb
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphsys.core.errors import ConfigError
from graphsys.core.progress import Progress
from graphsys.mining import Pattern, SimpleGraph, matches
from graphsys.mining.compiler.choose import choose_schedule, choose_together, tasks_of
from graphsys.mining.compiler.emit import CountTask, kernel_text
from graphsys.mining.compiler.schedule import schedules
from graphsys.mining.compiler.tail import longest_tail
from graphsys.mining.counting import count, count_all
from graphsys.mining.explain import explain_all, explain_count
from graphsys.mining.labeled_graph import LabeledGraph
from graphsys.mining.loops import count_by_loops, visit_matches
from tests.unit.mining.test_counting import NAMES, as_rows, by_networkx

Function = Callable[..., Any]
LARGE = ["6-cycle", "6-clique", "7-star", "a-b b-c c-a a-d d-e e-f f-a"]
LEAVES = [  # the last three or more are counted together: of one set, of two, of three
    "a-b a-c a-d a-e b-c b-d b-e",
    "a-b a-c b-c a-d a-e b-f",
    "a-b b-c c-a a-d b-e c-f",
    "a-b b-c c-d d-a a-e b-f c-e",
    "a-b a-c a-d a-e a-f b-g",
    "a-c a-d b-c b-d a-e b-f",
]


def has(a: Any, begin: int, end: int, node: int) -> bool:
    return node in a[begin:end].tolist()


def place_of(a: Any, begin: int, end: int, node: int) -> int:
    return begin + int(np.searchsorted(a[begin:end], node)) if begin < end else begin


def intersect(a: Any, a0: int, a1: int, b: Any, b0: int, b1: int, out: Any) -> int:
    found = np.intersect1d(a[a0:a1], b[b0:b1])
    out[: len(found)] = found
    return len(found)


def intersect_size(a: Any, a0: int, a1: int, b: Any, b0: int, b1: int) -> int:
    return len(np.intersect1d(a[a0:a1], b[b0:b1]))


def subtract(a: Any, a0: int, a1: int, b: Any, b0: int, b1: int, out: Any) -> int:
    found = np.setdiff1d(a[a0:a1], b[b0:b1])
    out[: len(found)] = found
    return len(found)


def add_wide(sums: Any, place: int, value: int) -> None:
    assert value >= 0
    sums[place] += int(value)


def in_python(tasks: list[CountTask], graph: LabeledGraph) -> list[int]:
    """Run the text of tasks without numba."""
    text, num_sets = kernel_text(tasks)
    own = text[text.index("def count") :]
    names: dict[str, Any] = {
        "np": np,
        "has": has,
        "place_of": place_of,
        "intersect": intersect,
        "intersect_size": intersect_size,
        "subtract": subtract,
        "add_wide": add_wide,
        "atomic_add": lambda *_: 0,
        "claimed_rows": lambda bounds, _: range(bounds[0], bounds[-1]),
    }
    exec(compile(own, "<loops>", "exec"), names)
    rows = graph.rows
    sets = np.empty((1, max(num_sets, 1), rows.num_nodes), dtype=rows.indices.dtype)
    sums = np.zeros((1, len(tasks)), dtype=object)
    asked = (graph.kinds, graph.labels, np.array([0, rows.num_nodes]), None, sets, sums)
    names["count"](0, rows.indptr, rows.indices, *asked)
    return [int(it) for it in sums[0]]


def plain(rows: SimpleGraph) -> LabeledGraph:
    return LabeledGraph.of(rows, Pattern.of("2-path"))


@pytest.mark.parametrize("induced", ["edge", "vertex"])
@pytest.mark.parametrize("text", [*NAMES, *LARGE, *LEAVES, "2-clique"])
def test_every_schedule_counts_the_same(text: str, induced: str) -> None:
    pattern = Pattern.of(text)
    graph = nx.gnp_random_graph(9, 0.55, seed=len(text))
    rows, expected = as_rows(graph), by_networkx(graph, pattern, induced)
    known = schedules(pattern, is_induced=induced == "vertex")
    assert len({it.shape for it in known}) == len(known)
    for schedule in known[:: max(1, len(known) // 16)]:
        for tail in range(1, longest_tail(schedule, rows.num_nodes) + 1):
            found = in_python([CountTask(schedule, tail)], plain(rows))
            assert found == [expected], "\n".join([f"tail {tail}", *schedule.lines()])


@pytest.mark.parametrize("induced", ["edge", "vertex"])
@pytest.mark.parametrize("text", ["triangle", "house", "5-star", "6-cycle"])
def test_compiled_loops_count_the_same(text: str, induced: str) -> None:
    rows = as_rows(nx.gnp_random_graph(60, 0.2, seed=3))
    choice = choose_schedule(rows, Pattern.of(text), is_induced=induced == "vertex")
    expected = count(rows, text, induced=induced)
    for num_threads in (1, 2):
        assert count_by_loops(plain(rows), [choice], num_threads) == [expected]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("text", "induced", "published"),
    [
        ("triangle", "edge", 608_389),
        ("4-clique", "vertex", 2_077_903),
        ("diamond", "edge", 40_544_543),
    ],
)
def test_a_real_graph_is_worth_compiling(
    shared_data: Path, text: str, induced: str, published: int
) -> None:
    edges = np.loadtxt(shared_data / "wiki-Vote/wiki-Vote.txt", dtype=np.int64)
    rows = SimpleGraph.of((edges[:, 0], edges[:, 1]))
    assert count(rows, text, induced=induced, way="matches") == published
    pattern = Pattern.of(text)
    choice = choose_schedule(rows, pattern, is_induced=induced == "vertex")
    assert choice.cost > 5e6
    # what was sampled is near the truth
    assert 0.5 * published < choice.trips[-1] < 2 * published


def test_costs_prefer_sets_that_are_made_in_outer_loops() -> None:
    rows = as_rows(nx.barabasi_albert_graph(400, 8, seed=1))
    pattern = Pattern.of("house")
    best = choose_schedule(rows, pattern, is_induced=False)
    known = schedules(pattern, is_induced=False)
    # the worst order walks a path of four nodes before it looks for common neighbors
    worst = [it for it in known if [b.bit_count() for b in it.needed] == [0, 1, 1, 1, 3]]
    assert worst
    assert best.schedule not in worst
    assert best.num_schedules == len(known) == 60
    assert [b.bit_count() for b in best.schedule.needed] == [0, 1, 1, 2, 2]
    assert best.tail == 2


def test_automorphisms_are_those_of_the_pattern() -> None:
    for text in [*NAMES, *LARGE, "8-cycle"]:
        pattern = Pattern.of(text)
        assert len(pattern.automorphisms()) == pattern.num_automorphisms()


def test_an_explanation_has_order_cost_and_python() -> None:
    rows = as_rows(nx.gnp_random_graph(300, 0.3, seed=2))
    lines, python = explain_count(rows, "6-cycle")
    assert lines[0] == "loops compiled for it, the last node counted:"
    assert lines[1].startswith("1. node ")
    assert " expected" in lines[3]
    assert lines[-1].startswith("cost ")
    assert "for v0 in claimed_rows(bounds, counter):" in python
    compile(python, "<loops>", "exec")
    small = as_rows(nx.cycle_graph(6))
    lines, python = explain_count(small, "6-cycle")
    assert lines[-1].endswith(": nothing is compiled for it")
    assert python == ""
    assert explain_count(small, "house") == (
        ["house: from few sums over the graph, without its matches"],
        "",
    )


class Told(Progress):
    """Keeps what it is told; may be interrupted as Ctrl-C interrupts."""

    def __init__(self, *, is_impatient: bool = False) -> None:
        self.stages: list[tuple[str, int | None]] = []
        self.steps, self.is_impatient = 0, is_impatient

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        """Keep the stage."""
        self.stages.append((name, total))

    def advance(self, steps: int, **figures: float) -> None:
        """Count."""
        self.steps += steps
        if self.is_impatient:
            raise KeyboardInterrupt


def test_counting_tells_how_far_it_is() -> None:
    told = Told()
    rows = as_rows(nx.gnp_random_graph(40, 0.3, seed=2))
    assert count(rows, "4-clique", progress=told) == count(rows, "4-clique")
    assert [name for name, _ in told.stages] == ["longest prefix", "count cliques"][-1:]
    assert told.steps == sum(total or 0 for _, total in told.stages) > 0


def test_an_interrupted_count_ends_at_once() -> None:
    rows = as_rows(nx.gnp_random_graph(500, 0.3, seed=2))  # 1e15 paths: for minutes
    choice = choose_schedule(rows, Pattern.of("7-path"), is_induced=False)
    with pytest.raises(KeyboardInterrupt):
        count_by_loops(plain(rows), [choice], progress=Told(is_impatient=True))
    began = time.perf_counter()  # and now it is compiled
    with pytest.raises(KeyboardInterrupt):
        count_by_loops(plain(rows), [choice], progress=Told(is_impatient=True))
    assert time.perf_counter() - began < 30


@pytest.mark.parametrize("induced", ["edge", "vertex"])
def test_patterns_that_begin_alike_share_loops(induced: str) -> None:
    texts = ["6-cycle", "7-path", LARGE[3], *LEAVES[:3], "6-clique"]
    graph = nx.gnp_random_graph(8, 0.6, seed=4)
    rows = as_rows(graph)
    patterns = [Pattern.of(text) for text in texts]
    choices = choose_together(rows, patterns, is_induced=induced == "vertex")
    expected = [by_networkx(graph, it, induced) for it in patterns]
    tasks = tasks_of(choices)
    assert in_python(tasks, plain(rows)) == expected
    apart = sum(kernel_text([task])[0].count("    for k") for task in tasks)
    assert kernel_text(tasks)[0].count("    for k") < apart
    assert kernel_text(tasks)[0].count("for v0 in") == 1
    assert count_by_loops(plain(rows), choices) == expected


def test_patterns_are_counted_together_as_they_are_alone() -> None:
    rows = as_rows(nx.gnp_random_graph(70, 0.25, seed=6))
    texts = ["triangle", "4-path", "bull", "6-cycle", "6-clique", LARGE[3], LEAVES[1]]
    for induced in ("edge", "vertex"):
        together = count_all(rows, texts, induced=induced)
        assert list(together) == texts
        assert together == {it: count(rows, it, induced=induced) for it in texts}
    lines, python = explain_all(rows, texts)
    assert python[3] == python[5] != ""  # one program
    assert python[0] == ""
    assert lines[0] == ["triangle: from few sums over the graph, without its matches"]


def test_counts_of_many_leaves_stay_within_64_bits() -> None:
    pattern = Pattern.of("a-b a-c a-d a-e a-f b-c")
    [schedule] = [
        it for it in schedules(pattern, is_induced=False) if it.order[:3] == (0, 1, 2)
    ][:1]
    assert longest_tail(schedule, 100) == 4
    assert longest_tail(schedule, 10**6) == 2
    star = as_rows(nx.star_graph(200_000))
    assert count(star, "5-star", way="matches") == comb(200_000, 4)  # over 2**63


def colors(nodes: Any, out: Any, data: Any) -> None:
    if data[0][nodes[0]] != data[0][nodes[1]] and data[0][nodes[1]] == data[0][nodes[2]]:
        out[0] += 1
    for node in nodes:
        out[1 + node] += 1


def test_a_function_visits_every_match() -> None:
    graph = nx.gnp_random_graph(40, 0.3, seed=5)
    src, dst = np.array(graph.edges).T
    store = SimpleGraph.of((src, dst))
    ids = np.array(store.numbers.ids(np.arange(store.num_nodes)))
    color = np.arange(40) % 2
    for text in ("triangle", "a-b b-c b-d", "5-cycle"):
        pattern = Pattern.of(text)
        notes = visit_matches(store, text, colors, shape=41, data=(color[ids],))
        found = [row for table in matches(store, text) for row in table.to_pylist()]
        letters = "abcde"[: pattern.num_nodes]
        of_node = Counter(it[letter] for it in found for letter in letters)
        assert notes[1:].tolist() == [of_node[node] for node in ids.tolist()]
        if text == "a-b b-c b-d":  # only the middle is known: the leaves change places
            assert notes[1:].sum() == 4 * count(store, text)
    alone = visit_matches(store, "a-b", colors_differ, dtype="float64", data=(color[ids],))
    assert alone.tolist() == [sum(color[a] != color[b] for a, b in graph.edges)]


def colors_differ(nodes: Any, out: Any, data: Any) -> None:
    out[0] += 1.0 if data[0][nodes[0]] != data[0][nodes[1]] else 0.0


def cannot_compile(nodes: Any, out: Any, data: Any) -> None:
    out[0] += nodes.no_such_thing


def test_a_function_that_does_not_compile_is_refused() -> None:
    rows = as_rows(nx.cycle_graph(5))
    with pytest.raises(
        ConfigError, match=r"visit=cannot_compile does not compile: .*visit\("
    ):
        visit_matches(rows, "a-b", cannot_compile)
    with pytest.raises(ConfigError, match="dtype='int8': expected int64 or float64"):
        visit_matches(rows, "a-b", colors, dtype="int8")
    with pytest.raises(ConfigError, match="induced='both' is neither"):
        visit_matches(rows, "a-b", colors, induced="both")
