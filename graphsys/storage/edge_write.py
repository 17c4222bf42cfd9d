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

from graphsys.core.threads import map_in_order
from graphsys.core.types import DEFAULT_SPLIT, number_dtype
from graphsys.kernels.cpu import ingest as kernels
from graphsys.storage import manifest as names
from graphsys.storage.edge_log import EdgeLog
from graphsys.storage.edge_sort import NO_CLEANING, Cleaning, Columns, RowSorter, SortedRows
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
            split: self._sorter(split, src, dst, self._dtypes) for split in log.splits
        }
        only = next(iter(log.splits)) if len(log.splits) == 1 else DEFAULT_SPLIT
        self._indexed_split = only
        # made here: what the numberings know of degrees is given up before write()
        self._turned = self._turned_sorter() if only in log.splits else None

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

    def _sorter(
        self,
        name: str,
        rows: NodeNumbering,
        others: NodeNumbering,
        dtypes: dict[str, np.dtype[Any]],
    ) -> RowSorter:
        return RowSorter(
            self._scratch,
            f"{self.name}-{name}",
            rows.offsets,
            rows.degrees(),
            others.num_nodes,
            dtypes,
            len(self._log.relation_names or ()),
        )

    # ---- one split

    def _write_split(self, split: str) -> None:
        waiting = self._waiting.pop(split)
        num_src, num_dst = len(self._src.offsets) - 1, len(self._dst.offsets) - 1
        self.counts[split] = np.zeros((num_src, num_dst), dtype=np.int64)
        is_indexed = split == self._indexed_split
        turned = self._turned if is_indexed else None
        first_edge = 0
        with ThreadPoolExecutor(2) as pool:
            for part in range(num_src):
                rows = waiting.sort(part, self._cleaning)
                self._duplicates += rows.duplicates
                self._self_loops += rows.self_loops
                edge = self._write_buckets(pool, split, part, rows, first_edge)
                first_edge += rows.length
                if turned is not None:
                    if edge is not None:
                        rows.columns["edge"] = edge
                    task = None
                    if not self._is_symmetric:
                        task = pool.submit(self._write_index, "out", part, rows)
                    self._turn(turned, part, rows)
                    if task is not None:
                        task.result()
            waiting.remove()
            if turned is not None:
                self._write_turned(turned, pool)

    def _write_buckets(
        self,
        pool: ThreadPoolExecutor,
        split: str,
        part: int,
        rows: SortedRows,
        first_edge: int,
    ) -> npt.NDArray[Any] | None:
        """Write a partition's buckets; return each edge's position if columns need it."""
        offsets = self._dst.offsets
        starts = np.array([0, rows.length], dtype=np.int64)
        order: npt.NDArray[Any] | None = None
        if len(offsets) > 2:
            starts = np.zeros(len(offsets), dtype=np.int64)
            order = self._scratch.array(rows.length, number_dtype(rows.length))
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
        rows: SortedRows,
        order: npt.NDArray[Any] | None,
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
            "src": rows.row[pick],
            "dst": dst.astype(number_dtype(size), copy=False),
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
        return self._sorter("turned", self._dst, self._src, dtypes)

    def _turn(self, turned: RowSorter, part: int, rows: SortedRows) -> None:
        """Hand a partition's edges to the sorter of the other direction, slice by slice."""
        base = int(self._src.offsets[part])
        dtype = number_dtype(self._src.num_nodes)

        def turn(begin: int) -> list[tuple[Columns, npt.NDArray[np.int64]]]:
            piece = slice(begin, begin + _SLICE)
            dst = rows.neighbour[piece]
            src = rows.row[piece].astype(dtype, copy=False) + dtype.type(base)
            columns = {name: rows.columns[name][piece] for name in turned.dtypes}
            grouped = [turned.group(dst, src, columns)]
            if self._is_symmetric:  # a self-loop appears once in its row
                pick = src != dst
                both = {name: values[pick] for name, values in columns.items()}
                grouped.append(turned.group(src[pick], dst[pick], both))
            return grouped

        for grouped in map_in_order(turn, range(0, rows.length, _SLICE)):
            for columns, starts in grouped:
                turned.append(columns, starts)

    def _write_turned(self, turned: RowSorter, pool: ThreadPoolExecutor) -> None:
        direction = "out" if self._is_symmetric else "in"
        tasks = []
        for part in range(len(self._dst.offsets) - 1):
            rows = turned.sort(part, NO_CLEANING)
            tasks.append(pool.submit(self._write_index, direction, part, rows))
        for task in tasks:
            task.result()
        turned.remove()

    def _write_index(self, direction: str, part: int, rows: SortedRows) -> None:
        if not rows.num_rows:
            return
        path = names.index_file(self._transaction.generation, self.name, direction, part)
        columns = {
            name: values for name, values in rows.columns.items() if name != "record"
        }
        batch = index_batch(rows.counts, rows.neighbour, columns)
        self._transaction.add_file(path, batch)


def index_batch(
    counts: npt.NDArray[np.int64], neighbour: npt.NDArray[Any], columns: Columns
) -> pa.RecordBatch:
    """Build the one-row record batch of an index file.

    Args:
        counts: Edges of every row, int64 ``[N]``.
        neighbour: Numbers of the neighbours, row after row ``[E]``.
        columns: Columns in the same order.
    """
    length = int(counts.sum())
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
