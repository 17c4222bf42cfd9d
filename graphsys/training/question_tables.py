"""What runs are asked, from files: lists of nodes, or tables, alike for both trainers."""

from pathlib import Path
from typing import Final

import pyarrow as pa

from graphsys.core.errors import ConfigError

SUFFIXES: Final = (".parquet", ".arrow", ".csv", ".tsv", ".txt")


def read_question_table(file: str | Path, listed: str) -> pa.Table:
    """Read a table; cells of text files are text, and null where nothing is written.

    ``.csv`` and ``.tsv`` have a header; ``.txt`` is a node per line, as it stands, without
    one.

    Args:
        file: The file.
        listed: What the column of a list is called.

    Raises:
        ConfigError: The file is not there, is of another kind, cannot be read, has a
            column twice, or asks nothing.
    """
    file = Path(file)
    if file.suffix not in SUFFIXES:
        raise ConfigError(
            f"cannot read questions from {file.name!r}: expected a name that ends in one "
            f"of {', '.join(SUFFIXES)}"
        )
    if not file.is_file():
        raise ConfigError(
            f"{file} is no file; give a list of nodes or a table of questions"
        )
    try:
        table = _read(file, listed) if file.stat().st_size else pa.table({})
    except (pa.ArrowException, OSError, ValueError) as err:
        reason = str(err).splitlines()[0]
        raise ConfigError(f"{file} cannot be read as {file.suffix[1:]}: {reason}") from err
    names = table.column_names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"{file} has two columns {twice!r}, expected one; rename one")
    if not table.num_rows:
        found = f"has the columns {', '.join(names)} and no row" if names else "is empty"
        is_list = file.suffix == ".txt"
        lines = "a node per line" if is_list else "a header and a row for each question"
        raise ConfigError(f"{file} {found}: it asks nothing; write {lines}")
    return table


def _read(file: Path, listed: str) -> pa.Table:
    import pyarrow.csv
    import pyarrow.parquet

    if file.suffix == ".parquet":
        return pyarrow.parquet.read_table(file)
    if file.suffix == ".arrow":
        with pa.memory_map(str(file), "rb") as source:
            return pa.ipc.open_file(source).read_all()
    text = file.read_bytes().decode("utf-8-sig")
    if not text.strip():
        return pa.table({})
    if file.suffix == ".txt":
        lines = (line.removesuffix("\r") for line in text.split("\n"))
        return pa.table({listed: [line for line in lines if line]})
    parse = pyarrow.csv.ParseOptions(delimiter="," if file.suffix == ".csv" else "\t")
    content = pa.BufferReader(text.encode())
    with pyarrow.csv.open_csv(content, parse_options=parse) as stream:
        names = stream.schema.names
    return pyarrow.csv.read_csv(
        pa.BufferReader(text.encode()),
        parse_options=parse,
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={name: pa.string() for name in names},
            strings_can_be_null=True,
            null_values=[""],
            quoted_strings_can_be_null=False,
        ),
    )
