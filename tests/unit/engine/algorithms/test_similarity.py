import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.engine.algorithms import similarity
from graphsys.engine.algorithms.similarity import (
    adamic_adar,
    jaccard,
    resource_allocation,
)
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs

ALGORITHMS = [
    (jaccard, nx.jaccard_coefficient),
    (adamic_adar, nx.adamic_adar_index),
    (resource_allocation, nx.resource_allocation_index),
]
algorithms = st.sampled_from(ALGORITHMS)


def rows(result: Result) -> list[tuple[Any, Any, float]]:
    columns = (result.table[name].to_pylist() for name in ("id", "other", "value"))
    return list(zip(*columns, strict=True))


def all_scores(graph: SmallGraph, oracle: Any) -> dict[tuple[Any, Any], float]:
    pairs = itertools.permutations(sorted(graph.ids), 2)
    return {(u, v): score for u, v, score in oracle(graph.simple(), list(pairs))}


@settings(max_examples=40)
@given(graph=small_graphs(), algorithm=algorithms)
def test_given_pairs_score_as_in_networkx(graph: SmallGraph, algorithm: Any) -> None:
    ours, oracle = algorithm
    expected = all_scores(graph, oracle)
    found = rows(ours(graph.topology(), pairs=list(expected)))
    assert [(u, v) for u, v, _ in found] == list(expected)
    assert [s for _, _, s in found] == pytest.approx(list(expected.values()), abs=1e-10)


@settings(max_examples=40)
@given(graph=small_graphs(), algorithm=algorithms, threshold=st.sampled_from([0, 0.2, 0.9]))
def test_pairs_above_a_threshold(
    graph: SmallGraph, algorithm: Any, threshold: float
) -> None:
    ours, oracle = algorithm
    expected = {
        (u, v): score
        for (u, v), score in all_scores(graph, oracle).items()
        if u < v and score >= threshold and score > 0
    }
    found = rows(ours(graph.topology(), threshold=threshold))
    assert [(u, v) for u, v, _ in found] == sorted(expected)
    assert {(u, v): s for u, v, s in found} == pytest.approx(expected, abs=1e-10)


@settings(max_examples=40)
@given(graph=small_graphs(), algorithm=algorithms, top_k=st.integers(1, 4))
def test_the_best_of_every_node(graph: SmallGraph, algorithm: Any, top_k: int) -> None:
    ours, oracle = algorithm
    scores = all_scores(graph, oracle)
    expected: list[tuple[Any, Any, float]] = []
    for node in sorted(graph.ids):
        # rounded: the oracle's sums of equal terms differ in the last bits
        mine = [(-round(s, 9), v) for (u, v), s in scores.items() if u == node and s > 0]
        expected += [(node, v, -s) for s, v in sorted(mine)[:top_k]]
    found = rows(ours(graph.topology(order=3), top_k=top_k))
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    assert [row[2] for row in found] == pytest.approx([r[2] for r in expected], abs=1e-8)


@pytest.mark.parametrize("algorithm", [jaccard, adamic_adar, resource_allocation])
def test_threads_and_numbers_do_not_change_a_bit(algorithm: Any) -> None:
    graph = nx.barabasi_albert_graph(2000, 4, seed=1)
    edges = [(a, b, 1.0) for a, b in graph.edges]
    known = SmallGraph(list(range(2000)), edges, is_directed=False)
    one = algorithm(known.topology(), top_k=7, num_threads=1)
    assert one.table.equals(algorithm(known.topology(2), top_k=7, num_threads=3).table)


def test_long_rows_are_searched() -> None:
    graph = nx.star_graph(500)
    graph.add_edges_from([(501, 3), (501, 499), (501, 502)])
    known = SmallGraph(list(graph), [(a, b, 1.0) for a, b in graph.edges], False)
    assert rows(jaccard(known.topology(), pairs=[(0, 501)])) == [(0, 501, 2 / 501)]


def test_bad_parameters_are_named() -> None:
    topology = SmallGraph([1, 2], [(1, 2, 1.0)], False).topology()
    with pytest.raises(ConfigError, match="threshold is -1, expected a number >= 0"):
        jaccard(topology, threshold=-1)
    with pytest.raises(ConfigError, match="top_k is 0, expected a whole number >= 1"):
        adamic_adar(topology, top_k=0)
    with pytest.raises(ConfigError, match=r"is \(0\.5, None\), expected none with pairs"):
        jaccard(topology, pairs=[(1, 2)], threshold=0.5)
    with pytest.raises(UnknownNameError, match="7"):
        jaccard(topology, pairs=[(1, 7)])


def test_sums_over_the_longest_rows_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The unit is chosen so; where it is 2**-40, nothing changes."""
    assert similarity._unit_of(np.array([2.9e6]), 1 / np.log(2)) == 2.0**40
    for degree in (6e6, 1e9, 4e9):
        unit = similarity._unit_of(np.array([degree]), 1 / np.log(2))
        assert degree * unit / np.log(2) < 2**62
    leaf = np.arange(2, 1002)
    ends = (
        np.concatenate([np.zeros(1000, int), np.ones(1000, int)]),
        np.concatenate([leaf] * 2),
    )
    topology = Topology.from_edges(*ends, 1002, directed=False)
    monkeypatch.setattr(similarity, "_SUM_BITS", 40)  # as if rows were as long as above
    expected = 1000 / np.log(2)
    scored = adamic_adar(topology, pairs=[(0, 1)]).table["value"].to_pylist()
    assert scored == pytest.approx([expected], rel=1e-6)
    found = adamic_adar(topology, top_k=1).table
    best = {
        (a, b): v
        for a, b, v in zip(*(found[n].to_pylist() for n in found.column_names), strict=True)
    }
    assert best[0, 1] == pytest.approx(expected, rel=1e-6)


def test_a_node_with_itself_and_a_neighbor_of_degree_1_is_refused() -> None:
    graph = SmallGraph(["hub", "a", "b", "c"], [("hub", n, 1.0) for n in "abc"], False)
    with pytest.raises(ZeroDivisionError):
        list(nx.adamic_adar_index(graph.simple(), [("hub", "hub")]))
    with pytest.raises(ConfigError, match=r"degree 1.*leave the pair hub=hub out"):
        adamic_adar(graph.topology(), pairs=[("a", "b"), ("hub", "hub")])
    # what the error advises
    rest = [("a", "b"), ("hub", "a"), ("a", "a")]
    found = adamic_adar(graph.topology(), pairs=rest).table["value"].to_pylist()
    expected = [p for _, _, p in nx.adamic_adar_index(graph.simple(), rest)]
    assert found == pytest.approx(expected, abs=1e-9)
    assert jaccard(graph.topology(), pairs=[("hub", "hub")]).table["value"][0].as_py() == 1
