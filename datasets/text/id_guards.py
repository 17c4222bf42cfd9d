"""What looks like an id and is none: headers, comments, integers whose zeros would go."""

import json
import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.caller_warnings import note
from graphsys.core.errors import InputError
from graphsys.datasets.files import InputFile, read_head
from graphsys.datasets.roles import is_header, numbered_pair
from graphsys.datasets.text.first_lines import SAMPLE_LINES, DataLine
from graphsys.datasets.text.layout import LineFormat, has_lost_zeros, is_number, show

_FLAGS: Final = {b"0", b"1", b"0.0", b"1.0"}
_COMMENT: Final = re.compile(
    rb"\s*(//|--|/\*|[;#%!*](?=\s|$)|={2,3}(?=[=\s]|$)"
    rb"|\+[-=]{2}|<!--|REM(?=\s))"
)
_AMONG_ROWS: Final = re.compile(rb"\s*([;#%!*])\s")
_SETTLES: Final = "--ids string if these are ids"
_FROM, _TO = 1_000_000_000, 2_145_916_800  # 2001 to 2037
_MARKED: Final = re.compile(rb"^[ \t]*([#%][^\s#%][^\r\n]*)", re.MULTILINE)
_ENDING: Final = re.compile(r"(?<=[A-Za-z])([_ .-](id|ids|name|node)|I[Dd])$")
_WORDS: Final = {
    *(("user", "item"), ("user", "friend"), ("name", "friend"), ("parent", "child")),
    *(("caller", "callee"), ("author", "paper"), ("buyer", "seller"), ("payer", "payee")),
    *(("donor", "recipient"), ("employee", "manager"), ("page", "link"), ("key", "value")),
    *(("node", "neighbor"), ("node", "neighbour"), ("paper", "cited"), ("word", "synonym")),
    *(("follower", "following"), ("student", "teacher"), ("artist", "song")),
}
"""Words above columns that do not say which end is which: no reader takes them for ends."""
_PREFIX: Final = re.compile(r"([^0-9]*)[0-9]+")
_NUMBERED_WORD: Final = re.compile(r"[A-Za-z]+[_ .-]?[0-9]+|[A-Za-z]+[_ .-][aAbB]")


def refuse_comments(
    file: InputFile, lines: Sequence[DataLine], *, is_leading: bool = False
) -> None:
    """Refuse first lines that look like comments of other tools.

    Args:
        file: The file.
        lines: Its first lines of data.
        is_leading: Where the very first begins so; among others only with a blank behind
            the mark, as lines of CSV may begin with any word.

    Raises:
        InputError: some begin with a mark of comments and others do not.
    """
    pattern = _COMMENT
    if is_leading and not _COMMENT.match(lines[0].text):
        pattern, is_leading = _AMONG_ROWS, False
    found = [pattern.match(line.text) for line in lines]
    is_odd = [it is not None for it in found]
    if not any(is_odd) or all(is_odd):
        return
    place = is_odd.index(True)
    text = lines[place].text
    mark = (found[place] or [b""])[1].decode().replace("*", "[*]")
    last = (
        is_odd.index(False) - 1
        if is_leading
        else len(is_odd) - 1 - is_odd[::-1].index(True)
    )
    is_before = place == 0 and all(is_odd[: last + 1])
    remedy = f"--skip {lines[last].number} if it is one, or " if is_before else ""
    without = f"remove such lines, grep -v '^{mark}' FILE > NEW"
    raise InputError(
        f"{file.name}:{lines[place].number}: looks like a comment, {show(text)}; "
        + (f"pass {remedy}{_SETTLES}" if remedy else f"{without}, or pass {_SETTLES}")
    )


def refuse_matrix(file: InputFile, lines: Sequence[DataLine], separator: int) -> None:
    """Refuse an adjacency matrix: as many lines as columns, of 0 and 1 alone.

    Raises:
        InputError: it is one; the message has the command that converts it.
    """
    size = len(lines[0].fields)
    is_whole = len(lines) == size or (len(lines) == SAMPLE_LINES and size > SAMPLE_LINES)
    if size < 3 or not is_whole or any(len(line.fields) != size for line in lines):
        return
    if not {field for line in lines for field in line.fields} <= _FLAGS:
        return
    target = f"{Path(file.name).stem}.npz"
    between = f", delimiter={json.dumps(chr(separator))}" if chr(separator) in ",;|" else ""
    # quoted as the shell and Python want it: a name is the stranger's
    command = (
        f"import numpy, scipy.sparse as s; s.save_npz({json.dumps(target)}, "
        f"s.coo_array(numpy.loadtxt({json.dumps(file.name)}{between})))"
    )
    columns = f"--columns src,dst,weight{', ...' if size > 3 else ''}"
    raise InputError(
        f"{file.name}:{lines[0].number}: looks like an adjacency matrix, {size} columns "
        f"and as many lines of 0 and 1; convert it, python -c {shlex.quote(command)}, and "
        f"ingest {shlex.quote(target)}, or name the columns of edges, {columns}"
    )


