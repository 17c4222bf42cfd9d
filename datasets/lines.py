"""What lines of a text file look like, parsed by kernels and explained when they fail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import GraphsysError
from graphsys.core.types import MAX_USER_ID
from graphsys.datasets.files import Bytes
from graphsys.kernels.cpu import text as kernels

SKIP: Final = kernels.SKIP
ID: Final = kernels.ID
NUMBER: Final = kernels.NUMBER
WORD: Final = kernels.WORD
INTEGER: Final = kernels.INTEGER
MAYBE: Final = kernels.MAYBE
LABEL: Final = kernels.LABEL
BLANKS: Final = kernels.BLANKS

_POWERS: Final = np.array([10.0**k for k in range(23)])
_EXPECTED: Final = {
    ID: "an integer id from 0 to 2**63 - 1",
    NUMBER: "a number",
    INTEGER: "an integer of 64 bits",
}
_STORED_AS: Final = {INTEGER: ID, MAYBE: NUMBER, LABEL: WORD}
_MISSING: Final = ("", "nan", "na", "null", "none")
_NUMBER_PATTERN: Final = (
    r"^[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|infinity)$"
)


class BadLineError(GraphsysError):
    """A line that does not fit its format; becomes an InputError with file and line.

    Attributes:
        offset: Where the line begins in its block.
        what: What is wrong with it.
    """

    def __init__(self, offset: int, what: str) -> None:
        super().__init__(what)
        self.offset = offset
        self.what = what


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a text file.

    Attributes:
        name: "src", "dst", "weight", "time", "relation" or any other; "_" is skipped.
        kind: ID, INTEGER, NUMBER, WORD, SKIP; MAYBE and LABEL are a NUMBER and a WORD that
            may be missing.
    """

    name: str
    kind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """How every line of a file is read.

    Attributes:
        columns: The columns, from the left.
        separator: The separating byte, or BLANKS for any run of blanks and tabs.
        has_comments: ``#`` and ``%`` begin comments.
        has_quotes: Fields may be quoted as in CSV.
        first_line: Number of the line that fixed the format, for messages.
    """

    columns: tuple[Column, ...]
    separator: int = BLANKS
    has_comments: bool = True
    has_quotes: bool = False
    first_line: int = 1

    def split(self, line: bytes) -> list[bytes]:
        """Cut one line into fields as the kernels do; none for blank lines and comments."""
        return split_line(
            line,
            self.separator,
            has_comments=self.has_comments,
            has_quotes=self.has_quotes,
            num_columns=len(self.columns),
        )


def split_line(
    line: bytes,
    separator: int,
    *,
    has_comments: bool = True,
    has_quotes: bool = False,
    num_columns: int = 2,
) -> list[bytes]:
    """Cut one line into fields; an empty list for a blank line or a comment.

    A comment may follow behind ``num_columns`` fields.
    """
    line = line.rstrip(b"\r\n").strip(b" \t" if separator != 9 else b" ")
    if not line or (has_comments and line[:1] in (b"#", b"%")):
        return []
    if separator == BLANKS:
        fields = line.split()
        for k in range(num_columns, len(fields) if has_comments else 0):
            if fields[k][:1] in (b"#", b"%"):
                return fields[:k]
        return fields
    if has_quotes and b'"' in line:
        return _split_quoted(line, separator)
    return [field.strip(b" \t") for field in line.split(bytes([separator]))]


def _split_quoted(line: bytes, separator: int) -> list[bytes]:
    """Cut a CSV line in which some fields are quoted."""
    fields: list[bytes] = []
    field, is_quoted, k = b"", False, 0
    while k < len(line):
        byte = line[k : k + 1]
        if byte == b'"':
            if is_quoted and line[k + 1 : k + 2] == b'"':
                field += byte
                k += 1
            else:
                is_quoted = not is_quoted
        elif byte == bytes([separator]) and not is_quoted:
            fields.append(field)
            field = b""
        else:
            field += byte
        k += 1
    return [item.strip(b" \t") for item in [*fields, field]]


