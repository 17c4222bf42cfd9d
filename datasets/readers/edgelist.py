"""Edge lists in text: SNAP's files and what looks like them.

The first data line fixes the number of columns (2: src dst; 3: src dst weight; more are
named by the user) and the type of ids; every later line must look the same.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from graphsys.core.caller_warnings import note
from graphsys.core.errors import ConfigError, InputError
from graphsys.core.types import EDGE
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.files import InputFile, text_file
from graphsys.datasets.roles import is_header
from graphsys.datasets.split_names import by_split
from graphsys.datasets.text.dialect import sniff_separator
from graphsys.datasets.text.drawn_columns import are_ragged
from graphsys.datasets.text.first_lines import (
    DataLine,
    first_lines,
    is_even_below,
    is_first_odd,
    no_text,
)
from graphsys.datasets.text.id_guards import (
    header_above,
    must_be_strings,
    refuse_comments,
    refuse_header,
    refuse_lists_of_neighbors,
    refuse_matrix,
    refuse_preamble,
    refuse_weight_first,
    skipped_header,
    warn_of_numbers_as_names,
    warn_of_times,
)
from graphsys.datasets.text.layout import (
    BLANKS,
    ID,
    INTEGER,
    LABEL,
    MAYBE,
    NUMBER,
    SKIP,
    WORD,
    LineFormat,
    TextColumn,
    decimal_remedy,
    is_integer,
    is_missing,
    is_number,
    show,
)
from graphsys.datasets.text.source import (
    TextPart,
    TextSource,
)
from graphsys.datasets.text.two_ranges import TwoRanges
from graphsys.datasets.times import is_date
from graphsys.storage.source import Source

_HEADER_HINT: Final = "; if it is a header or a count, pass --skip {line}"


def open_edgelist(
    files: list[InputFile], options: ReadOptions, *, third_is_weight: bool = False
) -> Source:
    """Make a source of edge lists; all files are of one kind.

    Args:
        files: The files.
        options: What the user says.
        third_is_weight: The format says so; else a third column is looked at.

    Raises:
        InputError: the first line of a file is not an edge.
    """
    parts = [_part(file, options, split) for file, split in by_split(files)]
    if third_is_weight:
        parts = [replace(part, is_weight_guessed=False) for part in parts]
    return TextSource(
        parts,
        is_directed=not options.is_undirected,
        num_threads=options.num_threads,
        ranges=watched_ranges(files, options),
    )


def watched_ranges(
    files: Sequence[InputFile], options: ReadOptions, ends: Sequence[str] = ()
) -> TwoRanges | None:
    """Return what watches whether the ends look like two types; None where it is said.

    Args:
        files: The files.
        options: With the type of the edges, if it is said.
        ends: Names of the columns of both ends, if they have some.
    """
    if options.edge_type is not None or options.are_names_said:
        return None
    names = [re.sub(r"[ _]*ids?$", "", end, flags=re.IGNORECASE) for end in ends]
    is_named = len(set(names)) == 2 and not is_header(ends)
    types = names if is_named else ["user", "item"]
    relation = f"{types[0]},links,{types[1]}"
    tables = " ".join(f"--edges {relation}={shlex.quote(file.name)}" for file in files)
    name = ", ".join(file.name for file in files)
    return TwoRanges(name, tables, is_named=is_named)


def _part(file: InputFile, options: ReadOptions, split: str) -> TextPart:
    if options.roles:
        raise ConfigError(
            "columns: an edge list has no header; name its columns by position, "
            "for example src,dst,weight"
        )
    file = text_file(file)
    names = options.columns
    if options.separator is None:
        num_columns = None if names is None else len(names)
        separator, said = sniff_separator(file, skip=options.skip, num_columns=num_columns)
    else:
        separator, said = ord(options.separator), ""
    separator = BLANKS if separator == ord(" ") else separator
    lines = first_lines(
        file, skip=options.skip, separator=separator, num_columns=len(names or (1, 2))
    )
    first = lines[0]
    if (err := no_text(file, first)) is not None:
        raise err
    if not options.are_names_said:
        refuse_comments(file, lines)
        refuse_lists_of_neighbors(file)
    if names is None:
        refuse_matrix(file, lines, separator)
        if not options.are_names_said:
            refuse_weight_first(f"{file.name}:{first.number}", lines)
        names = _default_names(file, lines, separator)
    columns = guess_columns(file, names, lines, options)
    if said:
        note(said)
    if options.columns is None and len(names) == 3:
        warn_of_times(f"{file.name}:{first.number}", lines)
    layout = LineFormat(
        columns=columns,
        separator=separator,
        first_line=first.number,
        is_first_odd=is_first_odd(lines),
        is_even_below=is_even_below(lines),
        is_ragged=options.columns is None and are_ragged(lines, separator),
        keeps_zeros=options.ids == "auto",
    )
    return TextPart(
        file,
        layout,
        options.edge_type or EDGE,
        skip=options.skip,
        split=split,
        is_weight_guessed=options.columns is None and len(names) == 3,
        guards_names=not options.are_names_said,
        may_count=options.columns is None and len(names) == 2 and not options.skip,
        header=None
        if options.are_names_said
        else skipped_header(file, options.skip, layout),
    )


def _default_names(
    file: InputFile, lines: Sequence[DataLine], separator: int
) -> tuple[str, ...]:
    """Name the columns of a file of two or three.

    Raises:
        InputError: there are fewer or more.
    """
    first = lines[0]
    where, found = f"{file.name}:{first.number}", len(first.fields)
    is_header_likely = is_even_below(lines) and is_first_odd(lines)
    hint = _HEADER_HINT.format(line=first.number) if is_header_likely else ""
    if b"\r" in first.text.rstrip(b"\r\n"):
        raise InputError(
            f"{where}: lines end in several ways, {show(first.text)}; write line feeds, "
            "tr '\\r' '\\n' < FILE > NEW"
        )
    if found < 2 and _is_set_of_graphs(lines):
        raise InputError(
            f"{where}: found {show(first.text)} above what looks like many small graphs, a "
            "line NODES LABEL and a line a node each; pass --format gin"
        )
    if found < 2:
        raise InputError(
            f"{where}: found 1 column, expected at least 2 (src dst): "
            f"{show(first.text)}{hint}"
        )
    words = [field.decode(errors="replace") for field in first.fields]
    if found >= 3 and not is_number(first.fields[2]) and is_header(words):
        raise InputError(
            f"{where}: found the header {show(first.text)}; pass --format csv, which "
            "reads columns by their names"
        )
    is_even = all(len(line.fields) == found for line in lines)
    if (
        found > 3
        and is_even
        and is_first_odd(lines)
        and not any(map(is_number, first.fields))
    ):
        raise InputError(
            f"{where}: found {found} columns below what looks like a header, "
            f"{show(first.text)}; pass --format csv, which reads columns by their names"
        )
    if found > 3 and (above := header_above(file, first)):
        raise InputError(
            f"{where}: found {found} columns below a comment of as many, {show(above)}; "
            "pass --format csv if these are their names"
        )
    if found > 3:
        raise InputError(
            f"{where}: found {found} columns, expected 2 (src dst) or 3 (src dst weight): "
            f"{show(first.text)}; name them with --columns {numbered_names(found)}, or "
            f"pass --format adjacency if these are lists of neighbors{hint}"
        )
    if found == 3 and not is_number(first.fields[2]):
        raise _no_weight(where, lines, separator, hint)
    return ("src", "dst", "weight")[:found]


def _no_weight(
    where: str, lines: Sequence[DataLine], separator: int, hint: str
) -> InputError:
    """Return the error for a third column that begins with a word."""
    first = lines[0]
    others = [line.fields[2] for line in lines[1:] if len(line.fields) == 3]
    if others and all(map(is_number, others)):
        return InputError(
            f"{where}: found what looks like a header, {show(first.text)}, above numbers; "
            f"pass --skip {first.number}, or --format csv"
        )
    if are_ragged(lines, separator):
        return InputError(
            f"{where}: found {show(first.text)}, and other numbers of columns below; pass "
            f"--format adjacency if these are lists of neighbors{hint}"
        )
    return InputError(
        f"{where}: found {show(first.fields[2])} as weight, expected a number"
        f"{decimal_remedy(first.fields[2], separator)}; for triples of head, relation "
        "and tail pass --format triples, else name other columns with --columns "
        f"src,dst,NAME{hint}"
    )


def _is_set_of_graphs(lines: Sequence[DataLine]) -> bool:
    """Whether a count, and then a graph as GIN's authors write one, is what lines have."""
    fields = [line.fields for line in lines]
    are_numbers = all(field.lstrip(b"-").isdigit() for row in fields for field in row)
    if len(fields) < 3 or len(fields[1]) != 2 or not are_numbers:
        return False
    nodes = fields[2 : 2 + int(fields[1][0])]
    return all(len(row) >= 2 and int(row[1]) == len(row) - 2 for row in nodes)


