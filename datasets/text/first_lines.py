"""The first lines of data of a text file, which its reader looks at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from graphsys.core.errors import InputError
from graphsys.datasets.files import InputFile, read_head
from graphsys.datasets.text.foreign import refuse_foreign
from graphsys.datasets.text.layout import is_number, show, split_line

SAMPLE_LINES: Final = 100
"""Lines that are looked at to guess the types of further columns."""


@dataclass(frozen=True, slots=True)
class DataLine:
    """A line with data at the beginning of a file.

    Attributes:
        number: Its number, from 1.
        text: Its bytes.
        fields: Its fields.
    """

    number: int
    text: bytes
    fields: list[bytes]


def first_lines(
    file: InputFile,
    *,
    skip: int,
    separator: int,
    has_comments: bool = True,
    has_quotes: bool = False,
    num_columns: int = 2,
    has_texts: bool = False,
) -> list[DataLine]:
    """Return up to SAMPLE_LINES of the first data lines of a file.

    Args:
        file: The file.
        skip: Lines to skip first.
        separator: What separates columns.
        has_comments: Whether lines of comments are left out.
        has_quotes: Whether fields may be quoted.
        num_columns: How many columns there are at least.
        has_texts: Whether columns may be texts, in which bytes 0 are data and no fault.

    Raises:
        InputError: there is none, or the file is of another kind.
    """
    size = 1 << 18
    while True:
        head = read_head(file, size)
        refuse_foreign(file.name, head, has_texts=has_texts)
        lines = head.split(b"\n")
        is_whole = len(head) < size - 3
        found = []
        for number, line in enumerate(lines if is_whole else lines[:-1], start=1):
            fields = split_line(
                line,
                separator,
                has_comments=has_comments,
                has_quotes=has_quotes,
                num_columns=num_columns,
            )
            if number > skip and fields:
                found.append(DataLine(number, line, fields))
            if len(found) == SAMPLE_LINES:
                return found
        if found or is_whole:
            break
        size *= 16  # a long preamble of comments
    if not found:
        behind = f" behind the {skip} skipped lines" if skip else ""
        raise InputError(f"{file.name}: no edge in the file{behind}, expected at least one")
    return found


def is_first_odd(lines: Sequence[DataLine]) -> bool:
    """Tell whether no other line has as many fields as the first, and numbers as it has."""

    def look(line: DataLine) -> list[bool]:
        return [is_number(field) for field in line.fields]

    return len(lines) > 1 and look(lines[0]) not in map(look, lines[1:])


def is_even_below(lines: Sequence[DataLine]) -> bool:
    """Tell whether all lines but the first have as many fields as each other."""
    return len({len(line.fields) for line in lines[1:]}) == 1


def no_text(
    file: InputFile, line: DataLine, remedy: str = "name the format with --format"
) -> InputError | None:
    """Return the error for a first line that is not text, or None."""
    if b"\x00" in line.text:
        return InputError(
            f"{file.name}:{line.number}: found binary data, {show(line.text, 20)}, "
            f"expected lines of text; {remedy}"
        )
    try:
        line.text.decode("utf-8")
    except UnicodeDecodeError as err:
        return InputError(
            f"{file.name}:{line.number}: found byte 0x{line.text[err.start]:02x}, which "
            "is not "
            "UTF-8; convert the file, for example with iconv -f latin1 -t utf-8 FILE > NEW"
        )
    return None
