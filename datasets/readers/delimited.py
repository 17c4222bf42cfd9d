"""CSV and its relatives: separated columns, with a header or with names given.

Fields may be quoted; a line feed inside quotes is not supported. Columns are found by
their names in the header (roles.py), by ``--columns src=NAME,dst=NAME``, or, in a file
without a header, by position.
"""

from dataclasses import replace
from typing import Final

from graphsys.core.errors import InputError
from graphsys.core.types import EDGE
from graphsys.datasets.base import Format, ReadOptions, base_name, formats
from graphsys.datasets.files import InputFile
from graphsys.datasets.readers.edgelist import guess_columns
from graphsys.datasets.roles import find_roles
from graphsys.datasets.split_names import by_split
from graphsys.datasets.text.layout import LineFormat, is_integer, is_number, show
from graphsys.datasets.text.source import (
    DataLine,
    TextPart,
    TextSource,
    first_lines,
    no_text,
)
from graphsys.storage.source import Source

_CANDIDATES: Final = b",\t;|"


def open_delimited(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of CSV files; each may have columns of its own.

    Raises:
        InputError: a header has no columns for source and destination.
    """
    parts = [_part(file, options, split) for file, split in by_split(files)]
    return TextSource(
        parts, is_directed=not options.is_undirected, num_threads=options.num_threads
    )


def _part(file: InputFile, options: ReadOptions, split: str) -> TextPart:
    separator = separator_of(file, options)
    lines = first_lines(
        file, skip=options.skip, separator=separator, has_comments=False, has_quotes=True
    )
    if (err := no_text(file, lines[0])) is not None:
        raise err
    header = [field.decode("utf-8", "replace") for field in lines[0].fields]
    is_guessed = False
    if _has_header(lines[0], header, options):
        where = f"{file.name}:{lines[0].number}"
        roles = find_roles(header, options, where)
        names = [roles.get(name, "_") for name in header]
        skip, lines = lines[0].number, lines[1:]
        if not lines:
            raise InputError(f"{where}: no edge behind the header, expected at least one")
    else:
        names = list(options.columns or _names_by_position(file, lines[0]))
        skip, is_guessed = options.skip, options.columns is None
    columns = guess_columns(file, names, lines, replace(options, columns=None))
    layout = LineFormat(
        columns=columns,
        separator=separator,
        has_comments=False,
        has_quotes=True,
        first_line=lines[0].number,
    )
    return TextPart(
        file,
        layout,
        options.edge_type or EDGE,
        skip=skip,
        split=split,
        is_weight_guessed=is_guessed and len(names) == 3,
    )


def separator_of(file: InputFile, options: ReadOptions) -> int:
    """Return the given separator, or the first known one that the first line has.

    A blank is the last to be tried: names of columns may have some.
    """
    if options.separator is not None:
        return ord(options.separator)
    if base_name(file.path)[1] == ".tsv":
        return ord("\t")
    line = first_lines(file, skip=options.skip, separator=ord(","), has_comments=False)[0]
    blank = ord(" ") if b" " in line.text.strip() else ord(",")
    return next((mark for mark in _CANDIDATES if mark in line.text), blank)


def _has_header(first: DataLine, header: list[str], options: ReadOptions) -> bool:
    """Tell whether the first line names the columns.

    It does not where it begins with two integers, or where the user names columns by
    position that it does not contain.
    """
    if options.roles:
        return True
    if options.columns is not None and not set(options.columns) & set(header):
        return False
    return not all(is_integer(field) for field in first.fields[:2])


def _names_by_position(file: InputFile, first: DataLine) -> tuple[str, ...]:
    found = len(first.fields)
    if found == 2 or (found == 3 and is_number(first.fields[2])):
        return ("src", "dst", "weight")[:found]
    raise InputError(
        f"{file.name}:{first.number}: found {found} columns and no header: "
        f"{show(first.text)}; name them with --columns src,dst,NAME,..."
    )


formats.register("csv")(
    Format(
        open=open_delimited,
        suffixes=(".csv",),
        about="CSV or TSV with a header (src, dst, weight, time, relation, ...)",
    )
)
