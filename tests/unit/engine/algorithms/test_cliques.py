"""Maximal cliques, against NetworkX and a published number."""

import re
import tracemalloc
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphsys as gs
from graphsys.core.errors import BudgetError, ConfigError
from graphsys.datasets import open_source
from graphsys.engine.algorithms import ALGORITHMS
from graphsys.engine.memory_plan import Facts
from graphsys.engine.topology import Topology
from tests.matrix.oracles import ORACLES
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs


@settings(max_examples=80)
@given(graph=small_graphs(), order=st.integers(0, 2))
def test_cliques_are_those_of_networkx(graph: SmallGraph, order: int) -> None:
    done = gs.algorithms.maximal_cliques(graph.topology(order))
    ORACLES["maximal_cliques"](graph, done, {})
    again = gs.algorithms.maximal_cliques(graph.topology(order + 1), num_threads=1)
    assert again.table.equals(done.table)


@pytest.mark.parametrize(("num_nodes", "chance"), [(70, 0.8), (200, 0.3), (300, 0.02)])
def test_dense_graphs_of_more_nodes_than_a_word_has_bits(
    num_nodes: int, chance: float
) -> None:
    drawn = nx.gnp_random_graph(num_nodes, chance, seed=4)
    edges = [(a, b, 1.0) for a, b in drawn.edges]
    graph = SmallGraph(list(range(num_nodes)), edges, is_directed=False)
    done = gs.algorithms.maximal_cliques(graph.topology(1))
    ORACLES["maximal_cliques"](graph, done, {})


def test_moon_and_mosers_graph_has_most() -> None:
    parts = nx.complete_multipartite_graph(*[3] * 7)
    src, dst = np.array(parts.edges).T
    graph = Topology.from_edges(src, dst, num_nodes=21, directed=False)
    assert gs.algorithms.maximal_cliques(graph).result == 3**7


@pytest.mark.parametrize("fewest", [1, 2, 3, 4])
def test_smaller_ones_are_left_out(fewest: int) -> None:
    graph = nx.karate_club_graph()
    src, dst = np.array(graph.edges).T
    rows = Topology.from_edges(src, dst, num_nodes=36, directed=False)
    found = gs.algorithms.maximal_cliques(rows, min_size=fewest)
    alone = [[34], [35]]
    expected = [it for it in [*nx.find_cliques(graph), *alone] if len(it) >= fewest]
    assert (found.result, len(found)) == (len(expected), sum(map(len, expected)))


def test_wiki_vote_has_as_many_as_published(shared_data: Path, tmp_path: Path) -> None:
    # Eppstein, Strash, "Listing all maximal cliques in large sparse real-world graphs",
    # SEA 2011
    graph = open_source(shared_data / "wiki-Vote/wiki-Vote.txt")
    gs.ingest(graph, tmp_path / "graph", partitions=4)
    found = gs.algorithms.maximal_cliques(tmp_path / "graph")
    sizes = np.bincount(found.table["value"])
    assert (found.result, sizes[0]) == (459_002, 17)


def test_a_budget_is_kept_or_refused_with_one_that_works(tmp_path: Path) -> None:
    edges = nx.gnp_random_graph(130, 0.6, seed=1).edges
    gs.ingest(np.array(edges), tmp_path / "graph", undirected=True)
    graph = gs.open(tmp_path / "graph")
    with pytest.raises(BudgetError) as refusal:
        gs.algorithms.maximal_cliques(graph, memory="100MB")
    (advised,) = re.findall(r"give --memory (\w+)", str(refusal.value))
    done = gs.algorithms.maximal_cliques(graph, memory=advised)
    assert done.table.equals(gs.algorithms.maximal_cliques(graph).table)
    assert len(done) > 10_000


@pytest.mark.parametrize("number", [0, -1, 1.5, True])
def test_sizes_that_are_none_are_refused(number: float) -> None:
    graph = Topology.from_edges([0], [1], num_nodes=2)
    with pytest.raises(ConfigError, match=r"min_size is .*, expected a whole number >= 1"):
        gs.algorithms.maximal_cliques(graph, min_size=number)  # type: ignore[arg-type]


def test_what_a_search_holds_is_charged() -> None:
    # nodes of one clique, each with leaves of its own: wide rows of bits
    size, leaves = 600, 40
    src, dst = np.triu_indices(size, 1)
    ends = np.repeat(np.arange(size), leaves), size + np.arange(size * leaves)
    rows = np.concatenate([src, ends[0]]), np.concatenate([dst, ends[1]])
    graph = Topology.from_edges(*rows, size + size * leaves, directed=False)
    facts = Facts(topology=graph, options={}, threads=1, is_stated=True)
    needed = ALGORITHMS["maximal_cliques"].needs
    assert needed is not None
    graph.simple()
    tracemalloc.start()
    try:
        gs.algorithms.maximal_cliques.native(graph, num_threads=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    need = needed(facts)
    assert 0.5 * (need.bytes + need.entries) < peak < 1.05 * (need.bytes + need.entries)
