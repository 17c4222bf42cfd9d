import sys
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.errors import ConfigError, InvalidGraphError, UnknownNameError
from graphsys.engine.algorithms.betweenness import betweenness
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values

module = sys.modules[betweenness.__module__]


def oracle(graph: SmallGraph, **options: Any) -> dict[Any, float]:
    """Networkx on the graph without repetitions."""
    simple = (nx.DiGraph if graph.is_directed else nx.Graph)(graph.networkx())
    return nx.betweenness_centrality(simple, **options)  # type: ignore[no-any-return]


@settings(max_examples=80)
@given(
    graph=small_graphs(),
    order=st.integers(0, 3),
    normalized=st.booleans(),
    threads=st.integers(1, 2),
    limits=st.sampled_from([(1 << 20, 1 << 14), (-1, 1 << 14), (-1, -1)]),
)
def test_scores_are_those_of_networkx(
    graph: SmallGraph,
    order: int,
    normalized: bool,
    threads: int,
    limits: tuple[int, int],
) -> None:
    """A source a thread; all threads on one source; these waking for every level."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SMALL_EDGES", limits[0])
        patch.setattr(module, "SERIAL_EDGES", limits[1])
        result = betweenness(
            graph.topology(order), normalized=normalized, num_threads=threads
        )
    expected = oracle(graph, normalized=normalized)
    assert values(result) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(max_examples=80)
@given(graph=small_graphs(), order=st.integers(0, 2), threads=st.integers(1, 2))
def test_lengths_count_as_in_networkx(graph: SmallGraph, order: int, threads: int) -> None:
    simple = nx.DiGraph() if graph.is_directed else nx.Graph()
    simple.add_nodes_from(graph.ids)
    for a, b, w in sorted(graph.edges, key=lambda edge: -edge[2]):
        simple.add_edge(a, b, weight=w)
    found = betweenness(graph.topology(order), weighted=True, num_threads=threads)
    expected = nx.betweenness_centrality(simple, weight="weight")
    assert values(found) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        ([0.0, 1.0], "1 weights are not, the first 0.0"),
        ([np.nan, -1.0], "2 weights are not, the first nan"),
        ([np.inf, 1.0], "1 weights are not, the first inf"),
        ([1e308, 1e308], "add up to more than float64 holds"),
        ([1.0, 1e-300], "small ones vanish beside large ones"),
    ],
)
def test_lengths_that_do_not_add_up_are_refused(weight: list[float], said: str) -> None:
    graph = Topology.from_edges([0, 1], [1, 2], 3, weight=np.array(weight))
    with pytest.raises(InvalidGraphError, match=said):
        betweenness(graph, weighted=True)
    assert betweenness(graph, normalized=False).table["value"].to_pylist() == [0, 1, 0]


def test_lengths_of_a_sample_are_scaled_as_in_networkx() -> None:
    whole = nx.gnp_random_graph(60, 0.1, seed=3)
    edges = [(a, b, 1.0 + (a * b) % 5) for a, b in whole.edges]
    whole.add_weighted_edges_from(edges)
    graph = SmallGraph(list(range(60)), edges, is_directed=False)
    found = betweenness(graph.topology(), weighted=True, sources=[3, 1, 4, 15])
    expected = nx.betweenness_centrality_subset(
        whole, [3, 1, 4, 15], list(range(60)), weight="weight"
    )
    others = [node for node in range(60) if node not in (3, 1, 4, 15)]
    scale = 2 / (4 * 58)  # both ways, of four sources' paths to 58 others
    assert [values(found)[k] for k in others] == pytest.approx(
        [expected[k] * scale for k in others]
    )
    assert sum(expected.values()) > 0
    assert betweenness(graph.topology(), weighted=True, samples=7).supersteps == 7


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
def test_levels_are_summed_from_the_cheaper_side(
    directed: bool,
    normalized: bool,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SMALL_EDGES", 0)
    monkeypatch.setattr(module, "SERIAL_EDGES", 50)
    src, dst = rng.zipf(1.5, (2, 3000)) % 400
    graph = (nx.DiGraph if directed else nx.Graph)()
    graph.add_nodes_from(range(400))
    graph.add_edges_from(zip(src.tolist(), dst.tolist(), strict=True))
    topology = Topology.from_edges(src, dst, 400, directed=directed)
    expected = nx.betweenness_centrality(graph, normalized=normalized)
    for threads in (1, 2, 3):
        result = betweenness(topology, normalized=normalized, num_threads=threads)
        assert values(result) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(max_examples=40)
@given(
    graph=small_graphs().filter(lambda graph: len(graph.ids) > 2),
    normalized=st.booleans(),
    data=st.data(),
)
def test_chosen_sources_scale_as_in_networkx(
    graph: SmallGraph, normalized: bool, data: st.DataObject
) -> None:
    chosen = data.draw(
        st.lists(st.sampled_from(graph.ids), min_size=2, max_size=5, unique=True)
    )
    simple = (nx.DiGraph if graph.is_directed else nx.Graph)(graph.networkx())
    sums = sample_of_networkx(simple, chosen, normalized)
    result = betweenness(graph.topology(), sources=chosen, normalized=normalized)
    assert values(result) == pytest.approx(sums, rel=1e-9, abs=1e-12)


def sample_of_networkx(graph: Any, chosen: list[Any], normalized: bool) -> dict[Any, float]:
    """Networkx's sums and scaling with these sources instead of random ones."""
    from networkx.algorithms.centrality import betweenness as nx_module

    scores = dict.fromkeys(graph, 0.0)
    for source in chosen:
        order, before, sigma, _ = nx_module._single_source_shortest_path_basic(
            graph, source
        )
        scores, _ = nx_module._accumulate_basic(scores, order, before, sigma, source)
    return nx_module._rescale(  # type: ignore[no-any-return]
        scores,
        len(graph),
        normalized=normalized,
        directed=graph.is_directed(),
        endpoints=False,
        sampled_nodes=None if len(chosen) == len(graph) else chosen,
    )