def numbered_names(found: int) -> str:
    """Return names for columns by position, for a message.

    Examples:
        >>> numbered_names(4)
        'src,dst,c3,c4'
    """
    return ",".join(["src", "dst", *(f"c{k}" for k in range(3, found + 1))])


def columns_of(count: int) -> str:
    """Return a number of columns, for a message."""
    return f"{count} column{'s' * (count != 1)}"


def guess_columns(
    file: InputFile,
    names: Sequence[str],
    lines: Sequence[DataLine],
    options: ReadOptions,
    *,
    is_below_header: bool = False,
) -> tuple[TextColumn, ...]:
    """Decide on the types of columns from the first data lines.

    Ids are decided by the first line alone; further columns by all lines given. Below a
    header the first line can be no other one.

    Raises:
        InputError: the first line does not have these columns.
        ConfigError: no column is called src or dst.
    """
    first = lines[0]
    where = f"{file.name}:{first.number}"
    if missing := [role for role in ("src", "dst") if role not in names]:
        raise ConfigError(
            f"columns: got {','.join(names)}, expected a column called "
            f"{' and '.join(missing)}"
        )
    if len(first.fields) != len(names):
        raise InputError(
            f"{where}: found {columns_of(len(first.fields))}, expected {len(names)} "
            f"({' '.join(names)}): {show(first.text)}"
            + (
                _HEADER_HINT.format(line=first.number)
                if not is_below_header and is_first_odd(lines) and is_even_below(lines)
                else "; correct or remove the line"
            )
        )
    fields = dict(zip(names, first.fields, strict=True))
    ends = [fields["src"], fields["dst"]]
    places = [list(names).index("src"), list(names).index("dst")]
    id_kind = _id_kind(where, ends, lines, places, options)
    known = options.known.get("", {})
    return tuple(
        TextColumn(
            name,
            id_kind
            if name in ("src", "dst")
            else guess_kind(name, place, lines, known.get(name, "")),
            is_told=name in known or has_values(place, lines),
        )
        for place, name in enumerate(names)
    )


