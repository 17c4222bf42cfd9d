"""Buckets and indexes of one edge type, written partition by partition.

The rows of a source partition are sorted once: in that order they are the partition's
CSR, and grouped by destination partition (stably) they are its buckets. The other
direction is sorted from the same arrays.
"""

import hashlib
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.types import DEFAULT_SPLIT
from graphsys.kernels.cpu import ingest as kernels
from graphsys.storage import manifest as names
from graphsys.storage.edge_log import EdgeLog
from graphsys.storage.edge_sort import Cleaning, Columns, RangePlan, RowSorter
from graphsys.storage.manifest import EdgeTypeEntry, FileEntry
from graphsys.storage.numbering import NodeNumbering
from graphsys.storage.scratch import Scratch
from graphsys.storage.transaction import Transaction

_SLICE = 1 << 20


class EdgeTypeWriter:
    """Writes all splits of one edge type.

    Args:
        name: Name of the edge type in the store.
        log: Its columns.
        src: Numbering of the source type.
        dst: Numbering of the destination type.
        transaction: Where the files go.
        scratch: Where edges wait.
        cleaning: What is removed.
        is_directed: Whether the edges have a direction.

    Attributes:
        counts: Stored edges of every bucket by split, int64 ``[P_src, P_dst]``.
    """

    def __init__(
        self,
        name: str,
        log: EdgeLog,
        src: NodeNumbering,
        dst: NodeNumbering,
        transaction: Transaction,
        scratch: Scratch,
        *,
        cleaning: Cleaning,
        is_directed: bool,
    ) -> None:
        self.name = name
        self.counts: dict[str, npt.NDArray[np.int64]] = {}
        self._log, self._src, self._dst = log, src, dst
        self._transaction, self._scratch = transaction, scratch
        self._cleaning = cleaning
        self._is_directed = is_directed
        self._is_symmetric = not is_directed and cleaning.same_type
        self._dtypes = log.dtypes(coalesce=cleaning.coalesce)
        self._duplicates = self._self_loops = 0
        self._fingerprints: list[str] = []
        self._waiting = {
            split: self._sorter(f"{name}-{split}", src, dst) for split in log.splits
        }
        only = next(iter(log.splits)) if len(log.splits) == 1 else DEFAULT_SPLIT
        self._indexed_split = only

    @property
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """Columns that travel with the edges."""
        return self._dtypes

    def group(
        self, split: str, src: npt.NDArray[Any], dst: npt.NDArray[Any], columns: Columns
    ) -> tuple[str, Columns, npt.NDArray[np.int64]]:
        """Prepare a chunk of edges, given as numbers (thread-safe)."""
        if self._is_symmetric:  # an undirected edge is stored from the smaller number
            src, dst = np.minimum(src, dst), np.maximum(src, dst)
        return split, *self._waiting[split].group(src, dst, columns)

    def append(self, split: str, columns: Columns, starts: npt.NDArray[np.int64]) -> None:
        """Append a prepared chunk."""
        self._waiting[split].append(columns, starts)

    def write(self) -> EdgeTypeEntry:
        """Write all buckets and indexes and return the manifest's entry."""
        for split in self._log.splits:
            self._write_split(split)
        further = self._log.rows.schema if self._log.rows else pa.schema([])
        columns = {
            name: str(pa.from_numpy_dtype(dtype))
            for name, dtype in self._dtypes.items()
            if name not in ("relation", "record")
        }
        edge_type = self._log.edge_type
        return EdgeTypeEntry(
            src_type=edge_type.src_type,
            relation=edge_type.relation,
            dst_type=edge_type.dst_type,
            directed=self._is_directed,
            num_edges={split: int(counts.sum()) for split, counts in self.counts.items()},
            columns={**columns, **{field.name: str(field.type) for field in further}},
            relations=self._log.relation_names,
            duplicates=self._duplicates,
            self_loops=self._self_loops,
            index_fingerprint=index_fingerprint(self._fingerprints),
        )

    def _sorter(self, name: str, rows: NodeNumbering, others: NodeNumbering) -> RowSorter:
        plan = RangePlan.make(
            rows.offsets,
            rows.degrees(),
            column_bytes=sum(dtype.itemsize for dtype in self._dtypes.values()),
            budget_bytes=self._scratch.budget_bytes,
        )
        return RowSorter(
            self._scratch, name, plan, rows.offsets, others.num_nodes, dict(self._dtypes)
        )

    # ---- one split

    def _write_split(self, split: str) -> None:
        waiting = self._waiting.pop(split)
        num_src, num_dst = len(self._src.offsets) - 1, len(self._dst.offsets) - 1
        self.counts[split] = np.zeros((num_src, num_dst), dtype=np.int64)
        is_indexed = split == self._indexed_split
        turned = self._turned_sorter() if is_indexed else None
        first_edge = 0
        with ThreadPoolExecutor(2) as pool:
            for part in range(num_src):
                rows = _Rows(
                    self._scratch, waiting, part, self._src.offsets, self._cleaning
                )
                self._duplicates += rows.duplicates
                self._self_loops += rows.self_loops
                edge = self._write_buckets(pool, split, part, rows, first_edge)
                first_edge += rows.length
                if turned is not None:
                    if edge is not None:
                        rows.columns["edge"] = edge
                    if not self._is_symmetric:
                        pool.submit(self._write_index, "out", part, rows).result()
                    self._turn(turned, part, rows)
            waiting.remove()
            if turned is not None:
                self._write_turned(turned)

    def _write_buckets(
        self,
        pool: ThreadPoolExecutor,
        split: str,
        part: int,
        rows: "_Rows",
        first_edge: int,
    ) -> npt.NDArray[Any] | None:
        """Write a partition's buckets; return each edge's position if columns need it."""
        offsets = self._dst.offsets
        starts = np.array([0, rows.length], dtype=np.int64)
        order: npt.NDArray[np.uint32] | None = None
        if len(offsets) > 2:
            starts = np.zeros(len(offsets), dtype=np.int64)
            order = self._scratch.array(rows.length, np.uint32)
            kernels.group_edges(rows.neighbour, offsets, starts, order)
        self.counts[split][part] = np.diff(starts)
        tasks: list[Future[FileEntry]] = [
            pool.submit(self._write_bucket, split, part, j, rows, order, starts)
            for j in range(len(offsets) - 1)
            if starts[j + 1] > starts[j]
        ]
        entries = [task.result() for task in tasks]
        if split == self._indexed_split:
            self._fingerprints.extend(entry.checksum for entry in entries)
        if self._log.rows is None:
            return None
        edge = self._scratch.array(rows.length, np.int64)
        edge[slice(None) if order is None else order] = np.arange(rows.length)
        edge += first_edge
        return edge

    def _write_bucket(
        self,
        split: str,
        i: int,
        j: int,
        rows: "_Rows",
        order: npt.NDArray[np.uint32] | None,
        starts: npt.NDArray[np.int64],
    ) -> FileEntry:
        begin, end = int(starts[j]), int(starts[j + 1])
        pick: Any = slice(begin, end) if order is None else order[begin:end]
        base = int(self._dst.offsets[j])
        dst = rows.neighbour[pick]
        if base:
            dst = dst - dst.dtype.type(base)
        size = int(self._dst.offsets[j + 1]) - base
        arrays: dict[str, Any] = {
            "src": _local(rows.row[pick], rows.num_rows),
            "dst": _local(dst, size),
        }
        for name, values in rows.columns.items():
            if name == "relation":
                codes = pa.array(values[pick])
                texts = pa.array(self._log.relation_names, type=pa.string())
                arrays[name] = pa.DictionaryArray.from_arrays(codes, texts)
            elif name not in ("record", "edge"):
                arrays[name] = values[pick]
        if self._log.rows is not None:
            arrays.update(self._log.rows.take(rows.columns["record"][pick]))
        batch = pa.record_batch(
            [pa.array(array) for array in arrays.values()], list(arrays)
        )
        path = names.bucket_file(self._transaction.generation, self.name, split, i, j)
        return self._transaction.add_file(path, batch)

    # ---- the other direction

    def _turned_sorter(self) -> RowSorter:
        """Make the sorter of the in-index, or of the symmetric one."""
        dtypes = {name: dtype for name, dtype in self._dtypes.items() if name != "record"}
        if self._log.rows is not None:
            dtypes["edge"] = np.dtype(np.int64)
        sorter = self._sorter(f"{self.name}-turned", self._dst, self._src)
        return RowSorter(
            self._scratch,
            f"{self.name}-turned",
            sorter.plan,
            self._dst.offsets,
            self._src.num_nodes,
            dtypes,
        )

    def _turn(self, turned: RowSorter, part: int, rows: "_Rows") -> None:
        """Hand a partition's edges to the sorter of the other direction, slice by slice."""
        base = int(self._src.offsets[part])
        for begin in range(0, rows.length, _SLICE):
            piece = slice(begin, begin + _SLICE)
            src = rows.row[piece] + rows.row.dtype.type(base)
            dst = rows.neighbour[piece]
            columns = {name: values[piece] for name, values in rows.columns.items()}
            columns.pop("record", None)
            turned.append(*turned.group(dst, src, columns))
            if self._is_symmetric:  # a self-loop appears once in its row
                pick = src != dst
                both = {name: values[pick] for name, values in columns.items()}
                turned.append(*turned.group(src[pick], dst[pick], both))

    def _write_turned(self, turned: RowSorter) -> None:
        direction = "out" if self._is_symmetric else "in"
        nothing = Cleaning(same_type=False)
        for part in range(len(self._dst.offsets) - 1):
            rows = _Rows(self._scratch, turned, part, self._dst.offsets, nothing)
            self._write_index(direction, part, rows)
        turned.remove()

    def _write_index(self, direction: str, part: int, rows: "_Rows") -> None:
        if not rows.num_rows:
            return
        path = names.index_file(self._transaction.generation, self.name, direction, part)
        columns = {
            name: values for name, values in rows.columns.items() if name != "record"
        }
        batch = index_batch(rows.counts, rows.neighbour, columns)
        self._transaction.add_file(path, batch)


