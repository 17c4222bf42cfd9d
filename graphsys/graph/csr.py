"""Compressed rows in memory: what every algorithm reads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import InvalidGraphError
from graphsys.core.types import number_dtype
from graphsys.graph.rows import Rows
from graphsys.kernels.cpu.rows.csr import (
    count_rows,
    stable_places,
    transpose_rows,
)

COLUMNS = ("weight", "relation", "time")
Allocate = Callable[[int, Any], npt.NDArray[Any]]
"""Makes an array of a length and a dtype, to be filled; may be backed by a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Csr:
    """The neighbors of every node, row after row, each row sorted by neighbor.

    Attributes:
        indptr: Row offsets, uint32 or int64 ``[N + 1]``.
        indices: Numbers of the neighbors, uint32 (int64 from 2**32 nodes on) ``[E]``.
        weight: Weights in row order ``[E]``, or None.
        relation: Relation codes in row order ``[E]``, or None.
        time: Times in row order, int64 ``[E]``, or None.
    """

    indptr: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    weight: npt.NDArray[Any] | None = None
    relation: npt.NDArray[Any] | None = None
    time: npt.NDArray[Any] | None = None

    @property
    def num_nodes(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        """Number of entries."""
        return len(self.indices)

    @property
    def rows(self) -> Rows:
        """The same rows by where each begins and ends; read-only views."""
        indptr = read_only(self.indptr)
        return Rows(
            begins=indptr[:-1],
            ends=indptr[1:],
            indices=read_only(self.indices),
            num_edges=self.num_edges,
            columns={name: read_only(values) for name, values in self.columns().items()},
        )

    def degrees(self) -> npt.NDArray[np.int64]:
        """Return the length of every row, int64 ``[N]``."""
        return row_lengths(self.indptr)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the columns that there are, by name."""
        values = {name: getattr(self, name) for name in COLUMNS}
        return {name: value for name, value in values.items() if value is not None}


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
    columns = csr.columns()
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
