"""Rows of nodes as files keyed by ids: tables, text, JSON, NumPy, safetensors."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from graphsys.core.errors import ConfigError
from graphsys.core.memory import require_budget, resident_bytes
from graphsys.core.progress import SILENT, Progress
from graphsys.graph.slices import WHOLE, Slice
from graphsys.storage.output_file import new_files, require_writable
from graphsys.storage.reader import GraphReader
from graphsys.storage.text_cells import cells

SUFFIXES: Final = (
    ".parquet",
    ".arrow",
    ".csv",
    ".tsv",
    ".json",
    ".jsonl",
    ".npy",
    ".safetensors",
)
_WITH_IDS: Final = (".npy", ".safetensors")
_BLOCK = 1 << 14
_LEAST_BLOCK = 1 << 8
_WRITER_BYTES = 50 << 20  # libraries and threads at their first use, what the heap keeps
_ID_BYTES = 80
_BYTES_OF_A_NUMBER: Final = {
    ".parquet": 30,
    ".arrow": 24,
    ".csv": 40,
    ".tsv": 40,
    ".json": 80,
    ".jsonl": 80,
    ".npy": 24,
    ".safetensors": 24,
}
"""Memory that a number of a row takes while the row is written."""


Batches = Callable[[list[str]], Iterator[pa.RecordBatch]]
"""Ids and rows of some node types, in the order of the store."""


class RowSource(Protocol):
    """What has a row for every node.

    Attributes:
        graph: Whose nodes they are.
    """

    graph: GraphReader

    def rows(self, node_type: str, part: int) -> Any:
        """Return the rows of a partition: its slices are float32 ``[n, dim]``."""

    def dim_of(self, node_type: str) -> int:
        """Return the length of a type's rows."""


def check_target(out: Path, *, overwrite: bool) -> None:
    """Refuse a file that could not be written, before any work is done.

    Raises:
        ConfigError: The suffix is not a known one.
        OutputExistsError: The file exists.
    """
    if out.suffix not in SUFFIXES:
        raise ConfigError(
            f"cannot export to {out.name!r}: expected a name that ends in one of "
            f"{', '.join(SUFFIXES)}"
        )
    require_writable(*_targets(out), overwrite=overwrite)


def write_rows(
    source: RowSource,
    types: list[str],
    out: Path,
    *,
    overwrite: bool = False,
    metadata: Mapping[str, str] | None = None,
    budget: int | None = None,
    is_planned: bool = False,
    batches: "Batches | None" = None,
    progress: Progress = SILENT,
) -> Path:
    """Write the rows of all nodes of some types; the suffix says the format.

    Args:
        source: The rows.
        types: Node types, whose rows are of one length but for ``.safetensors``.
        out: The file; ``.npy`` and ``.safetensors`` have ids beside it.
        overwrite: Replace the file if there is one.
        metadata: Of a ``.safetensors`` file.
        budget: Most bytes of anonymous memory of the process; None: no limit.
        is_planned: Whether the work was found to fit the budget before it began: then rows
            are written a few at a time where little is left, and nothing is refused now.
        batches: Returns what :func:`to_batches` does of some types, where others made it.
        progress: Receives one stage.

    Raises:
        ConfigError: The suffix is not a known one.
        OutputExistsError: The file exists.
        StorageFullError: It cannot be written.
        BudgetError: The budget is too small; the message names one that works.
    """
    check_target(out, overwrite=overwrite)
    block = _block_within(source, types, out, budget, is_planned=is_planned)
    work = _RowsToWrite(source, types, batches or partial(to_batches, source, block=block))
    progress.stage("export", sum(map(source.graph.num_nodes_of, types)), "nodes")
    with new_files(*_targets(out)) as new:
        if out.suffix == ".safetensors":
            _write_safetensors(work, new, progress, metadata or {})
        else:
            _WRITERS[out.suffix](work, new, progress)
    progress.close()
    return out


