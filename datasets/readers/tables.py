"""Tables of edges in Arrow's memory: Parquet, Arrow IPC, Feather, streams, JSON Lines.

Columns are found by name (roles.py): src, dst, weight, time, relation, and the rest. A
column ``split`` of names tells the splits of edges.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.parquet as pq
import pyarrow.types as pt

from graphsys.core.errors import InputError
from graphsys.core.threads import map_in_order
from graphsys.core.types import DEFAULT_SPLIT, EDGE
from graphsys.datasets.base import Format, ReadOptions, base_name, formats
from graphsys.datasets.columns import graph_column, id_column
from graphsys.datasets.files import InputFile, describe, text_file
from graphsys.datasets.roles import find_roles, warn_of_left_out
from graphsys.datasets.split_names import by_split
from graphsys.datasets.text.blocks import Bytes, text_blocks
from graphsys.datasets.text.prefetch import prefetch
from graphsys.datasets.times import warn_of_millionths
from graphsys.storage.ingest.split_column import rows_of
from graphsys.storage.source import EdgeChunk, Source

CHUNK_ROWS: Final = 1 << 20

_IPC_MAGIC: Final = b"ARROW1"


class Batches:
    """A table that can be read once.

    Args:
        name: What messages call it.
        schema: Its columns; views of texts, as Polars has them, become texts.
        read: Yields its record batches; given the columns to read.
        num_bytes: Its size, where known.
    """

    def __init__(
        self,
        name: str,
        schema: pa.Schema,
        read: Callable[[list[str]], Iterator[pa.RecordBatch]],
        num_bytes: int | None = None,
    ) -> None:
        self.name = name
        self.schema = pa.schema([field.with_type(_plain(field.type)) for field in schema])
        self._given = read
        self.read = read if self.schema.equals(schema) else self._without_views
        self.num_bytes = num_bytes

    def _without_views(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield batches without views, which Arrow cannot take rows of yet."""
        schema = pa.schema([self.schema.field(name) for name in names])
        for batch in self._given(names):
            for begin in range(0, batch.num_rows, CHUNK_ROWS):
                part = batch.slice(begin, CHUNK_ROWS).select(names)
                columns = zip(part.columns, schema, strict=True)
                yield pa.RecordBatch.from_arrays(
                    [values.cast(field.type) for values, field in columns], schema=schema
                )


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return a type with plain texts in place of views, inside others too."""
    if pt.is_string_view(kind) or pt.is_binary_view(kind):
        return pa.large_string() if pt.is_string_view(kind) else pa.large_binary()
    if pt.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _plain(kind.value_type), kind.ordered)
    if pt.is_struct(kind):
        return pa.struct([it.with_type(_plain(it.type)) for it in kind])
    if pt.is_fixed_size_list(kind):
        inner = kind.value_field.with_type(_plain(kind.value_type))
        return pa.list_(inner, kind.list_size)
    if pt.is_list(kind) or pt.is_large_list(kind):
        inner = kind.value_field.with_type(_plain(kind.value_type))
        return pa.list_(inner) if pt.is_list(kind) else pa.large_list(inner)
    return kind


class TableSource(Source):
    """Edges of tables, one after the other.

    Raises:
        InputError: a table has no column for source or destination.
    """

    def __init__(
        self,
        tables: list[Batches],
        options: ReadOptions,
        splits: Sequence[str] | None = None,
    ) -> None:
        self._splits = splits or [DEFAULT_SPLIT] * len(tables)
        self.name = ", ".join(table.name for table in tables)
        sizes = [table.num_bytes for table in tables]
        self.total_bytes = None if None in sizes else sum(size or 0 for size in sizes)
        self.is_directed = not options.is_undirected
        self._options = options
        self._tables = tables
        self._roles = [
            find_roles(table.schema.names, options, table.name) for table in tables
        ]
        for table, roles in zip(tables, self._roles, strict=True):
            warn_of_left_out(options.columns or table.schema.names, roles, table.name)
        for table, roles in zip(tables, self._roles, strict=True):
            column = next((name for name, role in roles.items() if role == "time"), None)
            if column and pt.is_floating(table.schema.field(column).type):
                warn_of_millionths(table.name)
                self.has_millionths = True
        self._kinds = [
            _id_kind(table.schema, roles, options)
            for table, roles in zip(tables, self._roles, strict=True)
        ]

    @property
    def num_parts(self) -> int:
        """How many tables there are."""
        return len(self._tables)

    def keep_part(self, number: int) -> None:
        """Forget all tables but one."""
        self._tables, self._roles = [self._tables[number]], [self._roles[number]]
        self._kinds, self._splits = [self._kinds[number]], [self._splits[number]]

    def chunks(self) -> Iterator[EdgeChunk]:
        """Yield the edges, a record batch or a part of one at a time."""
        for table, roles, kind, split in zip(
            self._tables, self._roles, self._kinds, self._splits, strict=True
        ):
            for chunk in self._chunks(table, roles, kind):
                yield replace(chunk, split=split) if split != DEFAULT_SPLIT else chunk

    def _chunks(
        self, table: Batches, roles: dict[str, str], kind: str
    ) -> Iterator[EdgeChunk]:
        rows = told = 0

        def numbered() -> Iterator[tuple[int, pa.RecordBatch]]:
            first = 0
            for batch in table.read(list(roles)):
                rows = _rows_of(batch.schema, batch.schema.names)
                for begin in range(0, batch.num_rows, rows):
                    yield first + begin, batch.slice(begin, rows)
                first += batch.num_rows

        def convert(item: tuple[int, pa.RecordBatch]) -> EdgeChunk:
            return self._convert(table, roles, kind, item[0], item[1])

        threads = self._options.num_threads
        for chunk in map_in_order(convert, prefetch(numbered()), num_threads=threads):
            rows += len(chunk.src)
            told += chunk.bytes_read
            yield from _by_split(chunk, table.name, rows - len(chunk.src))
        if not rows:
            raise InputError(f"{table.name}: no edge in the table, expected at least one")

    def _convert(
        self,
        table: Batches,
        roles: dict[str, str],
        kind: str,
        first: int,
        batch: pa.RecordBatch,
    ) -> EdgeChunk:
        ends: dict[str, Any] = {}
        columns: dict[str, Any] = {}
        for column, role in roles.items():
            where = f"{table.name}: column {column}"
            values = batch.column(batch.schema.names.index(column))
            if role in ("src", "dst"):
                ends[role] = id_column(values, kind=kind, where=where, first_row=first)
            else:
                columns[role] = graph_column(role, values, where, first)
        return EdgeChunk(
            src=ends["src"],
            dst=ends["dst"],
            edge_type=self._options.edge_type or EDGE,
            columns=columns,
            bytes_read=batch.nbytes,
        )


def _by_split(chunk: EdgeChunk, name: str, first: int) -> Iterator[EdgeChunk]:
    """Part edges by a column ``split`` of names, where there is one.

    Raises:
        InputError: an edge has none.
    """
    values = chunk.columns.get("split")
    if not isinstance(values, pa.Array):
        yield chunk
        return
    kind = values.type.value_type if pt.is_dictionary(values.type) else values.type
    if not (pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)):
        yield chunk
        return
    if values.null_count:
        row = first + int(pc.index(values.is_null(), True).as_py())
        raise InputError(f"{name}: column split, row {row}: the value is missing (null)")
    names = values.cast(pa.string()).dictionary_encode()
    codes = names.indices.to_numpy()
    others = {key: it for key, it in chunk.columns.items() if key != "split"}
    plain = replace(chunk, columns=others)
    for code, split in enumerate(names.dictionary.to_pylist()):
        rows = np.flatnonzero(codes == code)
        told = chunk.bytes_read * len(rows) // len(chunk.src)
        yield replace(rows_of(plain, rows), split=split, bytes_read=told)


def _id_kind(schema: pa.Schema, roles: dict[str, str], options: ReadOptions) -> str:
    """Return the kind of ids; strings where one end is and both are of one node type."""
    edge_type = options.edge_type or EDGE
    if options.ids != "auto" or edge_type.src_type != edge_type.dst_type:
        return options.ids
    kinds = [
        schema.field(name).type for name, role in roles.items() if role in ("src", "dst")
    ]
    plain = [kind.value_type if pt.is_dictionary(kind) else kind for kind in kinds]
    return "auto" if all(pt.is_integer(kind) for kind in plain) else "string"


def _open(
    files: list[InputFile], options: ReadOptions, *, look: Callable[[InputFile], Batches]
) -> Source:
    """Make a source of files of tables; those called like splits are splits.

    Raises:
        InputError: a file is not of this format, or lacks columns.
    """
    pairs = by_split(files)
    tables = [look(file) for file, _ in pairs]
    return TableSource(tables, options, [split for _, split in pairs])


def parquet_batches(file: InputFile) -> Batches:
    """Open a Parquet file.

    Raises:
        InputError: it is none.
    """
    try:
        reader = pq.ParquetFile(_seekable(file))
        schema = reader.schema_arrow
    except (OSError, pa.ArrowException) as err:
        raise InputError(f"{file.name}: no Parquet file: {describe(err)}") from err

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        rows = _rows_of(schema, names)
        batches = reader.iter_batches(rows, columns=names, use_threads=True)
        yield from _guarded(file, batches)

    return Batches(file.name, schema, read)


def _rows_of(schema: pa.Schema, names: Sequence[str]) -> int:
    """Return how many rows a chunk has: fewer of columns that are wide."""
    is_wide = any(not pt.is_primitive(schema.field(name).type) for name in names)
    return CHUNK_ROWS >> 3 if is_wide else CHUNK_ROWS


def arrow_batches(file: InputFile) -> Batches:
    """Open an Arrow IPC file or stream.

    Raises:
        InputError: it is neither.
    """
    try:
        content = _seekable(file)
        is_file = content.read(len(_IPC_MAGIC)) == _IPC_MAGIC
        content.seek(0)
        reader: Any = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(content)
    except (OSError, pa.ArrowException) as err:
        raise InputError(
            f"{file.name}: no Arrow IPC file or stream: {describe(err)}"
        ) from err

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        if is_file:
            batches = (reader.get_batch(k) for k in range(reader.num_record_batches))
        else:
            batches = iter(reader)
        yield from (batch.select(names) for batch in _guarded(file, batches))

    return Batches(file.name, reader.schema, read)


def json_lines_batches(file: InputFile) -> Batches:
    """Open a file of JSON Lines: an object a line, whose keys are columns.

    A key that a line lacks is null there; keys of an object within have a point,
    ``user.id``. The file is read twice: of its first lines alone, types would be a guess.

    Raises:
        InputError: a line is no object, or a key has values that are not of one type.
    """
    file = text_file(file)
    schema = pa.schema([])
    for lines, first in _lines(file):
        schema = _wider(schema, _parsed(file, lines, first).schema, file.name)
    if not len(schema):
        raise InputError(f"{file.name}: found no object with keys, expected one a line")
    whole = _flat(schema.empty_table())

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        keys = [key for key in schema.names if any(_is_of(name, key) for name in names)]
        wanted = pa.schema([schema.field(key) for key in keys])
        for lines, first in _lines(file):
            table = _flat(_parsed(file, lines, first, wanted)).select(names)
            yield from table.combine_chunks().to_batches()

    return Batches(file.name, whole.schema, read)


def _is_of(name: str, key: str) -> bool:
    """Tell whether a column is a key's, or of an object that is its value."""
    return name == key or name.startswith(f"{key}.")


