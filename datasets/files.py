"""Files of a source: what they are called, how they are compressed, blocks of lines."""

import os
import tarfile
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import InputError

Bytes = npt.NDArray[np.uint8]

BLOCK_BYTES: Final = 16 << 20
"""Text parsed at once; about a million edges."""

MAX_LINE_BYTES: Final = 1 << 20
"""A longer line means that the file is not text."""

COMPRESSIONS: Final = {".gz": "gzip", ".tgz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_MAGIC: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_LF: Final = 10


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Whole lines of one file.

    Attributes:
        data: uint8 ``[n]``, the last byte a line feed; empty at the end of a file.
        bytes_read: Bytes of the (compressed) file that the block consumed.
    """

    data: Bytes
    bytes_read: int


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that exists, or one member of a tar archive.

    Attributes:
        path: Where it lies.
        compression: "gzip", "zstd", "bz2" or None.
        member: Name of the member of the archive, or None.
        member_bytes: Its size, not compressed.
    """

    path: Path
    compression: str | None = None
    member: str | None = None
    member_bytes: int = 0

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{self.path}/{self.member}" if self.member else str(self.path)

    @property
    def stem(self) -> str:
        """Its base name up to the first dot, in lower case."""
        return Path(self.member or self.path).name.split(".")[0].lower()

    @property
    def num_bytes(self) -> int:
        """Bytes that reading it consumes: of the compressed file, or of the member."""
        return self.member_bytes if self.member else self.path.stat().st_size

    def open(self) -> "_Stream":
        """Open the decompressed bytes.

        Raises:
            InputError: the file or the member cannot be opened.
        """
        try:
            if self.member is not None:
                archive = tarfile.open(self.path)  # noqa: SIM115, the stream closes it
                member = archive.extractfile(self.member)
                if member is None:
                    raise InputError(f"{self.name}: not a regular file of the archive")
                return _Stream(member, member.tell, [member, archive])
            if self.compression is None:
                plain = self.path.open("rb", buffering=0)
                return _Stream(plain, plain.tell, [plain])
            packed = pa.OSFile(str(self.path))
            stream = pa.CompressedInputStream(packed, self.compression)
            return _Stream(stream, packed.tell, [stream, packed])
        except (OSError, tarfile.TarError, EOFError, KeyError) as err:
            raise InputError(f"{self.name}: cannot be opened: {describe(err)}") from err

    def read(self, stream: "_Stream", size: int) -> bytes:
        """Read up to ``size`` bytes, fewer only at the end.

        Raises:
            InputError: the bytes cannot be read or decompressed.
        """
        pieces: list[bytes] = []
        missing = size
        try:
            while missing > 0:
                piece = stream.file.read(missing)
                if not piece:
                    break
                pieces.append(piece)
                missing -= len(piece)
        except (OSError, EOFError, tarfile.TarError) as err:
            raise InputError(
                f"{self.name}: cannot be read to its end: {describe(err)}; the file is cut "
                "short or damaged, fetch it again"
            ) from err
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def read_all(self) -> bytes:
        """Return all decompressed bytes."""
        stream = self.open()
        try:
            pieces = []
            while piece := self.read(stream, BLOCK_BYTES):
                pieces.append(piece)
        finally:
            stream.close()
        return b"".join(pieces)


class _Stream:
    """Decompressed bytes, the place in the compressed ones, and what to close."""

    def __init__(self, file: Any, tell: Callable[[], int], closing: list[Any]) -> None:
        self.file = file
        self.tell = tell
        self._closing = closing

    def close(self) -> None:
        for item in self._closing:
            item.close()


def describe(err: BaseException) -> str:
    """Return what an error of the system says, in one line and without its number."""
    text = err.strerror if isinstance(err, OSError) and err.strerror else str(err)
    text = " ".join(text.split()) or type(err).__name__
    return text[0].lower() + text[1:]


def input_file(path: str | os.PathLike[str]) -> InputFile:
    """Look at a file and find out how it is compressed, by its first bytes.

    Raises:
        InputError: it is missing, empty, not a regular file, or not compressed as its
            name says.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a folder, expected a file; name the files in it")
        if not path.exists():
            raise InputError(f"{path}: no such file; check the path")
        if not path.is_file():
            raise InputError(f"{path}: not a regular file; copy what it gives to a file")
        with path.open("rb") as stream:
            head = stream.read(4)
    except OSError as err:
        raise InputError(f"{path}: cannot be read: {describe(err)}") from err
    if not head:
        raise InputError(f"{path}: the file is empty, expected edges")
    found = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)
    expected = COMPRESSIONS.get(path.suffix.lower())
    if expected is not None and found != expected:
        raise InputError(
            f"{path}: the content is not {expected}-compressed as its name says; "
            "rename or fetch it again"
        )
    return InputFile(path, found)


def archive_members(file: InputFile) -> list[InputFile]:
    """List the regular files of a tar archive; nothing is written to disk.

    Raises:
        InputError: not a tar archive, or a damaged one.
    """
    try:
        with tarfile.open(file.path) as archive:
            members = [(member.name, member.size) for member in archive if member.isreg()]
    except (OSError, EOFError, tarfile.TarError) as err:
        raise InputError(
            f"{file.path}: cannot be read as a tar archive: {describe(err)}; fetch it again"
        ) from err
    return [InputFile(file.path, file.compression, name, size) for name, size in members]


def read_head(file: InputFile, num_bytes: int = 1 << 18) -> bytes:
    """Return the first decompressed bytes of a file, without a byte order mark.

    Raises:
        InputError: the file is UTF-16, or nothing is in it.
    """
    stream = file.open()
    try:
        head = file.read(stream, num_bytes)
    finally:
        stream.close()
    if head.startswith(_UTF16_MARKS):
        raise InputError(
            f"{file.name}:1: UTF-16 text, expected UTF-8; convert it with iconv"
        )
    if not head:
        raise InputError(f"{file.name}: the file is empty, expected edges")
    return head.removeprefix(_UTF8_MARK)


def text_blocks(
    file: InputFile, *, skip: int = 0, block_bytes: int = BLOCK_BYTES
) -> Generator[Callable[[], TextBlock], None, None]:
    """Yield loaders of consecutive blocks of whole lines.

    A loader of an uncompressed file reads its own piece of it, so that threads read and
    parse side by side; its block is valid until the same thread loads the next one. Other
    files are read and decompressed by the caller, in order.

    Args:
        file: What to read.
        skip: Lines to leave out at the beginning.
        block_bytes: About how long a block is.
    """
    if file.compression is None and file.member is None:
        size = file.num_bytes
        begin = _content_start(file, skip)
        for first in range(begin, size, block_bytes):
            last = min(first + block_bytes, size)
            yield _PieceLoader(file, begin, first, last)
    else:
        for block in _streamed_blocks(file, skip, block_bytes):
            yield partial(_same, block)


def _same(block: TextBlock) -> TextBlock:
    return block


def _content_start(file: InputFile, skip: int) -> int:
    """Return the offset behind the byte order mark and the skipped lines."""
    with file.path.open("rb") as stream:
        if stream.read(3) != _UTF8_MARK:
            stream.seek(0)
        for _ in range(skip):
            stream.readline()
        return stream.tell()


class _PieceLoader:
    """Reads the lines that begin in bytes ``first .. last`` of a plain file."""

    def __init__(self, file: InputFile, begin: int, first: int, last: int) -> None:
        self._file = file
        self._begin = begin
        self._first = first
        self._last = last

    def __call__(self) -> TextBlock:
        # From one byte before, to see whether a line begins at `first`.
        start = max(self._first - 1, self._begin)
        buffer = _thread_buffer(self._last - start + MAX_LINE_BYTES + 1)
        handle = os.open(self._file.path, os.O_RDONLY)
        try:
            filled = _fill(handle, buffer, start, 0, self._last - start)
            if filled == 0:  # the file became shorter meanwhile
                return TextBlock(buffer[:0], self._last - self._first)
            head = 0
            if start < self._first:
                head = _find(buffer, 0, filled) + 1
                if head == 0:  # no line begins here: the one before ends elsewhere
                    return TextBlock(buffer[:0], self._last - self._first)
            end = filled
            while buffer[end - 1] != _LF:
                more = _fill(
                    handle, buffer, start, filled, min(1 << 16, len(buffer) - 1 - filled)
                )
                if more == filled:
                    break
                stop = _find(buffer, filled, more) + 1
                filled = more
                end = stop or more
        except OSError as err:
            raise InputError(f"{self._file.name}: cannot be read: {describe(err)}") from err
        finally:
            os.close(handle)
        if buffer[end - 1] != _LF:
            if filled - (self._last - start) >= MAX_LINE_BYTES:
                raise _too_long(self._file)
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


def _fill(handle: int, buffer: Bytes, start: int, filled: int, size: int) -> int:
    """Read ``size`` bytes more behind ``filled``; return how far the buffer is filled."""
    view = memoryview(buffer.data)
    stop = filled + size
    while filled < stop:
        count = os.preadv(handle, [view[filled:stop]], start + filled)
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
                piece = piece.removeprefix(_UTF8_MARK)
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