class _Rows:
    """All sorted edges of one partition's rows, in memory or in mapped files."""

    def __init__(
        self,
        scratch: Scratch,
        sorter: RowSorter,
        part: int,
        offsets: npt.NDArray[np.int64],
        cleaning: Cleaning,
    ) -> None:
        self.num_rows = int(offsets[part + 1] - offsets[part])
        room = sorter.length(part)
        self.length = self.duplicates = self.self_loops = 0
        self.counts = scratch.zeros(self.num_rows, np.int64)
        row = neighbour = np.empty(0, dtype=np.uint32)
        columns: Columns = {
            name: np.empty(0, dtype) for name, dtype in sorter.dtypes.items()
        }
        for piece in sorter.sorted_ranges(part, cleaning):
            if not self.length:  # dtypes are known from the first piece on
                row = scratch.array(room, piece.row.dtype)
                neighbour = scratch.array(room, piece.neighbour.dtype)
                columns = {
                    name: scratch.array(room, values.dtype)
                    for name, values in piece.columns.items()
                }
            at = slice(self.length, self.length + len(piece.row))
            row[at], neighbour[at] = piece.row, piece.neighbour
            for name, values in piece.columns.items():
                columns[name][at] = values
            kernels.count_rows(piece.row, self.counts)
            self.length = at.stop
            self.duplicates += piece.duplicates
            self.self_loops += piece.self_loops
        self.row, self.neighbour = row[: self.length], neighbour[: self.length]
        self.columns = {name: values[: self.length] for name, values in columns.items()}


