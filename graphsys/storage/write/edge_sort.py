"""Sorted rows: edges grouped by ranges of rows, each range sorted in memory.

A range holds so few edges that several can be sorted at the same time within the budget.
Ranges never cross a partition, and their bounds follow the degrees, so hubs do not make
a range large unless one node alone does. Edges wait as 64-bit keys (row, neighbor,
relation), ready to be sorted.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import InputError
from graphsys.core.threads import map_in_order
from graphsys.core.types import number_dtype
from graphsys.graph.csr import read_only
from graphsys.graph.sort import stable_argsort
from graphsys.kernels.cpu.rows import ingest as kernels
from graphsys.storage.scratch import Scratch, Segments

Columns = dict[str, npt.NDArray[Any]]

_MAX_RANGE_EDGES = 4 << 20
_MIN_RANGE_EDGES = 1 << 16
_MAX_RANGES = 1 << 14
_SORT_BYTES = 16  # an edge under way: its key, twice
_UNDER_WAY = 4
_LOOKUP_BITS = 20
_CUT_ROWS = 1 << 20
_BEGIN = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class RangePlan:
    """How the rows of a node type are cut.

    Attributes:
        bounds: First row of every range, and the number of rows, int64 ``[R + 1]``.
        parts: Partition of every range, int64 ``[R]``.
        limit: Edges that a range is to have at most; one row may have more.
    """

    bounds: npt.NDArray[np.int64]
    parts: npt.NDArray[np.int64]
    limit: int = _MAX_RANGE_EDGES

    @staticmethod
    def make(
        offsets: npt.NDArray[np.int64],
        degrees: npt.NDArray[np.uint32],
        *,
        max_rows: int,
        column_bytes: int,
        budget_bytes: int,
    ) -> "RangePlan":
        """Cut every partition by cumulative degree.

        Args:
            offsets: Partition offsets of the row type, int64 ``[P + 1]``.
            degrees: Upper bound of the edges of every row, uint32 ``[N]``.
            max_rows: Rows that a range may have.
            column_bytes: Bytes of the columns that travel with an edge.
            budget_bytes: The memory budget.
        """
        per_edge = (_SORT_BYTES + 3 * column_bytes) * _UNDER_WAY
        limit = int(np.clip(budget_bytes // per_edge, _MIN_RANGE_EDGES, _MAX_RANGE_EDGES))
        total = int(degrees.sum(dtype=np.int64))
        # Ranges are looked up by 16 bits: there are never more than so many.
        limit = max(limit, total // (_MAX_RANGES // 2))
        bounds, parts = [0], []
        for part, (begin, end) in enumerate(pairwise(offsets.tolist())):
            by_edges = begin + _cuts_by_edges(degrees[begin:end], limit)
            # Keys hold the row relative to its range: so many rows fit beside neighbor and
            # relation.
            by_rows = np.arange(begin + max_rows, end, max_rows)
            cuts = np.union1d(by_edges, by_rows)
            cuts = cuts[(cuts > begin) & (cuts < end)]
            bounds.extend([*cuts.tolist(), end])
            parts.extend([part] * (len(cuts) + 1))
        return RangePlan(np.asarray(bounds, np.int64), np.asarray(parts, np.int64), limit)

    @property
    def num_ranges(self) -> int:
        """Number of ranges, at least one for every partition."""
        return len(self.parts)

    def lookup(self) -> tuple[npt.NDArray[np.uint16], int]:
        """Return the range of every ``2**shift``-th row, and that shift."""
        num_rows = max(int(self.bounds[-1]), 1)
        shift = max((num_rows - 1).bit_length() - _LOOKUP_BITS, 0)
        firsts = np.arange(0, num_rows, 1 << shift)
        ranges = np.searchsorted(self.bounds, firsts, side="right") - 1
        return np.minimum(ranges, self.num_ranges - 1).astype(np.uint16), shift


def _cuts_by_edges(degrees: npt.NDArray[np.uint32], limit: int) -> npt.NDArray[np.int64]:
    """Return how many rows have 1, 2, ... times so many edges, while any are left."""
    total = int(degrees.sum(dtype=np.int64))
    cuts: list[npt.NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    before, wanted = 0, limit
    for begin in range(0, len(degrees), _CUT_ROWS):
        piece = degrees[begin : begin + _CUT_ROWS]
        ends = before + np.cumsum(piece, dtype=np.int64)
        before = int(ends[-1])
        reached = np.arange(wanted, min(before + 1, total), limit)
        cuts.append(np.searchsorted(ends, reached) + 1 + begin)
        wanted += limit * len(reached)
    return np.concatenate(cuts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """What is removed on the way.

    Attributes:
        same_type: Whether rows and neighbors are of one node type (else no self-loops).
        drop_self_loops: Remove edges from a node to itself.
        coalesce: Keep one edge of each (row, neighbor, relation) and sum the weights.
    """

    same_type: bool
    drop_self_loops: bool = False
    coalesce: bool = False


class SortedEdges:
    """The sorted edges of one partition's rows, in memory or in mapped files.

    Attributes:
        num_rows: Rows of the partition.
        length: Edges, E below.
        counts: Edges of every row, int64 ``[num_rows]``.
        row: Rows relative to the partition, uint32 or int64 ``[E]``.
        neighbor: Numbers of the other ends, uint32 or int64 ``[E]``.
        columns: Columns in the same order.
        duplicates: Edges beyond the first of each (row, neighbor, relation), as found.
        self_loops: Edges from a node to itself, as found.
    """

    def __init__(
        self,
        scratch: Scratch,
        num_rows: int,
        room: int,
        neighbor_dtype: np.dtype[Any],
        dtypes: dict[str, np.dtype[Any]],
    ) -> None:
        self.num_rows = num_rows
        self.length = self.duplicates = self.self_loops = 0
        self.counts = scratch.zeros(num_rows, np.int64)
        self.row = scratch.array(room, number_dtype(num_rows))
        self.neighbor = scratch.array(room, neighbor_dtype)
        self.columns = {name: scratch.array(room, dtype) for name, dtype in dtypes.items()}

    def arrays(self) -> list[npt.NDArray[Any]]:
        """Return all arrays that have an entry for every edge."""
        return [self.row, self.neighbor, *self.columns.values()]

    def shrink(self, length: int) -> None:
        """Cut all arrays to their used length."""
        self.length = length
        self.row, self.neighbor = self.row[:length], self.neighbor[:length]
        self.columns = {name: values[:length] for name, values in self.columns.items()}


class RowSorter:
    """Takes edges in any order and gives them back sorted by (row, neighbor, relation).

    Args:
        scratch: Where the edges wait.
        name: For the files' names.
        offsets: Partition offsets of the row type, int64 ``[P + 1]``.
        degrees: Upper bound of the edges of every row, uint32.
        num_neighbors: Nodes of the neighbors' type.
        dtypes: Columns that travel with the edges.
        num_relations: Values of the column ``relation``.
        plan: How the rows are cut; by ``degrees`` if None, which nobody looks at else.

    Attributes:
        plan: How they are cut.
    """

    def __init__(
        self,
        scratch: Scratch,
        name: str,
        offsets: npt.NDArray[np.int64],
        degrees: npt.NDArray[np.uint32],
        num_neighbors: int,
        dtypes: dict[str, np.dtype[Any]],
        num_relations: int = 0,
        plan: RangePlan | None = None,
    ) -> None:
        self.dtypes = dtypes
        self._scratch = scratch
        self._offsets = offsets
        self._neighbor_dtype = number_dtype(num_neighbors)
        self._bits = max(num_neighbors - 1, 1).bit_length()
        has_relation = "relation" in dtypes
        self._relation_bits = max(num_relations - 1, 1).bit_length() if has_relation else 0
        self._carried = {key: dtype for key, dtype in dtypes.items() if key != "relation"}
        self.plan = plan or RangePlan.make(
            offsets,
            degrees,
            max_rows=1 << (64 - self._bits - self._relation_bits),
            column_bytes=sum(dtype.itemsize for dtype in self._carried.values()),
            budget_bytes=scratch.budget_bytes,
        )
        self._lookup, self._shift = self.plan.lookup()
        self._segments = Segments(
            scratch,
            name,
            {"key": np.dtype(np.uint64), **self._carried},
            self.plan.num_ranges,
        )

    def group(
        self, row: npt.NDArray[Any], neighbor: npt.NDArray[Any], columns: Columns
    ) -> tuple[Columns, npt.NDArray[np.int64]]:
        """Group edges by range (thread-safe); give the result to :meth:`append`."""
        keys = np.empty(len(row), dtype=np.uint64)
        order = np.empty(len(row) if self._carried else 0, dtype=np.uint32)
        starts = np.zeros(self.plan.num_ranges + 1, dtype=np.int64)
        kernels.group_keys(
            row,
            neighbor,
            columns.get("relation", np.empty(0, dtype=np.uint16)),
            self._bits,
            self._relation_bits,
            read_only(self.plan.bounds),
            self._lookup,
            self._shift,
            starts,
            keys,
            order,
        )
        return {
            "key": keys,
            **{name: columns[name][order] for name in self._carried},
        }, starts

    def append(self, columns: Columns, starts: npt.NDArray[np.int64]) -> None:
        """Append grouped edges."""
        self._segments.append(columns, starts)

    def ranges(self, part: int) -> tuple[int, int]:
        """Return the first range of a partition, and the first behind its ranges."""
        low, high = np.searchsorted(self.plan.parts, [part, part + 1])
        return int(low), int(high)

    def sort(self, part: int, cleaning: Cleaning) -> SortedEdges:
        """Return the edges of a partition's rows, sorted and cleaned, once."""
        ranges = np.flatnonzero(self.plan.parts == part).tolist()
        begins = np.cumsum([0, *(self._segments.length(r) for r in ranges)]).tolist()
        num_rows = int(self._offsets[part + 1] - self._offsets[part])
        rows = SortedEdges(
            self._scratch, num_rows, begins[-1], self._neighbor_dtype, self.dtypes
        )

        def sort(place: int) -> tuple[int, int, int]:
            piece = slice(begins[place], begins[place + 1])
            return self._sort_range(ranges[place], rows, piece, cleaning)

        end = 0
        for place, found in enumerate(map_in_order(sort, range(len(ranges)))):
            begin, kept = begins[place], found[0]
            rows.duplicates += found[1]
            rows.self_loops += found[2]
            if end < begin:  # earlier ranges lost edges: close the gap
                for array in rows.arrays():
                    array[end : end + kept] = array[begin : begin + kept]
            end += kept
        rows.shrink(end)
        return rows

    def remove(self) -> None:
        """Forget the waiting edges."""
        self._segments.remove()

    def _sort_range(
        self, r: int, rows: SortedEdges, piece: slice, cleaning: Cleaning
    ) -> tuple[int, int, int]:
        """Sort one range into its piece of ``rows``; return edges left, repeats, loops."""
        # one node alone may have more edges than a range is to have
        is_wide = self._segments.length(r) > self.plan.limit
        allocate: Any = self._scratch.array if is_wide else np.empty
        columns = self._segments.read(r, allocate)
        keys = columns.pop("key")
        if columns:
            # Equal edges keep the order of the source, and with it which one's columns come
            # first.
            order = stable_argsort(keys, allocate)
            ordered = allocate(len(keys), keys.dtype)
            keys = np.take(keys, order, out=ordered, mode="clip")  # raise: copies first
            for name, values in columns.items():
                np.take(values, order, out=rows.columns[name][piece], mode="clip")
        else:
            keys.sort()
        part_offset = int(self._offsets[self.plan.parts[r]])
        has_relation = self._relation_bits > 0
        repeats, loops = kernels.unpack_keys(
            keys,
            self._bits,
            self._relation_bits,
            int(self.plan.bounds[r]) - part_offset,
            part_offset if cleaning.same_type else -(2**62),
            rows.row[piece],
            rows.neighbor[piece],
            rows.columns["relation"][piece] if has_relation else np.empty(0, np.uint16),
            rows.counts,
        )
        kept = len(keys)
        if (repeats and cleaning.coalesce) or (loops and cleaning.drop_self_loops):
            kept = _clean(keys, rows, piece, part_offset, cleaning, allocate)
        return kept, repeats, loops


