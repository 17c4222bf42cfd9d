"""Buckets and indexes of one edge type, written partition by partition.

The rows of a source partition are sorted once: in that order they are the partition's
CSR, and grouped by destination partition (stably) they are its buckets. The other
direction follows from the buckets (``edge_index``).
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.memory import release_free_memory
from graphsys.core.types import DEFAULT_SPLIT, number_dtype
from graphsys.kernels.cpu.rows import ingest as kernels
from graphsys.storage import manifest as names
from graphsys.storage.ids.id_mapping import NodeNumbering
from graphsys.storage.manifest import EdgeTypeEntry, FileEntry
from graphsys.storage.scratch import Scratch
from graphsys.storage.transaction import Transaction
from graphsys.storage.views import EdgeBucket, bucket_of
from graphsys.storage.write.edge_index import IncomingIndex, index_batch, index_fingerprint
from graphsys.storage.write.edge_log import EdgeLog
from graphsys.storage.write.edge_sort import Cleaning, Columns, RowSorter, SortedRows


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
        # made here: what the numberings know of degrees is given up before write()
        self._waiting = {
            split: RowSorter(
                scratch,
                f"{name}-{split}",
                src.offsets,
                src.degrees(),
                dst.num_nodes,
                self._dtypes,
                len(log.relation_names or ()),
            )
            for split in log.splits
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
            time_unit=self._log.time_unit,
        )

    # ---- one split

    def _write_split(self, split: str) -> None:
        waiting = self._waiting.pop(split)
        num_src, num_dst = len(self._src.offsets) - 1, len(self._dst.offsets) - 1
        self.counts[split] = np.zeros((num_src, num_dst), dtype=np.int64)
        first_edge = 0
        with ThreadPoolExecutor(2) as pool:
            for part in range(num_src):
                rows = waiting.sort(part, self._cleaning)
                self._duplicates += rows.duplicates
                self._self_loops += rows.self_loops
                self._write_part(pool, split, part, rows, first_edge)
                first_edge += rows.length
                del rows
        waiting.remove()
        release_free_memory()
        if split == self._indexed_split:
            self._write_incoming(split)

    def _write_part(
        self,
        pool: ThreadPoolExecutor,
        split: str,
        part: int,
        rows: SortedRows,
        first_edge: int,
    ) -> None:
        """Write a source partition's buckets and, if directed, its CSR beside them."""
        offsets = self._dst.offsets
        starts = np.array([0, rows.length], dtype=np.int64)
        order: npt.NDArray[Any] | None = None
        if len(offsets) > 2:
            starts = np.zeros(len(offsets), dtype=np.int64)
            order = self._scratch.array(rows.length, number_dtype(rows.length))
            kernels.group_edges(rows.neighbor, offsets, starts, order)
        self.counts[split][part] = np.diff(starts)
        is_indexed = split == self._indexed_split
        buckets = [
            pool.submit(self._write_bucket, split, part, j, rows, order, starts)
            for j in range(len(offsets) - 1)
            if starts[j + 1] > starts[j]
        ]
        index = None
        if is_indexed and not self._is_symmetric and rows.num_rows:
            columns = {k: v for k, v in rows.columns.items() if k != "record"}
            if self._log.rows is not None:
                columns["edge"] = self._positions(rows.length, order, first_edge)
            batch = index_batch(rows.counts, rows.neighbor, columns, self._scratch)
            path = names.index_file(self._transaction.generation, self.name, "out", part)
            index = pool.submit(self._transaction.add_file, path, batch)
        entries = [task.result() for task in buckets]
        if is_indexed:
            self._fingerprints.extend(entry.checksum for entry in entries)
        if index is not None:
            index.result()

    def _positions(
        self, length: int, order: npt.NDArray[Any] | None, first_edge: int
    ) -> npt.NDArray[np.int64]:
        """Return the position in the sequence of buckets of a partition's sorted edges."""
        edge = self._scratch.array(length, np.int64)
        edge[slice(None) if order is None else order] = np.arange(length)
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
        dst = rows.neighbor[pick]
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
            elif name != "record":
                arrays[name] = values[pick]
        if self._log.rows is not None:
            arrays.update(self._log.rows.take(rows.columns["record"][pick]))
        batch = pa.record_batch(
            [pa.array(array) for array in arrays.values()], list(arrays)
        )
        path = names.bucket_file(self._transaction.generation, self.name, split, i, j)
        return self._transaction.add_file(path, batch)

    def _write_incoming(self, split: str) -> None:
        """Write the CSC, or the symmetric index, from the buckets."""
        generation = self._transaction.generation

        def read(i: int, j: int) -> EdgeBucket:
            path = names.bucket_file(generation, self.name, split, i, j)
            mapped = pa.memory_map(str(self._transaction.path / path))
            return bucket_of(pa.ipc.open_file(mapped).get_batch(0))

        dtypes = {name: dtype for name, dtype in self._dtypes.items() if name != "record"}
        if self._log.rows is not None:
            dtypes["edge"] = np.dtype(np.int64)
        index = IncomingIndex(
            read,
            self.counts[split],
            self._src.offsets,
            self._dst.offsets,
            self._scratch,
            is_symmetric=self._is_symmetric,
            dtypes=dtypes,
        )
        direction = "out" if self._is_symmetric else "in"
        for part, num_rows in enumerate(np.diff(self._dst.offsets)):
            if num_rows:
                path = names.index_file(generation, self.name, direction, part)
                self._transaction.add_file(path, index.build(part))
