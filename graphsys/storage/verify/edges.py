"""Verify buckets one by one, and indexes against the buckets they were built from."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.types import number_dtype
from graphsys.kernels.cpu.rows import checks
from graphsys.storage.manifest import EdgeTypeEntry, FileEntry, Manifest

_SLICE = 1 << 18
_TRAVELLING = ("weight", "time", "relation")

Columns = dict[str, npt.NDArray[Any]]


def read_bucket(
    batch: pa.RecordBatch,
    entry: FileEntry,
    edge: EdgeTypeEntry,
    manifest: Manifest,
    i: int,
    j: int,
) -> Columns:
    """Check a bucket and return its numeric columns as views.

    Raises:
        ValueError: schema, sizes, ranges or order are wrong.
    """
    src_offsets = manifest.node_types[edge.src_type].offsets
    dst_offsets = manifest.node_types[edge.dst_type].offsets
    if i + 1 >= len(src_offsets) or j + 1 >= len(dst_offsets):
        raise ValueError("is of a partition that does not exist")
    if batch.num_rows != entry.rows:
        raise ValueError(f"has {batch.num_rows} rows, graph.json says {entry.rows}")
    num_src = src_offsets[i + 1] - src_offsets[i]
    num_dst = dst_offsets[j + 1] - dst_offsets[j]
    arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
    stated = {
        "src": str(pa.from_numpy_dtype(number_dtype(num_src))),
        "dst": str(pa.from_numpy_dtype(number_dtype(num_dst))),
        **edge.columns,
    }
    relation = arrays.pop("relation", None)
    found = {name: str(array.type) for name, array in arrays.items()}
    if found != stated or (relation is None) != (edge.relations is None):
        raise ValueError(f"has the columns {found}, graph.json says {stated}")
    columns = {
        name: _no_nulls(name, array)
        for name, array in arrays.items()
        if name in ("src", "dst", *_TRAVELLING)
    }
    if relation is not None:
        columns["relation"] = _relation_codes(relation, edge)
    fault, at = checks.check_bucket(columns["src"], columns["dst"], num_src, num_dst)
    if fault == checks.UNSORTED:
        raise ValueError(f"is not sorted by (src, dst) at row {at}")
    if fault != checks.SOUND:
        name, size = ("src", num_src) if fault == checks.ROW_RANGE else ("dst", num_dst)
        raise ValueError(
            f"has {name} {columns[name][at]} in row {at}, its partition has {size} nodes"
        )
    return columns


def _no_nulls(name: str, array: pa.Array) -> npt.NDArray[Any]:
    if array.null_count:
        raise ValueError(f"has {array.null_count} missing values in {name!r}")
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=True)
    return values


def _relation_codes(relation: pa.Array, edge: EdgeTypeEntry) -> npt.NDArray[Any]:
    if not pa.types.is_dictionary(relation.type):
        raise ValueError(f"has relations of type {relation.type}, expected a dictionary")
    wide = len(edge.relations or ()) > 2**16
    if relation.type.index_type != (pa.uint32() if wide else pa.uint16()):
        raise ValueError(f"has relation codes of type {relation.type.index_type}")
    if relation.dictionary.to_pylist() != edge.relations:
        raise ValueError("has another dictionary of relations than graph.json")
    return _no_nulls("relation", relation.indices)


class EdgeSums:
    """Sums of the words of all edges, by the partition whose index row holds them."""

    def __init__(self, manifest: Manifest, edge: EdgeTypeEntry) -> None:
        self._src = manifest.node_types[edge.src_type].offsets
        self._dst = manifest.node_types[edge.dst_type].offsets
        self._is_symmetric = not edge.directed and edge.src_type == edge.dst_type
        self._has_edge_column = bool(edge.columns.keys() - set(_TRAVELLING))
        self._position = 0
        self.sums = {
            "out": np.zeros(len(self._src) - 1, dtype=np.uint64),
            "in": np.zeros(len(self._dst) - 1, dtype=np.uint64),
        }

    def skip(self, num_edges: int) -> None:
        """Count the edges of a bucket that cannot be read."""
        self._position += num_edges

    def add(self, bucket: Columns, i: int, j: int) -> None:
        """Add the edges of a bucket; buckets come by (i, j)."""
        src, dst = bucket["src"], bucket["dst"]
        bases = self._src[i], self._dst[j]
        for begin in range(0, len(src), _SLICE):
            s, d = src[begin : begin + _SLICE], dst[begin : begin + _SLICE]
            piece = {name: bucket[name][begin : begin + _SLICE] for name in bucket}
            if self._has_edge_column:
                piece["edge"] = np.arange(self._position, self._position + len(s))
            words = np.empty(len(s), dtype=np.uint64)
            checks.bucket_words(s, d, *bases, words)
            fold(piece, words)
            with np.errstate(over="ignore"):
                self.sums["out"][i] += checks.sum_words(words)
                if self._is_symmetric:
                    checks.bucket_words(d, s, *bases[::-1], words)
                    fold(piece, words)
                    self.sums["out"][j] += checks.sum_words_but_loops(s, d, *bases, words)
                else:
                    self.sums["in"][j] += checks.sum_words(words)
            self._position += len(s)


def fold(columns: Columns, words: npt.NDArray[np.uint64]) -> None:
    """Mix the columns that travel with the edges into their words."""
    for name in (*_TRAVELLING, "edge"):
        if name in columns:
            values = columns[name]
            if values.dtype.kind == "f":
                values = values.view(f"u{values.dtype.itemsize}")
            checks.fold_column(values, words)


def check_index(
    batch: pa.RecordBatch,
    edge: EdgeTypeEntry,
    manifest: Manifest,
    direction: str,
    part: int,
    sums: EdgeSums | None,
) -> None:
    """Check an index file and, if ``sums`` are known, that its edges are the buckets'.

    Raises:
        ValueError: schema, sizes, ranges, order or edges are wrong.
    """
    own, other = edge.src_type, edge.dst_type
    if direction == "in":
        own, other = other, own
    offsets = manifest.node_types[own].offsets
    num_neighbors = manifest.node_types[other].num_nodes
    columns = _index_columns(batch, edge)
    num_rows = offsets[part + 1] - offsets[part]
    indptr, indices = columns.pop("indptr"), columns.pop("indices")
    if len(indptr) != num_rows + 1:
        raise ValueError(f"has {len(indptr)} row offsets for {num_rows} nodes")
    _check_dtype("indptr", indptr, len(indices) < 2**32)
    _check_dtype("indices", indices, number_dtype(num_neighbors) == np.uint32)
    for name, values in columns.items():
        if len(values) != len(indices):
            raise ValueError(f"has {len(values)} of {name!r} for {len(indices)} edges")
    fault, at = checks.check_rows(indptr, indices, num_neighbors)
    if fault == checks.ROW_RANGE:
        raise ValueError(f"has wrong row offsets at row {at}")
    if fault == checks.NEIGHBOR_RANGE:
        raise ValueError(f"has neighbor {indices[at]} of {num_neighbors} at entry {at}")
    if fault == checks.UNSORTED:
        raise ValueError(f"has a row whose neighbors are not sorted at entry {at}")
    if sums is not None:
        total = _sum_index(indptr, indices, columns, offsets[part], direction == "in")
        if total != sums.sums[direction][part]:
            raise ValueError("does not hold the edges of the buckets")


def _index_columns(batch: pa.RecordBatch, edge: EdgeTypeEntry) -> Columns:
    if batch.num_rows != 1:
        raise ValueError(f"has {batch.num_rows} rows, expected one row of lists")
    columns: Columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if not pa.types.is_large_list(column.type) or column.null_count:
            raise ValueError(f"has {name!r} of type {column.type}, expected a large list")
        columns[name] = _no_nulls(name, column.flatten())
    wanted = {"indptr", "indices", *(edge.columns.keys() & set(_TRAVELLING))}
    if edge.relations is not None:
        wanted.add("relation")
    if edge.columns.keys() - set(_TRAVELLING):
        wanted.add("edge")
    if columns.keys() != wanted:
        raise ValueError(f"has the columns {sorted(columns)}, expected {sorted(wanted)}")
    return columns


def _check_dtype(name: str, values: npt.NDArray[Any], is_narrow: bool) -> None:
    wanted = np.dtype(np.uint32 if is_narrow else np.int64)
    if values.dtype != wanted:
        raise ValueError(f"has {name!r} of type {values.dtype}, expected {wanted}")


def _sum_index(
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    columns: Columns,
    row_base: int,
    is_turned: bool,
) -> np.uint64:
    total = np.zeros((), dtype=np.uint64)
    for begin in range(0, len(indices), _SLICE):
        end = min(begin + _SLICE, len(indices))
        row = int(np.searchsorted(indptr, indptr.dtype.type(begin), side="right")) - 1
        words = np.empty(end - begin, dtype=np.uint64)
        checks.index_words(indptr, indices, row, row_base, begin, end, is_turned, words)
        fold({name: values[begin:end] for name, values in columns.items()}, words)
        with np.errstate(over="ignore"):
            total += checks.sum_words(words)
    return np.uint64(total)
