"""Compressed rows in memory or in mapped files: what every algorithm reads."""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import InvalidGraphError
from graphsys.core.types import number_dtype
from graphsys.kernels.cpu.rows.csr import (
    CsrArrays,
    count_rows,
    stable_places,
    transpose_rows,
)

COLUMNS = ("weight", "relation", "time")
Array = npt.NDArray[Any]
Allocate = Callable[[int, Any], Array]
"""Makes an array of a length and a dtype, to be filled; may be backed by a file."""
_AT_A_TIME = 1 << 20


class Csr:
    """The neighbors of every node, row after row, each row sorted by neighbor.

    Rows follow one another (``indptr``), or have gaps between them (:meth:`with_gaps`):
    those of several files are mapped page by page beside each other, and at each border
    lies what means nothing. What reads ``begins`` and ``ends`` takes both, as sparse
    libraries do with CSR of four arrays beside that of three. All arrays are read-only
    views, as mapped files are: one machine code serves both.

    Args:
        indptr: Row offsets, uint32 or int64 ``[N + 1]``.
        indices: Numbers of the neighbors, uint32, or int64 from 2**32 nodes on ``[E]``.
        weight: Weights in row order ``[E]``, or None.
        relation: Relation codes in row order ``[E]``, or None.
        time: Times in row order, int64 ``[E]``, or None.
        edge: Position of each edge in the sequence of buckets (by source partition, then
            destination partition, then row), where edges have further columns, or None.
        files: Where arrays of entries lie in a file, if they do: ``FileColumn`` by name.

    Attributes:
        begins: Where each row begins in ``indices`` ``[N]``, ascending.
        ends: Where it ends ``[N]``.
        num_edges: Number of entries of all rows.
        columns: ``weight``, ``relation`` and ``time`` of the entries, those that there are.
        column_begins: Where each row begins in a column ``[N]``, by the column's name; in
            those that are left out rows begin where they do in ``indices``.
    """

    __slots__ = (
        "_indptr",
        "begins",
        "column_begins",
        "columns",
        "edge",
        "ends",
        "files",
        "indices",
        "num_edges",
    )

    def __init__(
        self,
        *,
        indptr: Array,
        indices: Array,
        weight: Array | None = None,
        relation: Array | None = None,
        time: Array | None = None,
        edge: Array | None = None,
        files: Any = None,
    ) -> None:
        self._indptr: Array | None = read_only(indptr)
        self.begins, self.ends = self._indptr[:-1], self._indptr[1:]
        self.indices, self.num_edges = read_only(indices), len(indices)
        given = {"weight": weight, "relation": relation, "time": time}
        self.columns: Mapping[str, Array] = {
            name: read_only(values) for name, values in given.items() if values is not None
        }
        self.column_begins: Mapping[str, Array] = {}
        self.edge = None if edge is None else read_only(edge)
        self.files: Mapping[str, Any] = files or {}

    @classmethod
    def with_gaps(
        cls,
        *,
        begins: Array,
        ends: Array,
        indices: Array,
        num_edges: int,
        columns: Mapping[str, Array] | None = None,
        column_begins: Mapping[str, Array] | None = None,
    ) -> "Csr":
        """Return rows that need not lie one behind the other; see the attributes."""
        rows = cls(indptr=begins[:0], indices=indices)
        rows._indptr, rows.num_edges = None, num_edges
        rows.begins, rows.ends = read_only(begins), read_only(ends)
        rows.columns, rows.column_begins = columns or {}, column_begins or {}
        return rows

    @property
    def indptr(self) -> Array:
        """Row offsets, uint32 or int64 ``[N + 1]``, of rows without gaps."""
        assert self._indptr is not None  # others are read by begins and ends
        return self._indptr

    @property
    def weight(self) -> Array | None:
        """Weights in row order ``[E]``, or None."""
        return self.columns.get("weight")

    @property
    def relation(self) -> Array | None:
        """Relation codes in row order ``[E]``, or None."""
        return self.columns.get("relation")

    @property
    def time(self) -> Array | None:
        """Times in row order, int64 ``[E]``, or None."""
        return self.columns.get("time")

    @property
    def num_nodes(self) -> int:
        """Number of rows."""
        return len(self.begins)

    @property
    def arrays(self) -> CsrArrays:
        """The rows as kernels take them."""
        return CsrArrays(self.begins, self.ends, self.indices)

    def with_indptr(self, indptr: Array) -> "Csr":
        """Return the same entries in other rows."""
        further: dict[str, Any] = {"edge": self.edge, "files": self.files, **self.columns}
        return Csr(indptr=indptr, indices=self.indices, **further)

    def degrees(self) -> npt.NDArray[np.int64]:
        """Return the length of every row, int64 ``[N]``."""
        lengths: npt.NDArray[np.int64] = np.subtract(self.ends, self.begins, dtype=np.int64)
        return lengths

    def degree(self, node: int) -> int:
        """Return the length of a row."""
        return int(self.ends[node]) - int(self.begins[node])

    def begins_of(self, column: str) -> Array:
        """Return where each row begins in a column ``[N]``."""
        return self.column_begins.get(column, self.begins)

    def runs(self, column: str = "") -> npt.NDArray[np.int64]:
        """Return bounds of rows between which no gap lies, int64 ``[R + 1]``.

        Args:
            column: In a column, whose gaps are elsewhere; by default in ``indices``.
        """
        begins, last = self.begins_of(column), max(self.num_nodes - 1, 0)
        found = [np.zeros(1, dtype=np.int64)]
        for low in range(0, last, _AT_A_TIME):
            high = min(low + _AT_A_TIME, last)
            lengths = self.ends[low:high] - self.begins[low:high]
            # A row that does not begin where the one before it ends has a gap in front.
            is_cut = begins[low + 1 : high + 1] - begins[low:high] != lengths
            found.append(np.flatnonzero(is_cut) + low + 1)
        if self.num_nodes:
            found.append(np.array([self.num_nodes]))
        return np.concatenate(found)

    def pieces(self, column: str) -> Iterator[tuple[int, Array]]:
        """Yield a column without its gaps: where each piece begins, and the piece."""
        values, begins = self.columns[column], self.begins_of(column)
        for low, high in pairwise(self.runs(column).tolist()):
            first, last = int(begins[low]), int(begins[high - 1])
            yield first, values[first : last + self.degree(high - 1)]

    def chunks(self, num_chunks: int = 256, align: int = 64) -> npt.NDArray[np.int64]:
        """Cut the rows into chunks of equal work: see :func:`cut_rows`."""
        end = int(self.ends[-1]) if self.num_nodes else 0
        return cut_rows(self.begins, end, num_chunks, align)


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view that kernels see as mapped files: one machine code serves both."""
    view = array.view()
    view.flags.writeable = False
    return view


def row_lengths(indptr: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the length of every row, int64 ``[N]``, from row offsets ``[N + 1]``."""
    wide = indptr.astype(np.int64, copy=False)
    lengths: npt.NDArray[np.int64] = wide[1:] - wide[:-1]
    return lengths


