"""Results as files, written whole or not at all, or as a stream."""

import json
import math
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import ConfigError, unknown_name
from graphsys.core.events import span
from graphsys.storage.output_file import new_files, require_writable
from graphsys.storage.text_cells import cells

SUFFIXES = (".parquet", ".arrow", ".csv", ".tsv", ".json", ".jsonl")
STREAMS = ("tsv", "csv", "jsonl", "arrow")
"""What a stream may be: text with a header line, an object a line, Arrow's stream."""
_BLOCK = 4096
_ROWS_A_GROUP = 1 << 17
"""Rows of a Parquet file that are encoded at a time: some megabytes."""


def check_output(out: Path, *, overwrite: bool) -> None:
    """Refuse what could not be written, before any work is done.

    Raises:
        ConfigError: the suffix is not a known one, it is a folder, or lies in a graph or
            a run.
        OutputExistsError: the file exists.
    """
    if out.suffix not in SUFFIXES:
        raise ConfigError(
            f"cannot write {out.name!r}: expected a name that ends in one of "
            f"{', '.join(SUFFIXES)}"
        )
    require_writable(out, overwrite=overwrite)


def write_table(table: pa.Table, out: Path, *, overwrite: bool = False) -> None:
    """Write a table; an old file stays until the new one is complete.

    Raises:
        ConfigError: the suffix is not a known one.
        OutputExistsError: the file exists.
        StorageFullError: it cannot be written.
    """
    write_pieces(iter([table]), out, overwrite=overwrite)


def write_pieces(pieces: Iterator[pa.Table], out: Path, *, overwrite: bool = False) -> None:
    """Write a table that comes in pieces, each as it comes; see :func:`write_table`.

    Args:
        pieces: At least one, of the same columns.
        out: The file.
        overwrite: Replace an old one, once the new one is complete.

    Raises:
        ConfigError: the suffix is not a known one.
        OutputExistsError: the file exists.
        StorageFullError: it cannot be written.
    """
    check_output(out, overwrite=overwrite)
    with span("write", file=out.name), new_files(out) as [new]:
        first = next(pieces)
        _write(first.schema, chain([first], pieces), new, out.suffix)


def stream_pieces(pieces: Iterator[pa.Table], stream: IO[bytes], kind: str) -> None:
    """Write a table that comes in pieces to an open stream, one of :data:`STREAMS`.

    Raises:
        UnknownNameError: there is no such kind.
    """
    if kind not in STREAMS:
        raise unknown_name("format of a stream", kind, STREAMS)
    first = next(pieces)
    tables = chain([first], pieces)
    if kind == "arrow":
        with pa.ipc.new_stream(stream, first.schema) as writer:
            for table in tables:
                writer.write_table(table)
    elif kind == "jsonl":
        _write_json(tables, stream, ("", "\n", "\n"))
    else:
        _write_text(tables, stream, "," if kind == "csv" else "\t")


def _write(schema: pa.Schema, tables: Iterable[pa.Table], path: Path, suffix: str) -> None:
    import pyarrow.parquet

    if suffix == ".parquet":
        # of numbers, which rarely repeat, a dictionary would take tens of megabytes
        texts = [f.name for f in schema if not pa.types.is_primitive(f.type)]
        with pyarrow.parquet.ParquetWriter(path, schema, use_dictionary=texts) as rows:
            for table in tables:
                rows.write_table(table, row_group_size=_ROWS_A_GROUP)
    elif suffix == ".arrow":
        with pa.ipc.new_file(path, schema) as writer:
            for table in tables:
                writer.write_table(table)
    elif suffix == ".json":
        with path.open("wb") as stream:
            _write_json(tables, stream, ("[", ",\n", "]\n"))
    else:
        with path.open("wb") as stream:
            stream_pieces(iter(tables), stream, suffix[1:])


def _write_text(tables: Iterable[pa.Table], stream: IO[bytes], delimiter: str) -> None:
    import pyarrow.csv

    for number, table in enumerate(tables):
        options = pyarrow.csv.WriteOptions(
            include_header=number == 0, delimiter=delimiter, quoting_style="needed"
        )
        pyarrow.csv.write_csv(cells(_flat(table)), stream, options)


def _write_json(
    tables: Iterable[pa.Table], stream: IO[bytes], around: tuple[str, str, str]
) -> None:
    """Write rows as JSON objects, with text before the first, between, after the last.

    Of a stream of lines without rows nothing is written.
    """
    begin, between, end = around
    stream.write(begin.encode())
    has_rows = False
    for table in tables:
        for start in range(0, table.num_rows, _BLOCK):
            rows = _plain(table.slice(start, _BLOCK).to_pylist())
            text = between.join(json.dumps(row, ensure_ascii=False) for row in rows)
            stream.write(((between if has_rows else "") + text).encode())
            has_rows = True
    if has_rows or begin:
        stream.write(end.encode())


def _plain(value: Any) -> Any:
    """Return what JSON can hold: numbers that are not finite become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value if isinstance(value, str | int | None) else str(value)


def _flat(table: pa.Table) -> pa.Table:
    """Decode dictionaries and write lists as JSON: Arrow's CSV writer knows neither."""
    for i, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            table = table.set_column(i, field.name, _as_json(table.column(i)))
        if pa.types.is_dictionary(field.type):
            column = table.column(i).cast(field.type.value_type)
            table = table.set_column(i, field.name, column)
    return table


def _as_json(lists: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return lists of numbers or texts as JSON arrays, one text each."""
    blocks = []
    for chunk in lists.chunks:
        for begin in range(0, len(chunk), _BLOCK):
            block = chunk.slice(begin, _BLOCK)
            words = block.flatten()
            if pa.types.is_large_string(words.type) or pa.types.is_string(words.type):
                words = [json.dumps(text, ensure_ascii=False) for text in words.to_pylist()]
            ends = pc.cumulative_sum(pc.list_value_length(block)).to_numpy()
            offsets = pa.array(np.concatenate([[0], ends]), pa.int32())
            texts = pa.ListArray.from_arrays(offsets, pa.array(words).cast(pa.string()))
            joined = pc.binary_join(texts, ",")
            blocks.append(pc.binary_join_element_wise("[", joined, "]", ""))
    return pa.chunked_array(blocks, pa.string())
