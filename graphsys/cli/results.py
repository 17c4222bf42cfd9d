"""Where a table of results goes: to a file, to stdout, or its first rows to the eye."""

import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from graphsys.cli.console import print_note, print_table
from graphsys.cli.help_pages.declarations import option
from graphsys.cli.options import OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from graphsys.engine.result import Result

STDOUT = Path("-")
NUM_SHOWN = 10

FormatOption = Annotated[
    str | None,
    option(
        "--format NAME",
        "With --out -: tsv (by default), csv, jsonl (an object a line) or arrow "
        "(Arrow's stream).",
        OUTPUT,
    ),
]


def check_target(
    out: Path | None, kind: str | None, *, overwrite: bool, as_json: bool
) -> None:
    """Refuse what could not be written, before any work is done.

    Args:
        out: A file, ``-`` for stdout, or nothing.
        kind: What is written to stdout; None for the default.
        overwrite: Whether a file may be replaced.
        as_json: Whether stdout is taken by ``--json``.

    Raises:
        ConfigError: no such suffix or format, or two that want stdout.
        OutputExistsError: the file exists.
    """
    from graphsys.core.errors import ConfigError, unknown_name
    from graphsys.engine.output import STREAMS, check_output

    if out != STDOUT:
        if kind is not None:
            raise ConfigError(
                f"--format {kind} is for --out -; the name of a file says what it holds"
            )
        if out is not None:
            check_output(out, overwrite=overwrite)
        return
    if as_json:
        raise ConfigError("--json and --out - both write to stdout; leave one of them out")
    if kind is not None and kind not in STREAMS:
        raise unknown_name("--format", kind, STREAMS)


def write_result(
    table: "pa.Table", out: Path, kind: str | None, *, overwrite: bool
) -> None:
    """Write a table to a file, or to stdout."""
    _write(iter([table]), out, kind, overwrite=overwrite)


def write_run(done: "Result", out: Path, kind: str | None, *, overwrite: bool) -> "Result":
    """Write the table of a result to a file, or to stdout, piece by piece where it is.

    Returns:
        The result; where the pieces are made while they are written, with the time that
        making them took.
    """
    from dataclasses import replace

    if done.pieces is None:
        write_result(done.table, out, kind, overwrite=overwrite)
        return done
    made = _Timed(done.parts())
    _write(made, out, kind, overwrite=overwrite)
    return replace(done, seconds=made.seconds)


def _write(
    pieces: "Iterator[pa.Table]", out: Path, kind: str | None, *, overwrite: bool
) -> None:
    from graphsys.engine.output import stream_pieces, write_pieces

    if out == STDOUT:
        sys.stdout.flush()
        stream_pieces(pieces, sys.stdout.buffer, kind or "tsv")
        sys.stdout.buffer.flush()
    else:
        write_pieces(pieces, out, overwrite=overwrite)


class _Timed:
    """Pieces, and how long it took to make them."""

    def __init__(self, pieces: "Iterator[pa.Table]") -> None:
        self._pieces, self.seconds = pieces, 0.0

    def __iter__(self) -> "_Timed":
        return self

    def __next__(self) -> "pa.Table":
        began = perf_counter()
        try:
            return next(self._pieces)
        finally:
            self.seconds += perf_counter() - began


def print_preview(table: "pa.Table", order: str) -> None:
    """Print the first rows of a table: the ``largest``, the ``smallest`` or as they come.

    Args:
        table: At least one row.
        order: By the first column behind the ids.
    """
    rows = first_rows(table, order)
    sys.stdout.write("\n")
    print_table(
        rows.column_names, [[_cell(v) for v in r.values()] for r in rows.to_pylist()]
    )
    which = "as they come" if order == "stored" else f"{order} {_sorted_by(table)} first"
    print_note(
        f"{rows.num_rows:,} of {table.num_rows:,} rows, {which}; all of them: -o FILE, or "
        "-o - for stdout"
    )


def first_rows(table: "pa.Table", order: str, num: int = NUM_SHOWN) -> "pa.Table":
    """Return the first rows in an order; nulls and NaN come last, ties by id."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if order == "stored":
        return table.slice(0, num)
    name = _sorted_by(table)
    column = table.column(name)
    is_known = pc.is_valid(column)
    if pa.types.is_floating(column.type):
        is_known = pc.and_kleene(is_known, pc.invert(pc.is_nan(column)))
    known = table.filter(is_known)
    direction = "descending" if order == "largest" else "ascending"
    keys = [(name, direction), (table.column_names[0], "ascending")]
    best = known.take(pc.select_k_unstable(known, num, keys))
    rest = table.filter(pc.invert(is_known)).slice(0, num - best.num_rows)
    return pa.concat_tables([best, rest])


def _sorted_by(table: "pa.Table") -> str:
    return str(next(n for n in table.column_names[1:] if n not in ("type", "other")))


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(map(str, value))
    return value if isinstance(value, float | bool) else str(value)  # ids have no commas
