"""Blocks of lines parsed into columns: by kernels, and by Arrow where they leave off."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import GraphsysError
from graphsys.datasets.text.blocks import Bytes
from graphsys.datasets.text.layout import (
    ID,
    INTEGER,
    LABEL,
    MARK,
    MAYBE,
    MISSING,
    NUMBER,
    SKIP,
    WORD,
    LineFormat,
    explain,
    explain_rounded,
    is_rounded,
)
from graphsys.kernels.cpu.text import parsing as kernels
from graphsys.kernels.cpu.text.dictionary import gather_words
from graphsys.kernels.cpu.text.id_pairs import parse_id_pairs
from graphsys.kernels.cpu.text.plain_lines import parse_plain_lines

_PLAIN: Final = ((ID, ID, ID), (ID, ID, NUMBER), (MARK, ID, ID, NUMBER))
_EXACT: Final = 2.0**53  # below it all integers are float64
_STORED_AS: Final = {INTEGER: ID, MAYBE: NUMBER, LABEL: WORD}
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
    if kinds == [ID, ID]:
        src, dst = np.empty(lines, dtype=np.int64), np.empty(lines, dtype=np.int64)
        rows, bad = parse_id_pairs(
            data, layout.separator, layout.has_comments, src, dst, layout.keeps_zeros
        )
        if bad >= 0 and not layout.has_quotes:
            raise BadLineError(bad, explain(line_at(data, bad), layout))
        if bad < 0:
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
    first = offset = 0
    if tuple(kinds) in _PLAIN:
        has_mark, is_number = kinds[0] == MARK, kinds[-1] == NUMBER
        first, offset = parse_plain_lines(
            data,
            layout.separator,
            has_mark,
            is_number,
            integers,
            numbers,
            layout.keeps_zeros,
        )
    # The plain loop stopped at the first line that is not plain: the full one goes on
    # there.
    rest = data[offset:]
    rows, bad, num_slow = kernels.parse_columns(
        rest,
        layout.separator,
        np.array(kinds, dtype=np.int64),
        layout.has_comments,
        layout.has_quotes,
        first,
        integers,
        numbers,
        starts,
        lengths,
        slow,
        layout.keeps_zeros,
    )
    try:
        if num_slow:
            _parse_slow(rest, layout, slow[:num_slow], numbers)
        if bad >= 0:
            raise BadLineError(bad, explain(line_at(rest, bad), layout))
    except BadLineError as err:
        # The place was told within the rest.
        raise BadLineError(offset + err.offset, err.what) from None
    result: dict[str, Any] = {}
    places = dict.fromkeys((ID, NUMBER, WORD), 0)
    for column, kind in zip(layout.columns, stored, strict=True):
        if kind in (SKIP, MARK):
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
    gather_words(data, starts, lengths, offsets, content)
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
    plain = pc.replace_substring(words.dictionary, '""', '"')  # two words may become one
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
                "convert the file, for example with iconv -f latin1 -t utf-8 FILE > NEW",
            )
        offset += len(line)
    return BadLineError(
        0,
        "found bytes that are not UTF-8; convert the file, for example "
        "with iconv -f latin1 -t utf-8 FILE > NEW",
    )


def _parse_slow(
    data: Bytes,
    layout: LineFormat,
    slow: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.float64],
) -> None:
    """Let Arrow parse the numbers that plain arithmetic does not round correctly."""
    lengths = (slow[:, 3] - slow[:, 2]).astype(np.int32)
    texts = _strings(data, np.ascontiguousarray(slow[:, 2]), lengths)
    try:
        texts.validate(full=True)
        texts = pc.utf8_lower(texts)
        match = pc.match_substring_regex(texts, _NUMBER_PATTERN)
        is_missing = pc.is_in(texts, pa.array(MISSING)).to_numpy(zero_copy_only=False)
        numeric = [column for column in layout.columns if column.kind in (NUMBER, MAYBE)]
        may_miss = np.array([column.kind == MAYBE for column in numeric])[slow[:, 0]]
        is_fine = match.to_numpy(zero_copy_only=False) | (is_missing & may_miss)
        wrong = np.flatnonzero(~is_fine)
    except pa.ArrowInvalid:
        raise _undecodable(data) from None
    if len(wrong):
        begin = _line_begin(data, int(slow[wrong[0], 2]))
        raise BadLineError(begin, explain(line_at(data, begin), layout))
    plain = pc.if_else(is_missing, "nan", pc.replace_substring_regex(texts, r"^\+", ""))
    values = pc.cast(plain, pa.float64()).to_numpy(zero_copy_only=False)
    numbers[slow[:, 0], slow[:, 1]] = values


def require_exact_weights(data: Bytes, layout: LineFormat, columns: dict[str, Any]) -> None:
    """Refuse integers as weights that float64 does not hold; among fractions they round.

    Args:
        data: Whole lines.
        layout: What they hold.
        columns: What :func:`parse_lines` made of them.

    Raises:
        BadLineError: the lines' weights are all integers, and one is not held exactly.
    """
    weights = columns.get("weight")
    if not isinstance(weights, np.ndarray) or not (np.abs(weights) >= _EXACT).any():
        return
    if not np.array_equal(np.rint(weights), weights):
        return
    place = [column.name for column in layout.columns].index("weight")
    offset = 0
    for line in data.tobytes().splitlines(keepends=True):
        fields = layout.split(line)
        if fields and is_rounded(fields[place]):
            raise BadLineError(offset, explain_rounded(fields[place]))
        offset += len(line)


def _line_begin(data: Bytes, place: int) -> int:
    return data[:place].tobytes().rfind(b"\n") + 1


def parse_numbers(
    data: Bytes, begins: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], int]:
    """Let Arrow parse numbers that plain arithmetic does not round correctly.

    Returns:
        The numbers, float64 ``[n]``, and the place of the first that is none, or is an
        integer that no float64 equals, or -1.
    """
    lengths = (ends - begins).astype(np.int32)
    texts = _strings(data, np.ascontiguousarray(begins), lengths)
    try:
        texts.validate(full=True)
        texts = pc.utf8_lower(texts)
    except pa.ArrowInvalid:
        return np.zeros(len(begins)), 0
    is_number = pc.match_substring_regex(texts, _NUMBER_PATTERN)
    plain = pc.if_else(is_number, pc.replace_substring_regex(texts, r"^\+", ""), "0")
    values = pc.cast(plain, pa.float64()).to_numpy(zero_copy_only=False)
    fields = (data[begin:end].tobytes() for begin, end in zip(begins, ends, strict=True))
    is_wrong = np.array([is_rounded(field) for field in fields], dtype=bool)
    wrong = np.flatnonzero(is_wrong | ~is_number.to_numpy(zero_copy_only=False))
    return values, int(wrong[0]) if len(wrong) else -1


def line_at(data: Bytes, offset: int) -> bytes:
    """Return the line of a block that begins at ``offset``, cut after 64 KiB."""
    piece = data[offset : offset + (1 << 16)].tobytes()
    return piece.split(b"\n", 1)[0]
