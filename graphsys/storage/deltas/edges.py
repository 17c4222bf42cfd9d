"""The edges that the deltas of a store added to one split, and those they removed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.storage.deltas.order import edge_order, parts_of
from graphsys.storage.integrity import check_added, check_removed
from graphsys.storage.manifest import EdgeTypeEntry, Manifest, added_file, removed_file
from graphsys.storage.views import EdgeBucket, bucket_of

Check = Callable[[pa.RecordBatch], None]
ReadFile = Callable[[str, Check], pa.RecordBatch]
"""Maps a listed file and checks it the first time."""
Ints = npt.NDArray[np.integer]

TRAVELLING = ("relation", "weight", "time")


@dataclass(frozen=True, kw_only=True)
class Removed:
    """Edges of the first buckets that are there no more, by bucket and row.

    Attributes:
        src: Numbers of the sources ``[R]``.
        dst: Numbers of the destinations ``[R]``.
        row: Row of each in its bucket ``[R]``.
        copy: How many rows just before it are the same pair ``[R]``.
    """

    src: npt.NDArray[np.int64]
    dst: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    copy: npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class EdgeChanges:
    """What deltas changed in the edges of one type and split.

    Attributes:
        src: Numbers of the sources of all edges added and not removed again, by (bucket,
            src, dst, relation), then by delta ``[D]``.
        dst: Numbers of the destinations ``[D]``.
        columns: Their relations, weights and times, where edges have them.
        further: Further columns, or None.
        removed: Edges of the first buckets that were removed.
        src_offsets: First number of every partition of the sources, and their number.
        dst_offsets: The same of the destinations.
    """

    src: Ints
    dst: Ints
    columns: Mapping[str, npt.NDArray[Any]]
    further: pa.Table | None
    removed: Removed
    src_offsets: npt.NDArray[np.int64]
    dst_offsets: npt.NDArray[np.int64]
    shape: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        """Note how many partitions there are."""
        shape = len(self.src_offsets) - 1, len(self.dst_offsets) - 1
        object.__setattr__(self, "shape", shape)

    @cached_property
    def added_starts(self) -> npt.NDArray[np.int64]:
        """First added edge of every bucket in their sequence, and the number of edges."""
        return self._starts(self.src, self.dst)

    @cached_property
    def removed_starts(self) -> npt.NDArray[np.int64]:
        """First removed edge of every bucket in their sequence, and their number."""
        return self._starts(self.removed.src, self.removed.dst)

    @property
    def gain(self) -> npt.NDArray[np.int64]:
        """How many more edges each bucket has, int64 ``[P_src, P_dst]``."""
        gain = np.diff(self.added_starts) - np.diff(self.removed_starts)
        return gain.reshape(self.shape)

    def _starts(self, src: Ints, dst: Ints) -> npt.NDArray[np.int64]:
        counts = np.bincount(
            bucket_numbers(src, dst, self.src_offsets, self.dst_offsets),
            minlength=self.shape[0] * self.shape[1],
        )
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def bucket_numbers(
    src: Ints,
    dst: Ints,
    src_offsets: npt.NDArray[np.int64],
    dst_offsets: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Return the place of every edge's bucket in the sequence of buckets."""
    if len(src_offsets) == len(dst_offsets) == 2:
        return np.zeros(len(src), dtype=np.int64)
    num_dst = len(dst_offsets) - 1
    return parts_of(src, src_offsets) * num_dst + parts_of(dst, dst_offsets)


