"""Random small graphs as the oracles and as the engine hold them."""

from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from graphsys.engine.result import Result
from graphsys.engine.topology import Topology


@dataclass(frozen=True)
class SmallGraph:
    """Edges between ids, with loops, repetitions and isolated nodes.

    Attributes:
        ids: Ids in the order of the numbers.
        edges: Pairs of ids and a weight.
        is_directed: Whether the edges have a direction.
    """

    ids: list[Any]
    edges: list[tuple[Any, Any, float]]
    is_directed: bool

    def topology(self, order: int = 0) -> Topology:
        """Number the nodes; another ``order`` gives other numbers to the same graph."""
        ids = self.ids
        if order:
            places = np.random.default_rng(order).permutation(len(ids))
            ids = [ids[place] for place in places]
        number = {node: place for place, node in enumerate(ids)}
        src = np.array([number[a] for a, _, _ in self.edges], dtype=np.int64)
        dst = np.array([number[b] for _, b, _ in self.edges], dtype=np.int64)
        return Topology.from_edges(
            src,
            dst,
            len(ids),
            weight=np.array([w for _, _, w in self.edges], dtype=np.float64),
            directed=self.is_directed,
            ids=ids if ids else np.empty(0, dtype=np.int64),
        )

    def networkx(self) -> Any:
        """The same, repetitions included."""
        graph = nx.MultiDiGraph() if self.is_directed else nx.MultiGraph()
        graph.add_nodes_from(self.ids)
        graph.add_weighted_edges_from(self.edges)
        return graph

    def simple(self) -> Any:
        """No direction, loops and repetitions."""
        graph = nx.Graph()
        graph.add_nodes_from(self.ids)
        graph.add_edges_from((a, b) for a, b, _ in self.edges if a != b)
        return graph


def values(result: Result, column: str = "value") -> dict[Any, Any]:
    """Return a column by id."""
    return dict(
        zip(result.table["id"].to_pylist(), result.table[column].to_pylist(), strict=True)
    )


@st.composite
def small_graphs(draw: st.DrawFn, max_nodes: int = 14) -> SmallGraph:
    """Graphs of up to ``max_nodes`` nodes, sparse and dense, ids integers or text."""
    num = draw(st.integers(0, max_nodes))
    numbers = draw(
        st.lists(
            st.integers(0, 10**6) | st.just(2**63 - 1),
            min_size=num,
            max_size=num,
            unique=True,
        )
    )
    ids = [f"n{n}" for n in numbers] if draw(st.booleans()) else numbers
    edges: list[tuple[Any, Any, float]] = []
    if ids:
        node = st.sampled_from(ids)
        weight = st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.5])
        edges = draw(st.lists(st.tuples(node, node, weight), max_size=4 * num))
    return SmallGraph(ids=ids, edges=edges, is_directed=draw(st.booleans()))


def communities(result: Result) -> list[set[Any]]:
    """Return the nodes of each value, as of communities and components."""
    found: dict[Any, set[Any]] = {}
    for node, label in values(result).items():
        found.setdefault(label, set()).add(node)
    return list(found.values())