def csr_from_edges(
    src: npt.NDArray[Any], dst: npt.NDArray[Any], num_nodes: int, **columns: Any
) -> Csr:
    """Sort edges into rows by source; loops and repetitions stay.

    Args:
        src: Source of every edge, integers ``[E]`` from 0 to ``num_nodes - 1``.
        dst: Destination of every edge ``[E]``.
        num_nodes: Number of nodes.
        columns: ``weight``, ``relation`` or ``time`` of every edge ``[E]``, or None.

    Raises:
        InvalidGraphError: lengths differ, or a number is out of range.

    Complexity:
        O(E + N): two stable counting sorts.
    """
    src, dst = np.asarray(src), np.asarray(dst)
    _check_edges(src, dst, num_nodes)
    # Sorted by the less important key first: the second sort is stable and keeps that
    # order.
    by_dst = _stable_order(dst, num_nodes)
    order = by_dst[_stable_order(src[by_dst], num_nodes)]
    indptr = np.zeros(num_nodes + 1, dtype=offset_dtype(len(src)))
    count_rows(src, indptr)
    given = {name: np.asarray(c)[order] for name, c in columns.items() if c is not None}
    indices = dst[order].astype(number_dtype(num_nodes), copy=False)
    return Csr(indptr=indptr, indices=indices, **given)