class _RowsToWrite(NamedTuple):
    """What is written."""

    source: RowSource
    types: list[str]
    batches_of: Batches

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return all ids and rows in the order of the store."""
        return self.batches_of(self.types)


def _block_within(
    source: RowSource, types: list[str], out: Path, budget: int | None, *, is_planned: bool
) -> int:
    """Return how many rows are written at a time within a budget.

    Raises:
        BudgetError: It is not enough for a few.
    """
    if budget is None:
        return _BLOCK
    row_bytes = _BYTES_OF_A_NUMBER[out.suffix] * max(map(source.dim_of, types)) + _ID_BYTES
    beside = resident_bytes() + _WRITER_BYTES
    if out.suffix in _WITH_IDS or len(types) > 1:
        beside += _ID_BYTES * min(sum(map(source.graph.num_nodes_of, types)), 1 << 20)
    block = min(max((budget - beside) // row_bytes, _LEAST_BLOCK), _BLOCK)
    if not is_planned:
        require_budget(f"writing {out.suffix}", beside + block * row_bytes, budget)
    return int(block)


def _targets(out: Path) -> list[Path]:
    beside = [out.with_name(out.name + ".ids.parquet")]
    return [out] + (beside if out.suffix in _WITH_IDS else [])


def to_batches(
    run: RowSource,
    types: list[str],
    block: int | None = None,
    *,
    is_typed: bool | None = None,
    share: Slice = WHOLE,
) -> Iterator[pa.RecordBatch]:
    """Yield ids and embeddings in the order of the store, in small batches.

    Args:
        run: The rows.
        types: Node types.
        block: Rows of a batch.
        is_typed: Whether rows tell their type; by default where there are several.
        share: Whose rows these are.
    """
    is_typed, block = len(types) > 1 if is_typed is None else is_typed, block or _BLOCK
    for name in types:
        for part, first, end in share.partitions(run.graph.offsets(name)):
            ids = run.graph.part_ids(name, part)
            rows = run.rows(name, part)
            for begin in range(first, end, block):
                size = min(block, end - begin)
                numbers = np.ascontiguousarray(rows[begin : begin + size]).reshape(-1)
                some = ids.slice(begin, size).combine_chunks()
                columns: dict[str, Any] = {"id": some}
                if is_typed:
                    columns["type"] = pa.repeat(name, len(some))
                    columns["id"] = some.cast(pa.large_string())
                columns["embedding"] = pa.FixedSizeListArray.from_arrays(
                    pa.array(numbers), run.dim_of(name)
                )
                yield pa.record_batch(columns)


def _write_parquet(work: _RowsToWrite, to: list[Path], bar: Progress) -> None:
    _write_batches(work, partial(pyarrow.parquet.ParquetWriter, to[0]), bar)


def _write_arrow(work: _RowsToWrite, to: list[Path], bar: Progress) -> None:
    _write_batches(work, partial(pa.ipc.new_file, to[0]), bar)


def _write_batches(
    work: _RowsToWrite, open_writer: Callable[[pa.Schema], Any], bar: Progress
) -> None:
    writer = None
    for batch in work.batches():
        writer = writer or open_writer(batch.schema)
        writer.write_batch(batch)
        bar.advance(batch.num_rows)
    if writer is not None:
        writer.close()


def _write_tsv(work: _RowsToWrite, to: list[Path], bar: Progress) -> None:
    with to[0].open("wb") as stream:
        for table in _flat_tables(work):
            texts = [c for c in table.columns if not pa.types.is_primitive(c.type)]
            options = pyarrow.csv.WriteOptions(
                include_header=False, delimiter="\t", quoting_style=_quoting(texts)
            )
            pyarrow.csv.write_csv(table, stream, options)
            bar.advance(table.num_rows)


def _write_csv(work: _RowsToWrite, to: list[Path], bar: Progress) -> None:
    with to[0].open("wb") as stream:
        for number, table in enumerate(_flat_tables(work)):
            options = pyarrow.csv.WriteOptions(
                include_header=number == 0, quoting_style="needed"
            )
            pyarrow.csv.write_csv(table, stream, options)
            bar.advance(table.num_rows)


def _flat_tables(work: _RowsToWrite) -> Iterator[pa.Table]:
    """Yield ids, types where there are several, and a column for each dimension."""
    for batch in work.batches():
        names = batch.schema.names[:-1]
        values = batch.column("embedding").values.to_numpy().reshape(len(batch), -1)
        columns = [batch.column(name) for name in names]
        columns += [pa.array(np.ascontiguousarray(column)) for column in values.T]
        names += [*map(str, range(values.shape[1]))]
        yield cells(pa.table(columns, names=names))


def _write_json(work: _RowsToWrite, to: list[Path], bar: Progress) -> None:
    with to[0].open("w", encoding="utf-8") as stream:
        stream.write("[")
        for number, batch in enumerate(work.batches()):
            stream.write(",\n" if number else "")
            stream.write(",\n".join(_objects(batch)))
            bar.advance(batch.num_rows)
        stream.write("]\n")


def _write_jsonl(work: _RowsToWrite, to: list[Path], bar: Progress) -> None:
    with to[0].open("w", encoding="utf-8") as stream:
        for batch in work.batches():
            stream.writelines(f"{text}\n" for text in _objects(batch))
            bar.advance(batch.num_rows)


def _objects(batch: pa.RecordBatch) -> Iterator[str]:
    """Yield the rows as JSON; floats as short as tell them, null where not finite."""
    rows = batch.column("embedding")
    values = rows.flatten()
    texts = pc.if_else(pc.is_finite(values), values.cast(pa.string()), "null")
    lists = pa.FixedSizeListArray.from_arrays(texts, rows.type.list_size)
    joined = pc.binary_join(lists.cast(pa.list_(pa.string())), ", ").to_pylist()
    names = batch.schema.names[:-1]
    for *keys, row in zip(
        *(batch.column(n).to_pylist() for n in names), joined, strict=True
    ):
        told = [
            f"{json.dumps(n)}: {json.dumps(k, ensure_ascii=False)}"
            for n, k in zip(names, keys, strict=True)
        ]
        yield "{" + ", ".join([*told, f'"embedding": [{row}]']) + "}"


def _quoting(texts: list[Any]) -> str:
    """Quote text only where some of it could be mistaken for the end of a field."""
    is_plain = not any(
        pc.any(pc.match_substring_regex(text, '[\t\r\n"]')).as_py() for text in texts
    )
    return "none" if is_plain else "needed"


def _write_npy(work: _RowsToWrite, to: list[Path], bar: Progress) -> None:
    run, types, _ = work
    num_rows = sum(run.graph.num_nodes_of(name) for name in types)
    shape = (num_rows, run.dim_of(types[0]))
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with to[0].open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        for batch in work.batches():
            block = batch.column("embedding").values.to_numpy()
            stream.write(memoryview(block).cast("B"))
            bar.advance(len(batch))
    _write_ids(run, types, to[1])


def _write_safetensors(
    work: _RowsToWrite, to: list[Path], bar: Progress, metadata: Mapping[str, str]
) -> None:
    run, types, batches_of = work
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for name in types:
        shape = [run.graph.num_nodes_of(name), run.dim_of(name)]
        begin, end = end, end + 4 * shape[0] * shape[1]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with to[0].open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for name in types:  # rows of other types may be longer or shorter
            for batch in batches_of([name]):
                stream.write(memoryview(batch.column("embedding").values.to_numpy()))
                bar.advance(len(batch))
    _write_ids(run, types, to[1])


def _write_ids(run: RowSource, types: list[str], to: Path) -> None:
    tables = []
    for name in types:
        ids = run.graph.node_ids(name)
        if len(types) > 1:
            kinds = pa.repeat(name, len(ids))
            tables.append(pa.table({"id": ids.cast(pa.large_string()), "type": kinds}))
        else:
            tables.append(pa.table({"id": ids}))
    pyarrow.parquet.write_table(pa.concat_tables(tables), to)


_WRITERS: Final = {
    ".parquet": _write_parquet,
    ".arrow": _write_arrow,
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".json": _write_json,
    ".jsonl": _write_jsonl,
    ".npy": _write_npy,
}
