"""Batches of whole graphs, from a store of many small ones: none is cut, none is sampled.

The nodes of some types have the id of their graph in the column ``graph_id``; graphs are
nodes of a type of their own, which has no edges. A batch is of some graphs, all of their
nodes and all edges between those: its rows are block-diagonal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError, InvalidGraphError, cut_list
from graphsys.core.types import EdgeType, number_dtype
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.message_graph import Layer, MessageGraph
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.graph.csr import Csr
from graphsys.sampling import Block, NeighborSampler, Sample
from graphsys.sampling.adjacency import PartitionedCsr, address
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
GRAPH_ID: Final = "graph_id"


class GraphBatches(MessageGraph):
    """The relations within graphs, and which nodes each graph has.

    A sample has one layer: every relation over all nodes of the graphs, and under
    :func:`membership` of a node type the nodes of each graph.

    Raises:
        ConfigError: No node type has a column ``graph_id``, or chosen edges have ends
            without one.
        InvalidGraphError: Nodes are of no graph, or edges lead from one to another.
        UnknownNameError: A graph that nodes are of is not there.
    """

    def __init__(self, graph: GraphReader, config: GnnConfig, node_type: str) -> None:
        super().__init__(graph, config, node_type)
        entries = graph.manifest.node_types
        self._members = [
            kind for kind in graph.node_types if GRAPH_ID in entries[kind].columns
        ]
        if not self._members:
            raise ConfigError(
                f"task {config.task}: no node type of {graph.path} has a column "
                f"{GRAPH_ID!r}, expected one with the id of the {node_type!r} that a node "
                "is of; ingest it"
            )
        graph_of = {kind: _graphs_of(graph, kind, node_type) for kind in self._members}
        self.rows = tuple(rows for rows in self.rows if self._is_within(rows, node_type))
        for rows in self.rows:
            _require_within(graph, rows, graph_of)
        self.relations = [(r.name, r.node_type, r.neighbor_type) for r in self.rows]
        size = graph.num_nodes_of(node_type)
        nodes = [_member_rows(kind, node_type, graph_of[kind], size) for kind in graph_of]
        # of a graph its nodes, and then of those their neighbors, which adds none
        self.sampler = NeighborSampler([*self.rows, *nodes], [-1, -1], seed=config.seed)

    def sample(self, seeds: Mapping[str, Ints], *, epoch: int, batch: int) -> Sample:
        """Return all nodes of graphs, and the edges between them.

        Raises:
            UnknownNameError: A seed is not in the graph.
        """
        found = self.sampler.sample(seeds, epoch=epoch, batch=batch)
        return replace(found, layers=found.layers[:1])

    def wrap(self, layers: Sequence[Mapping[str, Block]]) -> list[Layer]:
        """Return the rows of relations, and of graphs their nodes, without copying them."""
        names = [membership(kind) for kind in self._members]
        return [
            rows | {n: SparseRows.of(layer[n], is_prefix=False) for n in names}
            for rows, layer in zip(super().wrap(layers), layers, strict=True)
        ]

    @property
    def input_types(self) -> list[str]:
        """Node types that a network reads: those of which graphs are made."""
        return list(self._members)

    def degrees(self) -> dict[str, Ints]:
        """Return how many messages reach every node, by type."""
        found = {
            kind: np.zeros(self.sampler.sizes[kind], np.int64) for kind in self._members
        }
        for rows in self.rows:
            found[rows.node_type] += rows.degrees()
        return found

    def _is_within(self, rows: PartitionedCsr, node_type: str) -> bool:
        """Return whether edges are between nodes of graphs; refuse others if chosen."""
        is_within = {rows.node_type, rows.neighbor_type} <= {*self._members}
        if not is_within and self.config.edge_types:
            raise ConfigError(
                f"edge_types: got {rows.name}, an end of which has no column {GRAPH_ID!r}; "
                f"expected edges between nodes of a {node_type!r}"
            )
        return is_within


def membership(node_type: str) -> str:
    """Return what a layer calls the rows of graphs, which list their nodes of a type."""
    return f"{node_type}:{GRAPH_ID}"


def _graphs_of(graph: GraphReader, kind: str, node_type: str) -> Ints:
    """Return the number of every node's graph, int64 ``[N]``."""
    column = graph.node_column(kind, GRAPH_ID)
    if column.null_count:
        odd = np.flatnonzero(column.is_null().to_numpy())
        ids = graph.ids_of(kind, odd[:6]).to_pylist()
        raise InvalidGraphError(
            f"{len(odd)} of {len(column)} nodes of type {kind!r} have no {GRAPH_ID!r}: "
            f"{cut_list(ids)}{' ...' if len(odd) > 6 else ''}; name their {node_type!r}"
        )
    is_number = pa.types.is_integer(column.type)
    found = graph.lookup(node_type, column.to_numpy() if is_number else column.to_pylist())
    return found.astype(np.int64)


def _require_within(
    graph: GraphReader, rows: PartitionedCsr, graph_of: Mapping[str, Ints]
) -> None:
    """Check that no edge leads from one graph to another."""
    own, other = graph_of[rows.node_type], graph_of[rows.neighbor_type]
    first = 0
    for index in rows.indexes:
        indptr: Any = index.indptr
        degrees = np.diff(indptr.astype(np.int64))
        nodes = np.repeat(np.arange(first, first + len(degrees)), degrees)
        odd = np.flatnonzero(own[nodes] != other[index.indices])
        if len(odd):
            node, neighbor = nodes[odd[0]], int(index.indices[odd[0]])
            ids = [
                graph.ids_of(kind, [number])[0].as_py()
                for kind, number in (
                    (rows.node_type, node),
                    (rows.neighbor_type, neighbor),
                )
            ]
            raise InvalidGraphError(
                f"{len(odd)} edges {rows.name!r} lead from graph to graph, as between "
                f"nodes {ids[0]} and {ids[1]}; expected one {GRAPH_ID!r} at both ends, or "
                "choose other edge_types"
            )
        first += len(degrees)


def _member_rows(
    kind: str, node_type: str, graph_of: Ints, num_graphs: int
) -> PartitionedCsr:
    """Return the rows of graphs that list their nodes, in memory."""
    sizes = np.bincount(graph_of, minlength=num_graphs)
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    nodes = np.argsort(graph_of, kind="stable").astype(number_dtype(len(graph_of)))
    index = Csr(indptr=indptr, indices=nodes)
    table, wide = address((index,), ())
    return PartitionedCsr(
        name=membership(kind),
        edge_type=EdgeType(kind, GRAPH_ID, node_type),
        node_type=node_type,
        neighbor_type=kind,
        offsets=np.array([0, num_graphs], dtype=np.int64),
        num_neighbors=len(graph_of),
        first_entry=np.array([0, len(nodes)], dtype=np.int64),
        table=table,
        wide=wide,
        indexes=(index,),
        weights=(),
    )