def transpose(
    csr: Csr, num_columns: int | None = None, *, allocate: Allocate = np.empty
) -> Csr:
    """Return the rows of the other direction, with their columns.

    Args:
        csr: Rows.
        num_columns: Number of rows of the result; as many as ``csr`` has by default.
        allocate: Where arrays of all entries come from.

    Complexity:
        O(E + N).
    """
    num_columns = csr.num_nodes if num_columns is None else num_columns
    indptr = np.zeros(num_columns + 1, dtype=offset_dtype(csr.num_edges))
    count_rows(csr.indices, indptr)
    indices = allocate(csr.num_edges, number_dtype(csr.num_nodes))
    columns = csr.columns
    places = allocate(csr.num_edges if columns else 0, np.int64)
    transpose_rows(csr.indptr, csr.indices, indptr.copy(), indices, places)
    moved = {name: allocate(csr.num_edges, c.dtype) for name, c in columns.items()}
    for name, column in columns.items():
        np.take(column, places, out=moved[name], mode="clip")  # "raise" would buffer
    return Csr(indptr=indptr, indices=indices, **moved)


def _check_edges(src: npt.NDArray[Any], dst: npt.NDArray[Any], num_nodes: int) -> None:
    if src.shape != dst.shape or src.ndim != 1:
        raise InvalidGraphError(
            f"src and dst must be one-dimensional and equally long, got shapes {src.shape} "
            f"and {dst.shape}"
        )
    for name, numbers in (("src", src), ("dst", dst)):
        if numbers.dtype.kind not in "iu":
            raise InvalidGraphError(f"{name} must be integers, got {numbers.dtype}")
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= num_nodes):
            raise InvalidGraphError(
                f"{name} must lie in 0 to {num_nodes - 1}, got {numbers.min()} to "
                f"{numbers.max()}"
            )


def _stable_order(keys: npt.NDArray[Any], num_keys: int) -> npt.NDArray[np.int64]:
    cursor = np.zeros(num_keys + 1, dtype=np.int64)
    count_rows(keys, cursor)
    order = np.empty(len(keys), dtype=np.int64)
    stable_places(keys, cursor, order)
    return order


def offset_dtype(num_edges: int) -> type[np.uint32] | type[np.int64]:
    """Return the type of row offsets up to a number of entries."""
    return np.uint32 if num_edges < 2**32 else np.int64


def balanced_chunks(
    indptr: npt.NDArray[Any], num_chunks: int = 256, align: int = 64
) -> npt.NDArray[np.int64]:
    """Cut the rows of a compressed graph so that all chunks hold about as much work.

    Args:
        indptr: Row offsets ``[N + 1]``, from any first offset on.
        num_chunks: See :func:`cut_rows`.
        align: See :func:`cut_rows`.
    """
    return cut_rows(indptr[:-1], int(indptr[-1]), num_chunks, align)


def cut_rows(
    begins: npt.NDArray[Any], end: int, num_chunks: int = 256, align: int = 64
) -> npt.NDArray[np.int64]:
    """Cut rows so that all chunks hold about as much work.

    A row costs its entries and one more. Bounds are multiples of ``align``, so that two
    chunks never share a word of a bitmap.

    Args:
        begins: Where each row begins, ascending ``[N]``.
        end: Where the last one ends.
        num_chunks: How many chunks at most.
        align: Every bound but the last is a multiple of it.

    Returns:
        Strictly increasing bounds from 0 to N, int64 ``[C + 1]``; ``[0]`` without rows.
    """
    num_rows = len(begins)
    first = int(begins[0]) if num_rows else end
    blocks = np.arange(0, num_rows, align, dtype=np.int64)
    work = begins[blocks].astype(np.int64) - first + blocks
    total = end - first + num_rows
    shares = np.arange(1, num_chunks, dtype=np.int64) * total // max(num_chunks, 1)
    cuts = np.minimum(np.searchsorted(work, shares) * align, num_rows)
    bounds: npt.NDArray[np.int64] = np.unique(np.concatenate([[0], cuts, [num_rows]]))
    return bounds