def parse_lines(data: Bytes, layout: LineFormat) -> tuple[dict[str, Any], int]:
    """Parse a block of whole lines.

    Args:
        data: uint8 ``[n]``, the last byte a line feed.
        layout: What the lines look like.

    Returns:
        The columns by name (ids and integers int64, numbers float64, words as Arrow
        dictionaries of strings), all of one length, and the number of lines.

    Raises:
        BadLineError: a line does not fit.
    """
    lines = int(kernels.count_lines(data))
    kinds = [column.kind for column in layout.columns]
    if kinds == [ID, ID] and layout.has_comments and not layout.has_quotes:
        src, dst = np.empty(lines, dtype=np.int64), np.empty(lines, dtype=np.int64)
        rows, bad = kernels.parse_id_pairs(data, layout.separator, src, dst)
        if bad >= 0:
            raise BadLineError(bad, explain(line_at(data, bad), layout))
        first, second = (column.name for column in layout.columns)
        return {first: src[:rows], second: dst[:rows]}, lines
    return _parse_general(data, layout, kinds, lines), lines


def _parse_general(
    data: Bytes, layout: LineFormat, kinds: Sequence[int], lines: int
) -> dict[str, Any]:
    stored = [_STORED_AS.get(kind, kind) for kind in kinds]
    count = {kind: stored.count(kind) for kind in (ID, NUMBER, WORD)}
    integers = np.empty((count[ID], lines), dtype=np.int64)
    numbers = np.empty((count[NUMBER], lines), dtype=np.float64)
    starts = np.empty((count[WORD], lines), dtype=np.int64)
    lengths = np.empty((count[WORD], lines), dtype=np.int32)
    slow = np.empty((count[NUMBER] * lines, 4), dtype=np.int64)
    rows, bad, num_slow = kernels.parse_columns(
        data,
        layout.separator,
        np.array(kinds, dtype=np.int64),
        layout.has_comments,
        layout.has_quotes,
        _POWERS,
        integers,
        numbers,
        starts,
        lengths,
        slow,
    )
    if num_slow:
        _parse_slow(data, layout, slow[:num_slow], numbers)
    if bad >= 0:
        raise BadLineError(bad, explain(line_at(data, bad), layout))
    result: dict[str, Any] = {}
    places = dict.fromkeys((ID, NUMBER, WORD), 0)
    for column, kind in zip(layout.columns, stored, strict=True):
        if kind == SKIP:
            continue
        place = places[kind]
        places[kind] += 1
        if kind == ID:
            result[column.name] = integers[place, :rows]
        elif kind == NUMBER:
            result[column.name] = numbers[place, :rows]
        else:
            result[column.name] = _words(data, starts[place, :rows], lengths[place, :rows])
    return result


def _strings(
    data: Bytes, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int32]
) -> pa.StringArray:
    """Copy fields into an Arrow array of strings; not checked to be UTF-8."""
    rows = len(starts)
    offsets = np.empty(rows + 1, dtype=np.int32)
    content = np.empty(int(lengths.sum(dtype=np.int64)), dtype=np.uint8)
    kernels.gather_words(data, starts, lengths, offsets, content)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(content))


def _words(
    data: Bytes, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int32]
) -> pa.DictionaryArray:
    """Make a dictionary of words; a negative length marks quotes doubled inside."""
    has_doubled = bool((lengths < 0).any())
    words = _strings(data, starts, np.abs(lengths)).dictionary_encode()
    try:
        words.dictionary.validate(full=True)
    except pa.ArrowInvalid:
        raise _undecodable(data) from None
    if not has_doubled:
        return words
    plain = pc.replace_substring(words.dictionary, '""', '"')
    return plain.take(words.indices).dictionary_encode()


def _undecodable(data: Bytes) -> BadLineError:
    """Find the first line that is not UTF-8."""
    offset = 0
    for line in data.tobytes().splitlines(keepends=True):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as err:
            byte = line[err.start]
            return BadLineError(
                offset,
                f"found byte 0x{byte:02x}, which is not UTF-8; "
                "convert the file, for example with iconv -f latin1 -t utf-8",
            )
        offset += len(line)
    return BadLineError(0, "found bytes that are not UTF-8; convert the file with iconv")


