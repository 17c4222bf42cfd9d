"""What a reader hands out: buckets as views of mapped files (indexes are a Csr)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.graph.csr import Csr
from graphsys.storage.manifest import EdgeTypeEntry

Index = Csr
"""The name that rows of an index had before."""
IdArray = npt.NDArray[np.uint32] | npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeBucket:
    """The edges from one partition to another, sorted by (src, dst); views of the file.

    Attributes:
        src: Local numbers of the sources, uint32 or int64 ``[E]``.
        dst: Local numbers of the destinations, uint32 or int64 ``[E]``.
        relation: Codes into :meth:`Graph.relations`, uint16 or uint32 ``[E]``, or None.
        weight: Weights ``[E]``, or None.
        time: Times, int64 ``[E]``, or None.
        columns: Further columns, as Arrow arrays ``[E]``.
    """

    src: IdArray
    dst: IdArray
    relation: npt.NDArray[Any] | None = None
    weight: npt.NDArray[Any] | None = None
    time: npt.NDArray[Any] | None = None
    columns: Mapping[str, pa.Array] = field(default_factory=dict)

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return len(self.src)


def bucket_of(batch: pa.RecordBatch) -> EdgeBucket:
    """Return the bucket that a file's one record batch holds, as views."""
    arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
    relation = arrays.pop("relation", None)
    optional = {
        name: view_of(arrays.pop(name)) for name in ("weight", "time") if name in arrays
    }
    return EdgeBucket(
        src=view_of(arrays.pop("src")),
        dst=view_of(arrays.pop("dst")),
        relation=None if relation is None else view_of(relation.indices),
        columns=arrays,
        **optional,
    )


def view_of(array: pa.Array) -> npt.NDArray[Any]:
    """Return a fixed-width Arrow array without nulls as numpy, without a copy.

    Numbers are viewed by hand: Arrow's ``to_numpy`` imports pandas, where it is installed,
    which takes longer than many a run.
    """
    is_number = pa.types.is_integer(array.type) or pa.types.is_floating(array.type)
    if not is_number or array.null_count or not len(array):
        converted: npt.NDArray[Any] = array.to_numpy(zero_copy_only=True)
        return converted
    dtype = np.dtype(array.type.to_pandas_dtype())
    start = array.offset * dtype.itemsize
    return np.frombuffer(array.buffers()[1], dtype, count=len(array), offset=start)


def array_of(values: npt.NDArray[Any], valid: npt.NDArray[Any] | None = None) -> pa.Array:
    """Return numbers as an Arrow array, without a copy and without pandas.

    Args:
        values: Integers or floats ``[N]``; kept, not copied, where they are contiguous.
        valid: The numbers that are not null, a bitmap (kernels.cpu.bits); all by default.
    """
    assert values.dtype.kind in "iuf"  # Arrow packs booleans into bits
    assert values.ndim == 1
    bitmap = None if valid is None else pa.py_buffer(valid)
    buffers = [bitmap, pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def empty_bucket(entry: EdgeTypeEntry) -> EdgeBucket:
    """Return no edges, with the columns that the type's other buckets have."""
    empty = np.empty(0, dtype=np.uint32)
    numeric = {"float": "f4", "double": "f8", "int64": "i8", "uint64": "u8"}
    optional: dict[str, npt.NDArray[Any]] = {
        name: np.empty(0, dtype=numeric[entry.columns[name]])
        for name in ("weight", "time")
        if name in entry.columns
    }
    if entry.relations is not None:
        wide = len(entry.relations) > 2**16
        optional["relation"] = np.empty(0, dtype=np.uint32 if wide else np.uint16)
    return EdgeBucket(
        src=empty,
        dst=empty,
        relation=optional.get("relation"),
        weight=optional.get("weight"),
        time=optional.get("time"),
    )
