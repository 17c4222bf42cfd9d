"""Results as files: Parquet, Arrow, CSV and TSV, written whole or not at all."""

import os
from pathlib import Path

import pyarrow as pa

from graphsys.core.errors import ConfigError, OutputExistsError
from graphsys.storage.transaction import disk_errors

SUFFIXES = (".parquet", ".arrow", ".csv", ".tsv")


def check_output(out: Path, *, overwrite: bool) -> None:
    """Refuse what could not be written, before any work is done.

    Raises:
        ConfigError: the suffix is not a known one, or it is a folder.
        OutputExistsError: the file exists.
    """
    if out.suffix not in SUFFIXES:
        raise ConfigError(
            f"cannot write {out.name!r}: expected a name that ends in one of "
            f"{', '.join(SUFFIXES)}"
        )
    if out.is_dir():
        raise ConfigError(f"{out} is a folder; name a file")
    if out.exists() and not overwrite:
        raise OutputExistsError(f"{out} exists; replace it with --overwrite")


def write_table(table: pa.Table, out: Path, *, overwrite: bool = False) -> None:
    """Write a table; an old file stays until the new one is complete.

    Raises:
        ConfigError: the suffix is not a known one.
        OutputExistsError: the file exists.
        StorageFullError: it cannot be written.
    """
    check_output(out, overwrite=overwrite)
    # a name of this process's own: two runs at once must not write into one file
    new = out.with_name(f".{out.name}.{os.getpid()}.new")
    try:
        with disk_errors(out):
            out.parent.mkdir(parents=True, exist_ok=True)
            _write(table, new, out.suffix)
            new.replace(out)
    finally:
        new.unlink(missing_ok=True)


def _write(table: pa.Table, path: Path, suffix: str) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    if suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    elif suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        delimiter = "," if suffix == ".csv" else "\t"
        options = pyarrow.csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
        pyarrow.csv.write_csv(_flat(table), path, options)


def _flat(table: pa.Table) -> pa.Table:
    """Decode dictionaries, which Arrow's CSV writer does not know."""
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(i).cast(field.type.value_type)
            table = table.set_column(i, field.name, column)
    return table
