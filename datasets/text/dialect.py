"""What separates the columns of a text file whose user did not say.

A name of any bytes is an id, so that a separator that is glued to ids, an arrow between
them or quotes around them would become part of nodes. The first lines tell: a mark that
all of them have in the same places is a separator, and one line says so; lines that can
be read in two ways are refused with the commands that settle it.
"""

import re
from collections.abc import Sequence
from typing import Final

from graphsys.core.caller_warnings import note
from graphsys.core.errors import InputError
from graphsys.datasets.files import InputFile
from graphsys.datasets.roles import is_header
from graphsys.datasets.text.drawn_columns import (
    refuse_doubled_marks,
    refuse_drawn_table,
    refuse_fixed_widths,
    refuse_glued_pairs,
    refuse_wrapped_names,
)
from graphsys.datasets.text.first_lines import (
    DataLine,
    first_lines,
)
from graphsys.datasets.text.layout import BLANKS, is_number, show

_MARKS: Final = (b",", b";", b"|", b":")
_NAMES: Final = {b",": "comma", b";": "semicolon", b"|": "pipe", b"\t": "tab", b":": ":"}
_BRACKETS: Final = (b"(", b"[", b"{", b"<")
_ENDS: Final = b";,"
_LINE_WORDS: Final = (b"edge", b"arc", b"link")
_ENOUGH: Final = 2
"""Lines that have the same word in the middle before it is taken for an arrow."""
_APOC: Final = {
    "_id": "id:ID",
    "_labels": ":LABEL",
    "_start": ":START_ID",
    "_end": ":END_ID",
    "_type": ":TYPE",
}
"""Columns of APOC's export, by their names in files for Neo4j's import."""


def sniff_separator(
    file: InputFile, *, skip: int, num_columns: int | None
) -> tuple[int, str]:
    """Return the byte that separates columns, or BLANKS, and what to say about it.

    Args:
        file: The file.
        skip: Lines at its beginning that are no data.
        num_columns: How many columns the user named, or None.

    Raises:
        InputError: the lines can be read in several ways; names the commands that say how.
    """
    lines = first_lines(
        file, skip=skip, separator=BLANKS, num_columns=num_columns or _ENOUGH
    )
    texts = [_content(line, num_columns or _ENOUGH) for line in lines]
    where = f"{file.name}:{lines[0].number}"
    refuse_drawn_table(where, lines)
    _refuse_brackets(where, lines, texts)
    if num_columns is None:
        refuse_row_names(where, lines)
    _refuse_quotes(where, lines, texts)
    refuse_wrapped_names(where, lines)
    refuse_doubled_marks(where, lines)
    mark = _common_tab(where, lines, texts, num_columns) or _common_mark(
        where, lines, texts
    )
    if mark is None:
        _refuse_some_marks(where, lines)
        _refuse_arrows(where, lines, num_columns)
        _look_at_first_word(where, lines, num_columns)
        refuse_fixed_widths(where, lines, num_columns)
        refuse_glued_pairs(where, lines)
        _refuse_line_ends(where, lines, texts)
        return BLANKS, ""
    return ord(mark), (
        f"{where}: columns are separated by {_shown(mark)}, as in {show(lines[0].text)}; "
        f"pass --separator {_NAMES[mark]} to say so, or --separator space if it is part of "
        "ids"
    )


def _content(line: DataLine, num_columns: int) -> bytes:
    """Return a line without margins and without a comment behind its columns."""
    text = line.text.strip()
    if len(text.split()) == len(line.fields):
        return text
    return b" ".join(line.fields) if len(line.fields) >= num_columns else text


def _shown(mark: bytes) -> str:
    return "tabs" if mark == b"\t" else repr(mark.decode())