def refuse_labeled_matrix(
    file: InputFile, lines: Sequence[DataLine], separator: int
) -> None:
    """Refuse an adjacency matrix whose first line and first column name the nodes.

    Raises:
        InputError: it is one; the message has the command that makes edges of it.
    """
    names, rows = lines[0].fields, lines[1:]
    width = len(names)
    if width < 3 or any(len(line.fields) != width for line in rows):
        return
    ends = [line.fields[0] for line in rows]
    is_whole = len(rows) == width - 1 or len(lines) == SAMPLE_LINES
    if not is_whole or ends != names[1 : len(rows) + 1]:
        return
    mark = "\\t" if separator == ord("\t") else chr(separator)
    raise InputError(
        f"{file.name}:{lines[0].number}: looks like an adjacency matrix with names, "
        f"{width - 1} columns that are called as the rows; write its edges, awk -F'{mark}' "
        '\'NR==1{for(i=2;i<=NF;i++)n[i]=$i;print "src,dst,weight";next}'
        '{for(i=2;i<=NF;i++)if($i!=""&&$i!=0)print $1","n[i]","$i}\' FILE > NEW.csv'
    )


def refuse_weight_first(where: str, lines: Sequence[DataLine]) -> None:
    """Refuse three columns whose first holds numbers with fractions, above integers.

    Args:
        where: File and line, for the message.
        lines: First lines of data.

    Raises:
        InputError: the first column looks like weights.
    """
    rows = [line.fields for line in lines if len(line.fields) == 3]
    if len(rows) < len(lines) or not all(it.isdigit() for row in rows for it in row[1:]):
        return
    firsts = [row[0] for row in rows]
    is_number_each = all(is_number(it) for it in firsts)
    if is_number_each and any(float(it) % 1 for it in firsts):
        raise InputError(
            f"{where}: the first column looks like weights, {show(lines[0].text)}; pass "
            f"--columns weight,src,dst, or {_SETTLES}"
        )


def refuse_undirected(
    where: str, header: Sequence[str], lines: Sequence[DataLine], chosen: str
) -> None:
    """Refuse rows that say of themselves that they are undirected, as Gephi writes them.

    Args:
        where: File and line, for the message.
        header: Names of the columns.
        lines: First lines of data.
        chosen: Option that takes both ends alone, and with them each edge one way.

    Raises:
        InputError: a column Type has nothing but Directed and Undirected, and the latter.
    """
    place = next((k for k, name in enumerate(header) if name.lower() == "type"), None)
    if place is None:
        return
    kinds = {line.fields[place].lower() for line in lines if place < len(line.fields)}
    if b"undirected" in kinds and kinds <= {b"undirected", b"directed"}:
        some = "some edges" if b"directed" in kinds else "edges"
        raise InputError(
            f"{where}: column {header[place]!r} says that {some} are undirected; pass "
            f"--undirected, or {chosen} to take each edge one way"
        )


def refuse_preamble(where: str, lines: Sequence[DataLine], places: Sequence[int]) -> None:
    """Refuse several first lines of words above nothing but integers.

    Args:
        where: File and line, for the message.
        lines: First lines of data.
        places: Columns of the source and of the destination.

    Raises:
        InputError: they look like a description of the file.
    """
    is_data = [
        max(places) < len(line.fields)
        and all(line.fields[place].isdigit() for place in places)
        for line in lines
    ]
    first = is_data.index(True) if True in is_data else 0
    if first < 2 or not all(is_data[first:]) or len(is_data) - first < 2:
        return
    raise InputError(
        f"{where}: found {first} lines of words, such as {show(lines[0].text)}, above "
        f"integer ids; pass --skip {lines[first - 1].number}, or {_SETTLES}"
    )


