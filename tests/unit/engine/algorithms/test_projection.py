"""One side of bipartite graphs, against NetworkX."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphsys as gs
from graphsys.core.errors import ConfigError, InvalidGraphError, UnknownNameError
from graphsys.core.types import EdgeType
from graphsys.engine.topology import Topology
from tests.matrix.oracles import ORACLES
from tests.stores import edge_chunk, make_store
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs
from tests.unit.engine.algorithms.test_flow import in_two_parts


@settings(max_examples=60)
@given(graph=small_graphs(), order=st.integers(0, 2))
def test_pairs_are_those_of_networkx(graph: SmallGraph, order: int) -> None:
    graph = in_two_parts(graph)
    done = gs.algorithms.bipartite_projection(graph.topology(order))
    ORACLES["bipartite_projection"](graph, done, {})
    again = gs.algorithms.bipartite_projection(graph.topology(order + 1), num_threads=1)
    assert again.table.equals(done.table)


def test_each_side_has_its_own_pairs() -> None:
    graph = Topology.from_edges([0, 0, 1, 1, 2], [3, 4, 3, 4, 4], num_nodes=5)
    cases: list[tuple[int, dict[str, Any]]] = [
        (0, {}),
        (0, {"threshold": 2}),
        (0, {"top_k": 1}),
        (1, {}),
    ]
    found = [
        gs.algorithms.bipartite_projection(graph, side=side, **given).table.to_pylist()
        for side, given in cases
    ]
    assert [[(r["id"], r["other"], r["value"]) for r in rows] for rows in found] == [
        [(0, 1, 2.0), (0, 2, 1.0), (1, 2, 1.0)],
        [(0, 1, 2.0)],
        [(0, 1, 2.0), (1, 0, 2.0), (2, 0, 1.0)],
        [(3, 4, 2.0)],
    ]


def shop(folder: Path) -> gs.Graph:
    """Make a store of users who bought items, of which one belongs to the other."""
    make_store(
        folder,
        edge_chunk(
            [(1, 7), (1, 8), (2, 8), (2, 7), (3, 8)], EdgeType("user", "buys", "item")
        ),
        edge_chunk([(7, 8)], EdgeType("item", "of", "item")),
    )
    return gs.open(folder)


def test_the_nodes_of_a_type_stay(tmp_path: Path) -> None:
    graph = shop(tmp_path / "shop")
    done = gs.algorithms.bipartite_projection(graph, node_type="user")
    rows = [(r["id"], r["other"], r["value"]) for r in done.table.to_pylist()]
    assert rows == [(1, 2, 2.0), (1, 3, 1.0), (2, 3, 1.0)]
    with pytest.raises(UnknownNameError, match="user"):
        gs.algorithms.bipartite_projection(graph, node_type="users")
    with pytest.raises(
        InvalidGraphError, match=r"odd number of nodes near .*; give node_type"
    ):
        gs.algorithms.bipartite_projection(graph)


def test_what_is_no_side_is_refused() -> None:
    graph = Topology.from_edges([0], [1], num_nodes=2)
    with pytest.raises(ConfigError, match="side is 2, expected 0 or 1"):
        gs.algorithms.bipartite_projection(graph, side=2)


def test_the_result_is_ingested_as_a_graph(tmp_path: Path) -> None:
    parts = nx.bipartite.random_graph(30, 40, 0.1, seed=2)
    src, dst = np.array(parts.edges).T
    graph = Topology.from_edges(src, dst, num_nodes=70)
    done = gs.algorithms.bipartite_projection(graph)
    table = done.table.rename_columns(["src", "dst", "weight"])
    gs.ingest(table, tmp_path / "made", undirected=True)
    assert gs.open(tmp_path / "made").num_edges == len(done) > 0
