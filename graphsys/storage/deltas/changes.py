"""Buckets and indexes of a store as its deltas left them.

A bucket or the rows of a partition that no delta touches are handed out as they lie on
disk. The others are merged when they are first asked for: places of what was added and
removed are found by binary search, the rest is copied in blocks. What is merged is in the
order in which a store written anew would have it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.types import number_dtype
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.rows import splice as kernels
from graphsys.storage.deltas.edges import (
    TRAVELLING,
    EdgeChanges,
    ReadFile,
    read_changes,
)
from graphsys.storage.deltas.merge_cache import Merge, MergeCache
from graphsys.storage.deltas.order import edge_order
from graphsys.storage.deltas.positions import (
    EdgePositions,
    bucket_places,
    gone_places,
    index_places,
    rows_between,
    with_rows,
)
from graphsys.storage.deltas.splice import MergedSpace, spliced
from graphsys.storage.manifest import EdgeTypeEntry, Manifest
from graphsys.storage.stored_edges import EdgeReader
from graphsys.storage.views import EdgeBucket, empty_bucket


@dataclass(frozen=True, kw_only=True)
class RowChanges:
    """Entries added to the rows of one direction and entries removed, by (row, neighbor).

    Attributes:
        offsets: First number of every partition of the rows, and their number.
        other_type: Node type of the neighbors.
        row: Number of each added entry's row ``[D]``.
        neighbor: Its neighbor ``[D]``.
        order: Which of the edges added it is ``[D]``.
        columns: Relations, weights and times of the entries, where edges have them.
        gone_row: Number of each removed entry's row ``[R]``.
        gone_neighbor: Its neighbor ``[R]``.
        copy: Which of several equal pairs it is ``[R]``.
    """

    offsets: npt.NDArray[np.int64]
    other_type: str
    row: npt.NDArray[np.integer]
    neighbor: npt.NDArray[np.integer]
    order: npt.NDArray[np.integer]
    columns: Mapping[str, npt.NDArray[Any]]
    gone_row: npt.NDArray[np.int64]
    gone_neighbor: npt.NDArray[np.int64]
    copy: npt.NDArray[np.int64]


def row_changes(changes: EdgeChanges, entry: EdgeTypeEntry, direction: str) -> RowChanges:
    """Return the changes of a split as changes of the rows of an index.

    Args:
        changes: By bucket.
        entry: The edge type; of an undirected one inside a node type every edge has an
            entry in the rows of both ends, and a loop one.
        direction: "out" or "in".
    """
    is_symmetric = not entry.directed and entry.src_type == entry.dst_type
    gone = changes.removed
    ends = [(changes.src, changes.dst)]
    gone_ends = [(gone.src, gone.dst)]
    if direction == "in":
        ends, gone_ends = [ends[0][::-1]], [gone_ends[0][::-1]]
    picks = [np.arange(len(changes.src))]
    gone_picks = [np.arange(len(gone.src))]
    if is_symmetric:  # a loop appears once
        picks.append(np.flatnonzero(changes.src != changes.dst))
        gone_picks.append(np.flatnonzero(gone.src != gone.dst))
        ends.append(ends[0][::-1])
        gone_ends.append(gone_ends[0][::-1])
    row, neighbor = _taken(ends, picks)
    pick = np.concatenate(picks)
    relation = changes.columns.get("relation")
    order = edge_order(row, neighbor, None if relation is None else relation[pick])
    gone_row, gone_neighbor = _taken(gone_ends, gone_picks)
    gone_pick = np.concatenate(gone_picks)
    # Deletions have no relation of their own: copies of a pair are told apart by their
    # order.
    by_row = np.lexsort((gone.copy[gone_pick], gone_neighbor, gone_row))
    is_out = direction == "out"
    return RowChanges(
        offsets=changes.src_offsets if is_out else changes.dst_offsets,
        other_type=entry.dst_type if is_out else entry.src_type,
        row=row[order],
        neighbor=neighbor[order],
        order=pick[order],
        columns={name: v[pick[order]] for name, v in changes.columns.items()},
        gone_row=gone_row[by_row],
        gone_neighbor=gone_neighbor[by_row],
        copy=gone.copy[gone_pick[by_row]],
    )


def _taken(
    ends: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]],
    picks: list[npt.NDArray[np.int64]],
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    pairs = [
        (row[pick], other[pick]) for (row, other), pick in zip(ends, picks, strict=True)
    ]
    return (
        np.concatenate([row for row, _ in pairs]),
        np.concatenate([other for _, other in pairs]),
    )


class DeltaMerge:
    """Merges the deltas of a store into what is read from it.

    Args:
        root: The graph's folder.
        manifest: After the last delta.
        stored: The store before the first.
        read: Maps the files of deltas.
        until: Deletions of this time or a later one do not count.
        kept: Rows that others merged; None where they are not to be looked for.
    """

    def __init__(
        self,
        root: Path,
        manifest: Manifest,
        stored: EdgeReader,
        read: ReadFile,
        until: int | None = None,
        kept: MergeCache | None = None,
    ) -> None:
        self._kept = kept
        self._manifest, self._stored, self._read = manifest, stored, read
        self._until = until
        self._space = MergedSpace(root / f"gen-{manifest.generation}")
        self._changes: dict[tuple[str, str], EdgeChanges | None] = {}
        self._rows: dict[tuple[str, str], RowChanges] = {}
        self._places: dict[str, EdgePositions] = {}
        self._indexes: dict[tuple[str, str, int], Csr] = {}
        self._joined: dict[tuple[str, str], Csr] = {}

    def bucket_counts(self, name: str, split: str) -> npt.NDArray[np.int64]:
        """Return the edges of every bucket, int64 ``[P_src, P_dst]``."""
        entry = self._manifest.edge_types[name]
        kinds = self._manifest.node_types
        shape = kinds[entry.src_type].num_partitions, kinds[entry.dst_type].num_partitions
        first = self._stored.bucket_counts(name, split)
        counts = np.zeros(shape, dtype=np.int64)
        counts[: first.shape[0], : first.shape[1]] = first
        changes = self.of(name, split)
        return counts if changes is None else counts + changes.gain

    def bucket(self, name: str, i: int, j: int, split: str) -> EdgeBucket:
        """Return the edges of a bucket."""
        changes = self.of(name, split)
        base = self._first_bucket(name, i, j, split)
        if changes is None:
            return base
        k = i * changes.shape[1] + j
        added = slice(*changes.added_starts[k : k + 2].tolist())
        gone = slice(*changes.removed_starts[k : k + 2].tolist())
        # Untouched: the file's own pages are handed out, and nothing is copied.
        if added.start == added.stop and gone.start == gone.stop:
            return base
        src = changes.src[added] - changes.src_offsets[i]
        dst = changes.dst[added] - changes.dst_offsets[j]
        columns = {n: values[added] for n, values in changes.columns.items()}
        relation = columns.get("relation")
        places = bucket_places(base, src, dst, relation)
        dropped = changes.removed.row[gone]

        def merged(
            first: npt.NDArray[Any] | None, new: npt.NDArray[Any] | None
        ) -> npt.NDArray[Any] | None:
            if new is None:
                new = None if first is None else first[:0]
            if new is None:
                return None
            first = np.empty(0, dtype=new.dtype) if first is None else first
            dtype = np.result_type(first, new) if len(first) else new.dtype
            return spliced(first, dropped, places, new, self._space, dtype)

        dtypes = [number_dtype(int(size)) for size in self._sizes(changes, i, j)]
        return EdgeBucket(
            src=spliced(base.src, dropped, places, src.astype(dtypes[0]), self._space),
            dst=spliced(base.dst, dropped, places, dst.astype(dtypes[1]), self._space),
            columns=self._further(base, changes, added, dropped, places),
            **{n: merged(getattr(base, n), columns.get(n)) for n in TRAVELLING},
        )

    def index(self, name: str, direction: str, part: int) -> Csr:
        """Return the rows of a partition, over the edges of the split that has indexes."""
        key = name, direction, part
        if key not in self._indexes:
            whole = self.joined(name, direction)
            self._indexes[key] = (
                self._found(
                    name,
                    direction,
                    str(part),
                    self._num_rows(name, direction, part),
                    lambda: self._merged_index(name, direction, part),
                )
                if whole is None
                else rows_between(whole, *self._offsets(name, direction)[part : part + 2])
            )
        return self._indexes[key]

    def joined(self, name: str, direction: str) -> Csr | None:
        """Return the rows of all partitions as one; None where the first were several.

        New nodes make partitions of their own; whoever wants all rows need not put them
        together again.
        """
        if (name, direction) in self._joined:  # asked for once for every partition
            return self._joined[name, direction]
        split = self._manifest.edge_types[name].counting_split
        shape = self._stored.bucket_counts(name, split).shape
        offsets = self._offsets(name, direction)
        if shape[0 if direction == "out" else 1] > 1 or len(offsets) < 3:
            return None

        def merge() -> Csr:
            base = with_rows(self._stored.index(name, direction, 0), offsets[-1])
            return self._merged(name, direction, base, np.array([0, offsets[-1]]))

        found = self._found(name, direction, "all", offsets[-1], merge)
        self._joined[name, direction] = found
        return found

    def _found(
        self, name: str, direction: str, what: str, num_rows: int, merge: Merge
    ) -> Csr:
        """Return rows that were kept, or merge them."""
        if self._kept is None:
            return merge()
        entry = self._manifest.edge_types[name]
        other = entry.dst_type if direction == "out" else entry.src_type
        num_others = self._manifest.node_types[other].num_nodes
        return self._kept.index(name, f"{direction}-{what}", num_rows, num_others, merge)

    def _num_rows(self, name: str, direction: str, part: int) -> int:
        begin, end = self._offsets(name, direction)[part : part + 2]
        return end - begin

    def _offsets(self, name: str, direction: str) -> list[int]:
        entry = self._manifest.edge_types[name]
        own = entry.src_type if direction == "out" else entry.dst_type
        return self._manifest.node_types[own].offsets

    def of(self, name: str, split: str) -> EdgeChanges | None:
        """Return what deltas changed in a split of an edge type."""
        if (name, split) not in self._changes:
            self._changes[name, split] = read_changes(
                self._manifest, name, split, self._read, self._until
            )
        return self._changes[name, split]

    def _sizes(self, changes: EdgeChanges, i: int, j: int) -> tuple[Any, Any]:
        return np.diff(changes.src_offsets)[i], np.diff(changes.dst_offsets)[j]

    def _first_bucket(self, name: str, i: int, j: int, split: str) -> EdgeBucket:
        shape = self._stored.bucket_counts(name, split).shape
        if i < shape[0] and j < shape[1]:
            return self._stored.bucket(name, i, j, split)
        return empty_bucket(self._manifest.edge_types[name])

    def _further(
        self,
        base: EdgeBucket,
        changes: EdgeChanges,
        added: slice,
        dropped: npt.NDArray[np.int64],
        places: npt.NDArray[np.int64],
    ) -> dict[str, pa.Array]:
        new = changes.further
        if new is None and not base.columns:
            return {}
        many = base.num_edges
        # Columns of any type: places are spliced, then Arrow takes the rows at them once.
        order = spliced(
            np.arange(many),
            dropped,
            places,
            many + np.arange(added.stop - added.start),
            self._space,
        )
        pieces = [pa.table(dict(base.columns))] if base.columns else []
        if new is not None:
            pieces.append(new.slice(added.start, added.stop - added.start))
        joined = pa.concat_tables(pieces).take(pa.array(order)).combine_chunks()
        return {column: _one_chunk(joined.column(column)) for column in joined.column_names}

    # ---- indexes

    def _merged_index(self, name: str, direction: str, part: int) -> Csr:
        entry = self._manifest.edge_types[name]
        own = entry.src_type if direction == "out" else entry.dst_type
        base = self._first_index(name, entry, direction, own, part)
        offsets = np.array(self._offsets(name, direction)[part : part + 2])
        return self._merged(name, direction, base, offsets)

    def _merged(
        self, name: str, direction: str, base: Csr, offsets: npt.NDArray[np.int64]
    ) -> Csr:
        """Return the rows between two offsets: those of before, with what changed."""
        entry = self._manifest.edge_types[name]
        rows = self._rows_of(name, direction)
        if rows is None:
            return base
        added = slice(*np.searchsorted(rows.row, offsets).tolist())
        gone = slice(*np.searchsorted(rows.gone_row, offsets).tolist())
        further = self._has_further(entry)
        is_same = added.start == added.stop and gone.start == gone.stop
        # With further columns entries name edges by place, which moves with changes
        # anywhere.
        if is_same and not further:
            return base
        row = rows.row[added].astype(np.int64) - offsets[0]
        gone_row = rows.gone_row[gone] - offsets[0]
        places = index_places(
            base,
            row,
            rows.neighbor[added],
            None if "relation" not in rows.columns else rows.columns["relation"][added],
        )
        dropped = gone_places(base, gone_row, rows.gone_neighbor[gone], rows.copy[gone])
        order = np.argsort(dropped)  # copies of a pair may be removed in any order
        dropped, gone_row = dropped[order], gone_row[order]
        columns = {n: values[added] for n, values in rows.columns.items()}
        firsts: dict[str, Any] = {n: getattr(base, n) for n in TRAVELLING}
        if further:
            edges = self._edge_places(name)
            total = int(self.bucket_counts(name, entry.counting_split).sum())
            kind = number_dtype(total)
            first = None if base.edge is None else edges.moved(base.edge).astype(kind)
            firsts["edge"] = first
            columns["edge"] = edges.of_added[rows.order[added]].astype(kind)
        out = self._with_columns(firsts, columns, dropped, places)
        kind = number_dtype(self._manifest.node_types[rows.other_type].num_nodes)
        total = len(base.indices) - len(dropped) + len(places)
        indptr = self._space.filled(
            len(base.indptr),
            number_dtype(total + 1),
            lambda array: kernels.shift_offsets(base.indptr, row, gone_row, array),
        )
        new = rows.neighbor[added]
        return Csr(
            indptr=indptr,
            indices=spliced(base.indices, dropped, places, new, self._space, kind),
            **out,
        )

    def _with_columns(
        self,
        firsts: Mapping[str, Any],
        columns: Mapping[str, npt.NDArray[Any]],
        dropped: npt.NDArray[np.int64],
        places: npt.NDArray[np.int64],
    ) -> dict[str, Any]:
        out = {}
        for name, first in firsts.items():
            new = columns.get(name)
            if new is None and first is None:
                continue
            if new is None:
                new = first[:0]
            if first is None:
                first = new[:0]
            dtype = np.result_type(first, new)
            out[name] = spliced(first, dropped, places, new, self._space, dtype)
        return out

    def _rows_of(self, name: str, direction: str) -> RowChanges | None:
        changes = self.of(name, self._manifest.edge_types[name].counting_split)
        if changes is None:
            return None
        if (name, direction) not in self._rows:
            entry = self._manifest.edge_types[name]
            self._rows[name, direction] = row_changes(changes, entry, direction)
        return self._rows[name, direction]

    def _first_index(
        self, name: str, entry: EdgeTypeEntry, direction: str, own: str, part: int
    ) -> Csr:
        other = entry.dst_type if direction == "out" else entry.src_type
        shape = self._stored.bucket_counts(
            name, self._manifest.edge_types[name].counting_split
        ).shape
        if part < shape[0 if direction == "out" else 1]:
            return self._stored.index(name, direction, part)
        offsets = self._manifest.node_types[own].offsets
        kind = number_dtype(self._manifest.node_types[other].num_nodes)
        indptr = np.zeros(offsets[part + 1] - offsets[part] + 1, dtype=np.uint32)
        return Csr(indptr=indptr, indices=np.empty(0, dtype=kind))

    def _has_further(self, entry: EdgeTypeEntry) -> bool:
        return bool(entry.columns.keys() - set(TRAVELLING))

    def _edge_places(self, name: str) -> EdgePositions:
        if name not in self._places:
            split = self._manifest.edge_types[name].counting_split
            changes = self.of(name, split)
            assert changes is not None  # rows were asked for
            counts = self._stored.bucket_counts(name, split)
            whole = np.zeros(changes.shape, dtype=np.int64)
            whole[: counts.shape[0], : counts.shape[1]] = counts
            starts = np.concatenate([[0], np.cumsum(whole.ravel())])
            dropped = changes.removed.row + np.repeat(
                starts[:-1], np.diff(changes.removed_starts)
            )
            places = np.empty(len(changes.src), dtype=np.int64)
            for k in np.flatnonzero(np.diff(changes.added_starts)).tolist():
                i, j = divmod(k, changes.shape[1])
                added = slice(*changes.added_starts[k : k + 2].tolist())
                relation = changes.columns.get("relation")
                places[added] = starts[k] + bucket_places(
                    self._first_bucket(name, i, j, split),
                    changes.src[added] - changes.src_offsets[i],
                    changes.dst[added] - changes.dst_offsets[j],
                    None if relation is None else relation[added],
                )
            self._places[name] = EdgePositions(dropped, places)
        return self._places[name]


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return (
        pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    )