def _id_kind(
    where: str,
    ends: list[bytes],
    lines: Sequence[DataLine],
    places: Sequence[int],
    options: ReadOptions,
) -> int:
    """Return ID or WORD for both ends of an edge."""
    if options.ids == "string":
        if options.guards_names:
            _refuse_headers(where, lines, places)
        return WORD
    if bad := [end for end in ends if not end.isdigit() or not is_integer(end)]:
        looks_numeric = all(end.lstrip(b"-").isdigit() for end in ends)
        if options.ids == "int" or looks_numeric:
            hint = "" if looks_numeric else _HEADER_HINT.format(line=lines[0].number)
            raise InputError(
                f"{where}: found {show(bad[0])} as an id, expected an integer from 0 to "
                f"2**63 - 1; pass --ids string if ids are names{hint}"
            )
        _refuse_headers(where, lines, places)
        warn_of_numbers_as_names(where, lines, places)
        return WORD
    if options.ids == "auto" and must_be_strings(where, lines, places):
        return WORD
    return ID


def _refuse_headers(where: str, lines: Sequence[DataLine], places: Sequence[int]) -> None:
    """Refuse first lines that are no edges of names.

    Raises:
        InputError: they are a description of the file, or a header.
    """
    refuse_preamble(where, lines, places)
    refuse_header(where, lines, places, f"--skip {lines[0].number}, --format csv")


def guess_kind(name: str, place: int, lines: Sequence[DataLine], known: str = "") -> int:
    """Return the kind of a column without ids; ``known`` is what a graph has it as."""
    if name in ("_", ""):
        return SKIP
    if name == "weight":
        return NUMBER
    if name == "time":
        return _time_kind(
            [line.fields[place] for line in lines if place < len(line.fields)]
        )
    if name == "relation":
        return WORD
    if known:
        return LABEL if known == "string" else MAYBE
    fields = [line.fields[place] for line in lines if place < len(line.fields)]
    if all(is_integer(field) for field in fields):
        return INTEGER
    given = [field for field in fields if not is_missing(field)]
    return MAYBE if given and all(is_number(field) for field in given) else LABEL


def has_values(place: int, lines: Sequence[DataLine]) -> bool:
    """Tell whether a column has a value in some line."""
    return any(
        not is_missing(line.fields[place]) for line in lines if place < len(line.fields)
    )


def _time_kind(fields: Sequence[bytes]) -> int:
    """Return the kind of times: integers, numbers with fractions, or dates."""
    if all(is_integer(field) for field in fields):
        return INTEGER
    if all(is_number(field) for field in fields):
        return NUMBER
    return WORD if all(is_date(field) for field in fields) else INTEGER


formats.register("edgelist")(
    Format(
        open=open_edgelist,
        suffixes=(".txt", ".tsv", ".el", ".edges", ".edgelist", ".ncol"),
        about="text, one edge a line: src dst [weight], # and % comments",
    )
)
