"""Strongly connected components, natively, against NetworkX and SciPy."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import graphsys as gs
from graphsys.engine.algorithms import get
from graphsys.engine.algorithms.strong_components import scc
from graphsys.engine.programs.eigenvector import has_cycle
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values
from tests.unit.engine.programs.runs import LAYOUTS, Stored, random_graph, run, store

Ints = npt.NDArray[np.int64]


def expected(src: Ints, dst: Ints, num: int) -> tuple[int, Ints]:
    """Return the number of components and the smallest node of each node's, by SciPy."""
    matrix = coo_array((np.ones(len(src)), (src, dst)), shape=(num, num)).tocsr()
    count, labels = connected_components(matrix, connection="strong")
    smallest = np.full(count, num)
    np.minimum.at(smallest, labels, np.arange(num))
    return int(count), smallest[labels]


@settings(max_examples=80)
@given(graph=small_graphs(), order=st.integers(0, 2))
def test_components_are_those_of_the_program(graph: SmallGraph, order: int) -> None:
    found, made = scc(graph.topology(order)), run("scc", graph.topology(order))
    assert found.table.equals(made.table)
    assert found.result == made.result
    if graph.is_directed and graph.ids:
        parts = nx.strongly_connected_components(graph.networkx())
        assert found.result == len(list(parts))
        net = nx.DiGraph(graph.networkx())
        assert has_cycle(graph.topology(order)) == (not nx.is_directed_acyclic_graph(net))


@pytest.mark.parametrize("density", [0.3, 1.0, 1.5, 4.0])
def test_components_are_those_of_scipy(density: float) -> None:
    rng, num = np.random.default_rng(3), 20_000
    src, dst = rng.integers(0, num, (2, int(density * num)))
    found = scc(Topology.from_edges(src, dst, num))
    count, labels = expected(src, dst, num)
    assert found.result == count
    np.testing.assert_array_equal(found.to_numpy()["value"], labels)


def test_a_chain_is_walked_once() -> None:
    # the program takes 10,010 supersteps over all nodes of it
    num = 20_001
    chain = Topology.from_edges(np.arange(num - 1), np.arange(1, num), num)
    found = gs.algorithms.scc(chain)
    assert (found.result, found.supersteps) == (num, 1)
    assert found.to_numpy()["value"].tolist() == list(range(num))
    ring = Topology.from_edges(np.arange(num), (np.arange(num) + 1) % num, num)
    assert set(gs.algorithms.scc(ring).to_numpy()["value"].tolist()) == {0}


def test_a_search_as_deep_as_the_graph_needs_no_recursion() -> None:
    num = 1_000_000
    src, dst = np.arange(num), (np.arange(num) + 1) % num
    assert scc(Topology.from_edges(src, dst, num)).result == 1


@pytest.mark.parametrize("is_directed", [True, False])
def test_layouts_do_not_matter(tmp_path: Path, is_directed: bool) -> None:
    graph = random_graph(is_directed=is_directed, is_text=is_directed)
    stored: Stored = store(tmp_path, graph)
    found = [values(get("scc")(stored.stores[name])) for name in LAYOUTS]
    assert all(it == found[0] for it in found)
    assert found[0] == values(run("scc", graph))


@pytest.mark.parametrize("partitions", [1, 4])
def test_a_streamed_store_gives_the_same(tmp_path: Path, partitions: int) -> None:
    rng, num = np.random.default_rng(0), 120_000
    src, dst = rng.integers(0, num, (2, 180_000))
    gs.ingest(np.stack([src, dst], 1), tmp_path / "g", partitions=partitions)
    whole: Any = get("scc").prepare(str(tmp_path / "g"))
    assert whole.implementation == "native"
    least = min(whole.choice.needs.values())
    tight: Any = get("scc").prepare(str(tmp_path / "g"), memory=least + (1 << 20))
    found = tight.run()
    known, labels = expected(src, dst, num)
    # nodes without edges are not in the store
    assert found.result == known - (num - len(found))
    ids, value = (found.table[name].to_numpy() for name in ("id", "value"))
    np.testing.assert_array_equal(value, labels[ids])


def test_the_program_stays_as_an_example() -> None:
    edges = Topology.from_edges(np.array([0, 1, 1]), np.array([1, 0, 2]), 3)
    done = gs.algorithms.scc(edges, implementation="program")
    assert done.supersteps > 1
    assert done.table["value"].to_pylist() == [0, 0, 2]