def _common_mark(
    where: str, lines: Sequence[DataLine], texts: Sequence[bytes]
) -> bytes | None:
    """Return the mark that separates columns in all lines, or None.

    Raises:
        InputError: it may be part of ids, or stands in some lines alone.
    """
    counts = {len(line.fields) for line in lines}
    is_readable = len(counts) == 1 and counts <= {2, 3}
    for mark in _MARKS:
        first_ids = [line.fields[0] for line in lines]
        is_glued = all(it.endswith(mark) and it != mark for it in first_ids) or (
            mark != b":"
            and all(
                len(line.fields) > 1 and line.fields[1].startswith(mark) for line in lines
            )
        )
        is_alone = all(len(line.fields) == 1 and mark in line.fields[0] for line in lines)
        is_between = all(line.fields[1:2] == [mark] for line in lines)
        is_inside = (
            not is_readable
            and mark != b":"
            and all(any(it.endswith(mark) for it in line.fields[:-1]) for line in lines)
        )
        if not (is_glued or is_alone or is_between or is_inside):
            continue
        if mark == b":" and is_glued:
            raise InputError(
                f"{where}: every line begins with an id and ':', {show(texts[0])}; for "
                "lists of neighbors remove it, sed 's/:/ /' FILE > NEW, and pass --format "
                "adjacency; pass --separator space if it is part of ids"
            )
        pieces = [text.split(mark) for text in texts]
        is_regular = len({len(it) for it in pieces}) == 1
        if is_regular and all(it.strip() for line in pieces for it in line):
            _refuse_two_marks(where, texts, mark)
            return mark
        raise InputError(
            f"{where}: {_shown(mark)} stands behind ids, {show(texts[0])}, but not as "
            "often in all lines, or with nothing behind it; pass --separator "
            f"{_NAMES[mark]} if it separates columns, --separator space if it is part of "
            "ids"
        )
    return None


def _refuse_some_marks(where: str, lines: Sequence[DataLine]) -> None:
    """Refuse a mark that stands behind ids in half of the lines, or behind numbers.

    Raises:
        InputError: names a line that has it.
    """
    for mark in (b",", b";"):
        glued = [
            line
            for line in lines
            if len(line.fields) > 1
            and len(line.fields[0]) > 1
            and line.fields[0].endswith(mark)
        ]
        has_number = any(line.fields[0][:-1].isdigit() for line in glued)
        if has_number or (glued and 2 * len(glued) >= len(lines)):
            raise InputError(
                f"{where.rpartition(':')[0]}:{glued[0].number}: {_shown(mark)} stands "
                f"behind ids, {show(glued[0].text)}, but not in all lines; replace it by a "
                f"blank, sed 's/{mark.decode()}/ /g' FILE > NEW; pass --separator space if "
                "it is part of ids"
            )


def _refuse_two_marks(where: str, texts: Sequence[bytes], mark: bytes) -> None:
    """Refuse lines that have another mark as often as the one that separates them.

    Raises:
        InputError: a comma may be a decimal point, or part of names.
    """
    for other in _MARKS[: 3 if mark == b"," else 0]:
        counts = {text.count(other) for text in texts}
        if other != mark and len(counts) == 1 and counts.pop() > 0:
            raise InputError(
                f"{where}: both {_shown(mark)} and {_shown(other)} stand in every line, "
                f"{show(texts[0])}; pass --separator {_NAMES[other]}, or --separator "
                f"{_NAMES[mark]}, whichever separates columns"
            )


def _common_tab(
    where: str, lines: Sequence[DataLine], texts: Sequence[bytes], num_columns: int | None
) -> bytes | None:
    """Return a tab where it separates names that hold blanks.

    Raises:
        InputError: blanks may separate as well.
    """
    pieces = [text.split(b"\t") for text in texts]
    counts = {len(it) for it in pieces}
    has_blanks = any(b" " in it.strip() for line in pieces for it in line)
    if counts in ({0}, {1}) or len(counts) != 1 or not has_blanks:
        return None
    blank_counts = {len(line.fields) for line in lines}
    expected = {num_columns} if num_columns else {2, 3}
    if len(blank_counts) > 1 and num_columns is None:
        return b"\t"  # as many tabs in every line, and not as many blanks
    if not counts <= expected:
        return None
    if len(blank_counts) == 1 and blank_counts <= expected:
        if all(it.replace(b".", b"").isdigit() for line in lines for it in line.fields):
            return None
        raise InputError(
            f"{where}: both tabs and blanks stand in every line, {show(lines[0].text)}; "
            "pass --separator tab if ids hold blanks, --separator space if not"
        )
    return b"\t"


def _refuse_quotes(where: str, lines: Sequence[DataLine], texts: Sequence[bytes]) -> None:
    """Refuse fields in quotes, which an edge list takes as parts of ids.

    Raises:
        InputError: all lines begin with a quote that is closed.
    """
    first_ids = [line.fields[0] for line in lines]
    if first_ids == [b'"%d"' % number for number in range(1, len(lines) + 1)] and not any(
        it.startswith(b'"') for line in lines for it in line.fields[1:2]
    ):
        raise InputError(
            f"{where}: every line begins with its number in quotes, "
            f"{show(lines[0].text)}, as R writes names of rows; remove them, sed -E "
            '\'s/^"[^"]*"[ \\t,;]*//\' FILE > NEW; pass --separator space if they are '
            "ids"
        )
    for quote, remedy in (
        (b'"', f"pass {_csv(lines[0])}, which takes them off"),
        (b"'", 'remove them, tr -d "\'" < FILE > NEW'),
    ):
        if all(it.startswith(quote) and it.count(quote) % 2 == 0 for it in texts):
            raise InputError(
                f"{where}: fields are in quotes, {show(lines[0].text)}; {remedy}; pass "
                "--separator space if quotes are part of ids"
            )


