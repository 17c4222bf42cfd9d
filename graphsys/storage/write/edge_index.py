"""The index of the other direction, built from the buckets as they were written.

A partition's rows need all buckets that end in it (for a symmetric index, then all that
start in it): in the order of the buckets their edges are sorted by neighbor already.
Only the rows themselves are held; the buckets are mapped.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.threads import num_cores, run_parallel
from graphsys.core.types import number_dtype
from graphsys.kernels.cpu.rows import incoming as kernels
from graphsys.storage.scratch import Scratch
from graphsys.storage.views import EdgeBucket, array_of

Columns = dict[str, npt.NDArray[Any]]
ReadBucket = Callable[[int, int], EdgeBucket]


@dataclass(frozen=True, slots=True)
class _Piece:
    """One bucket, seen from the rows."""

    row: npt.NDArray[Any]
    neighbor: npt.NDArray[Any]
    columns: Columns
    base: int
    skip_loops: bool


class IncomingIndex:
    """Builds the in-index of an edge type, or the symmetric one.

    Args:
        read: Reads the bucket (i, j) of the indexed split.
        counts: Edges of every bucket, int64 ``[P_src, P_dst]``.
        src_offsets: Partition offsets of the source type.
        dst_offsets: Partition offsets of the destination type.
        scratch: Where the rows are held.
        is_symmetric: Whether rows hold the neighbors of both directions.
        dtypes: Columns to repeat in row order; "edge" is each edge's position in the
            sequence of buckets.
    """

    def __init__(
        self,
        read: ReadBucket,
        counts: npt.NDArray[np.int64],
        src_offsets: npt.NDArray[np.int64],
        dst_offsets: npt.NDArray[np.int64],
        scratch: Scratch,
        *,
        is_symmetric: bool,
        dtypes: dict[str, np.dtype[Any]],
    ) -> None:
        self._read, self._counts, self._scratch = read, counts, scratch
        self._src_offsets, self._dst_offsets = src_offsets, dst_offsets
        self._is_symmetric, self._dtypes = is_symmetric, dtypes
        firsts = np.cumsum([0, *counts.ravel().tolist()])[:-1]
        self._first_edges = firsts.reshape(counts.shape)

    def build(self, part: int) -> pa.RecordBatch:
        """Build the rows of a destination partition; see :func:`index_batch`."""
        num_rows = int(self._dst_offsets[part + 1] - self._dst_offsets[part])
        pieces = self._pieces(part)
        counts = self._count(pieces, num_rows)
        total = int(counts.sum())
        indices = self._scratch.array(total, number_dtype(int(self._src_offsets[-1])))
        columns = {
            name: self._scratch.array(total, dtype) for name, dtype in self._dtypes.items()
        }
        cursor = self._scratch.array(num_rows, np.int64)
        ends = self._scratch.array(num_rows, np.int64)
        np.cumsum(counts, out=ends)
        np.subtract(ends, counts, out=cursor)
        # By entries: a range of rows of its own for each thread, of like work, and no
        # atomics.
        shares = np.searchsorted(ends, total * np.arange(1, num_cores()) // num_cores())
        bounds = [0, *shares.tolist(), num_rows]
        for piece in pieces:
            self._scatter(piece, bounds, cursor, indices, columns)
        return index_batch(counts, indices, columns, self._scratch)

    def _pieces(self, part: int) -> list[_Piece]:
        num_src, num_dst = self._counts.shape
        pieces = [
            self._piece(i, part, by_dst=True)
            for i in range(num_src)
            if self._counts[i, part]
        ]
        if self._is_symmetric:
            pieces += [
                self._piece(part, j, by_dst=False)
                for j in range(num_dst)
                if self._counts[part, j]
            ]
        return pieces

    def _piece(self, i: int, j: int, *, by_dst: bool) -> _Piece:
        bucket = self._read(i, j)
        first = int(self._first_edges[i, j])
        columns = {
            name: np.arange(first, first + bucket.num_edges)
            if name == "edge"
            else getattr(bucket, name)
            for name in self._dtypes
        }
        if by_dst:
            # a self-loop appears once in a symmetric row: where it is seen from its source
            skip = self._is_symmetric and i == j
            base = int(self._src_offsets[i])
            return _Piece(bucket.dst, bucket.src, columns, base, skip)
        return _Piece(bucket.src, bucket.dst, columns, int(self._dst_offsets[j]), False)

    def _count(self, pieces: list[_Piece], num_rows: int) -> npt.NDArray[np.int64]:
        threads = num_cores()
        # Counters of each thread's own, then added: no atomics on the rows of hubs.
        partial = [self._scratch.zeros(num_rows, np.int64) for _ in range(threads)]
        for piece in pieces:
            cuts = np.linspace(0, len(piece.row), threads + 1).astype(np.int64)

            def count(t: int, piece: _Piece = piece, cuts: Any = cuts) -> None:
                own = slice(cuts[t], cuts[t + 1])
                kernels.count_edges(
                    piece.row[own], piece.neighbor[own], piece.skip_loops, partial[t]
                )

            run_parallel(count, range(threads))
        for other in partial[1:]:
            partial[0] += other
        return partial[0]

    def _scatter(
        self,
        piece: _Piece,
        bounds: list[int],
        cursor: npt.NDArray[np.int64],
        indices: npt.NDArray[Any],
        columns: Columns,
    ) -> None:
        places = self._scratch.array(len(piece.row) if columns else 0, np.int64)

        def scatter(t: int) -> None:
            kernels.scatter_edges(
                piece.row,
                piece.neighbor,
                piece.skip_loops,
                piece.base,
                bounds[t],
                bounds[t + 1],
                cursor,
                indices,
                places,
            )

        run_parallel(scatter, range(len(bounds) - 1))
        run_parallel(
            lambda name: kernels.scatter_column(piece.columns[name], places, columns[name]),
            columns,
        )


def index_batch(
    counts: npt.NDArray[np.int64],
    neighbor: npt.NDArray[Any],
    columns: Columns,
    scratch: Scratch,
) -> pa.RecordBatch:
    """Build the one-row record batch of an index file.

    Args:
        counts: Edges of every row, int64 ``[N]``.
        neighbor: Numbers of the neighbors, row after row ``[E]``.
        columns: Columns in the same order.
        scratch: Where what is made of them is held.
    """
    length = int(counts.sum())
    indptr = scratch.array(len(counts) + 1, np.uint32 if length < 2**32 else np.int64)
    indptr[0] = 0
    np.cumsum(counts, out=indptr[1:])
    # Places of most graphs fit in half of the bytes.
    if "edge" in columns and (not length or int(columns["edge"].max()) < 2**32):
        edge = scratch.array(length, np.uint32)
        edge[:] = columns["edge"]
        columns = {**columns, "edge": edge}
    arrays = {"indptr": indptr, "indices": neighbor, **columns}
    lists = [
        pa.LargeListArray.from_arrays(
            array_of(np.array([0, len(values)])), array_of(values)
        )
        for values in arrays.values()
    ]
    return pa.record_batch(lists, list(arrays))


def index_fingerprint(checksums: list[str]) -> str:
    """Return what an index was built from: a hash of its buckets' checksums."""
    return "sha256:" + hashlib.sha256("\n".join(checksums).encode()).hexdigest()
