"""Results as files: Parquet, Arrow, CSV and TSV, written whole or not at all."""

from pathlib import Path

import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.storage.output_file import new_files, require_writable

SUFFIXES = (".parquet", ".arrow", ".csv", ".tsv")


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
    check_output(out, overwrite=overwrite)
    with new_files(out) as [new]:
        _write(table, new, out.suffix)


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