def _lines(file: InputFile) -> Iterator[tuple[Bytes, int]]:
    """Yield blocks of lines, each with how many lines are before it."""
    before = 0
    for load in text_blocks(file):
        block = load().data
        if len(block):
            yield block, before
            before += int(np.count_nonzero(block == ord("\n")))


def _parsed(
    file: InputFile, lines: Bytes, before: int, schema: pa.Schema | None = None
) -> pa.Table:
    """Return the objects of lines as a table, of all keys or of those of a schema.

    Raises:
        InputError: a line is no object; names it.
    """
    options = pj.ParseOptions(
        explicit_schema=schema,
        unexpected_field_behavior="infer" if schema is None else "ignore",
    )
    try:
        table = pj.read_json(
            pa.BufferReader(pa.py_buffer(lines)),
            read_options=pj.ReadOptions(block_size=len(lines) + 1),
            parse_options=options,
        )
        table.validate(full=True)  # texts are not looked at before
    except pa.ArrowException as err:
        said = str(err).removeprefix("JSON parse error: ")
        row = re.search(r" in row (\d+)$", said)
        where, what = file.name, said
        if row is not None:  # empty lines are none
            filled = [k for k, it in enumerate(bytes(lines).split(b"\n")) if it.strip()]
            place = min(int(row[1]), len(filled) - 1)  # several may share a line
            where = f"{where}:{before + filled[place] + 1}"
            what = said[: row.start()].rstrip(".")
        remedy = ""
        if bytes(lines[:64]).lstrip()[:1] == b"[":
            remedy = (
                "; make lines of a list, python -c 'import json, sys; "
                "[print(json.dumps(it)) for it in json.load(open(sys.argv[1]))]' FILE > "
                "NEW.jsonl"
            )
        raise InputError(
            f"{where}: expected an object a line, with values of one type a key: {what}"
            f"{remedy}"
        ) from err
    return table