def read_changes(
    manifest: Manifest, name: str, split: str, read: ReadFile, until: int | None = None
) -> EdgeChanges | None:
    """Read what deltas changed in a split; None where they changed nothing.

    Args:
        manifest: Of the store.
        name: The edge type.
        split: The split.
        read: Maps files.
        until: Deletions of this time or a later one are left out; those that have no time
            never are.
    """
    entry = manifest.edge_types[name]
    src_offsets = np.asarray(manifest.node_types[entry.src_type].offsets, dtype=np.int64)
    dst_offsets = np.asarray(manifest.node_types[entry.dst_type].offsets, dtype=np.int64)
    removed = read_removed(manifest, name, split, read, until)
    src, dst, pieces, batches = [], [], [], []
    for delta in manifest.deltas:
        if not delta.added.get(name, {}).get(split):
            continue
        batch = read_added(manifest, delta.number, name, split, read)
        gone = removed["row"][removed["delta"] == delta.number]
        if len(gone):
            kept = np.ones(batch.num_rows, dtype=bool)
            kept[gone] = False
            batch = batch.filter(pa.array(kept))
        piece = bucket_of(batch)
        src.append(piece.src)
        dst.append(piece.dst)
        pieces.append(piece)
        if piece.columns:
            batches.append(pa.table(dict(piece.columns)))
    is_first = removed["delta"] == 0
    if not src and not is_first.any():
        return None
    first = {k: v[is_first] for k, v in removed.items() if k != "delta"}
    number = bucket_numbers(first["src"], first["dst"], src_offsets, dst_offsets)
    by_bucket = np.lexsort((first["row"], number))
    return _sorted(
        _joined(src),
        _joined(dst),
        _columns(pieces, entry),
        pa.concat_tables(batches) if batches else None,
        Removed(**{k: v[by_bucket] for k, v in first.items()}),
        src_offsets,
        dst_offsets,
    )


def read_added(
    manifest: Manifest, number: int, name: str, split: str, read: ReadFile
) -> pa.RecordBatch:
    """Return the edges that a delta added to a split, mapped."""
    entry = manifest.edge_types[name]
    check = partial(
        check_added,
        num_src=manifest.node_types[entry.src_type].num_nodes,
        num_dst=manifest.node_types[entry.dst_type].num_nodes,
        num_relations=len(entry.relations or ()),
    )
    return read(added_file(manifest.generation, number, name, split), check)


def read_removed(
    manifest: Manifest, name: str, split: str, read: ReadFile, until: int | None
) -> dict[str, npt.NDArray[np.int64]]:
    """Return the places of removed edges: delta, src, dst, row, copy."""
    entry = manifest.edge_types[name]
    keys = ("delta", "src", "dst", "row", "copy")
    found: dict[str, list[npt.NDArray[np.int64]]] = {key: [] for key in keys}
    for delta in manifest.deltas:
        if not delta.removed.get(name, {}).get(split):
            continue
        path = removed_file(manifest.generation, delta.number, name, split)
        check = partial(
            check_removed,
            num_src=manifest.node_types[entry.src_type].num_nodes,
            num_dst=manifest.node_types[entry.dst_type].num_nodes,
            num_deltas=delta.number,
        )
        batch = read(path, check)
        counts: Any = slice(None)
        if until is not None and "time" in batch.schema.names:
            counts = batch.column("time").to_numpy(zero_copy_only=False) < until
        for key in keys:
            values = batch.column(key).to_numpy(zero_copy_only=False)[counts]
            found[key].append(values.astype(np.int64))
    return {
        key: np.concatenate(v) if v else np.empty(0, dtype=np.int64)
        for key, v in found.items()
    }


def _columns(pieces: list[EdgeBucket], entry: EdgeTypeEntry) -> dict[str, npt.NDArray[Any]]:
    found = {}
    for name in TRAVELLING:
        columns = [getattr(piece, name) for piece in pieces]
        if columns and columns[0] is not None:
            found[name] = _joined(columns)
    if "relation" in found and len(entry.relations or ()) > 2**16:
        found["relation"] = found["relation"].astype(np.uint32)
    return found


def _sorted(
    src: Ints,
    dst: Ints,
    columns: dict[str, npt.NDArray[Any]],
    further: pa.Table | None,
    removed: Removed,
    src_offsets: npt.NDArray[np.int64],
    dst_offsets: npt.NDArray[np.int64],
) -> EdgeChanges:
    number = bucket_numbers(src, dst, src_offsets, dst_offsets)
    order = edge_order(src, dst, columns.get("relation"), number)
    return EdgeChanges(
        src=src[order],
        dst=dst[order],
        columns={name: values[order] for name, values in columns.items()},
        further=None if further is None else further.take(pa.array(order)),
        removed=removed,
        src_offsets=src_offsets,
        dst_offsets=dst_offsets,
    )


def _joined(pieces: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    if not pieces:
        return np.empty(0, dtype=np.uint32)
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