def ring(order: int = 0) -> Topology:
    ids = np.random.default_rng(order).permutation(30)
    number = np.argsort(ids)
    src, dst = number[np.arange(30)], number[(np.arange(30) * 7 + 1) % 30]
    return Topology.from_edges(src, dst, 30, ids=ids)


def test_samples_depend_on_seed_but_not_on_numbers() -> None:
    one, other = (values(betweenness(ring(order), samples=5, seed=1)) for order in (1, 2))
    assert one == pytest.approx(other, rel=1e-12)
    assert one != values(betweenness(ring(1), samples=5, seed=2))


def test_the_only_source_is_unknown() -> None:
    topology = Topology.from_edges(np.array([0, 1]), np.array([1, 2]), 3)
    found = values(betweenness(topology, sources=[0], normalized=False))
    assert found == {0: None, 1: 2.0, 2: 0.0}


@pytest.mark.parametrize("samples", [0, -1, 31])
def test_samples_out_of_range_are_refused(samples: int) -> None:
    with pytest.raises(ConfigError, match=rf"samples must lie in 1 to 30.*got {samples}"):
        betweenness(ring(), samples=samples)


def test_samples_and_sources_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="exclude each other"):
        betweenness(ring(), samples=3, sources=[1])


def test_unknown_source_is_named() -> None:
    with pytest.raises(UnknownNameError, match="1234"):
        betweenness(ring(), sources=[1234])


@pytest.mark.parametrize("most", [0, 1 << 20])
def test_more_paths_than_can_be_counted_are_refused(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1100 diamonds in a row: 2**1100 paths; 1000 of them are still counted."""
    monkeypatch.setattr(module, "SMALL_EDGES", most)
    for diamonds in (1000, 1100):
        k = 3 * np.arange(diamonds)
        src, dst = (
            np.concatenate([k, k, k + 1, k + 2]),
            np.concatenate([k + 1, k + 2, k + 3, k + 3]),
        )
        topology = Topology.from_edges(src, dst, 3 * diamonds + 1)
        if diamonds == 1100:
            with pytest.raises(InvalidGraphError, match="shortest paths between them"):
                betweenness(topology, sources=[0], normalized=False)
            continue
        result = betweenness(topology, sources=[0], normalized=False)
        assert values(result)[3] == pytest.approx((3 * diamonds - 3) * 3 * diamonds)
