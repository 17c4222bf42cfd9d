"""What a profile is told of mining: how far sets and loops go for each first node."""

import re
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pytest

from graphsys.core.events import recording
from graphsys.mining import Pattern, count
from graphsys.mining.compiler.choose import choose_schedule, tasks_of
from graphsys.mining.compiler.emit import kernel_text
from graphsys.mining.labeled_graph import LabeledGraph
from graphsys.mining.loops import count_by_loops
from tests.unit.mining.compiler import test_loops as plain
from tests.unit.mining.test_counting import as_rows

if TYPE_CHECKING:
    from graphsys.core.row_trace import RowVisit

PATTERNS = ["6-cycle", "a-b b-c c-a a-d d-e e-f f-a", "a-b a-c a-d a-e b-f", "6-clique"]


def looked_at(text: str, num_sets: int, graph: LabeledGraph) -> tuple[Any, int]:
    """Run a text without numba; return what it tells, and what its sets and loops did."""
    seen = [0]

    def noted(function: Any) -> Any:
        def call(array: Any, begin: int, end: int, *others: Any) -> Any:
            seen[0] += int(end) - int(begin)
            return function(array, begin, end, *others)

        return call

    own = text[text.index("def count") :]
    own = re.sub(r"\n( +)(v[1-9]\d* = .*)", r"\n\1\2\n\1seen[0] += 1", own)
    names = {
        "np": np,
        "has": plain.has,
        "place_of": plain.place_of,
        "seen": seen,
        "add_wide": plain.add_wide,
        "intersect": noted(plain.intersect),
        "intersect_size": noted(plain.intersect_size),
        "subtract": noted(plain.subtract),
        "atomic_add": lambda *_: 0,
        "claimed_rows": lambda bounds, _: range(bounds[0], bounds[-1]),
    }
    exec(compile(own, "<loops>", "exec"), names)
    rows = graph.rows
    sets = np.empty((1, max(num_sets, 1), rows.num_nodes), dtype=rows.indices.dtype)
    trips = np.zeros(rows.num_nodes, dtype=np.int64)
    bounds = np.array([0, rows.num_nodes])
    arguments = rows.indptr, rows.indices, graph.kinds, graph.labels, bounds, None
    names["count"](0, *arguments, sets, trips, np.zeros((1, 1), dtype=object))
    return trips, seen[0]


@pytest.mark.parametrize("text", PATTERNS)
def test_trips_are_what_sets_and_loops_look_at(text: str) -> None:
    rows = as_rows(nx.gnp_random_graph(11, 0.6, seed=3))
    graph = plain.plain(rows)
    choice = choose_schedule(rows, Pattern.of(text), is_induced=False)
    expected, seen = looked_at(*kernel_text(tasks_of([choice]), is_told=True), graph)
    assert expected.sum() == seen > 0

    visits: list[RowVisit] = []
    with recording({"rows": visits.extend}) as told:
        found = count_by_loops(graph, [choice])
    assert found == count_by_loops(graph, [choice])
    (visit,) = visits
    assert visit.is_exact
    assert np.array_equal(visit.lengths, expected)
    (edges,) = [event for event in told.events if event.name == "edges"]
    assert edges.value == seen
    # the second run, for the observer, is no launch
    assert sum(event.name == "kernel_launches" for event in told.events) == 1


def test_a_census_is_told_by_the_rows_of_neighbors() -> None:
    graph = nx.star_graph(5)
    visits: list[RowVisit] = []
    with recording({"rows": visits.extend}):
        count(as_rows(graph), "4-clique")
    assert visits
    for visit in visits:
        assert not visit.is_exact
        assert sorted(visit.lengths.tolist()) == [5] * 6  # a leaf reads the hub's row


def test_nobody_is_told_without_a_profile() -> None:
    rows = as_rows(nx.complete_graph(5))
    assert count(rows, "triangle") == 10
