"""Columns of a store's nodes as programs read them: numbers, and codes of texts."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import InvalidGraphError
from graphsys.storage.node_numbers import NodeNumbers

CODES = np.dtype(np.int32)
"""Dtype of the codes of texts; -1 is null."""

_FLOATS = {"halffloat": np.float32, "float": np.float32, "double": np.float64}
_WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
_TEXTS = ("string", "large_string", "dictionary<values=string", "dictionary<values=large_")
_TIMES = ("timestamp", "date")


def node_column_dtypes(numbers: NodeNumbers) -> dict[str, np.dtype[Any]]:
    """Return what programs read of each column of the nodes; lists are none of them.

    Texts are read as codes, times as int64 in the column's unit.
    """
    found: dict[str, np.dtype[Any]] = {}
    mixed = set()
    for types in numbers.column_types().values():
        for name, text in types.items():
            dtype = _dtype_of(text)
            if dtype is None:
                continue
            other = found.setdefault(name, dtype)
            if other != dtype:
                mixed.add(name)
    return {name: dtype for name, dtype in found.items() if name not in mixed}


def _dtype_of(text: str) -> np.dtype[Any] | None:
    if text in _FLOATS:
        return np.dtype(_FLOATS[text])
    if text in _WHOLE:
        return np.dtype(text)
    if text.startswith(_TIMES):
        return np.dtype(np.int64)
    return CODES if text.startswith(_TEXTS) else None


def read_node_column(
    numbers: NodeNumbers, name: str, dtype: np.dtype[Any], values: npt.NDArray[Any]
) -> None:
    """Write a column of all nodes into an array.

    Args:
        numbers: The nodes.
        name: A column of :func:`node_column_dtypes`.
        dtype: Its dtype there.
        values: Receives the column ``[N]``: NaN where floats are null, -1 where texts are;
            otherwise the place of a text among the column's distinct ones in order.

    Raises:
        InvalidGraphError: integers, times or booleans are null.
    """
    columns = numbers.columns(name)
    is_text = any(_is_text(column.type) for column in columns if column is not None)
    known = _distinct(columns) if is_text else None
    for low, column in zip(numbers.bases[:-1].tolist(), columns, strict=True):
        if column is None:
            high = int(numbers.bases[numbers.bases.tolist().index(low) + 1])
            _fill_null(numbers, name, dtype, values[low:high], high - low)
            continue
        for chunk in column.chunks:
            own = values[low : low + len(chunk)]
            low += len(chunk)
            if known is not None:
                plain = chunk.cast(pa.large_string())
                codes = pc.index_in(plain, value_set=known, skip_nulls=True)
                own[:] = codes.fill_null(-1).to_numpy(zero_copy_only=False)
                continue
            _fill(numbers, name, dtype, chunk, own)


def _fill(
    numbers: NodeNumbers, name: str, dtype: np.dtype[Any], chunk: Any, own: Any
) -> None:
    if pa.types.is_temporal(chunk.type):
        days = pa.types.is_date32(chunk.type)
        chunk = chunk.cast(pa.int32()).cast(pa.int64()) if days else chunk.cast(pa.int64())
    if chunk.null_count:
        if dtype.kind != "f":
            raise _nulls(numbers, name, dtype, chunk.null_count)
        chunk = chunk.fill_null(float("nan"))
    own[:] = chunk.to_numpy(zero_copy_only=False)


def _fill_null(
    numbers: NodeNumbers, name: str, dtype: np.dtype[Any], own: Any, count: int
) -> None:
    """Write what null is for nodes of a type that has no such column."""
    if not count:
        return
    if dtype.kind != "f" and dtype != CODES:
        raise _nulls(numbers, name, dtype, count)
    own[:] = np.nan if dtype.kind == "f" else -1


def _nulls(
    numbers: NodeNumbers, name: str, dtype: np.dtype[Any], count: int
) -> InvalidGraphError:
    return InvalidGraphError(
        f"column {name!r} of the nodes of {numbers.where} is {dtype} and null for {count} "
        "nodes, which no number of it stands for; ingest it as floats, whose nulls are NaN"
    )


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _distinct(columns: Any) -> Any:
    """Return the distinct texts of columns, in order."""
    found = [
        pc.unique(column.cast(pa.large_string()))
        for column in columns
        if column is not None
    ]
    every = pc.unique(pa.chunked_array(found)).drop_null()
    return every.take(pc.sort_indices(every))
