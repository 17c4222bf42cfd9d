"""Questions for link prediction from files: tables of triples, or lists of nodes."""

from pathlib import Path
from typing import Final

import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.inference.triples import COLUMNS, as_table, relation_names

SUFFIXES: Final = (".parquet", ".arrow", ".csv", ".tsv", ".txt")
_DELIMITERS: Final = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


def read_questions(file: str | Path, relation: str | None = None) -> pa.Table:
    """Read questions.

    A file has columns ``head``, ``relation``, ``tail``, of which some may be missing or
    empty, or one column of any name: nodes, whose tails are asked for. ``.csv`` and
    ``.tsv`` have a header; ``.txt`` is a node per line, without one.

    Args:
        file: The file.
        relation: Asked about in every row, if the file has no such column.

    Returns:
        A table for :func:`graphsys.embedding.predict`.

    Raises:
        ConfigError: The file is not there, is of another kind, or cannot be read.
        UnknownNameError: It has other columns.
    """
    file = Path(file)
    if file.suffix not in SUFFIXES:
        raise ConfigError(
            f"cannot read questions from {file.name!r}: expected a name that ends in one "
            f"of {', '.join(SUFFIXES)}"
        )
    if not file.is_file():
        raise ConfigError(f"{file} is no file; give a table of questions")
    if not file.stat().st_size:
        lines = "a node per line" if file.suffix == ".txt" else "a header and a row each"
        raise ConfigError(f"{file} is empty and asks nothing; write {lines}")
    try:
        table = _read(file)
    except (pa.ArrowException, OSError, ValueError) as err:
        reason = str(err).splitlines()[0]
        raise ConfigError(f"{file} cannot be read as {file.suffix[1:]}: {reason}") from err
    if table.num_columns == 1 and table.column_names[0] not in COLUMNS:
        table = table.rename_columns(["head"])
    if relation is not None:
        if "relation" in table.column_names:
            raise ConfigError(
                f"{file} has a column relation, and the relation {relation!r} was given "
                "too; give one of them"
            )
        names = pa.repeat(pa.scalar(relation), table.num_rows)
        table = table.append_column("relation", names)
    return as_table(table)


def all_questions(run: Embeddings, relation: str | None = None) -> pa.Table:
    """Ask for the tails of every node that can be a head of a relation.

    Raises:
        ConfigError: The run has several relations and none was given.
        UnknownNameError: There is no such relation.
    """
    from graphsys.core.errors import unknown_name

    known = relation_names(run)
    if relation is None and len(known) > 1:
        raise ConfigError(
            f"the run has {len(known)} relations ({', '.join(list(known)[:5])}"
            f"{', ...' if len(known) > 5 else ''}); say which is asked about with "
            "--relation NAME"
        )
    name = next(iter(known)) if relation is None else relation
    if name not in known:
        raise unknown_name("relation", name, known)
    kind = run.model[known[name][0]].edge_type
    heads = run.graph.node_ids(kind.src_type)
    return pa.table({"head": heads, "relation": pa.repeat(pa.scalar(name), len(heads))})


def _read(file: Path) -> pa.Table:
    import pyarrow.csv
    import pyarrow.parquet

    if file.suffix == ".parquet":
        return pyarrow.parquet.read_table(file)
    if file.suffix == ".arrow":
        with pa.memory_map(str(file), "rb") as source:
            return pa.ipc.open_file(source).read_all()
    delimiter = _DELIMITERS[file.suffix]
    if file.suffix == ".txt":
        options = pyarrow.csv.ReadOptions(column_names=["head"])
    else:
        options = pyarrow.csv.ReadOptions()
        with pyarrow.csv.open_csv(
            file, parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter)
        ) as stream:
            names = stream.schema.names
    text = ["head"] if file.suffix == ".txt" else names
    return pyarrow.csv.read_csv(
        file,
        options,
        pyarrow.csv.ParseOptions(delimiter=delimiter),
        pyarrow.csv.ConvertOptions(
            column_types={name: pa.string() for name in text},
            strings_can_be_null=True,
            null_values=[""],
            quoted_strings_can_be_null=False,
        ),
    )
