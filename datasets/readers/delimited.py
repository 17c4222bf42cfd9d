"""CSV and its relatives: separated columns, with a header or with names given.

Fields may be quoted; a line feed inside quotes is not supported. Columns are found by
their names in the header (roles.py), by ``--columns src=NAME,dst=NAME``, or, in a file
without a header, by position.
"""

import re
import shlex
from dataclasses import replace
from itertools import pairwise
from typing import Final

from graphsys.core.errors import InputError
from graphsys.core.types import EDGE
from graphsys.datasets.base import Format, ReadOptions, base_name, formats
from graphsys.datasets.files import InputFile, read_head, text_file
from graphsys.datasets.readers.edgelist import guess_columns, numbered_names, watched_ranges
from graphsys.datasets.roles import find_roles, is_header, warn_of_left_out
from graphsys.datasets.split_names import by_split
from graphsys.datasets.text.dialect import refuse_nodes_among_edges, refuse_row_names
from graphsys.datasets.text.drawn_columns import refuse_drawn_table
from graphsys.datasets.text.first_lines import (
    DataLine,
    first_lines,
    no_text,
)
from graphsys.datasets.text.id_guards import (
    refuse_comments,
    refuse_labeled_matrix,
    refuse_matrix,
    refuse_undirected,
    refuse_weight_first,
)
from graphsys.datasets.text.layout import (
    BLANKS,
    LineFormat,
    explain_open_quote,
    is_integer,
    is_number,
    show,
)
from graphsys.datasets.text.source import (
    TextPart,
    TextSource,
)
from graphsys.storage.source import Source

_CANDIDATES: Final = b",\t;|"
_TITLE_LINES: Final = 12
"""Lines that are looked at for a header below a title."""


