"""Embeddings as files: Parquet, Arrow, TSV, NumPy, safetensors, keyed by the user's ids."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from graphsys.core.errors import ConfigError
from graphsys.core.progress import SILENT, Progress
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.rows.node_rows import require_one_dim
from graphsys.storage.output_file import new_files, require_writable
from graphsys.storage.reader import Graph

SUFFIXES: Final = (".parquet", ".arrow", ".tsv", ".npy", ".safetensors")
_BLOCK = 1 << 14


def export(
    run: str | Path | Embeddings,
    out: str | Path,
    *,
    node_type: str | None = None,
    graph: Graph | None = None,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> Path:
    """Write the embeddings to a file whose suffix says the format.

    ``.parquet`` and ``.arrow`` have columns ``id``, ``embedding`` (FixedSizeList<float32>)
    and, for several node types, ``type`` (ids are text then); ``.tsv`` has the same id
    (and type) followed by one column per dimension, without a header. ``.npy`` holds the
    rows alone and ``.safetensors`` one tensor per node type; the ids lie beside them, in
    the order of the rows, in ``OUT.ids.parquet``.

    Args:
        run: A run or its folder.
        out: The file.
        node_type: Only this type; all by default.
        graph: The graph trained on, if it is not where it was.
        overwrite: Replace the file if there is one.
        progress: Receives one stage.

    Returns:
        The file.

    Raises:
        ConfigError: The suffix is not a known one.
        OutputExistsError: The file exists.
        StorageFullError: It cannot be written.
    """
    out = Path(out)
    opened = run if isinstance(run, Embeddings) else Embeddings(run, graph=graph)
    if out.suffix not in SUFFIXES:
        raise ConfigError(
            f"cannot export to {out.name!r}: expected a name that ends in one of "
            f"{', '.join(SUFFIXES)}"
        )
    types = [node_type] if node_type is not None else opened.node_types
    for name in types:
        opened.rows(name, 0)  # an unknown type ends here
    if out.suffix != ".safetensors":
        require_one_dim(opened.config, types, f"cannot export to {out.name!r}")
    beside = out.with_name(out.name + ".ids.parquet")
    targets = [out] + ([beside] if out.suffix in (".npy", ".safetensors") else [])
    require_writable(*targets, overwrite=overwrite)
    progress.stage("export", sum(opened.graph.num_nodes_of(t) for t in types), "nodes")
    with new_files(*targets) as new:
        _WRITERS[out.suffix](opened, types, new, progress)
    progress.close()
    return out


def to_batches(run: Embeddings, types: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield ids and embeddings in the order of the store, in small batches."""
    is_typed = len(types) > 1
    for name in types:
        for part in range(run.graph.num_partitions(name)):
            ids = run.graph.nodes(name, part).column("id")
            rows = run.rows(name, part)
            for begin in range(0, len(rows), _BLOCK):
                block = np.ascontiguousarray(rows[begin : begin + _BLOCK]).reshape(-1)
                some = ids.slice(begin, _BLOCK).combine_chunks()
                columns: dict[str, Any] = {"id": some}
                if is_typed:
                    columns["type"] = pa.array([name] * len(some))
                    columns["id"] = some.cast(pa.large_string())
                columns["embedding"] = pa.FixedSizeListArray.from_arrays(
                    pa.array(block), run.config.dim_of(name)
                )
                yield pa.record_batch(columns)


def _write_parquet(
    run: Embeddings, types: list[str], to: list[Path], bar: Progress
) -> None:
    writer = None
    for batch in to_batches(run, types):
        writer = writer or pyarrow.parquet.ParquetWriter(to[0], batch.schema)
        writer.write_batch(batch)
        bar.advance(batch.num_rows)
    if writer is not None:
        writer.close()


def _write_arrow(run: Embeddings, types: list[str], to: list[Path], bar: Progress) -> None:
    writer = None
    for batch in to_batches(run, types):
        writer = writer or pa.ipc.new_file(to[0], batch.schema)
        writer.write_batch(batch)
        bar.advance(batch.num_rows)
    if writer is not None:
        writer.close()


def _write_tsv(run: Embeddings, types: list[str], to: list[Path], bar: Progress) -> None:
    with to[0].open("wb") as stream:
        for batch in to_batches(run, types):
            columns = [batch.column(name) for name in batch.schema.names[:-1]]
            values = batch.column("embedding").values.to_numpy().reshape(len(batch), -1)
            columns += [pa.array(np.ascontiguousarray(column)) for column in values.T]
            table = pa.table(columns, names=[str(k) for k in range(len(columns))])
            options = pyarrow.csv.WriteOptions(
                include_header=False, delimiter="\t", quoting_style=_quoting(columns)
            )
            pyarrow.csv.write_csv(table, stream, options)
            bar.advance(len(batch))


def _quoting(columns: list[Any]) -> str:
    """Quote text only where some of it could be mistaken for the end of a field."""
    texts = [text for text in columns if not pa.types.is_primitive(text.type)]
    is_plain = not any(
        pc.any(pc.match_substring_regex(text, '[\t\r\n"]')).as_py() for text in texts
    )
    return "none" if is_plain else "needed"


def _write_npy(run: Embeddings, types: list[str], to: list[Path], bar: Progress) -> None:
    num_rows = sum(run.graph.num_nodes_of(name) for name in types)
    shape = (num_rows, run.config.dim_of(types[0]))
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with to[0].open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        for batch in to_batches(run, types):
            block = batch.column("embedding").values.to_numpy()
            stream.write(memoryview(block).cast("B"))
            bar.advance(len(batch))
    _write_ids(run, types, to[1])


def _write_safetensors(
    run: Embeddings, types: list[str], to: list[Path], bar: Progress
) -> None:
    header: dict[str, Any] = {"__metadata__": {"dim": str(run.config.dim)}}
    end = 0
    for name in types:
        shape = [run.graph.num_nodes_of(name), run.config.dim_of(name)]
        begin, end = end, end + 4 * shape[0] * shape[1]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with to[0].open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for name in types:
            for part in range(run.graph.num_partitions(name)):
                rows = np.ascontiguousarray(run.rows(name, part), dtype="<f4")
                stream.write(rows.reshape(-1).view(np.uint8).data)
                bar.advance(len(rows))
    _write_ids(run, types, to[1])


def _write_ids(run: Embeddings, types: list[str], to: Path) -> None:
    tables = []
    for name in types:
        ids = run.graph.node_ids(name)
        if len(types) > 1:
            kinds = pa.array([name] * len(ids))
            tables.append(pa.table({"id": ids.cast(pa.large_string()), "type": kinds}))
        else:
            tables.append(pa.table({"id": ids}))
    pyarrow.parquet.write_table(pa.concat_tables(tables), to)


_WRITERS: Final = {
    ".parquet": _write_parquet,
    ".arrow": _write_arrow,
    ".tsv": _write_tsv,
    ".npy": _write_npy,
    ".safetensors": _write_safetensors,
}
