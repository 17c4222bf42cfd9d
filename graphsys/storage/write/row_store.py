"""Columns of any Arrow type, spilled as they come and taken back by row."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import InputError
from graphsys.storage.scratch import Scratch


class RowStore:
    """Rows appended chunk by chunk and, after :meth:`finish`, taken in any order.

    Args:
        scratch: Whose folder the file goes to.
        name: For the file's name.
    """

    def __init__(self, scratch: Scratch, name: str) -> None:
        file = scratch.file(name)
        self._path = Path(file.path)
        self._sink = pa.OSFile(str(self._path), "wb")
        self._writer: pa.RecordBatchFileWriter | None = None
        self._schema: pa.Schema | None = None
        self._num_rows = 0
        self._table: pa.Table | None = None

    def append(self, columns: Mapping[str, pa.Array]) -> int:
        """Append rows and return the position of the first.

        Raises:
            InputError: names or types differ from those of the rows before.
        """
        batch = pa.record_batch(
            [_widen(array) for array in columns.values()], names=list(columns)
        )
        if self._schema is None or self._writer is None:
            self._schema = batch.schema
            self._writer = pa.ipc.new_file(self._sink, self._schema)
        elif batch.schema != self._schema:
            try:
                batch = batch.select(self._schema.names).cast(self._schema)
            except (KeyError, pa.ArrowException) as err:
                raise InputError(
                    f"columns change between chunks of the input: {batch.schema.names} of "
                    f"types {[str(kind) for kind in batch.schema.types]}, before "
                    f"{[str(kind) for kind in self._schema.types]}"
                ) from err
        first = self._num_rows
        if batch.num_rows:  # small blocks of a reader give many chunks without rows
            self._writer.write(batch)
        self._num_rows += batch.num_rows
        return first

    def finish(self) -> None:
        """End the file; no more rows can be appended."""
        if self._writer is not None:
            self._writer.close()
        self._sink.close()
        if self._writer is not None:
            self._table = pa.ipc.open_file(pa.memory_map(str(self._path))).read_all()

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._schema if self._schema is not None else pa.schema([])

    def take(self, rows: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
        """Return the columns at some rows; a negative row gives nulls."""
        if self._table is None:
            return {}
        index = pa.array(rows, mask=rows < 0)
        taken = self._table.take(index)
        return {name: _one_chunk(taken.column(name)) for name in taken.column_names}


def as_arrow(column: Any) -> pa.Array:
    """Return a column as one Arrow array."""
    if isinstance(column, pa.ChunkedArray):
        return _one_chunk(column)
    return column if isinstance(column, pa.Array) else pa.array(column)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks()


def _widen(array: pa.Array) -> pa.Array:
    """Use 64-bit offsets, and plain values instead of per-chunk dictionaries."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string(array.type):
        return array.cast(pa.large_string())
    if pa.types.is_binary(array.type):
        return array.cast(pa.large_binary())
    return array
