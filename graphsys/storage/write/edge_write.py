"""Buckets and indexes of one edge type, written partition by partition.

The rows of a source partition are sorted once: in that order they are the partition's
CSR, and grouped by destination partition (stably) they are its buckets. The other
direction follows from the buckets (``edge_index``).
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.memory import release_free_memory
from graphsys.core.types import DEFAULT_SPLIT, EdgeType, number_dtype
from graphsys.graph.csr import read_only
from graphsys.kernels.cpu.rows import ingest as kernels
from graphsys.storage import manifest as names
from graphsys.storage.manifest import EdgeTypeEntry, FileEntry
from graphsys.storage.scratch import Scratch
from graphsys.storage.transaction import Transaction
from graphsys.storage.views import EdgeBucket, array_of, bucket_of
from graphsys.storage.write.edge_index import IncomingIndex, index_batch, index_fingerprint
from graphsys.storage.write.edge_sort import (
    Cleaning,
    Columns,
    RangePlan,
    RowSorter,
    SortedEdges,
)
from graphsys.storage.write.row_store import RowStore


class Columned(Protocol):
    """What is known of the columns of an edge type; ``edge_log.EdgeLog`` has it."""

    @property
    def edge_type(self) -> EdgeType:
        """The edge type."""

    @property
    def splits(self) -> Mapping[str, int]:
        """Edges per split."""

    @property
    def relation_names(self) -> list[str] | None:
        """Names of the relations by code."""

    @property
    def time_unit(self) -> str:
        """Unit of the times."""

    @property
    def rows(self) -> RowStore | None:
        """Further columns."""

    def dtypes(self, *, coalesce: bool) -> dict[str, np.dtype[Any]]:
        """Return the dtypes of the columns that travel with the edges."""


class Numbered(Protocol):
    """The nodes of a type; ``id_mapping.NodeNumbering`` has it."""

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """First number of every partition, and the number of nodes."""

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""

    def degrees(self) -> npt.NDArray[np.uint32]:
        """Return upper bounds of the edges by number."""


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
        plan: How rows are cut to be sorted; None for by the degrees of ``src``.

    Attributes:
        counts: Stored edges of every bucket by split, int64 ``[P_src, P_dst]``.
        duplicates: Edges beyond the first of each, written so far.
        self_loops: Edges from a node to itself, likewise.
        fingerprints: Checksums of the buckets of the split that is indexed, likewise.
        indexed_split: Its name.
    """

    def __init__(
        self,
        name: str,
        log: Columned,
        src: Numbered,
        dst: Numbered,
        transaction: Transaction,
        scratch: Scratch,
        *,
        cleaning: Cleaning,
        is_directed: bool,
        plan: RangePlan | None = None,
    ) -> None:
        self.name = name
        self.counts: dict[str, npt.NDArray[np.int64]] = {}
        self._log, self._src, self._dst = log, src, dst
        self._transaction, self._scratch = transaction, scratch
        self._cleaning = cleaning
        self._is_directed = is_directed
        self._is_symmetric = not is_directed and cleaning.same_type
        self._dtypes = log.dtypes(coalesce=cleaning.coalesce)
        self.duplicates = self.self_loops = 0
        self.fingerprints: list[str] = []
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
                plan,
            )
            for split in log.splits
        }
        only = next(iter(log.splits)) if len(log.splits) == 1 else DEFAULT_SPLIT
        self.indexed_split = only

    @property
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """Columns that travel with the edges."""
        return self._dtypes

    @property
    def plan(self) -> RangePlan:
        """How rows are cut to be sorted, before the first split is written."""
        return next(iter(self._waiting.values())).plan

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

    def ranges(self, split: str, part: int) -> tuple[int, int]:
        """Return the first range of a partition's rows, and the first behind them."""
        return self._waiting[split].ranges(part)

    def write(self) -> EdgeTypeEntry:
        """Write all buckets and indexes and return the manifest's entry."""
        for split in self._log.splits:
            self.write_split(split)
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
            duplicates=self.duplicates,
            self_loops=self.self_loops,
            index_fingerprint=index_fingerprint(self.fingerprints),
            time_unit=self._log.time_unit,
        )

    # ---- one split

    def write_split(self, split: str) -> None:
        """Write the buckets of a split and, of one split, the indexes."""
        num_src, num_dst = len(self._src.offsets) - 1, len(self._dst.offsets) - 1
        self.counts[split] = np.zeros((num_src, num_dst), dtype=np.int64)
        first_edge = 0
        for part in range(num_src):
            first_edge += self.write_part(split, part, first_edge)
        self._waiting.pop(split).remove()
        release_free_memory()
        if split == self.indexed_split:
            index = self._incoming(split)
            for part in range(num_dst):
                self._write_incoming(index, part)

    def write_part(self, split: str, part: int, first_edge: int) -> int:
        """Write what starts in a partition; return how many edges that are.

        Args:
            split: Their split, whose ``counts`` there are.
            part: The partition.
            first_edge: Edges of the split that start in partitions before it.
        """
        rows = self._waiting[split].sort(part, self._cleaning)
        self.duplicates += rows.duplicates
        self.self_loops += rows.self_loops
        with ThreadPoolExecutor(2) as pool:
            self._write_part(pool, split, part, rows, first_edge)
        return rows.length

    def write_incoming(self, part: int) -> None:
        """Write the index of the other direction of a partition, from the buckets."""
        self._write_incoming(self._incoming(self.indexed_split), part)

    def _write_part(
        self,
        pool: ThreadPoolExecutor,
        split: str,
        part: int,
        rows: SortedEdges,
        first_edge: int,
    ) -> None:
        """Write a source partition's buckets and, if directed, its CSR beside them."""
        offsets = self._dst.offsets
        starts = np.array([0, rows.length], dtype=np.int64)
        order: npt.NDArray[Any] | None = None
        if len(offsets) > 2:
            starts = np.zeros(len(offsets), dtype=np.int64)
            order = self._scratch.array(rows.length, number_dtype(rows.length))
            kernels.group_edges(rows.neighbor, read_only(offsets), starts, order)
        self.counts[split][part] = np.diff(starts)
        is_indexed = split == self.indexed_split
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
            self.fingerprints.extend(entry.checksum for entry in entries)
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
        rows: SortedEdges,
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
                codes = array_of(values[pick])
                texts = pa.array(self._log.relation_names, type=pa.string())
                arrays[name] = pa.DictionaryArray.from_arrays(codes, texts)
            elif name != "record":
                arrays[name] = values[pick]
        if self._log.rows is not None:
            arrays.update(self._log.rows.take(rows.columns["record"][pick]))
        batch = pa.record_batch(
            [array_of(it) if isinstance(it, np.ndarray) else it for it in arrays.values()],
            list(arrays),
        )
        path = names.bucket_file(self._transaction.generation, self.name, split, i, j)
        return self._transaction.add_file(path, batch)

    def _incoming(self, split: str) -> IncomingIndex:
        """Return what makes the CSC, or the symmetric index, of the buckets."""
        generation = self._transaction.generation

        def read(i: int, j: int) -> EdgeBucket:
            path = names.bucket_file(generation, self.name, split, i, j)
            mapped = pa.memory_map(str(self._transaction.file(path)))
            return bucket_of(pa.ipc.open_file(mapped).get_batch(0))

        dtypes = {name: dtype for name, dtype in self._dtypes.items() if name != "record"}
        if self._log.rows is not None:
            dtypes["edge"] = np.dtype(np.int64)
        return IncomingIndex(
            read,
            self.counts[split],
            self._src.offsets,
            self._dst.offsets,
            self._scratch,
            is_symmetric=self._is_symmetric,
            dtypes=dtypes,
        )

    def _write_incoming(self, index: IncomingIndex, part: int) -> None:
        if self._dst.offsets[part] < self._dst.offsets[part + 1]:
            direction = "out" if self._is_symmetric else "in"
            generation = self._transaction.generation
            path = names.index_file(generation, self.name, direction, part)
            self._transaction.add_file(path, index.build(part))