def _csv(first: DataLine) -> str:
    """Return the options that read quoted fields, whether the first line is a header."""
    names = [field.strip(b'"').decode("utf-8", "replace") for field in first.fields]
    is_known = is_header(names) or all(name.isdigit() for name in names[:2])
    columns = ",".join(["src", "dst", *(f"c{k}" for k in range(3, len(names) + 1))])
    return "--format csv" if is_known else f"--format csv --columns {columns}"


def _refuse_brackets(where: str, lines: Sequence[DataLine], texts: Sequence[bytes]) -> None:
    """Refuse tuples, ``(a, b)``.

    Raises:
        InputError: all lines begin with one bracket and end with one mark.
    """
    if all(it[-1:] == b"}" and b"{" in it[1:] for it in texts):
        raise InputError(
            f"{where}: every line ends with attributes in '{{' and '}}', "
            f"{show(lines[0].text)}, as NetworkX writes them; remove them, sed 's/ "
            "*{.*}$//' FILE > NEW, or write the graph as GraphML, networkx.write_graphml; "
            "pass --separator space if they are part of ids"
        )
    first, last = texts[0][:1], texts[0][-1:]
    if first not in _BRACKETS or last.isalnum() or last == first:
        return
    if all(it[:1] == first and it[-1:] == last and it.count(first) == 1 for it in texts):
        closing = last.decode(errors="replace")
        raise InputError(
            f"{where}: every line stands in {first.decode()!r} and {closing!r}, "
            f"{show(lines[0].text)}; remove them, tr -d '{first.decode()}{closing}' < FILE "
            "> NEW; pass --separator space if they are part of ids"
        )


def refuse_nodes_among_edges(
    where: str, header: Sequence[str], lines: Sequence[DataLine], mark: str
) -> None:
    """Refuse rows of nodes above rows of edges, as ``apoc.export.csv`` writes them.

    Args:
        where: File and line, for the message.
        header: Names of the columns.
        lines: First lines below.
        mark: What separates columns.

    Raises:
        InputError: a row has no ``_start``; the message has the command that writes nodes
            and edges apart, as Neo4j's import takes them.

    References:
        Neo4j, APOC documentation, "Export to CSV".
    """
    if not {"_id", "_start", "_end"} <= set(header):
        return
    place = header.index("_start")
    if all(line.fields[place : place + 1] != [b""] for line in lines):
        return
    delimiter = "" if mark == "," else f",delimiter={mark!r}"
    code = (
        f"import csv,sys;r=csv.reader(sys.stdin{delimiter});h=next(r);"
        f"k=h.index('_start');m={_APOC!r};h=[m.get(x,x) for x in h];"
        "n,e=[csv.writer(open(x,'w')) for x in ('nodes.csv','edges.csv')];"
        "n.writerow(h[:k]);e.writerow(h[k:]);"
        "[e.writerow(x[k:]) if x[k] else n.writerow(x[:k]) for x in r]"
    )
    raise InputError(
        f"{where}: rows of nodes (_id) stand above rows of edges (_start, _end), as "
        f'Neo4j\'s APOC writes them; write them apart, python3 -c "{code}" < FILE, and '
        "ingest nodes.csv edges.csv"
    )


def refuse_row_names(
    where: str, lines: Sequence[DataLine], separator: int = BLANKS
) -> None:
    """Refuse a table whose rows have a name or number more than the header has columns.

    Args:
        where: File and line, for the message.
        lines: First lines of data.
        separator: Of their fields.

    Raises:
        InputError: the rows are numbered, as R and Stata write them.
    """
    width = len(lines[0].fields) + 1
    rows = lines[1:]
    if not rows or width < 3 or any(len(line.fields) != width for line in rows):
        return
    if lines[0].fields[0].isdigit():
        return
    names = [line.fields[0].strip(b'".') for line in rows]
    first = int(names[0]) if names[0].isdigit() and len(names[0]) < 3 else -1
    if names != [b"%d" % (first + place) for place in range(len(rows))]:
        return
    mark = "[ \\t]+" if separator == BLANKS else re.escape(chr(separator))
    raise InputError(
        f"{where}: found a header of {width - 1} columns above numbered rows of {width}, "
        f"{show(rows[0].text)}, as R writes them; remove the numbers, sed -E "
        f"'{lines[0].number + 1},$s/^ *[^ \\t,;]+{mark}//' FILE > NEW"
    )