def open_delimited(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of CSV files; each may have columns of its own.

    Raises:
        InputError: a header has no columns for source and destination.
    """
    parts = [_part(file, options, split) for file, split in by_split(files)]
    header = parts[0].header or ()
    ends = [it.decode("utf-8", "replace") for it in header]
    return TextSource(
        parts,
        is_directed=not options.is_undirected,
        num_threads=options.num_threads,
        ranges=watched_ranges(files, options, ends),
    )


def _part(file: InputFile, options: ReadOptions, split: str) -> TextPart:
    file = text_file(file)
    options = _excel(file, options)
    separator = separator_of(file, options)
    lines = first_lines(
        file, skip=options.skip, separator=separator, has_comments=False, has_quotes=True
    )
    if (err := no_text(file, lines[0])) is not None:
        raise err
    _refuse_open_quote(file, lines[0], separator)
    header = [field.decode("utf-8", "replace") for field in lines[0].fields]
    is_guessed, ends = False, None
    if not options.are_names_said:
        refuse_comments(file, lines, is_leading=True)
        _refuse_other_tables(file, lines, separator, options)
    if _has_header(lines[0], header, options):
        where = f"{file.name}:{lines[0].number}"
        refuse_nodes_among_edges(where, header, lines[1:], chr(separator))
        roles = _roles(header, options, where)
        warn_of_left_out(options.columns or header, roles, where)
        names = [roles.get(name, "_") for name in header]
        skip, lines = lines[0].number, lines[1:]
        if not lines:
            raise InputError(f"{where}: no edge behind the header, expected at least one")
        if not options.are_names_said:
            of_role = {role: name.encode() for name, role in roles.items()}
            ends = of_role["src"], of_role["dst"]
        if not (options.is_undirected or options.columns or options.roles):
            of_ends = {role: name for name, role in roles.items()}
            chosen = "--columns " + shlex.quote(",".join((of_ends["src"], of_ends["dst"])))
            refuse_undirected(where, header, lines, chosen)
    else:
        names = list(options.columns or _names_by_position(file, lines[0]))
        skip, is_guessed = options.skip, options.columns is None
    _refuse_open_quote(file, lines[0], separator)
    columns = guess_columns(
        file,
        names,
        lines,
        replace(options, columns=None),
        is_below_header=skip > options.skip,
    )
    layout = LineFormat(
        columns=columns,
        separator=separator,
        has_comments=False,
        has_quotes=separator != BLANKS,
        first_line=lines[0].number,
        keeps_zeros=options.ids == "auto",
    )
    return TextPart(
        file,
        layout,
        options.edge_type or EDGE,
        skip=skip,
        split=split,
        is_weight_guessed=is_guessed and len(names) == 3,
        guards_names=not options.are_names_said,
        header=ends,
    )


def _refuse_open_quote(file: InputFile, line: DataLine, separator: int) -> None:
    """Refuse a line whose quoted field goes on below.

    Raises:
        InputError: names the command that joins its lines.
    """
    if separator != BLANKS and line.text.count(b'"') % 2:
        what = explain_open_quote(line.text, separator)
        raise InputError(f"{file.name}:{line.number}: {what}")


def _refuse_other_tables(
    file: InputFile, lines: list[DataLine], separator: int, options: ReadOptions
) -> None:
    """Refuse tables that are no lists of edges as they stand, where no columns are named.

    Raises:
        InputError: a matrix, names of rows, quotes that CSV does not know, a title.
    """
    if options.columns is not None or options.roles:
        return
    where = f"{file.name}:{lines[0].number}"
    refuse_drawn_table(where, lines)
    names = [field.decode("utf-8", "replace") for field in lines[0].fields]
    if all(it[:1] == it[-1:] == "'" and len(it) > 1 for it in names):
        raise InputError(
            f"{where}: fields are in single quotes, {show(lines[0].text)}, which are no "
            'quotes of CSV; remove them, tr -d "\'" < FILE > NEW; or pass --ids string if '
            "they are part of ids"
        )
    refuse_row_names(where, lines, separator)
    refuse_labeled_matrix(file, lines, separator)
    if all(map(is_integer, lines[0].fields[:2])):
        refuse_matrix(file, lines, separator)
        return
    if is_header(names):
        return
    refuse_weight_first(where, lines)
    for before, line in pairwise(lines[:_TITLE_LINES]):
        words = [it.decode("utf-8", "replace").strip() for it in line.fields]
        if is_header([it for it in words if len(it) > 1]):  # u and v may be ids
            raise InputError(
                f"{file.name}:{line.number}: found the header {show(line.text)} below "
                f"{show(before.text)}; pass --skip {line.number - 1}"
            )


def _excel(file: InputFile, options: ReadOptions) -> ReadOptions:
    """Take the separator from a first line ``sep=;``, as Excel writes and reads it."""
    first = read_head(file).split(b"\n", 1)[0].rstrip()
    if options.skip or not re.fullmatch(rb"sep=[^\w\s\"#%]", first, re.IGNORECASE):
        return options
    return replace(options, skip=1, separator=options.separator or chr(first[-1]))


def _roles(header: list[str], options: ReadOptions, where: str) -> dict[str, str]:
    """Give the columns of a header their names in the graph.

    Raises:
        InputError: source and destination cannot be told; or the line is no header.
    """
    try:
        return find_roles(header, options, where)
    except InputError as err:
        if options.columns or options.roles or "no column for" not in str(err):
            raise
        raise InputError(
            f"{err}, or --columns {numbered_names(len(header))} if this line is no header"
        ) from err


def separator_of(file: InputFile, options: ReadOptions) -> int:
    """Return the given separator, or the first known one that the first line has.

    A blank is the last to be tried: names of columns may have some.
    """
    if options.separator is not None:
        return ord(options.separator)
    lines = first_lines(file, skip=options.skip, separator=ord(","), has_comments=False)
    line = lines[0].text
    if base_name(file.path)[1] == ".tsv" and b"\t" in line:
        return ord("\t")
    if any(mark in line for mark in _CANDIDATES):
        return max(_CANDIDATES, key=line.count)  # the first of those that are as many
    if b" " not in line.strip():
        return ord(",")
    has_runs = any(len(it.text.split(b" ")) != len(it.text.split()) for it in lines)
    has_quotes = any(b'"' in it.text for it in lines)
    return BLANKS if has_runs and not has_quotes else ord(" ")


def _has_header(first: DataLine, header: list[str], options: ReadOptions) -> bool:
    """Tell whether the first line names the columns.

    It does not where it begins with two integers, where the user names columns by
    position that it does not contain, or where it has numbers and no known names.
    """
    if options.roles:
        return True
    if options.columns is not None and not set(options.columns) & set(header):
        return False
    if is_header(header):
        return True
    is_numbers = [is_number(field) for field in first.fields]
    return not (all(map(is_integer, first.fields[:2])) or any(is_numbers[2:]))


def _names_by_position(file: InputFile, first: DataLine) -> tuple[str, ...]:
    found = len(first.fields)
    if found == 2 or (found == 3 and is_number(first.fields[2])):
        return ("src", "dst", "weight")[:found]
    raise InputError(
        f"{file.name}:{first.number}: found {found} columns and no header: "
        f"{show(first.text)}; name them with --columns {numbered_names(found)}"
    )


formats.register("csv")(
    Format(
        open=open_delimited,
        suffixes=(".csv",),
        about="CSV or TSV with a header (src, dst, weight, time, relation, ...)",
    )
)