def _wider(one: pa.Schema, other: pa.Schema, where: str) -> pa.Schema:
    """Return the types that hold the values of both schemas.

    Raises:
        InputError: a key has values that are not of one type.
    """
    known = {field.name: field for field in one}
    for field in other:
        old = known.get(field.name, field)
        kinds = [pa.schema([old]), pa.schema([field])]
        try:
            known[field.name] = pa.unify_schemas(kinds, promote_options="permissive")[0]
        except pa.ArrowException as err:
            if not {old.type, field.type} <= {pa.string(), pa.timestamp("s")}:
                raise InputError(
                    f"{where}: key {field.name!r} has values of type {old.type} and of "
                    f"type {field.type}, expected one type; write all as texts"
                ) from err
            known[field.name] = field.with_type(pa.string())  # texts, some of them dates
    return pa.schema(list(known.values()))


def _flat(table: pa.Table) -> pa.Table:
    """Return a table with the keys of objects as columns of their own."""
    while any(pt.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    return table


def _seekable(file: InputFile) -> Any:
    """Open a file for random access; a compressed one is decompressed in memory."""
    if file.is_plain:
        return pa.memory_map(str(file.path))
    if file.compression is None and file.uri is not None:
        return file.remote()
    return pa.BufferReader(file.read_all())


def _guarded(
    file: InputFile, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Turn errors of a damaged file into ours."""
    try:
        yield from batches
    except (OSError, pa.ArrowException) as err:
        raise InputError(
            f"{file.name}: cannot be read to its end: {describe(err)}; fetch it again"
        ) from err


_FORMATS: Final = {
    "parquet": (parquet_batches, (".parquet", ".pq"), "Parquet tables of edges"),
    "arrow": (
        arrow_batches,
        (".arrow", ".arrows", ".ipc", ".feather"),
        "Arrow IPC files and streams, Feather",
    ),
    "jsonl": (json_lines_batches, (".jsonl", ".ndjson"), "JSON Lines: an edge a line"),
}

for _name, (_look, _suffixes, _about) in _FORMATS.items():
    formats.register(_name)(
        Format(open=partial(_open, look=_look), suffixes=_suffixes, about=_about)
    )


def table_batches(file: InputFile) -> Batches | None:
    """Open a table whose file tells its columns' types, by its suffix; None for others.

    Raises:
        InputError: it is not what its name says.
    """
    suffix = base_name(file.path)[1]
    for look, suffixes, _ in _FORMATS.values():
        if suffix in suffixes:
            return look(file)
    return None
