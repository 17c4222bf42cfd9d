"""What patterns with labels and arrows ask of a graph besides its simple rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError, unknown_name
from graphsys.datasets.temporary import GraphLike, graph_of
from graphsys.mining.frequent.labeled_rows import labeled_edges, labels_of_nodes
from graphsys.mining.pattern import Pattern
from graphsys.mining.plan_cache import LABELED
from graphsys.mining.simple_graph import NOTHING, SimpleGraph, TaskMemory
from graphsys.storage.node_numbers import NodeNumbers
from graphsys.storage.reader import GraphReader

Numbers = npt.NDArray[Any]
FORTH, BACK = 1, 2
"""Bits of an entry: an edge leads from the row's node to the neighbor, or back. Those of
the pattern's k-th label of edges are the same, 2 k + 2 places higher."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabeledGraph:
    """A simple graph, and of its entries and nodes what a pattern asks for.

    Attributes:
        rows: The graph without direction and labels.
        kinds: Bits of every entry of the rows, int64 ``[2 M]``; empty if the pattern has
            neither arrows nor labels of edges.
        labels: Place of every node's label in :attr:`Pattern.node_labels`, -1 for another,
            int64 ``[N]``; empty if the pattern has none.
    """

    rows: SimpleGraph
    kinds: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls,
        graph: "LabeledGraph | SimpleGraph | GraphLike",
        pattern: Pattern,
        labels: str | None = None,
        memory: int | str | None = None,
        kept: TaskMemory = NOTHING,
    ) -> "LabeledGraph":
        """Read what a pattern asks for.

        Args:
            graph: A store, its path, or an object that holds a graph; of a plain pattern
                a :class:`SimpleGraph` too. One that was made for the pattern stays.
            pattern: The pattern.
            labels: ``type`` for the types of nodes, or the name of a column of nodes; by
                default the types where there are several, else the column ``label`` if
                there is one.
            memory: Budget of the process, as for :meth:`SimpleGraph.of`.
            kept: What it must have room for besides rows and what patterns ask for.

        Raises:
            BudgetError: what is kept of nodes and edges does not fit.
            ConfigError: arrows in a graph without direction; a :class:`SimpleGraph`, which
                has neither labels nor directions.
            UnknownNameError: no such column, or no node or edge of such a label.
        """
        none = np.empty(0, dtype=np.int64)
        if isinstance(graph, LabeledGraph):  # made for this pattern
            return graph
        if pattern.is_plain or isinstance(graph, SimpleGraph):
            if pattern.links or any(pattern.labels):
                raise ConfigError(
                    "a SimpleGraph has no labels and directions, which the pattern asks "
                    "for; pass the graph itself"
                )
            return cls(rows=SimpleGraph.of(graph, memory, kept), kinds=none, labels=none)
        graph = graph_of(graph)
        rows = SimpleGraph.of(graph, memory, LABELED | kept)
        kinds = _kinds(graph, rows, pattern) if pattern.links else none
        codes = _labels(graph, rows, pattern, labels) if pattern.node_labels else none
        return cls(rows=rows, kinds=kinds, labels=codes)


def _kinds(
    graph: GraphReader, rows: SimpleGraph, pattern: Pattern
) -> npt.NDArray[np.int64]:
    """Return the bits of every entry."""
    has_arrows = any(link.is_arrow for link in pattern.links)
    if has_arrows and not graph.is_directed:
        raise ConfigError(
            "the pattern has arrows, but no edge of the graph has a direction; write a-b "
            "for a>b"
        )
    src, dst, codes, names = labeled_edges(graph, NodeNumbers.of(graph), True)
    number = np.empty(rows.num_nodes, dtype=np.int64)
    number[rows.nodes] = np.arange(rows.num_nodes)
    src, dst = number[src], number[dst]
    owners = np.repeat(np.arange(rows.num_nodes), np.diff(rows.indptr))
    keys = owners * rows.num_nodes + rows.indices  # ascending, as rows are
    kinds = np.zeros(len(keys), dtype=np.int64)
    chosen: list[tuple[int, Any]] = [(0, src != dst)]  # loops are in no row
    for k, label in enumerate(pattern.edge_labels):
        if label not in names:
            raise unknown_name("label of edges", label, names)
        chosen.append((2 * k + 2, (src != dst) & (codes == names.index(label))))
    for shift, some in chosen:
        forth = np.searchsorted(keys, src[some] * rows.num_nodes + dst[some])
        back = np.searchsorted(keys, dst[some] * rows.num_nodes + src[some])
        kinds[forth] |= FORTH << shift
        kinds[back] |= BACK << shift
    return kinds


def _labels(
    graph: GraphReader, rows: SimpleGraph, pattern: Pattern, labels: str | None
) -> npt.NDArray[np.int64]:
    """Return the place of every node's label among the pattern's."""
    codes, names = labels_of_nodes(graph, labels)
    places = np.full(len(names) + 1, -1, dtype=np.int64)  # the last is of no label
    for k, label in enumerate(pattern.node_labels):
        if label not in names:
            raise unknown_name("label of nodes", label, names)
        places[names.index(label)] = k
    return places[codes][rows.nodes]
