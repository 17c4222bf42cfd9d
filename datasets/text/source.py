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
from graphsys.datasets.files import InputFile
from graphsys.datasets.text.blocks import (
    BLOCK_BYTES,
    TextBlock,
    lines_before_block,
    text_blocks,
)
from graphsys.datasets.text.id_guards import (
    comment_ids,
    find_row,
    header_again,
    warn_of_comments,
)
from graphsys.datasets.text.layout import (
    FILL_IN,
    ID,
    NUMBER,
    THROUGHOUT,
    LineFormat,
    TextColumn,
    read_alike,
)
from graphsys.datasets.text.lines import BadLineError, parse_lines, require_exact_weights
from graphsys.datasets.text.odd_names import OddNames
from graphsys.datasets.text.prefetch import prefetch
from graphsys.datasets.text.third_column import ThirdColumnCheck
from graphsys.datasets.text.two_ranges import TwoRanges
from graphsys.datasets.times import times_of, warn_of_millionths
from graphsys.storage.source import EdgeChunk, Source


class CountLine:
    """Watches the edges of a file whose first line may be counts.

    Two integers are counts where one is the number of all other lines, and the other is
    the number of nodes: the greatest id, or one more where ids begin at 0.

    Args:
        where: File and line, for the message.
        line: Number of the first line.
        is_open: Whether to look: not where the user says what the columns are.
    """

    def __init__(self, where: str, line: int, *, is_open: bool) -> None:
        self._where = where
        self._line = line
        self._is_open = is_open
        self._first: tuple[int, int] | None = None
        self._rows = 0
        self._greatest = -1
        self._least = 2**63

    def add(self, src: Any, dst: Any) -> None:
        """Take in edges, ids ``[n]`` each, ``n > 0``; names end the watch."""
        is_integer = isinstance(src, np.ndarray) and isinstance(dst, np.ndarray)
        if not self._is_open or not is_integer:
            self._is_open = False
            return
        self._rows += len(src)
        if self._first is None:
            self._first = int(src[0]), int(dst[0])
            src, dst = src[1:], dst[1:]
            if self._first[0] < 2 or self._first[1] < 2:
                self._is_open = False
        if len(src):
            self._greatest = max(self._greatest, int(src.max()), int(dst.max()))
            self._least = min(self._least, int(src.min()), int(dst.min()))
        if max(self._rows - 1, self._greatest) > max(self._first):
            self._is_open = False  # neither can be a count: others cost no more

    def check(self) -> None:
        """Refuse a first line of counts.

        Raises:
            InputError: it is one.
        """
        if not self._is_open or self._first is None or self._rows < 2:
            return
        num_nodes = self._greatest + (self._least == 0)
        if self._first in ((num_nodes, self._rows - 1), (self._rows - 1, num_nodes)):
            raise InputError(
                f"{self._where}: found {self._first[0]} {self._first[1]}, which are the "
                f"numbers of nodes and of edges below; pass --skip {self._line}, or "
                "--columns src,dst if it is an edge"
            )


STRETCH_BLOCKS: Final = 8
"""Blocks of a file that one reader of several reads."""


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
        may_count: The first line may be counts of nodes and edges: nobody named columns.
        guards_names: Nobody said that ids are strings: NA may be none.
        header: Names of source and destination above the lines, which are no edge.
        blocks: First and last but one of the blocks to read; None for the whole file.
    """

    file: InputFile
    layout: LineFormat
    edge_type: EdgeType
    skip: int = 0
    split: str = DEFAULT_SPLIT
    is_weight_guessed: bool = False
    may_count: bool = False
    guards_names: bool = False
    header: tuple[bytes, bytes] | None = None
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
        comments: How many lines were dropped as comments though they look like others.
        comment: The first of them.
    """

    columns: dict[str, Any]
    lines: int
    bytes_read: int
    error: BadLineError | None = None
    comments: int = 0
    comment: bytes = b""


def parse_file(
    file: InputFile,
    layout: LineFormat,
    *,
    skip: int = 0,
    num_threads: int | None = None,
    blocks: tuple[int, int] | None = None,
) -> Iterator[Parsed]:
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
            raise InputError(f"{file.name}:{line}: {_mended(parsed.error, layout)}")
        lines_before += parsed.lines
        yield parsed


