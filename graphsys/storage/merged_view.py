"""A store seen as if every node type had one partition."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.types import EdgeType, number_dtype
from graphsys.storage.reader import Graph
from graphsys.storage.views import EdgeBucket, Index


class JoinedGraph(Graph):
    """A graph whose partitions, buckets and indexes are each read as one.

    Numbers of nodes are the graph's own, which are partition-major. What is read is
    copied, where the store has more than one piece of it; the one bucket of an edge type
    holds its edges in the order of the store's buckets.

    Args:
        stored: The graph; closing this closes nothing.

    Attributes:
        stored: The graph as it lies on disk.
    """

    def __init__(self, stored: Graph) -> None:
        vars(self).update(vars(stored))
        self.stored = stored

    def close(self) -> None:
        """Do nothing: the graph it was made of is open."""

    def num_partitions(self, node_type: str) -> int:
        """Return 1."""
        self._node_entry(node_type)
        return 1

    def offsets(self, node_type: str) -> npt.NDArray[np.int64]:
        """Return 0 and the number of nodes."""
        return np.array([0, self.num_nodes_of(node_type)], dtype=np.int64)

    def nodes(self, node_type: str, part: int) -> pa.Table:
        """Return the node table of a type."""
        self._check_part(node_type, part)
        parts = range(self.stored.num_partitions(node_type))
        return pa.concat_tables([self.stored.nodes(node_type, k) for k in parts])

    def features(self, node_type: str, part: int, name: str) -> npt.NDArray[Any] | pa.Array:
        """Return the features of a type."""
        self._check_part(node_type, part)
        parts = range(self.stored.num_partitions(node_type))
        pieces = [self.stored.features(node_type, k, name) for k in parts]
        if isinstance(pieces[0], pa.Array):
            return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
        return _concatenated(pieces)

    def feature_rows(self, node_type: str, part: int, name: str) -> tuple[Any, None]:
        """Return the features of a type, and None: rows are not shared."""
        return self.features(node_type, part, name), None

    def bucket_counts(
        self, edge_type: EdgeType | str, split: str | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the edges of the one bucket, int64 ``[1, 1]``."""
        total = self.stored.bucket_counts(edge_type, split).sum()
        return np.array([[total]], dtype=np.int64)

    def bucket(
        self, edge_type: EdgeType | str, i: int, j: int, split: str | None = None
    ) -> EdgeBucket:
        """Return all edges of a type."""
        entry = self._edge_entry(edge_type)
        self._check_part(entry.src_type, i)
        self._check_part(entry.dst_type, j)
        first_src = self.stored.offsets(entry.src_type)
        first_dst = self.stored.offsets(entry.dst_type)
        kind = number_dtype(int(max(first_src[-1], first_dst[-1])))
        found = self.stored.buckets(edge_type, split)
        if len(first_src) == len(first_dst) == 2 or not found:
            return self.stored.bucket(edge_type, 0, 0, split)
        src, dst, pieces = [], [], []
        for bucket in found:
            piece = self.stored.bucket(edge_type, *bucket, split)
            src.append(piece.src + first_src[bucket[0]].astype(kind))
            dst.append(piece.dst + first_dst[bucket[1]].astype(kind))
            pieces.append(piece)
        return EdgeBucket(
            src=_concatenated(src),
            dst=_concatenated(dst),
            relation=_joined_column(pieces, "relation"),
            weight=_joined_column(pieces, "weight"),
            time=_joined_column(pieces, "time"),
            columns={
                name: pa.concat_arrays([piece.columns[name] for piece in pieces])
                for name in pieces[0].columns
            },
        )

    def joined_index(self, edge_type: EdgeType | str, direction: str) -> None:
        """Return None: there is one partition."""

    def _index(self, edge_type: EdgeType | str, direction: str, part: int) -> Index:
        entry = self._edge_entry(edge_type)
        own = entry.src_type if direction == "out" else entry.dst_type
        self._check_part(own, part)
        read = self.stored.out_index if direction == "out" else self.stored.in_index
        parts = range(self.stored.num_partitions(own))
        pieces = [read(edge_type, k) for k in parts]
        if len(pieces) == 1:
            return pieces[0]
        begins = np.cumsum([0, *(len(piece.indices) for piece in pieces)])
        kind = number_dtype(int(begins[-1]) + 1)
        indptr = [
            piece.indptr[:-1] + begin.astype(kind)
            for piece, begin in zip(pieces, begins, strict=False)
        ]
        others = {field.name for field in fields(Index)} - {"indptr", "file"}
        return Index(
            indptr=_concatenated([*indptr, begins[-1:].astype(kind)]),
            **{name: _joined_column(pieces, name) for name in others},
        )


def stored_graph(graph: Graph) -> Graph:
    """Return a graph as it lies on disk."""
    return graph.stored if isinstance(graph, JoinedGraph) else graph


def _joined_column(pieces: Sequence[EdgeBucket | Index], name: str) -> Any:
    """Return a column of all pieces, or None; empty pieces may lack it."""
    full = [piece for piece in pieces if len(_numbers(piece))] or list(pieces)
    columns = [getattr(piece, name) for piece in full]
    return None if columns[0] is None else _concatenated(columns)


def _numbers(piece: EdgeBucket | Index) -> npt.NDArray[Any]:
    return piece.src if isinstance(piece, EdgeBucket) else piece.indices


def _concatenated(pieces: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
