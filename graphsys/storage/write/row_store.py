"""Columns of any Arrow type, spilled as they come and taken back by row."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import InputError
from graphsys.storage.scratch import Scratch

_PIECE = 1 << 20  # rows, a multiple of 8
_MANY_BYTES = 8 << 20  # of a column of texts, which then is not taken in memory
_WIDTHS = (8, 16, 32, 64)
Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


class RowStore:
    """Rows appended chunk by chunk and, after :meth:`finish`, taken in any order."""

    def __init__(self, scratch: Scratch, name: str) -> None:
        self._scratch = scratch
        file = scratch.file(name)
        self._path = Path(file.path)
        self._sink = pa.OSFile(str(self._path), "wb")
        self._writer: pa.RecordBatchFileWriter | None = None
        self._schema: pa.Schema | None = None
        self._num_rows = 0
        self._table: pa.Table | None = None
        self._fixed: dict[int, _Fixed] = {}
        self._texts: dict[int, pa.Array] = {}

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
        else:
            batch = brought_to(batch, self._schema)
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

    def move(self, path: Path) -> None:
        """Finish, and move the file elsewhere on its disk, for :class:`FoundRowStore`."""
        self.finish()
        self._path.replace(path)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._schema if self._schema is not None else pa.schema([])

    def take(self, rows: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
        """Return the columns at some rows; a negative row gives nulls.

        Numbers, dates, times and large columns of text are in scratch; what else there is,
        in memory.
        """
        if self._table is None:
            return {}
        index = pa.array(rows, mask=rows < 0)
        found: dict[str, pa.Array] = {}
        for place, field in enumerate(self._table.schema):  # by place: names are searched
            if pa.types.is_primitive(field.type) and field.type.bit_width in _WIDTHS:
                found[field.name] = self._take_fixed(place, field.type, rows)
            elif _is_text(field.type) and self._table.column(place).nbytes > _MANY_BYTES:
                found[field.name] = self._take_texts(place, rows)
            else:
                found[field.name] = _one_chunk(self._table.column(place).take(index))
        return found

    def _take_fixed(
        self, place: int, kind: pa.DataType, rows: npt.NDArray[np.int64]
    ) -> pa.Array:
        """Return a column of values of one size at some rows."""
        assert self._table is not None
        if place not in self._fixed:
            self._fixed[place] = _Fixed(self._table.column(place), self._scratch)
        values, valid = self._fixed[place].take(rows, self._scratch)
        buffers = [None if valid is None else pa.py_buffer(valid), pa.py_buffer(values)]
        return pa.Array.from_buffers(kind, len(rows), buffers)

    def _take_texts(self, place: int, rows: npt.NDArray[np.int64]) -> pa.Array:
        """Return a column of texts at some rows, of which few are in memory at a time.

        Arrow would join the chunks of a column in memory, each time.
        """
        assert self._table is not None
        column = self._table.column(place)
        if place not in self._texts:
            self._texts[place] = _in_file(
                column.chunks, len(column), column.type, self._scratch
            )
        whole = self._texts[place]
        step = max(_MANY_BYTES * len(whole) // (2 * whole.nbytes), 1)
        pieces = (rows[begin : begin + step] for begin in range(0, len(rows), step))
        taken = (whole.take(pa.array(piece, mask=piece < 0)) for piece in pieces)
        return _in_file(taken, len(rows), column.type, self._scratch)


class FoundRowStore(RowStore):
    """Rows that others appended, file after file, which are opened when they are needed.

    Args:
        names: Of files that :meth:`RowStore.move` left.
        local: Returns where a file is.
        scratch: Whose folder columns go to.
    """

    # not the base's: nothing is appended
    def __init__(
        self, names: Sequence[str], local: Callable[[str], Path], scratch: Scratch
    ) -> None:
        self._scratch, self._fixed, self._texts = scratch, {}, {}
        self._names, self._local = names, local
        self._table = None

    def finish(self) -> None:
        """Do nothing."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._opened(self._names[0]).schema

    def take(self, rows: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
        """Return the columns at some rows."""
        if self._table is None:
            tables = [self._opened(name).read_all() for name in self._names]
            schema = tables[0].schema
            self._table = pa.concat_tables([brought_to(it, schema) for it in tables])
        return super().take(rows)

    def _opened(self, name: str) -> pa.RecordBatchFileReader:
        return pa.ipc.open_file(pa.memory_map(str(self._local(name))))


def brought_to(rows: Rows, schema: pa.Schema) -> Rows:
    """Return rows with the columns of a schema.

    Raises:
        InputError: they have others, or of types that cannot become those.
    """
    if rows.schema == schema:
        return rows
    try:
        return rows.select(schema.names).cast(schema)
    except (KeyError, pa.ArrowException) as err:
        raise InputError(
            f"columns change between chunks of the input: {rows.schema.names} of types "
            f"{[str(kind) for kind in rows.schema.types]}, before "
            f"{[str(kind) for kind in schema.types]}"
        ) from err


class _Fixed:
    """A column of values of one size, whole.

    Args:
        column: The column, in chunks.
        scratch: Where it is held.
    """

    def __init__(self, column: pa.ChunkedArray, scratch: Scratch) -> None:
        word = np.dtype(f"u{column.type.bit_width // 8}")
        self._values = scratch.array(len(column), word)
        self._is_valid: npt.NDArray[np.bool_] | None = None
        if column.null_count:
            self._is_valid = scratch.array(len(column), np.bool_)
        begin = 0
        for chunk in column.chunks:
            own, first = slice(begin, begin + len(chunk)), chunk.offset
            values = np.frombuffer(chunk.buffers()[1], dtype=word)
            self._values[own] = values[first : first + len(chunk)]
            if self._is_valid is not None:
                self._is_valid[own] = chunk.is_valid().to_numpy(zero_copy_only=False)
            begin += len(chunk)

    def take(
        self, rows: npt.NDArray[np.int64], scratch: Scratch
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8] | None]:
        """Return the words of some rows, and Arrow's bits of which are no nulls."""
        found = scratch.array(len(rows), self._values.dtype)
        bits = scratch.array(-(-len(rows) // 8), np.uint8)
        all_valid = True
        for begin in range(0, len(rows), _PIECE):
            piece = slice(begin, begin + _PIECE)
            some = rows[piece]
            if len(self._values):
                np.take(self._values, some, out=found[piece], mode="clip")
            is_valid = some >= 0
            if self._is_valid is not None:
                is_valid &= np.take(self._is_valid, some, mode="clip")
            found[piece][~is_valid] = 0
            all_valid &= bool(is_valid.all())
            packed = np.packbits(is_valid, bitorder="little")
            bits[begin // 8 : begin // 8 + len(packed)] = packed
        return found, None if all_valid else bits


def _is_text(kind: pa.DataType) -> bool:
    """Whether values are texts or bytes, of the kind that :func:`_widen` leaves."""
    return bool(pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))


def _in_file(
    pieces: Iterable[pa.Array], length: int, kind: pa.DataType, scratch: Scratch
) -> pa.Array:
    """Return arrays of texts as one, its bytes in a mapped file.

    Args:
        pieces: Arrays, one after the other.
        length: Of all together.
        kind: Their type, with offsets of 64 bits.
        scratch: Where the file goes.
    """
    offsets = scratch.zeros(length + 1, np.int64)
    is_valid = scratch.array(length, np.bool_)
    file, done = scratch.file("texts"), 0
    for piece in pieces:
        own, after = slice(done, done + len(piece)), slice(done + 1, done + 1 + len(piece))
        if not len(piece):
            continue
        _, places, texts = piece.buffers()
        first = piece.offset
        ends = np.frombuffer(places, np.int64)[first : first + len(piece) + 1]
        offsets[after] = ends[1:] + (file.size - ends[0])
        is_valid[own] = piece.is_valid().to_numpy(zero_copy_only=False)
        if ends[-1] > ends[0]:
            file.append(np.frombuffer(texts, np.uint8)[ends[0] : ends[-1]])
        done += len(piece)
    bits = None
    if not is_valid.all():
        bits = pa.py_buffer(np.packbits(is_valid, bitorder="little"))
    data = file.mapped(np.uint8)
    file.remove()  # the mapping keeps it
    buffers = [bits, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, length, buffers)


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
