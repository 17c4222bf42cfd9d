"""Rows of neighbors by metapath: from a node type over another one and back."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from graphsys.core.errors import ConfigError
from graphsys.graph.csr import Csr
from graphsys.sampling.adjacency import PartitionedCsr, address, message_rows
from graphsys.storage.reader import GraphReader

_AND_BACK = ":and_back"


def metapath_rows(
    graph: GraphReader, node_type: str, edge_types: Sequence[str] = ()
) -> list[PartitionedCsr]:
    """Return the nodes of a type that share a neighbor, for each relation of the type.

    Papers of one author are such, and papers on one subject. Each is listed once however
    many neighbors are shared, and none beside itself. The rows are made in memory, 4 bytes
    an entry (8 where there are 2**32 nodes); many where a node has many neighbors. A
    relation within the type has the rows that it has.

    Raises:
        UnknownNameError: There is no such edge type.
        ConfigError: No edges have ends of that node type.
    """
    found = [
        rows if rows.neighbor_type == node_type else _there_and_back(rows)
        for rows in message_rows(graph, edge_types)
        if rows.node_type == node_type
    ]
    if not found:
        raise ConfigError(
            f"no edges of those chosen have ends of node type {node_type!r}, from which "
            "metapaths lead and back"
        )
    return found


def _there_and_back(rows: PartitionedCsr) -> PartitionedCsr:
    indices = np.concatenate([index.indices.astype(np.int64) for index in rows.indexes])
    indptr = np.concatenate([[0], np.cumsum(rows.degrees())])
    shape = (rows.num_nodes, rows.num_neighbors)
    there = sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape)
    both = (there @ there.T).tocsr()
    both.setdiag(0)
    both.eliminate_zeros()
    both.sort_indices()
    dtype = np.uint32 if rows.num_nodes < 2**32 else np.int64
    indexes = []
    for begin, end in zip(rows.offsets[:-1], rows.offsets[1:], strict=True):
        ends = both.indptr[begin : end + 1].astype(np.int64)
        part = both.indices[ends[0] : ends[-1]].astype(dtype)
        indexes.append(Csr(indptr=ends - ends[0], indices=part))
    table, wide = address(indexes, ())
    return dataclasses.replace(
        rows,
        name=rows.name + _AND_BACK,
        neighbor_type=rows.node_type,
        num_neighbors=rows.num_nodes,
        first_entry=np.cumsum([0, *(len(it.indices) for it in indexes)], dtype=np.int64),
        table=table,
        wide=wide,
        indexes=tuple(indexes),
        weights=(),
    )
