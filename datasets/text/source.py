"""Sources made of text files: every file parsed ahead, in blocks, in order."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np

from graphsys.core.errors import InputError
from graphsys.core.threads import map_in_order, num_cores
from graphsys.core.types import DEFAULT_SPLIT, EdgeType
from graphsys.datasets.files import InputFile, read_head
from graphsys.datasets.text.blocks import (
    BLOCK_BYTES,
    TextBlock,
    lines_before_block,
    text_blocks,
)
from graphsys.datasets.text.layout import (
    ID,
    NUMBER,
    LineFormat,
    TextColumn,
    is_number,
    show,
    split_line,
)
from graphsys.datasets.text.lines import BadLineError, parse_lines, require_exact_weights
from graphsys.datasets.text.read_ahead import prefetch
from graphsys.datasets.text.third_column import ThirdColumnCheck
from graphsys.datasets.times import times_of, warn_of_millionths
from graphsys.storage.source import EdgeChunk, Source

STRETCH_BLOCKS: Final = 8
"""Blocks of a file that one reader of several reads."""

SAMPLE_LINES: Final = 100
"""Lines that are looked at to guess the types of further columns."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """One file of a source, with its layout.

    Attributes:
        file: The file.
        layout: What its lines look like.
        edge_type: Type of its edges.
        skip: Lines at the beginning that are no data (headers).
        split: Split of its edges.
        is_weight_guessed: Nobody said that the third column is the weight.
        blocks: First and last but one of the blocks to read; None for the whole file.
    """

    file: InputFile
    layout: LineFormat
    edge_type: EdgeType
    skip: int = 0
    split: str = DEFAULT_SPLIT
    is_weight_guessed: bool = False
    blocks: tuple[int, int] | None = None

    def stretches(self) -> list["TextPart"]:
        """Return parts of the file that can be read side by side, in order.

        A compressed file is one, and so is one with weights, about which all of it is
        looked at.
        """
        has_weight = any(column.name == "weight" for column in self.layout.columns)
        if has_weight or not self.file.has_pieces:
            return [self]
        num_blocks = max(-(-self.file.num_bytes // BLOCK_BYTES), 1)
        firsts = range(0, num_blocks, STRETCH_BLOCKS)
        return [replace(self, blocks=(k, k + STRETCH_BLOCKS)) for k in firsts]


@dataclass(frozen=True, slots=True)
class Parsed:
    """The columns of one block of a file.

    Attributes:
        columns: Arrays by name, all of one length.
        lines: Lines of the block, blank ones and comments too.
        bytes_read: Bytes of the file that it consumed.
        error: What was wrong with a line of it.
    """

    columns: dict[str, Any]
    lines: int
    bytes_read: int
    error: BadLineError | None = None


def parse_file(
    file: InputFile, layout: LineFormat, *, skip: int = 0, num_threads: int | None = None,
    blocks: tuple[int, int] | None = None,
) -> Iterator[Parsed]:  # fmt: skip
    """Yield the parsed blocks of one file in order.

    Raises:
        InputError: a line does not fit; the message names the file and the line.
    """
    loaders: Any = text_blocks(file, skip=skip)
    first_block = 0
    if blocks is not None:
        first_block = blocks[0]
        loaders = islice(loaders, *blocks)
    if not file.has_pieces:
        loaders = prefetch(loaders)
    elif file.uri is not None:  # threads wait for answers, too
        num_threads = 2 * (num_threads or num_cores())
    lines_before = skip
    work = partial(_parse_block, layout)
    for parsed in map_in_order(work, loaders, num_threads=num_threads):
        if parsed.error is not None:
            line = lines_before + parsed.lines + 1
            if first_block:
                line += lines_before_block(file, first_block, skip=skip) - skip
            raise InputError(f"{file.name}:{line}: {parsed.error.what}{_hint(layout)}")
        lines_before += parsed.lines
        yield parsed


def line_of_row(file: InputFile, layout: LineFormat, row: int, *, skip: int = 0) -> int:
    """Return the number of the line that holds a row, both counted from the beginning.

    Reads the file again, slowly: for messages alone.
    """
    number = skip
    for load in text_blocks(file, skip=skip):
        for line in load().data.tobytes().split(b"\n")[:-1]:
            number += 1
            row -= bool(layout.split(line))
            if row < 0:
                return number
    return number


class TextSource(Source):
    """Edges of text files.

    Args:
        parts: The files, in the order in which they are read.
        is_directed: False where every edge stands for both directions.
        num_threads: Parsing threads; None for one per core.
    """

    def __init__(
        self,
        parts: Sequence[TextPart],
        *,
        is_directed: bool,
        num_threads: int | None = None,
    ) -> None:
        self.parts = list(parts)
        _refuse_mixed_ids(self.parts)
        for part in self.parts[:1]:
            warn_of_text_times(part.file.name, part.layout)
        self.name = ", ".join(part.file.name for part in self.parts)
        self.total_bytes = sum(part.file.num_bytes for part in self.parts)
        self.is_directed = is_directed
        self._num_threads = num_threads

    @property
    def num_parts(self) -> int:
        """How many stretches of files can be read side by side."""
        return len(self._stretches())

    def keep_part(self, number: int) -> None:
        """Forget all stretches but one."""
        self.parts = [self._stretches()[number]]

    def _stretches(self) -> list[TextPart]:
        return [some for part in self.parts for some in part.stretches()]

    def chunks(self) -> Iterator[EdgeChunk]:
        """Yield the edges in blocks of about a million.

        Raises:
            InputError: a line does not fit, a file is damaged, or it holds no edge.
        """
        for part in self.parts:
            is_empty, rows = True, 0
            third = ThirdColumnCheck(f"{part.file.name}:{part.layout.first_line}")
            parsing = parse_file(
                part.file, part.layout, skip=part.skip, num_threads=self._num_threads,
                blocks=part.blocks,
            )  # fmt: skip
            for parsed in parsing:
                if len(parsed.columns["src"]):
                    _refuse_infinite(part, parsed, rows)
                    if part.is_weight_guessed:
                        third.add(parsed.columns)
                        if is_empty:  # told early where the beginning tells
                            third.check()
                    is_empty = False
                    rows += len(parsed.columns["src"])
                    yield _chunk(part, parsed)
            if is_empty and part.blocks is None:  # else there is a line in the first
                raise InputError(
                    f"{part.file.name}: no edge in the file, expected at least one"
                )
            third.check()


def _refuse_infinite(part: TextPart, parsed: Parsed, rows: int) -> None:
    """Refuse weights that are infinite, or too large for float64.

    Raises:
        InputError: names the line of the first, and their number in this block.
    """
    weights = parsed.columns.get("weight")
    if weights is None or np.isfinite(weights).all():
        return
    odd = np.flatnonzero(~np.isfinite(weights))
    line = line_of_row(part.file, part.layout, rows + int(odd[0]), skip=part.skip)
    raise InputError(
        f"{part.file.name}:{line}: found {weights[odd[0]]} as weight, expected a finite "
        f"number ({len(odd)} of {len(weights)} weights here are not)"
    )


def _refuse_mixed_ids(parts: Sequence[TextPart]) -> None:
    """Refuse files of integer ids beside files of names.

    Raises:
        InputError: names both files.
    """
    kinds = [next(c.kind for c in part.layout.columns if c.name == "src") for part in parts]
    for part, kind in zip(parts, kinds, strict=True):
        if kind != kinds[0]:
            first, second = (
                "integers" if kind == ID else "names" for kind in (kinds[0], kind)
            )
            raise InputError(
                f"{part.file.name}:{part.layout.first_line}: ids are {second}, but "
                f"{first} in "
                f"{parts[0].file.name}; pass --ids string to take all for names"
            )


def _parse_block(layout: LineFormat, load: Callable[[], TextBlock]) -> Parsed:
    block = load()
    try:
        columns, lines = parse_lines(block.data, layout)
        require_exact_weights(block.data, layout, columns)
    except BadLineError as err:
        before = block.data[: err.offset].tobytes().count(b"\n")
        return Parsed({"src": ()}, before, block.bytes_read, err)
    return Parsed(columns, lines, block.bytes_read)


def _chunk(part: TextPart, parsed: Parsed) -> EdgeChunk:
    columns = dict(parsed.columns)
    if "time" in columns:
        columns["time"] = times_of(columns["time"], f"{part.file.name}: column time")
    return EdgeChunk(
        src=columns.pop("src"),
        dst=columns.pop("dst"),
        edge_type=part.edge_type,
        split=part.split,
        columns=columns,
        bytes_read=parsed.bytes_read,
    )


def warn_of_text_times(name: str, layout: LineFormat) -> None:
    """Say in which unit times are stored that are numbers with fractions."""
    if TextColumn("time", NUMBER) in layout.columns:
        warn_of_millionths(name)


def _hint(layout: LineFormat) -> str:
    """Say what to do about a bad line."""
    if layout.is_first_odd:
        return (
            f"; if line {layout.first_line} is a header or a count, pass "
            f"--skip {layout.first_line}"
        )
    return "; correct or remove the line"


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
) -> list[DataLine]:
    """Return up to SAMPLE_LINES of the first data lines of a file.

    Raises:
        InputError: there is none.
    """
    size = 1 << 18
    while True:
        head = read_head(file, size)
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


def no_text(file: InputFile, line: DataLine) -> InputError | None:
    """Return the error for a first line that is not text, or None."""
    try:
        text = line.text.decode("utf-8")
    except UnicodeDecodeError as err:
        return InputError(
            f"{file.name}:{line.number}: found byte 0x{line.text[err.start]:02x}, which "
            "is not "
            "UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"
        )
    if "\x00" in text:
        return InputError(
            f"{file.name}:{line.number}: found binary data, {show(line.text, 20)}, "
            "expected "
            "lines of text; name the format with --format"
        )
    return None