def refuse_lists_of_neighbors(file: InputFile) -> None:
    """Refuse files whose comments are data: TGF's nodes, LGL's sources.

    Raises:
        InputError: a mark of comments stands alone between lines, or before every source.
    """
    head = read_head(file, 1 << 16)
    lines = [line.strip() for line in head[: head.rfind(b"\n") + 1].split(b"\n")]
    lines = [line for line in lines if line]
    marks = [place for place, line in enumerate(lines) if line.startswith(b"#")]
    nodes = {line.split()[0] for line in lines[: marks[0]]} if marks else set()
    if len(marks) == 1 and nodes and lines[marks[0]] == b"#":
        edges = [line.split()[:2] for line in lines[marks[0] + 1 :]]
        if edges and all(set(ends) <= nodes and len(ends) == 2 for ends in edges):
            raise InputError(
                f"{file.name}: lists nodes, a line '#', and edges, as TGF does; leave the "
                f"nodes out, sed '1,/^#/d' FILE > NEW, or pass {_SETTLES}"
            )
    sources = [lines[place].split() for place in marks]
    is_lgl = len(marks) > 1 and marks[0] == 0 and len(marks) < len(lines)
    is_apart = all(b - a > 1 for a, b in pairwise(marks))
    neighbors = {line.split()[0] for line in lines if not line.startswith(b"#")}
    are_ids = 2 * sum(it[-1] in neighbors for it in sources[1:]) >= len(sources) - 1
    if (
        is_lgl
        and is_apart
        and are_ids
        and all(len(it) == 2 and it[0] == b"#" for it in sources)
    ):
        raise InputError(
            f"{file.name}: neighbors stand below lines such as {show(lines[0])}, as in "
            "LGL; write a line an edge, awk '/^#/{s=$2;next}{print s,$0}' FILE > NEW, and "
            "pass --undirected; or drop them, grep -v '^#' FILE > NEW, if they are comments"
        )


def refuse_header(
    where: str, lines: Sequence[DataLine], places: Sequence[int], hint: str
) -> None:
    """Refuse a first line that names columns.

    Args:
        where: File and line, for the message.
        lines: First lines of data.
        places: Columns of the source and of the destination.
        hint: What to pass instead.

    Raises:
        InputError: its words are known as names of columns, or stand above integers, or
            differ by a 1 and a 2 as no later words do.
    """
    rows = [
        [line.fields[place].decode("utf-8", "replace") for place in places]
        for line in lines
        if max(places) < len(line.fields)
    ]
    whole = [field.decode("utf-8", "replace") for field in lines[0].fields]
    first, others = rows[0], [word for row in rows[1:] for word in row]
    is_named = _is_header_of_names(first, others)
    above_integers = bool(others) and all(word.isdigit() for word in others)
    is_word = not any(it.isdigit() or is_number(it.encode()) for it in first)
    if is_header(whole) or is_header(first):
        what = "the header"
    elif (above_integers and is_word) or is_named or _is_numbered(first, others):
        what = "what looks like a header,"
    else:
        return
    above = " above integer ids" if above_integers else ""
    raise InputError(
        f"{where}: found {what} {show(lines[0].text)}{above}; pass {hint}, or {_SETTLES}"
    )


def _is_header_of_names(first: Sequence[str], others: Sequence[str]) -> bool:
    """Tell whether two words name columns above names.

    They are a known pair, or both end as names of columns of ids do and no id does; or
    the ids of each column, of two rows at least, are one prefix and a number, and both
    words have no digits.
    """
    stems = [_ENDING.sub("", word).lower() for word in first]
    if not others or any(_ENDING.search(word) for word in others):
        return False
    if tuple(stems) in _WORDS or tuple(reversed(stems)) in _WORDS:
        return set(stems).isdisjoint(word.lower() for word in others)
    if all(stem and len(stem) < len(word) for stem, word in zip(stems, first, strict=True)):
        return True
    matches = [_PREFIX.fullmatch(word) for word in others]
    prefixes = [match[1] if match else None for match in matches]  # TP53 BRCA1: several
    are_numbered = None not in prefixes and all(
        len(set(prefixes[k::2])) == 1 for k in (0, 1)
    )
    is_word = all(word.replace("_", "").isalpha() for word in first)
    return len(others) >= 4 and is_word and are_numbered


def _is_numbered(first: Sequence[str], others: Sequence[str]) -> bool:
    """Tell whether two words differ by their numbers, such as node1 and node2."""
    if numbered_pair(first) is None or not others:
        return False
    return not any(_NUMBERED_WORD.fullmatch(word) for word in others)


def must_be_strings(where: str, lines: Sequence[DataLine], places: Sequence[int]) -> bool:
    """Tell whether ids of digits lose something as integers; say so.

    Args:
        where: File and line, for the message.
        lines: First lines of data.
        places: Columns of ids.
    """
    ends = [
        line.fields[place] for line in lines for place in places if place < len(line.fields)
    ]
    if found := next((end for end in ends if has_lost_zeros(end)), None):
        note(
            f"{where}: ids are kept as written (strings), since some have zeros in front, "
            f"such as {show(found)}; pass --ids string to say so, or --ids int to read "
            "them as numbers"
        )
    return found is not None


