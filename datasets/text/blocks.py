"""Text files as blocks of whole lines, which threads load and parse side by side."""

import os
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import InputError
from graphsys.datasets.files import UTF8_MARK, InputFile, describe

Bytes = npt.NDArray[np.uint8]

BLOCK_BYTES: Final = 8 << 20
"""Text parsed at once; about a million edges."""

MAX_LINE_BYTES: Final = 1 << 20
"""A longer line means that the file is not text."""

_LF: Final = 10
_HEAD_BYTES: Final = 1 << 16

ReadInto: TypeAlias = Callable[[memoryview, int], int]


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Whole lines of one file.

    Attributes:
        data: uint8 ``[n]``, the last byte a line feed; empty at the end of a file.
        bytes_read: Bytes of the (compressed) file that the block consumed.
    """

    data: Bytes
    bytes_read: int


def text_blocks(
    file: InputFile, *, skip: int = 0, block_bytes: int = BLOCK_BYTES
) -> Generator[Callable[[], TextBlock], None, None]:
    """Yield loaders of consecutive blocks of whole lines.

    A loader of an uncompressed file, here or on an object store, reads its own piece of
    it, so that threads read and parse side by side; its block is valid until the same
    thread loads the next one. Other files are read and decompressed by the caller, in
    order.

    Args:
        file: What to read.
        skip: Lines to leave out at the beginning.
        block_bytes: About how long a block is.
    """
    if file.has_pieces:
        size, pieces = file.num_bytes, _TextBlocks(file)
        begin = _content_start(pieces, skip)
        for first in range(begin, size, block_bytes):
            last = min(first + block_bytes, size)
            yield _PieceLoader(pieces, begin, first, last)
    else:
        for block in _streamed_blocks(file, skip, block_bytes):
            yield partial(_same, block)


def lines_before_block(file: InputFile, number: int, *, skip: int = 0) -> int:
    """Return how many lines of a plain file begin before a block.

    Reads all that is before: for messages alone.

    Args:
        file: The file.
        number: Which of the blocks of :func:`text_blocks`, from 0.
        skip: Lines that are left out at the beginning, which count here.
    """
    pieces = _TextBlocks(file)
    begin = _content_start(pieces, skip)
    left = number * BLOCK_BYTES - 1  # a line feed right before the block ends a line there
    if left < 0:
        return skip
    lines = skip + 1
    while left and (data := pieces.read(min(left, BLOCK_BYTES), begin)):
        lines += data.count(b"\n")
        begin, left = begin + len(data), left - len(data)
    return lines


def _same(block: TextBlock) -> TextBlock:
    return block


class _TextBlocks:
    """A plain file, of which several threads read pieces."""

    def __init__(self, file: InputFile) -> None:
        self.file = file
        try:
            self._far: Any = None if file.uri is None else file.remote()
        except OSError as err:
            raise self._failed(err) from err

    def read(self, size: int, at: int) -> bytes:
        """Return up to ``size`` bytes from a place on, fewer only at the end.

        Raises:
            InputError: they cannot be read.
        """
        buffer = np.empty(size, dtype=np.uint8)
        with self.opened() as read_into:
            return buffer[: _fill(read_into, buffer, at, 0, size)].tobytes()

    @contextmanager
    def opened(self) -> Iterator[ReadInto]:
        """Give what reads bytes from a place into memory, and says how many.

        Raises:
            InputError: they cannot be read.
        """
        handle = -1
        try:
            if self._far is None:
                handle = os.open(self.file.path, os.O_RDONLY)
            yield partial(_read_near, handle) if handle >= 0 else self._read_far
        except OSError as err:
            raise self._failed(err) from err
        finally:
            if handle >= 0:
                os.close(handle)

    def _read_far(self, view: memoryview, at: int) -> int:
        data = self._far.read_at(len(view), at)
        view[: len(data)] = data
        return len(data)

    def _failed(self, err: OSError) -> InputError:
        return InputError(f"{self.file.name}: cannot be read: {describe(err)}")


def _read_near(handle: int, view: memoryview, at: int) -> int:
    return os.preadv(handle, [view], at)


def _content_start(pieces: _TextBlocks, skip: int) -> int:
    """Return the offset behind the byte order mark and the skipped lines."""
    begin, data = 0, pieces.read(_HEAD_BYTES, 0)
    at = len(UTF8_MARK) if data.startswith(UTF8_MARK) else 0
    while skip and data:
        found = data.find(b"\n", at)
        if found >= 0:
            skip, at = skip - 1, found + 1
        else:
            begin, at = begin + len(data), 0
            data = pieces.read(_HEAD_BYTES, begin)
    return begin + at


class _PieceLoader:
    """Reads the lines that begin in bytes ``first .. last`` of a plain file."""

    def __init__(self, pieces: _TextBlocks, begin: int, first: int, last: int) -> None:
        self._pieces = pieces
        self._begin = begin
        self._first = first
        self._last = last

    def __call__(self) -> TextBlock:
        # From one byte before, to see whether a line begins at `first`.
        start = max(self._first - 1, self._begin)
        buffer = _thread_buffer(self._last - start + MAX_LINE_BYTES + 1)
        with self._pieces.opened() as read_into:
            filled = _fill(read_into, buffer, start, 0, self._last - start)
            if filled == 0:  # the file became shorter meanwhile
                return TextBlock(buffer[:0], self._last - self._first)
            head = 0
            if start < self._first:
                head = _find(buffer, 0, filled) + 1
                if head == 0:  # no line begins here: the one before ends elsewhere
                    return TextBlock(buffer[:0], self._last - self._first)
            end = filled
            while buffer[end - 1] != _LF:
                room = min(_HEAD_BYTES, len(buffer) - 1 - filled)
                more = _fill(read_into, buffer, start, filled, room)
                if more == filled:
                    break
                stop = _find(buffer, filled, more) + 1
                filled = more
                end = stop or more
        if buffer[end - 1] != _LF:
            if filled - (self._last - start) >= MAX_LINE_BYTES:
                raise _too_long(self._pieces.file)
            buffer[end] = _LF
            end += 1
        return TextBlock(buffer[head:end], self._last - self._first)


_local = threading.local()


def _thread_buffer(size: int) -> Bytes:
    """Return this thread's buffer, cut to ``size``: fresh pages cost a fifth of a parse."""
    buffer: Bytes | None = getattr(_local, "buffer", None)
    if buffer is None or len(buffer) < size:
        buffer = np.empty(size, dtype=np.uint8)
        _local.buffer = buffer
    return buffer[:size]


