"""All pairs of distances against SciPy and NetworkX."""

from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.errors import ConfigError, InvalidGraphError
from graphsys.engine.native.all_pairs import apsp
from tests.unit.engine.native.small_graphs import SmallGraph, small_graphs
from tests.unit.engine.programs.runs import Stored


def distances(result: Any) -> dict[tuple[Any, Any], float | None]:
    source, target, value = (
        result.table[name].to_pylist() for name in ("id", "other", "value")
    )
    pairs = list(zip(source, target, strict=True))
    assert len(set(pairs)) == len(pairs)
    return dict(zip(pairs, value, strict=True))


def expected_distances(graph: SmallGraph) -> dict[tuple[Any, Any], float | None]:
    found = dict(nx.all_pairs_dijkstra_path_length(graph.networkx()))
    return {(a, b): found[a].get(b) for a in graph.ids for b in graph.ids}


@settings(max_examples=25)
@given(graph=small_graphs(max_nodes=8), order=st.integers(0, 2))
def test_distances_are_those_of_networkx(graph: SmallGraph, order: int) -> None:
    result = apsp(graph.topology(order), num_threads=1)
    assert distances(result) == expected_distances(graph)
    assert len(result) == len(graph.ids) ** 2


def test_layouts_and_threads_do_not_matter(stored: Stored) -> None:
    expected = expected_distances(stored.graph)
    for name in ("whole", "three parts by degree"):
        for threads in (1, 2):
            assert distances(apsp(stored.stores[name], num_threads=threads)) == expected


def test_what_would_not_fit_is_refused() -> None:
    graph = SmallGraph([1, 2, 3], [(1, 2, 1.0)], True).topology()
    with pytest.raises(ConfigError, match=r"3\^2 = 9 rows .* limit of 2 nodes"):
        apsp(graph, max_nodes=2)
    with pytest.raises(InvalidGraphError, match="weights of 0 or more"):
        apsp(SmallGraph([1, 2], [(1, 2, -1.0)], True).topology())