def line_of_row(
    file: InputFile,
    layout: LineFormat,
    row: int,
    *,
    skip: int = 0,
    blocks: tuple[int, int] | None = None,
) -> int:
    """Return the number of the line that holds a row, counted from the beginning.

    Rows count from the first of the blocks, or of the file. Reads the file again, slowly:
    for messages alone.
    """
    number = skip if blocks is None else lines_before_block(file, blocks[0], skip=skip)
    for load in islice(text_blocks(file, skip=skip), *(blocks or (0, None))):
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
        ranges: Watches whether the ends look like two types; None where types are given.
    """

    def __init__(
        self,
        parts: Sequence[TextPart],
        *,
        is_directed: bool,
        num_threads: int | None = None,
        ranges: TwoRanges | None = None,
    ) -> None:
        layouts = read_alike([part.layout for part in parts])
        self.parts = [
            replace(part, layout=layout)
            for part, layout in zip(parts, layouts, strict=True)
        ]
        _refuse_mixed_ids(self.parts)
        for part in self.parts[:1]:
            self.has_millionths = warn_of_text_times(part.file.name, part.layout)
        self.name = ", ".join(part.file.name for part in self.parts)
        self.total_bytes = sum(part.file.num_bytes for part in self.parts)
        self.is_directed = is_directed
        self._num_threads = num_threads
        self._ranges = ranges

    @property
    def num_parts(self) -> int:
        """How many stretches of files can be read side by side."""
        return len(self._stretches())

    def keep_part(self, number: int) -> None:
        """Forget all stretches but one."""
        self.parts = [self._stretches()[number]]
        self._ranges = None  # one stretch does not tell

    def _stretches(self) -> list[TextPart]:
        return [some for part in self.parts for some in part.stretches()]

    def chunks(self) -> Iterator[EdgeChunk]:
        """Yield the edges in blocks of about a million.

        Raises:
            InputError: a line does not fit, a file is damaged, or it holds no edge.
        """
        for part in self.parts:
            is_empty, rows, comments, comment = True, 0, 0, b""
            where = f"{part.file.name}:{part.layout.first_line}"
            is_open = part.may_count and part.blocks is None
            first_line = CountLine(where, part.layout.first_line, is_open=is_open)
            odd = OddNames(part.file.name, is_open=part.guards_names)
            third = ThirdColumnCheck(where)
            parsing = parse_file(
                part.file,
                part.layout,
                skip=part.skip,
                num_threads=self._num_threads,
                blocks=part.blocks,
            )
            for parsed in parsing:
                comments, comment = comments + parsed.comments, comment or parsed.comment
                if len(parsed.columns["src"]):
                    _refuse_header_again(part, parsed, rows)
                    first_line.add(parsed.columns["src"], parsed.columns["dst"])
                    odd.add(parsed.columns["src"], parsed.columns["dst"])
                    if self._ranges is not None:
                        self._ranges.add(parsed.columns["src"], parsed.columns["dst"])
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
            first_line.check()
            odd.check(partial(_line_of, part, rows - 1))
            if comments:
                warn_of_comments(part.file.name, comments, comment)
        if self._ranges is not None:
            self._ranges.check()


def _line_of(part: TextPart, row: int) -> int:
    """Return the number of the line of a row, counted within what is read of the file."""
    return line_of_row(part.file, part.layout, row, skip=part.skip, blocks=part.blocks)


def _refuse_header_again(part: TextPart, parsed: Parsed, rows: int) -> None:
    """Refuse the header as an edge, where files were put together.

    Raises:
        InputError: names its line.
    """
    if part.header is None:
        return
    row = find_row(parsed.columns["src"], parsed.columns["dst"], part.header)
    if row >= 0:
        line = _line_of(part, rows + row)
        raise header_again(part.file.name, line, part.skip)


def _refuse_infinite(part: TextPart, parsed: Parsed, rows: int) -> None:
    """Refuse weights that are infinite, or too large for float64.

    Raises:
        InputError: names the line of the first, and their number in this block.
    """
    weights = parsed.columns.get("weight")
    if weights is None or np.isfinite(weights).all():
        return
    odd = np.flatnonzero(~np.isfinite(weights))
    line = _line_of(part, rows + int(odd[0]))
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
    rows = len(next(iter(columns.values())))
    if not layout.has_comments or rows == lines or layout.has_integer_ids:
        return Parsed(columns, lines, block.bytes_read)
    count, example = comment_ids(block.data.tobytes(), layout)
    return Parsed(columns, lines, block.bytes_read, None, count, example)


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


def warn_of_text_times(name: str, layout: LineFormat) -> bool:
    """Say in which unit times are stored that are numbers with fractions; tell if so."""
    has_fractions = TextColumn("time", NUMBER) in layout.columns
    if has_fractions:
        warn_of_millionths(name)
    return has_fractions


def _mended(error: BadLineError, layout: LineFormat) -> str:
    """Return what is wrong with a line, and what to do about it."""
    if any(remedy in error.what for remedy in ("--ids", "iconv", "sed ", FILL_IN)):
        return error.what
    if error.what.endswith(THROUGHOUT):
        return (
            f"{error.what}; correct or remove the line, or write the table as Parquet, "
            "where a column's type is said"
        )
    if layout.keeps_zeros and "expected an integer id" in error.what:
        return f"{error.what}{_hint(layout)}, or pass --ids string if ids are names"
    if "\\r" in error.what:
        return f"{error.what}; if lines end in several ways, tr '\\r' '\\n' < FILE > NEW"
    return f"{error.what}{_hint(layout)}"


def _hint(layout: LineFormat) -> str:
    """Say what to do about a bad line."""
    first = layout.first_line
    lists = "pass --format adjacency if lines are lists of neighbors"
    if layout.is_first_odd and layout.is_even_below:
        if layout.is_ragged:
            return f"; {lists}, or --skip {first} if line {first} is a header or a count"
        return f"; if line {first} is a header or a count, pass --skip {first}"
    if layout.is_ragged:
        return f"; {lists}, else correct or remove the line"
    return "; correct or remove the line"