def _fill(read_into: ReadInto, buffer: Bytes, start: int, filled: int, size: int) -> int:
    """Read ``size`` bytes more behind ``filled``; return how far the buffer is filled."""
    view = memoryview(buffer.data)
    stop = filled + size
    while filled < stop:
        count = read_into(view[filled:stop], start + filled)
        if count == 0:
            break
        filled += count
    return filled


def _find(buffer: Bytes, begin: int, end: int) -> int:
    """Return the place of the first line feed in ``begin .. end``, or -1."""
    step = 1 << 12
    for first in range(begin, end, step):
        found = np.flatnonzero(buffer[first : min(first + step, end)] == _LF)
        if len(found):
            return first + int(found[0])
    return -1


def _too_long(file: InputFile) -> InputError:
    return InputError(
        f"{file.name}: a line is longer than {MAX_LINE_BYTES} bytes; "
        "is this a text file with line feeds?"
    )


def _streamed_blocks(
    file: InputFile, skip: int, block_bytes: int
) -> Generator[TextBlock, None, None]:
    """Read a file from its beginning, block after block."""
    total, told = file.num_bytes, 0
    stream = file.open()
    rest = b""
    is_first = True
    try:
        while piece := file.read(stream, block_bytes):
            if is_first:
                piece = piece.removeprefix(UTF8_MARK)
                is_first = False
            text = rest + piece if rest else piece
            cut = text.rfind(b"\n") + 1
            rest = text[cut:]
            if len(rest) > MAX_LINE_BYTES:
                raise _too_long(file)
            begin, skip = _drop_lines(text, cut, skip)
            if cut > begin:
                told, before = stream.tell(), told
                yield TextBlock(
                    np.frombuffer(text, np.uint8, cut - begin, begin), told - before
                )
    finally:
        stream.close()
    if rest and not skip:
        yield TextBlock(np.frombuffer(rest + b"\n", dtype=np.uint8), total - told)


def _drop_lines(text: bytes, cut: int, skip: int) -> tuple[int, int]:
    """Return where the text goes on behind lines to skip, and how many are left."""
    begin = 0
    while skip and begin < cut:
        begin = text.index(b"\n", begin, cut) + 1
        skip -= 1
    return begin, skip