def index_batch(
    counts: npt.NDArray[np.int64], neighbour: npt.NDArray[Any], columns: Columns
) -> pa.RecordBatch:
    """Build the one-row record batch of an index file.

    Args:
        counts: Edges of every row, int64 ``[N]``.
        neighbour: Numbers of the neighbours, row after row ``[E]``.
        columns: Columns in the same order.
    """
    length = len(neighbour)
    indptr = np.zeros(len(counts) + 1, dtype=np.uint32 if length < 2**32 else np.int64)
    np.cumsum(counts, out=indptr[1:])
    if "edge" in columns and (not length or int(columns["edge"].max()) < 2**32):
        columns = {**columns, "edge": columns["edge"].astype(np.uint32)}
    arrays = {"indptr": indptr, "indices": neighbour, **columns}
    lists = [
        pa.LargeListArray.from_arrays(
            pa.array([0, len(values)], pa.int64()), pa.array(values)
        )
        for values in arrays.values()
    ]
    return pa.record_batch(lists, list(arrays))


def index_fingerprint(checksums: list[str]) -> str:
    """Return what an index was built from: a hash of its buckets' checksums."""
    return "sha256:" + hashlib.sha256("\n".join(checksums).encode()).hexdigest()


def _local(values: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    dtype = np.dtype(np.uint32 if size <= 2**32 else np.int64)
    return values.astype(dtype, copy=False)