def _sums(weight: npt.NDArray[Any], firsts: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Return the sum of each run of weights, in float64 or in their integers.

    Raises:
        InputError: a sum is more than that type holds.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.add.reduceat(weight.astype(np.float64), firsts)
        is_float = weight.dtype.kind == "f"
        exact = rounded if is_float else np.add.reduceat(weight, firsts)
        went_round = np.abs(rounded - exact.astype(np.float64)) > 2.0**62
    if went_round.any() or not np.isfinite(rounded).all():
        kind = "float64" if is_float else str(weight.dtype)
        raise InputError(
            f"--coalesce: the weights of equal edges add up to more than {kind} holds; "
            "scale the weights down"
        )
    return exact


def _add_up(weight: npt.NDArray[Any], is_first: npt.NDArray[np.bool_]) -> None:
    """Put the sum of each run of equal edges where it begins, a block at a time.

    Raises:
        InputError: a sum is more than the weights' type holds.
    """
    run = 0
    for begin in range(0, len(weight), _MAX_RANGE_EDGES):
        piece = weight[begin : begin + _MAX_RANGE_EDGES]
        firsts = np.flatnonzero(is_first[begin : begin + _MAX_RANGE_EDGES])
        if not len(firsts) or firsts[0]:  # a run goes on that began before
            end = int(firsts[0]) if len(firsts) else len(piece)
            both = np.append(weight[run : run + 1], _sums(piece[:end], _BEGIN))
            weight[run] = _sums(both, _BEGIN)[0]
        if len(firsts):
            piece[firsts] = _sums(piece, firsts)
            run = begin + int(firsts[-1])


def _clean(
    keys: npt.NDArray[np.uint64],
    rows: SortedEdges,
    piece: slice,
    part_offset: int,
    cleaning: Cleaning,
    allocate: Any,
) -> int:
    """Remove repeats and self-loops from a sorted range; return how many edges are left."""
    row, neighbor = rows.row[piece], rows.neighbor[piece]
    is_kept = allocate(len(keys), np.bool_)
    if cleaning.coalesce and "weight" in rows.columns:
        np.not_equal(keys[1:], keys[:-1], out=is_kept[1:])
        is_kept[0] = True
        _add_up(rows.columns["weight"][piece], is_kept)
    kept = kernels.mark_kept(
        keys,
        row,
        neighbor,
        part_offset,
        cleaning.coalesce,
        cleaning.drop_self_loops and cleaning.same_type,
        rows.counts,
        is_kept,
    )
    for array in rows.arrays():
        kernels.close_gaps(array[piece], is_kept)
    return int(kept)
