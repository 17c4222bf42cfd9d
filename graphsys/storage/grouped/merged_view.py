"""A store whose partitions are seen in groups, or all as one."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.types import EdgeType, number_dtype
from graphsys.graph.csr import COLUMNS, Csr
from graphsys.storage.reader import GraphReader
from graphsys.storage.views import EdgeBucket, empty_bucket


class GroupedGraph(GraphReader):
    """A graph whose partitions are seen in groups, each read as one partition.

    Nodes are numbered group by group, and partition by partition within a group; rows of an
    index keep the stored graph's numbers of neighbors. What is read is copied, where the
    store has more than one piece of it; a bucket holds its edges in the order of the
    groups' pieces.

    Args:
        stored: The graph; closing this closes nothing.
        groups: Partitions of every group, of each node type; each stands in one of them.

    Attributes:
        stored: The graph as it lies on disk.
    """

    def __init__(
        self, stored: GraphReader, groups: Mapping[str, Sequence[Sequence[int]]]
    ) -> None:
        vars(self).update(vars(stored))
        self.stored = stored
        self._kept = None  # nodes are in another order here
        self._groups = groups

    def close(self) -> None:
        """Do nothing: the graph it was made of is open."""

    def members(self, node_type: str, part: int) -> Sequence[int]:
        """Return the stored partitions that a partition of this graph consists of."""
        self._check_part(node_type, part)
        return self._groups[node_type][part]

    def num_partitions(self, node_type: str) -> int:
        """Return the number of groups."""
        self._node_entry(node_type)
        return len(self._groups[node_type])

    def offsets(self, node_type: str) -> npt.NDArray[np.int64]:
        """Return where the nodes of each group begin, int64 ``[P + 1]``."""
        sizes = np.diff(self.stored.offsets(node_type))
        totals = [sizes[list(group)].sum() for group in self._groups[node_type]]
        return np.cumsum([0, *totals], dtype=np.int64)

    def nodes(self, node_type: str, part: int) -> pa.Table:
        """Return the node table of a group."""
        parts = self.members(node_type, part)
        return pa.concat_tables([self.stored.nodes(node_type, k) for k in parts])

    def features(self, node_type: str, part: int, name: str) -> npt.NDArray[Any] | pa.Array:
        """Return the features of a group."""
        parts = self.members(node_type, part)
        pieces = [self.stored.features(node_type, k, name) for k in parts]
        if isinstance(pieces[0], pa.Array):
            return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
        return _concatenated(pieces)

    def feature_rows(self, node_type: str, part: int, name: str) -> tuple[Any, None]:
        """Return the features of a group, and None: rows are not shared."""
        return self.features(node_type, part, name), None

    def bucket_counts(
        self, edge_type: EdgeType | str, split: str | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the edges of every bucket, int64 ``[P, Q]``."""
        entry = self._edge_entry(edge_type)
        counts = self.stored.bucket_counts(edge_type, split)
        src, dst = self._groups[entry.src_type], self._groups[entry.dst_type]
        return np.array(
            [[counts[np.ix_(list(i), list(j))].sum() for j in dst] for i in src],
            dtype=np.int64,
        )

    def bucket(
        self, edge_type: EdgeType | str, i: int, j: int, split: str | None = None
    ) -> EdgeBucket:
        """Return the edges between two groups."""
        entry = self._edge_entry(edge_type)
        rows, columns = self.members(entry.src_type, i), self.members(entry.dst_type, j)
        first_src = self._local_begins(entry.src_type, rows)
        first_dst = self._local_begins(entry.dst_type, columns)
        kind = number_dtype(
            int(
                max(
                    *np.diff(self.offsets(entry.src_type)),
                    *np.diff(self.offsets(entry.dst_type)),
                )
            )
        )
        counts = self.stored.bucket_counts(edge_type, split)
        found = [pair for pair in self._pairs(edge_type, i, j) if counts[pair]]
        if not found:
            return empty_bucket(entry)
        if len(rows) == len(columns) == 1:
            return self.stored.bucket(edge_type, rows[0], columns[0], split)
        src, dst, pieces = [], [], []
        for bucket in found:
            piece = self.stored.bucket(edge_type, *bucket, split)
            src.append(piece.src + np.asarray(first_src[bucket[0]], kind))
            dst.append(piece.dst + np.asarray(first_dst[bucket[1]], kind))
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
        """Return None: rows are read group by group."""

    def _pairs(self, edge_type: EdgeType | str, i: int, j: int) -> list[tuple[int, int]]:
        """List the stored buckets whose edges are those between two groups."""
        entry = self._edge_entry(edge_type)
        rows, columns = self.members(entry.src_type, i), self.members(entry.dst_type, j)
        return [(a, b) for a in rows for b in columns]

    def _local_begins(self, node_type: str, parts: Sequence[int]) -> dict[int, int]:
        """Return where the nodes of each partition of a group begin in it."""
        sizes = np.diff(self.stored.offsets(node_type))[list(parts)]
        return dict(zip(parts, (np.cumsum(sizes) - sizes).tolist(), strict=True))

    def _index(self, edge_type: EdgeType | str, direction: str, part: int) -> Csr:
        entry = self._edge_entry(edge_type)
        own = entry.src_type if direction == "out" else entry.dst_type
        read = self.stored.out_index if direction == "out" else self.stored.in_index
        pieces = [read(edge_type, k) for k in self.members(own, part)]
        if len(pieces) == 1:
            return pieces[0]
        begins = np.cumsum([0, *(len(piece.indices) for piece in pieces)])
        kind = number_dtype(int(begins[-1]) + 1)
        indptr = [
            piece.indptr[:-1] + begin.astype(kind)
            for piece, begin in zip(pieces, begins, strict=False)
        ]
        others = ("indices", *COLUMNS, "edge")
        return Csr(
            indptr=_concatenated([*indptr, begins[-1:].astype(kind)]),
            **{name: _joined_column(pieces, name) for name in others},
        )


class JoinedGraph(GroupedGraph):
    """A graph whose node types each have one partition; numbers are the graph's own.

    Args:
        stored: The graph; closing this closes nothing.
    """

    def __init__(self, stored: GraphReader) -> None:
        parts = {name: range(stored.num_partitions(name)) for name in stored.node_types}
        super().__init__(stored, {name: [every] for name, every in parts.items()})


def stored_graph(graph: GraphReader) -> GraphReader:
    """Return a graph as it lies on disk."""
    return graph.stored if isinstance(graph, GroupedGraph) else graph


def _joined_column(pieces: Sequence[EdgeBucket | Csr], name: str) -> Any:
    """Return a column of all pieces, or None; empty pieces may lack it."""
    full = [piece for piece in pieces if len(_numbers(piece))] or list(pieces)
    columns = [getattr(piece, name) for piece in full]
    return None if columns[0] is None else _concatenated(columns)


def _numbers(piece: EdgeBucket | Csr) -> npt.NDArray[Any]:
    return piece.src if isinstance(piece, EdgeBucket) else piece.indices


def _concatenated(pieces: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
