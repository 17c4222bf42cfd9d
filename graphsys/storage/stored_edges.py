"""Buckets and indexes as they lie in the files of a generation, without its deltas."""

from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from graphsys.core.types import number_dtype
from graphsys.graph.csr import Csr
from graphsys.storage import manifest as names
from graphsys.storage.integrity import check_bucket, check_index
from graphsys.storage.manifest import Manifest
from graphsys.storage.mapped_files import MappedFile, MappedFiles
from graphsys.storage.views import EdgeBucket, bucket_of, empty_bucket, view_of


class EdgeReader(Protocol):
    """Who hands out the edges of a store, by the name of their type and by split."""

    def bucket_counts(self, name: str, split: str) -> npt.NDArray[np.int64]:
        """Return the edges of every bucket, int64 ``[P_src, P_dst]``."""

    def bucket(self, name: str, i: int, j: int, split: str) -> EdgeBucket:
        """Return the edges from partition ``i`` to ``j``; empty where there are none."""

    def index(self, name: str, direction: str, part: int) -> Csr:
        """Return the ``out`` or ``in`` rows of a partition."""

    def joined(self, name: str, direction: str) -> Csr | None:
        """Return the rows of all partitions, where they are at hand as one."""


class StoredEdges:
    """Reads the files of a generation."""

    def __init__(self, manifest: Manifest, files: MappedFiles) -> None:
        self._manifest, self._files = manifest, files
        self._counts: dict[tuple[str, str], npt.NDArray[np.int64]] = {}

    def bucket_counts(self, name: str, split: str) -> npt.NDArray[np.int64]:
        """Return the edges of every bucket, int64 ``[P_src, P_dst]``."""
        if (name, split) not in self._counts:
            self._counts[name, split] = self._count(name, split)
        return self._counts[name, split].copy()

    def _count(self, name: str, split: str) -> npt.NDArray[np.int64]:
        entry, kinds = self._manifest.edge_types[name], self._manifest.node_types
        shape = kinds[entry.src_type].num_partitions, kinds[entry.dst_type].num_partitions
        counts = np.zeros(shape, dtype=np.int64)
        for i, j in np.ndindex(shape):
            path = names.bucket_file(self._manifest.generation, name, split, i, j)
            file = self._files.entries.get(path)
            counts[i, j] = file.rows if file else 0
        return counts

    def bucket(self, name: str, i: int, j: int, split: str) -> EdgeBucket:
        """Return the edges from partition ``i`` to ``j``; empty where there are none."""
        entry = self._manifest.edge_types[name]
        path = names.bucket_file(self._manifest.generation, name, split, i, j)
        if path not in self._files.entries:
            return empty_bucket(entry)
        sizes = self._size(entry.src_type, i), self._size(entry.dst_type, j)
        rows = self._files.entries[path].rows
        check = partial(check_bucket, rows=rows, num_src=sizes[0], num_dst=sizes[1])
        with self._files.reading(path, check) as batch:
            return bucket_of(batch)

    def index(self, name: str, direction: str, part: int) -> Csr:
        """Return the ``out`` or ``in`` rows of a partition."""
        entry = self._manifest.edge_types[name]
        own, other = entry.src_type, entry.dst_type
        if direction == "in":
            own, other = other, own
        path = names.index_file(self._manifest.generation, name, direction, part)
        size = self._size(own, part)
        num_others = self._manifest.node_types[other].num_nodes
        if not self._files.is_listed(path, size if self._num_indexed(name) else 0):
            indptr = np.zeros(size + 1, dtype=np.uint32)
            return Csr(indptr=indptr, indices=np.empty(0, dtype=number_dtype(num_others)))
        check = partial(check_index, num_rows=size, num_others=num_others, edge=entry)
        with self._files.mapping(path, check) as mapped:
            return index_of(mapped)

    def joined(self, name: str, direction: str) -> Csr | None:
        """Return None: partitions lie in files of their own."""
        del name, direction
        return None

    def _num_indexed(self, name: str) -> int:
        entry = self._manifest.edge_types[name]
        return entry.num_edges.get(entry.counting_split, 0)

    def _size(self, node_type: str, part: int) -> int:
        offsets = self._manifest.node_types[node_type].offsets
        return offsets[part + 1] - offsets[part]


def index_of(mapped: MappedFile) -> Csr:
    """Return the rows of an index file, and where its columns lie."""
    lists = zip(mapped.batch.schema.names, mapped.batch.columns, strict=True)
    columns = {name: view_of(column.values) for name, column in lists}
    entries = {name: column for name, column in columns.items() if name != "indptr"}
    places = {name: mapped.place(column) for name, column in entries.items()}
    return Csr(**columns, files=places)
