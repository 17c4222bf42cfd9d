"""Loops made for patterns: every schedule of a pattern counts what NetworkX does.

The text is run as plain Python, with plain functions in place of kernels, so that hundreds
of programs are tried; some are compiled.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphsys.core.progress import Progress
from graphsys.mining import Pattern, SimpleGraph
from graphsys.mining.compiler.choose import choose_schedule
from graphsys.mining.compiler.emit import kernel_text
from graphsys.mining.compiler.schedule import Schedule, schedules
from graphsys.mining.counting import count, count_scheduled, explain_count
from tests.unit.mining.test_counting import NAMES, as_rows, by_networkx

Function = Callable[..., Any]
LARGE = ["6-cycle", "6-clique", "7-star", "a-b b-c c-a a-d d-e e-f f-a"]


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


def in_python(schedule: Schedule, rows: SimpleGraph) -> int:
    """Run the text of a schedule without numba."""
    text, num_sets = kernel_text(schedule)
    own = text[text.index("def count") :]
    names: dict[str, Any] = {
        "np": np, "has": has, "place_of": place_of, "intersect": intersect,
        "intersect_size": intersect_size, "subtract": subtract, "add_wide": add_wide,
    }  # fmt: skip
    chunks = iter((0, 1))
    names["atomic_add"] = lambda _, __, more: next(chunks) if more else 0
    exec(compile(own, "<loops>", "exec"), names)
    sets = np.empty((1, max(num_sets, 1), rows.num_nodes), dtype=rows.indices.dtype)
    sums = np.zeros((1, 1), dtype=object)
    bounds = np.array([0, rows.num_nodes])
    names["count"](0, rows.indptr, rows.indices, bounds, None, sets, sums)
    return int(sums[0, 0])


@pytest.mark.parametrize("induced", ["edge", "vertex"])
@pytest.mark.parametrize("text", [*NAMES, *LARGE, "2-clique"])
def test_every_schedule_counts_the_same(text: str, induced: str) -> None:
    pattern = Pattern.of(text)
    graph = nx.gnp_random_graph(9, 0.55, seed=len(text))
    rows, expected = as_rows(graph), by_networkx(graph, pattern, induced)
    known = schedules(pattern, is_induced=induced == "vertex")
    assert len({it.shape for it in known}) == len(known)
    for schedule in known[:: max(1, len(known) // 16)]:
        assert in_python(schedule, rows) == expected, "\n".join(schedule.lines())


@pytest.mark.parametrize("induced", ["edge", "vertex"])
@pytest.mark.parametrize("text", ["triangle", "house", "5-star", "6-cycle"])
def test_compiled_loops_count_the_same(text: str, induced: str) -> None:
    rows = as_rows(nx.gnp_random_graph(60, 0.2, seed=3))
    choice = choose_schedule(rows, Pattern.of(text), is_induced=induced == "vertex")
    expected = count(rows, text, induced=induced)
    for num_threads in (1, 2):
        assert count_scheduled(rows, choice.schedule, num_threads) == expected


@pytest.mark.shared
@pytest.mark.parametrize(
    ("text", "induced", "published"),
    [("triangle", "edge", 608_389), ("4-clique", "vertex", 2_077_903),
     ("diamond", "edge", 40_544_543)],
)  # fmt: skip
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
    assert best.schedule.is_paired


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
    assert "for v0 in range(bounds[chunk], bounds[chunk + 1]):" in python
    compile(python, "<loops>", "exec")
    small = as_rows(nx.cycle_graph(6))
    lines, python = explain_count(small, "6-cycle")
    assert lines[-1].endswith(": nothing is compiled for it")
    assert python == ""
    assert explain_count(small, "house") == (
        ["house: from few sums over the graph, without its matches"], ""
    )  # fmt: skip


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
        count_scheduled(rows, choice.schedule, progress=Told(is_impatient=True))
    began = time.perf_counter()  # and now it is compiled
    with pytest.raises(KeyboardInterrupt):
        count_scheduled(rows, choice.schedule, progress=Told(is_impatient=True))
    assert time.perf_counter() - began < 30
