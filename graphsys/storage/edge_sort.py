"""Sorted rows: edges grouped by ranges of rows, each range sorted in memory.

A range holds so few edges that several can be sorted at the same time within the budget.
Ranges never cross a partition, and their bounds follow the degrees, so hubs do not make
a range large unless one node alone does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.threads import map_in_order
from graphsys.core.types import number_dtype
from graphsys.graph.sort import sort_keys
from graphsys.kernels.cpu import ingest as kernels
from graphsys.storage.scratch import Scratch, Segments

Columns = dict[str, npt.NDArray[Any]]

_MAX_RANGE_EDGES = 4 << 20
_MIN_RANGE_EDGES = 1 << 16
_MAX_RANGES = 1 << 12
_SORT_BYTES = 64  # keys, unpacked ends and a copy of them, for each edge under way
_UNDER_WAY = 4


@dataclass(frozen=True, slots=True)
class RangePlan:
    """How the rows of a node type are cut.

    Attributes:
        bounds: First row of every range, and the number of rows, int64 ``[R + 1]``.
        parts: Partition of every range, int64 ``[R]``.
    """

    bounds: npt.NDArray[np.int64]
    parts: npt.NDArray[np.int64]

    @staticmethod
    def make(
        offsets: npt.NDArray[np.int64],
        degrees: npt.NDArray[np.uint32],
        *,
        column_bytes: int,
        budget_bytes: int,
    ) -> "RangePlan":
        """Cut every partition by cumulative degree.

        Args:
            offsets: Partition offsets of the row type, int64 ``[P + 1]``.
            degrees: Upper bound of the edges of every row, uint32 ``[N]``.
            column_bytes: Bytes of the columns that travel with an edge.
            budget_bytes: The memory budget.
        """
        per_edge = (_SORT_BYTES + 3 * column_bytes) * _UNDER_WAY
        limit = int(np.clip(budget_bytes // per_edge, _MIN_RANGE_EDGES, _MAX_RANGE_EDGES))
        total = int(degrees.sum(dtype=np.int64))
        limit = max(limit, total // (_MAX_RANGES // 2))
        bounds, parts = [0], []
        for part, (begin, end) in enumerate(zip(offsets[:-1], offsets[1:], strict=True)):
            ends = np.cumsum(degrees[begin:end], dtype=np.int64)
            pieces = -(-int(ends[-1]) // limit) if len(ends) else 0
            targets = limit * np.arange(1, pieces)
            cuts = np.unique(np.searchsorted(ends, targets, side="left") + 1 + begin)
            cuts = cuts[(cuts > begin) & (cuts < end)]
            bounds.extend([*cuts.tolist(), int(end)])
            parts.extend([part] * (len(cuts) + 1))
        return RangePlan(np.asarray(bounds, np.int64), np.asarray(parts, np.int64))

    @property
    def num_ranges(self) -> int:
        """Number of ranges, at least one for every partition."""
        return len(self.parts)


@dataclass(frozen=True, slots=True)
class SortedRange:
    """The edges of one range.

    Attributes:
        row: Rows relative to the partition, uint32 or int64 ``[n]``.
        neighbour: Numbers of the other ends ``[n]``.
        columns: Columns in the same order.
        duplicates: Edges beyond the first of each (row, neighbour, relation), as found.
        self_loops: Edges from a node to itself, as found.
    """

    row: npt.NDArray[Any]
    neighbour: npt.NDArray[Any]
    columns: Columns
    duplicates: int
    self_loops: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """What is removed on the way.

    Attributes:
        same_type: Whether rows and neighbours are of one node type (else no self-loops).
        drop_self_loops: Remove edges from a node to itself.
        coalesce: Keep one edge of each (row, neighbour, relation) and sum the weights.
    """

    same_type: bool
    drop_self_loops: bool = False
    coalesce: bool = False


class RowSorter:
    """Takes edges in any order and gives them back sorted by (row, neighbour, relation).

    Args:
        scratch: Where the edges wait.
        name: For the files' names.
        plan: Ranges of the rows.
        offsets: Partition offsets of the row type.
        num_neighbours: Nodes of the neighbours' type.
        dtypes: Columns that travel with the edges.
    """

    def __init__(
        self,
        scratch: Scratch,
        name: str,
        plan: RangePlan,
        offsets: npt.NDArray[np.int64],
        num_neighbours: int,
        dtypes: dict[str, np.dtype[Any]],
    ) -> None:
        self.plan = plan
        self.dtypes = dtypes
        self._offsets = offsets
        self._num_neighbours = num_neighbours
        ends = {
            "row": number_dtype(int(offsets[-1])),
            "neighbour": number_dtype(num_neighbours),
        }
        self._segments = Segments(scratch, name, {**ends, **dtypes}, plan.num_ranges)

    def group(
        self, row: npt.NDArray[Any], neighbour: npt.NDArray[Any], columns: Columns
    ) -> tuple[Columns, npt.NDArray[np.int64]]:
        """Group edges by range (thread-safe); give the result to :meth:`append`."""
        everything = {"row": row, "neighbour": neighbour, **columns}
        starts = np.zeros(self.plan.num_ranges + 1, dtype=np.int64)
        if self.plan.num_ranges == 1:
            starts[1] = len(row)
            return everything, starts
        order = np.empty(len(row), dtype=np.uint32)
        kernels.group_edges(row, self.plan.bounds, starts, order)
        return {name: array[order] for name, array in everything.items()}, starts

    def append(self, columns: Columns, starts: npt.NDArray[np.int64]) -> None:
        """Append grouped edges."""
        dtypes = self._segments.dtypes
        exact = {
            name: array.astype(dtypes[name], copy=False) for name, array in columns.items()
        }
        self._segments.append(exact, starts)

    def length(self, part: int) -> int:
        """Return the number of edges of a partition's rows."""
        ranges = np.flatnonzero(self.plan.parts == part)
        return sum(self._segments.length(int(r)) for r in ranges)

    def sorted_ranges(self, part: int, cleaning: Cleaning) -> Iterator[SortedRange]:
        """Yield the ranges of a partition in order, sorted and cleaned."""
        ranges = np.flatnonzero(self.plan.parts == part)
        return map_in_order(lambda r: self._sort(int(r), cleaning), ranges)

    def remove(self) -> None:
        """Delete the waiting edges."""
        self._segments.remove()

    def _sort(self, r: int, cleaning: Cleaning) -> SortedRange:
        columns = self._segments.read(r)
        row, neighbour = columns.pop("row"), columns.pop("neighbour")
        first_row = int(self.plan.bounds[r])
        num_rows = int(self.plan.bounds[r + 1]) - first_row
        part_offset = int(self._offsets[self.plan.parts[r]])
        bits = max(self._num_neighbours - 1, 1).bit_length()
        relation = columns.pop("relation", None)
        relation_bits = 0 if relation is None else 8 * relation.dtype.itemsize
        keys = np.empty(len(row), dtype=np.uint64)
        kernels.pack_edges(row, first_row, neighbour, bits, keys)
        order: npt.NDArray[Any] | None = None
        if (
            max(num_rows - 1, 1).bit_length() + bits + relation_bits > 64
            and relation is not None
        ):
            order = np.lexsort((relation, keys))
            keys = keys[order]
            is_first = np.empty(len(keys), dtype=np.bool_)
            duplicates = kernels.mark_first_relation(keys, relation[order], is_first)
            relation_bits = 0
            columns["relation"] = relation
        else:
            if relation is not None:
                keys = (keys << np.uint64(relation_bits)) | relation
            if columns:
                order = np.arange(len(keys), dtype=np.uint32)
            keys, order = sort_keys(keys, order, num_threads=1)
            is_first = np.empty(len(keys), dtype=np.bool_)
            duplicates = kernels.mark_first(keys, is_first)
        columns = {name: values[order] for name, values in columns.items()}
        if relation_bits and relation is not None:
            mask = np.uint64((1 << relation_bits) - 1)
            columns["relation"] = (keys & mask).astype(relation.dtype)
            keys >>= np.uint64(relation_bits)
        kernels.unpack_edges(keys, bits, row, neighbour)
        if first_row != part_offset:
            row += row.dtype.type(first_row - part_offset)
        return _clean(row, neighbour, columns, is_first, duplicates, part_offset, cleaning)


def _clean(
    row: npt.NDArray[Any],
    neighbour: npt.NDArray[Any],
    columns: Columns,
    is_first: npt.NDArray[np.bool_],
    duplicates: int,
    part_offset: int,
    cleaning: Cleaning,
) -> SortedRange:
    self_loops, is_kept = 0, None
    if cleaning.same_type:
        is_loop = neighbour == row + row.dtype.type(part_offset)
        self_loops = int(np.count_nonzero(is_loop))
        if self_loops and cleaning.drop_self_loops:
            is_kept = ~is_loop
    if duplicates and cleaning.coalesce:
        if "weight" in columns:
            firsts = np.flatnonzero(is_first)
            weight = columns["weight"]
            wide = weight.astype(np.float64) if weight.dtype.kind == "f" else weight
            summed = np.add.reduceat(wide, firsts)
            columns["weight"] = weight.copy()
            columns["weight"][firsts] = summed
        is_kept = is_first if is_kept is None else is_kept & is_first
    if is_kept is not None:
        row, neighbour = row[is_kept], neighbour[is_kept]
        columns = {name: values[is_kept] for name, values in columns.items()}
    return SortedRange(row, neighbour, columns, duplicates, self_loops)
