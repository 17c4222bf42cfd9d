"""Files of a source: what they are called, how they are compressed."""

import codecs
import os
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from graphsys.core.errors import InputError

PIECE_BYTES: Final = 4 << 20

COMPRESSIONS: Final = {".gz": "gzip", ".tgz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_MAGIC: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
UTF8_MARK: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that exists, or one member of a tar archive.

    Attributes:
        path: Where it lies.
        compression: "gzip", "zstd", "bz2" or None.
        member: Name of the member of the archive, or None.
        member_bytes: Its size, not compressed.
        encoding: Of its text, where not UTF-8: it is recoded while it is read.
    """

    path: Path
    compression: str | None = None
    member: str | None = None
    member_bytes: int = 0
    encoding: str | None = None

    @property
    def is_plain(self) -> bool:
        """Its bytes are on disk as they are read, so that any piece can be read alone."""
        return self.compression is None and self.member is None and self.encoding is None

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
        """Open the decompressed bytes, as UTF-8 if they are in another encoding.

        Raises:
            InputError: the file or the member cannot be opened.
        """
        stream = self._open_bytes()
        if self.encoding is not None:
            stream.file = _Recoded(stream.file, self.encoding)
        return stream

    def _open_bytes(self) -> "_Stream":
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
        except UnicodeError as err:
            raise InputError(
                f"{self.name}: not {self.encoding} text: {describe(err)}; name another "
                "encoding"
            ) from err
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
            while piece := self.read(stream, PIECE_BYTES):
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


class _Recoded:
    """Text of some encoding, read as UTF-8."""

    def __init__(self, file: Any, encoding: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def read(self, size: int) -> bytes:
        """Return about ``size`` bytes, none only at the end."""
        while True:
            piece = bytes(self._file.read(size))
            text = self._decoder.decode(piece, final=not piece)
            if text or not piece:
                return text.encode()


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
    return head.removeprefix(UTF8_MARK)