def _parse_slow(
    data: Bytes,
    layout: LineFormat,
    slow: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.float64],
) -> None:
    """Let Arrow parse the numbers that plain arithmetic does not round correctly."""
    lengths = (slow[:, 3] - slow[:, 2]).astype(np.int32)
    words = _strings(data, np.ascontiguousarray(slow[:, 2]), lengths)
    try:
        words.validate(full=True)
        words = pc.utf8_lower(words)
        match = pc.match_substring_regex(words, _NUMBER_PATTERN)
        is_missing = pc.is_in(words, pa.array(_MISSING)).to_numpy(zero_copy_only=False)
        numeric = [column for column in layout.columns if column.kind in (NUMBER, MAYBE)]
        may_miss = np.array([column.kind == MAYBE for column in numeric])[slow[:, 0]]
        is_fine = match.to_numpy(zero_copy_only=False) | (is_missing & may_miss)
        wrong = np.flatnonzero(~is_fine)
    except pa.ArrowInvalid:
        raise _undecodable(data) from None
    if len(wrong):
        place = int(slow[wrong[0], 2])
        begin = data[:place].tobytes().rfind(b"\n") + 1
        raise BadLineError(begin, explain(line_at(data, begin), layout))
    plain = pc.if_else(is_missing, "nan", pc.replace_substring_regex(words, r"^\+", ""))
    values = pc.cast(plain, pa.float64()).to_numpy(zero_copy_only=False)
    numbers[slow[:, 0], slow[:, 1]] = values


def line_at(data: Bytes, offset: int) -> bytes:
    """Return the line of a block that begins at ``offset``, cut after 64 KiB."""
    piece = data[offset : offset + (1 << 16)].tobytes()
    return piece.split(b"\n", 1)[0]


def explain(line: bytes, layout: LineFormat) -> str:
    """Say what is wrong with a line: what was found, what was expected."""
    fields = layout.split(line)
    expected = len(layout.columns)
    if layout.has_quotes and line.count(b'"') % 2:
        return (
            f"a quoted field does not end on its line: {show(line)}; "
            "line feeds inside quotes are not supported"
        )
    if len(fields) != expected:
        return (
            f"found {len(fields)} column{'s' * (len(fields) != 1)}, expected {expected} "
            "as on "
            f"line {layout.first_line}: {show(line)}"
        )
    for field, column in zip(fields, layout.columns, strict=True):
        if (what := _explain_field(field, column)) is not None:
            return what
    return f"cannot be read: {show(line)}"


def _explain_field(field: bytes, column: Column) -> str | None:
    """Say what is wrong with one field, or None."""
    if column.kind == SKIP:
        return None
    if not field:
        if column.kind in (MAYBE, LABEL):
            return None
        return (
            f"column {column.name} is empty, expected "
            f"{_EXPECTED.get(column.kind, 'a name')}"
        )
    if column.kind in (WORD, LABEL):
        return None
    text = show(field)
    if column.kind in (NUMBER, MAYBE):
        is_missing = column.kind == MAYBE and field.lower().decode("latin-1") in _MISSING
        return (
            None
            if is_missing or is_number(field)
            else f"found {text} as {column.name}, expected a number"
        )
    if is_integer(field) and (column.kind == INTEGER or field.isdigit()):
        return None
    return f"found {text} as {column.name}, expected {_EXPECTED[column.kind]}"


def is_number(field: bytes) -> bool:
    """Tell whether a field is a finite or infinite number; NaN is not."""
    try:
        value = float(field)
    except ValueError:
        return False
    return value == value and b"_" not in field


def is_integer(field: bytes) -> bool:
    """Tell whether a field is an integer of 64 bits."""
    digits = field[1:] if field[:1] in (b"-", b"+") else field
    if not digits.isdigit() or len(digits.lstrip(b"0")) > 19:
        return False
    return int(digits.lstrip(b"0") or b"0") <= MAX_USER_ID


def show(text: bytes, limit: int = 60) -> str:
    """Quote bytes for a message, cut and on one line."""
    shown = text.rstrip(b"\r\n").decode("utf-8", "backslashreplace")
    return repr(shown if len(shown) <= limit else shown[:limit] + "...")


def rename(columns: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the columns under new names, those not named unchanged."""
    return {names.get(name, name): values for name, values in columns.items()}
