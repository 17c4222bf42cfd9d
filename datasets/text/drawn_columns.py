"""Columns that are drawn or glued, not separated: tables in boxes, fixed widths, pairs."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from graphsys.core.errors import InputError
from graphsys.datasets.text.first_lines import DataLine
from graphsys.datasets.text.layout import BLANKS, is_number, show

_PAIRS: Final = (
    ("\u201c", "\u201d"),
    ("\u2018", "\u2019"),
    ("\u00ab", "\u00bb"),
    ("\u300c", "\u300d"),
    ("`", "`"),
    ("[", "]"),
    ("(", ")"),
)
_DOUBLED: Final = (b"::", b"||", b";;", b",,", b"~~")
_BETWEEN: Final = re.compile(
    r"\\t|(?<=\w)[\xa0\u2000-\u200a\u202f\u3000]+(?=\w)|(?<=\w)[^\w\s.\"'()\[\]{}#%@&]+(?=\w)"
)
_LISTS: Final = 0.2
"""Share of lines of other widths from which on lines may be lists."""


def refuse_drawn_table(where: str, lines: Sequence[DataLine]) -> None:
    """Refuse tables between bars, as Markdown and consoles of databases draw them.

    Raises:
        InputError: every line begins and ends with a bar, or a corner.
    """
    texts = [line.text.strip() for line in lines]
    if not all(it[:1] in (b"|", b"+") and it[-1:] in (b"|", b"+") for it in texts):
        return
    if any(it[:1] == b"|" and len(it) > 1 for it in texts):
        first = next(it for it in texts if it[:1] == b"|")
        raise InputError(
            f"{where}: every line stands between '|', {show(first)}, as in a table of "
            "Markdown; write plain columns, sed -E '/^[-|:+= ]+$/d; s/^ *\\| *//; "
            "s/ *\\| *$//; s/ *\\| */|/g' FILE > NEW"
        )


def refuse_fixed_widths(
    where: str, lines: Sequence[DataLine], num_columns: int | None
) -> None:
    """Refuse columns that are told by their places in lines, not by what stands between.

    Raises:
        InputError: names with blanks stand between several blanks, or lines of one length
            hold now more, now fewer words.
    """
    texts = [line.text.rstrip(b"\r\n") for line in lines]
    pieces = {len(re.split(rb" {2,}", it.strip())) for it in texts}
    words = {len(line.fields) for line in lines}
    is_plain = not any(b"\t" in it for it in texts)
    if len(lines) < 2 or not is_plain:
        return
    is_read = words == {3} and all(is_number(line.fields[2]) for line in lines)
    if (
        not is_read  # as printf pads a weight
        and len(pieces) == 1
        and pieces != words
        and pieces <= ({num_columns} if num_columns else {2, 3})
    ):
        raise InputError(
            f"{where}: names with blanks seem to stand between several blanks, "
            f"{show(lines[0].text)}; write tabs between columns, sed -E 's/ {{2,}}/\\t/g' "
            "FILE > NEW, and pass --separator tab"
        )
    are_numbers = all(re.fullmatch(rb"[0-9 ]+", it) for it in texts)
    most = max(lines, key=lambda it: len(it.fields))
    is_odd = len(words) > 1 and len(set(map(len, texts))) == 1
    if not are_numbers or not is_odd or len(most.fields) not in (2, 3):
        return
    ends = [match.end() for match in re.finditer(rb"[0-9]+", most.text)][:-1]
    if any(
        it[end : end + 1] != b" "
        for it in texts
        for end in ends
        if it[end - 1 : end] == b" "
    ):
        return
    groups = "".join(f"(.{{{b - a}}})" for a, b in pairwise([0, *ends]))
    marks = " ".join(f"\\{k + 1}" for k in range(len(ends)))
    raise InputError(
        f"{where}: every line has {len(texts[0])} characters, as columns of fixed widths "
        f"have, {show(most.text)}; cut them, sed -E 's/^{groups}/{marks} /' FILE > NEW, or "
        "pass --format adjacency if these are lists of neighbors"
    )


def refuse_wrapped_names(where: str, lines: Sequence[DataLine]) -> None:
    """Refuse names that all stand between marks: typographic quotes, brackets.

    Raises:
        InputError: names the marks and the command that removes them.
    """
    fields = [it.decode("utf-8", "replace") for line in lines for it in line.fields[:2]]
    if any(len(line.fields) < 2 for line in lines):
        return
    for first, last in _PAIRS:
        if all(len(it) > 2 and it[0] == first and it[-1] == last for it in fields):
            if first.isascii():
                remedy = f"tr -d '{first}{'' if last == first else last}' < FILE > NEW"
            else:
                bytes_of = (
                    "".join(f"\\x{b:02x}" for b in it.encode()) for it in (first, last)
                )
                parts = "; ".join(f"s/{it}//g" for it in bytes_of)
                remedy = f"LC_ALL=C sed '{parts}' FILE > NEW"
            raise InputError(
                f"{where}: names stand between {first} and {last}, {show(lines[0].text)}; "
                f"remove them, {remedy}; pass --separator space if they are part of ids"
            )


def refuse_doubled_marks(where: str, lines: Sequence[DataLine]) -> None:
    """Refuse columns between doubled marks, such as MovieLens's ``1::2::5``.

    Raises:
        InputError: the mark stands as often in every line, and never alone.
    """
    texts = [line.text.strip() for line in lines]
    widths = {len(line.fields) for line in lines}
    for mark in _DOUBLED:
        counts = {it.count(mark) for it in texts}
        is_lone = all(2 * it.count(mark) == it.count(mark[:1]) for it in texts)
        if not widths <= {2, 3} and len(counts) == 1 and min(counts) > 0 and is_lone:
            raise InputError(
                f"{where}: {mark.decode()!r} stands between columns, {show(texts[0])}; "
                f"write tabs, sed 's/{mark.decode()}/\\t/g' FILE > NEW, and pass "
                "--separator tab"
            )


def refuse_glued_pairs(where: str, lines: Sequence[DataLine]) -> None:
    """Refuse lines without a blank that another mark cuts in two.

    Raises:
        InputError: the mark stands once in every line.
    """
    texts = [line.text.strip() for line in lines]
    if any(len(line.fields) != 1 for line in lines):
        return
    for mark_text in dict.fromkeys(_BETWEEN.findall(texts[0].decode("utf-8", "replace"))):
        between = mark_text.encode()
        if all(it.count(between) == 1 for it in texts):
            shown = mark_text if mark_text.isprintable() else repr(mark_text)[1:-1]
            pattern = "".join(
                f"\\x{byte:02x}"
                if byte > 126 or byte < 32
                else re.sub(r"([\\/*^$.\[])", r"\\\1", chr(byte))
                for byte in between
            )
            raise InputError(
                f"{where}: found 1 column, expected at least 2 (src dst): "
                f"{show(texts[0])}; if '{shown}' stands between ids replace it by a blank, "
                f"LC_ALL=C sed 's/{pattern}/ /' FILE > NEW"
            )


def are_ragged(lines: Sequence[DataLine], separator: int) -> bool:
    """Tell whether lines hold so different numbers of words that they may be lists."""
    widths = [len(line.fields) for line in lines]
    usual = max(widths.count(it) for it in widths)
    kinds = {field.isdigit() for line in lines for field in line.fields}
    is_first_longer = len(kinds) == 1 and widths[0] > max(widths[1:], default=widths[0])
    if separator != BLANKS or not (len(lines) - usual > 1 or is_first_longer):
        return False
    return len(lines) - usual >= _LISTS * len(lines)