def _refuse_arrows(where: str, lines: Sequence[DataLine], num_columns: int | None) -> None:
    """Refuse one mark or word that would be the destination of every edge.

    Raises:
        InputError: it stands between two ids in all lines.
    """
    if num_columns is not None:
        return
    widths = {len(line.fields) for line in lines}
    middles = {line.fields[1] if len(line.fields) > _ENOUGH else b"" for line in lines}
    middle = middles.pop()
    text = middle.decode("utf-8", "replace")
    if middles or not middle or middle.isdigit():
        _refuse_glued_arrows(where, lines)
        return
    if not any(letter.isalnum() for letter in text) and len(widths) == 1:
        further = ",".join(_further_names(lines))
        node = "" if further else ", or --columns src,dst,weight if it is a node"
        raise InputError(
            f"{where}: {show(middle)} stands between two ids in every line, "
            f"{show(lines[0].text)}; pass --columns src,_,dst{further and ','}{further} to "
            f"leave it out{node}"
        )
    is_third_id = all(it.isdigit() for line in lines for it in line.fields[::2])
    if widths == {3} and len(lines) >= _ENOUGH and is_third_id:
        raise InputError(
            f"{where}: {show(middle)} is the second word of every line, "
            f"{show(lines[0].text)}; pass --format triples if it is a relation, --columns "
            "src,_,dst to leave it out, or --columns src,dst,weight if it is a node"
        )


def _further_names(lines: Sequence[DataLine]) -> list[str]:
    """Return names for the columns behind the third: the first is the weight if it can."""
    width = len(lines[0].fields)
    names = [f"c{k}" for k in range(4, width + 1)]
    if names and all(is_number(line.fields[3]) for line in lines):
        names[0] = "weight"
    return names


def _refuse_glued_arrows(where: str, lines: Sequence[DataLine]) -> None:
    """Refuse arrows that no blank parts from ids.

    Raises:
        InputError: every line has one.
    """
    texts = [line.text for line in lines]
    if not all(re.search(rb"[-=]>", it) and len(it.split()) < 3 for it in texts):
        return
    is_plain = all(re.search(rb"(?<![-=<~])->", it) for it in texts)
    remedy = "s/->/ /'" if is_plain else "s/[<=~-]*[-=]>/ /'"
    else_ids = "; pass --separator space if it is part of ids"
    is_edge = all(len(line.fields) == _ENOUGH for line in lines)
    (arrow, *_) = re.findall(r"[<=~-]*[-=]>", texts[0].decode("latin1"))
    raise InputError(
        f"{where}: {arrow!r} stands between ids, {show(texts[0])}; replace it by a "
        f"blank, sed '{remedy} FILE > NEW{else_ids if is_edge else ''}"
    )


def _look_at_first_word(
    where: str, lines: Sequence[DataLine], num_columns: int | None
) -> None:
    """Refuse one mark that would be the source of every edge, such as DIMACS's e and a.

    Other words are said in a warning: the star of a node with a name looks so.

    Raises:
        InputError: a letter, or a word for edges, stands before two integers in all lines.
    """
    rows = [line.fields for line in lines]
    first = rows[0][0]
    if num_columns is not None or len(rows) < _ENOUGH or first.isdigit():
        return
    if not all(len(it) == 3 and it[0] == first for it in rows) or not all(
        field.isdigit() for it in rows for field in it[1:]
    ):
        return
    found = (
        f"{where}: {show(first)} is the first word of every line, {show(lines[0].text)}; "
        "pass --columns _,src,dst to leave it out, or --columns src,dst,weight if it is a "
        "node"
    )
    if len(first) == 1 or first.lower() in _LINE_WORDS:
        raise InputError(found)
    note(found)


def _refuse_line_ends(
    where: str, lines: Sequence[DataLine], texts: Sequence[bytes]
) -> None:
    """Refuse a mark at the end of every line, which would be part of the last id.

    Raises:
        InputError: there is one.
    """
    ends = {text[-1:] for text in texts}
    if len(ends) != 1 or (end := ends.pop()) not in (b";", b","):
        return
    if any(len(line.fields) < _ENOUGH for line in lines):
        return
    raise InputError(
        f"{where}: every line ends with {end.decode()!r}, {show(lines[0].text)}; remove "
        f"it, sed 's/{end.decode()} *$//' FILE > NEW; pass --separator space if it is part "
        "of ids"
    )