def warn_of_numbers_as_names(
    where: str, lines: Sequence[DataLine], places: Sequence[int]
) -> None:
    """Say of ids such as +1 and 1.0 that they are kept as written."""
    for line in lines:
        for place in places:
            field = line.fields[place] if place < len(line.fields) else b""
            has_digit = any(byte in b"0123456789" for byte in field)
            if has_digit and is_number(field) and not field.isdigit():
                note(
                    f"{where}: ids are kept as written (strings), such as {show(field)}: "
                    "it is another node than the same number written otherwise; pass --ids "
                    "string to say so"
                )
                return


def warn_of_times(where: str, lines: Sequence[DataLine]) -> None:
    """Say of a third column that looks like seconds or milliseconds since 1970."""
    fields = [line.fields[2] for line in lines if len(line.fields) == 3]
    if not all(it.isdigit() and len(it) in (10, 13) for it in fields):
        return
    for unit, per_second in (("s", 1), ("ms", 1000)):
        if all(_FROM <= int(it) / per_second < _TO for it in fields):
            note(
                f"{where}: the third column is taken for weights, but looks like times "
                f"({show(fields[0])}); pass --columns src,dst,time --time-unit {unit}, or "
                "--columns src,dst,weight"
            )


def find_row(src: Any, dst: Any, words: tuple[bytes, bytes]) -> int:
    """Return the first row whose ends are two words, or -1.

    Args:
        src: Arrow dictionary of strings ``[n]``; arrays of integers have no words.
        dst: Likewise.
        words: The words of both ends.
    """
    is_found: Any = True
    for ids, word in zip((src, dst), words, strict=True):
        if not isinstance(ids, pa.DictionaryArray):
            return -1
        code = pc.index(ids.dictionary, pa.scalar(word.decode("utf-8", "replace"))).as_py()
        if code < 0:
            return -1
        is_found = is_found & (ids.indices.to_numpy(zero_copy_only=False) == code)
    rows = np.flatnonzero(is_found)
    return int(rows[0]) if len(rows) else -1


def header_again(name: str, line: int, first: int) -> InputError:
    """Return the error for a header among the rows.

    Args:
        name: The file.
        line: Line of the second header.
        first: Line of the first one.
    """
    return InputError(
        f"{name}:{line}: found the header of line {first} again; if files were put "
        f"together, remove it: awk 'NR=={first}{{h=$0}} NR<={first}||$0!=h' FILE > NEW; "
        "pass --ids string if it is data"
    )


def comment_ids(data: bytes, layout: LineFormat) -> tuple[int, bytes]:
    """Count lines that were dropped as comments, but look as all others do.

    Returns:
        How many begin with a mark that a letter follows, and have the columns of the
        others; and the first of them.
    """
    found = [
        line
        for line in _MARKED.findall(data)
        if len(line.split()) == len(layout.columns)
        and not is_header(line.decode("utf-8", "replace").lower().lstrip("#% ").split())
    ]
    return len(found), found[0] if found else b""


def warn_of_comments(name: str, count: int, example: bytes) -> None:
    """Say how many lines were dropped whose ids may begin with # or %."""
    lines = "line that begins" if count == 1 else "lines that begin"
    note(
        f"{name}: dropped {count} {lines} with # or % as comments, such as "
        f"{show(example)}; pass --format csv --separator space --columns src,dst if they "
        "are edges"
    )


def header_above(file: InputFile, first: DataLine) -> bytes:
    """Return the comment above the first line of data if it has as many fields, or b""."""
    lines = read_head(file, 1 << 16).split(b"\n")[: first.number - 1]
    above = lines[-1].strip() if lines else b""
    is_comment = above[:1] in (b"#", b"%")
    tabs = first.text.count(b"\t")
    is_as_wide = above.count(b"\t") == tabs if tabs else False
    names = above.lstrip(b"#% ").split()
    return above if is_comment and (is_as_wide or len(names) == len(first.fields)) else b""


def skipped_header(
    file: InputFile, skip: int, layout: LineFormat
) -> tuple[bytes, bytes] | None:
    """Return the words of the last skipped line where it names columns, or None.

    Args:
        file: The file.
        skip: How many of its lines are skipped.
        layout: What its other lines look like.
    """
    if not skip:
        return None
    lines = read_head(file).split(b"\n", skip)
    fields = layout.split(lines[skip - 1]) if len(lines) >= skip else []
    if len(fields) != len(layout.columns):
        return None
    names = [column.name for column in layout.columns]
    return fields[names.index("src")], fields[names.index("dst")]
