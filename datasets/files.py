"""Files of a source: what they are called, how they are compressed, their streams."""

import codecs
import io
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.fs

from graphsys.core.errors import InputError, cut_list


class ByteStream:
    """Decompressed bytes, the place in the compressed ones, and what to close."""

    def __init__(self, file: Any, tell: Callable[[], int], closing: list[Any]) -> None:
        self.file = file
        self.tell = tell
        self._closing = closing

    def close(self) -> None:
        """Close what is open."""
        for item in self._closing:
            item.close()


class Recoded:
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


class LineFeeds:
    """Text whose lines end with a carriage return, read with line feeds."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, none only at the end."""
        return bytes(self._file.read(size)).replace(b"\r", b"\n")


PIECE_BYTES: Final = 4 << 20
DAMAGE: Final = (
    OSError,
    EOFError,
    ValueError,  # a number in a header that is none
    NotImplementedError,  # a way to compress that Python does not know
    RuntimeError,  # a password
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)
"""What reading an archive may raise that is damaged."""

COMPRESSIONS: Final = {
    ".gz": "gzip",
    ".tgz": "gzip",
    ".zst": "zstd",
    ".bz2": "bz2",
    ".xz": "xz",
}
_MAGIC: Final = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\xfd7zX": "xz",
}
_SCHEMES: Final = ("file", "s3", "gs", "gcs", "hdfs", "abfs", "abfss")
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_UTF32_MARKS: Final = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")
UTF8_MARK: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that exists, or one member of a tar archive.

    Attributes:
        path: Where it lies.
        compression: "gzip", "zstd", "bz2", "xz", "zip" or None.
        member: Name of the member of the archive, or None.
        member_bytes: Its size, not compressed.
        encoding: Of its text, where not UTF-8: it is recoded while it is read.
        uri: Where it lies, if in an object store; then ``path`` is but a name.
        title: What messages call it, where its path is of no use to the user.
        has_cr: Its lines end with a carriage return alone, as on old Macs.
    """

    path: Path
    compression: str | None = None
    member: str | None = None
    member_bytes: int = 0
    encoding: str | None = None
    uri: str | None = None
    title: str | None = None
    has_cr: bool = False

    @property
    def is_plain(self) -> bool:
        """Its bytes are on disk as they are read."""
        return self.has_pieces and self.uri is None

    @property
    def has_pieces(self) -> bool:
        """Its bytes lie as they are read, here or elsewhere: any piece is read alone."""
        is_recoded = self.encoding is not None or self.has_cr
        return self.compression is None and self.member is None and not is_recoded

    @property
    def name(self) -> str:
        """What messages call it."""
        if self.uri is not None or self.title is not None:
            return self.uri or self.title or ""
        return f"{self.path}/{self.member}" if self.member else str(self.path)

    @property
    def address(self) -> str:
        """Where it is found from any folder."""
        return self.uri or str(self.path.absolute())

    @property
    def stem(self) -> str:
        """Its base name up to the first dot, in lower case."""
        return Path(self.member or self.path).name.split(".")[0].lower()

    @property
    def num_bytes(self) -> int:
        """Bytes that reading it consumes: of the compressed file, or of the member."""
        if self.member is not None or self.uri is not None:
            return self.member_bytes
        return self.path.stat().st_size

    def open(self) -> "ByteStream":
        """Open the decompressed bytes, as UTF-8 if they are in another encoding.

        Raises:
            InputError: the file or the member cannot be opened.
        """
        stream = self._open_bytes()
        if self.encoding is not None:
            stream.file = Recoded(stream.file, self.encoding)
        if self.has_cr:
            stream.file = LineFeeds(stream.file)
        return stream

    def _open_bytes(self) -> "ByteStream":
        try:
            if self.compression == "zip":
                packer = self.open_zip()
                packed_member = packer.open(self.member or "")
                return ByteStream(
                    packed_member, packed_member.tell, [packed_member, packer]
                )
            if self.member is not None:
                archive = tarfile.open(self.path)  # noqa: SIM115, the stream closes it
                member = archive.extractfile(self.member)
                if member is None:
                    raise InputError(f"{self.name}: not a regular file of the archive")
                return ByteStream(member, member.tell, [member, archive])
            if self.compression is None and self.uri is not None:
                far = self.remote()
                return ByteStream(far, far.tell, [far])
            if self.compression is None:
                plain = self.path.open("rb", buffering=0)
                return ByteStream(plain, plain.tell, [plain])
            packed = pa.OSFile(str(self.path)) if self.uri is None else self._buffered()
            if self.compression == "xz":
                unpacked = lzma.LZMAFile(packed)  # noqa: SIM115, the stream closes it
                return ByteStream(unpacked, packed.tell, [unpacked, packed])
            stream = pa.CompressedInputStream(packed, self.compression)
            return ByteStream(stream, packed.tell, [stream, packed])
        except (*DAMAGE, KeyError) as err:
            if isinstance(err, InputError):
                raise
            raise InputError(f"{self.name}: cannot be opened: {describe(err)}") from err

    def remote(self) -> Any:
        """Open a file of an object store for random access, its bytes as they lie.

        Raises:
            OSError: it cannot be opened.
        """
        filesystem, path = pyarrow.fs.FileSystem.from_uri(self.uri)
        return filesystem.open_input_file(path)

    def _buffered(self) -> io.BufferedReader:
        """Open a file of an object store as :meth:`remote`, a request for each piece.

        Who decompresses asks for 4 to 64 KiB at a time, and each request takes its time.
        """
        return io.BufferedReader(self.remote(), PIECE_BYTES)

    def open_zip(self) -> zipfile.ZipFile:
        """Open the zip archive that the file is, or is a member of.

        Raises:
            OSError, zipfile.BadZipFile: it cannot be opened, or is none.
        """
        return zipfile.ZipFile(self.path if self.uri is None else self._buffered())

    def read(self, stream: "ByteStream", size: int) -> bytes:
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
        except DAMAGE as err:
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
    if (uri := as_uri(path)) is not None:
        return _remote_file(uri)
    path = Path(path)
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a folder, expected a file; name the files in it")
        if not path.exists():
            raise InputError(f"{path}: no such file; check the path")
        if not path.is_file():
            raise InputError(
                f"{path}: a device or a socket, expected a file or a pipe; copy what it "
                "gives to a file"
            )
        with path.open("rb") as stream:
            head = stream.read(4)
    except OSError as err:
        raise InputError(f"{path}: cannot be read: {describe(err)}") from err
    if path.suffix.lower() == ".zip":
        return only_member(path)
    return InputFile(path, _compression(str(path), path, head))


def file_in(folder: Path, name: str) -> InputFile:
    """Look at a file of a folder, or of an object store where its name is an address.

    Raises:
        InputError: as for :func:`input_file`.
    """
    return input_file(folder / name if as_uri(name) is None else name)


def _compression(name: str, path: Path, head: bytes) -> str | None:
    """Return how a file is compressed, by its first bytes.

    Raises:
        InputError: it is empty, or not compressed as its name says.
    """
    if not head:
        raise InputError(f"{name}: the file is empty, expected data")
    found = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
    expected = COMPRESSIONS.get(path.suffix.lower())
    if expected is not None and found != expected:
        raise InputError(
            f"{name}: the content is not {expected}-compressed as its name says; "
            "rename or fetch it again"
        )
    return found


def as_uri(path: str | os.PathLike[str]) -> str | None:
    """Return the address of a file in an object store, or None for a path.

    Examples:
        >>> as_uri(Path("s3://bucket/g.txt"))  # pathlib keeps one slash
        's3://bucket/g.txt'
        >>> as_uri("g.txt") is None
        True
    """
    scheme, colon, rest = os.fspath(path).partition(":/")
    if not colon or scheme not in _SCHEMES:
        return None
    rest = rest.lstrip("/")
    return f"file:///{rest}" if scheme == "file" else f"{scheme}://{rest}"


def _remote_file(uri: str) -> InputFile:
    try:
        filesystem, path = pyarrow.fs.FileSystem.from_uri(uri)
        info = filesystem.get_file_info(path)
        if not info.is_file:
            raise InputError(f"{uri}: no such file; check the address and the credentials")
        with filesystem.open_input_file(path) as stream:
            head = stream.read(4)
    except (OSError, ValueError, NotImplementedError, pa.ArrowException) as err:
        if isinstance(err, InputError):
            raise
        raise InputError(f"{uri}: cannot be read: {describe(err)}") from err
    name = Path(path.rsplit("/", 1)[-1])
    if name.suffix.lower() == ".zip":
        return _only_member(InputFile(name, uri=uri))
    compression = _compression(uri, name, head)
    return InputFile(name, compression, member_bytes=info.size, uri=uri)


def archive_members(file: InputFile) -> list[InputFile]:
    """List the regular files of a tar archive; nothing is written to disk.

    Raises:
        InputError: not a tar archive, or a damaged one.
    """
    try:
        with tarfile.open(file.path) as archive:
            members = [(member.name, member.size) for member in archive if member.isreg()]
    except DAMAGE as err:
        raise InputError(
            f"{file.path}: cannot be read as a tar archive: {describe(err)}; fetch it again"
        ) from err
    return [InputFile(file.path, file.compression, name, size) for name, size in members]


def only_member(path: Path) -> InputFile:
    """Return the one file of a zip archive.

    Raises:
        InputError: there are several, or none; not a zip archive, or a damaged one.
    """
    uri = as_uri(path)
    return _only_member(InputFile(path if uri is None else Path(path.name), uri=uri))


def zip_members(archive: InputFile) -> list[InputFile]:
    """List the files of a zip archive; nothing is written, and their names stay names.

    Raises:
        InputError: not a zip archive, or a damaged one.
    """
    try:
        with archive.open_zip() as opened:
            infos = [it for it in opened.infolist() if not it.is_dir()]
    except DAMAGE as err:
        raise InputError(
            f"{archive.name}: cannot be read as a zip archive: {describe(err)}; fetch it "
            "again"
        ) from err
    return [
        replace(archive, compression="zip", member=it.filename, member_bytes=it.file_size)
        for it in infos
        if not it.filename.startswith("__MACOSX/")
        and not Path(it.filename).name.startswith(".")
    ]


def _only_member(archive: InputFile) -> InputFile:
    members = zip_members(archive)
    if len(members) != 1:
        names = cut_list(repr(it.member) for it in members)
        raise InputError(
            f"{archive.name}: holds {len(members)} files, expected one ({names}); unpack "
            "it, unzip FILE -d NEW, and name the files"
        )
    return members[0]


def text_file(file: InputFile) -> InputFile:
    """Return a file of text as its lines are read: those of old Macs end with CR alone."""
    head = read_head(file, 1 << 16)
    return replace(file, has_cr=True) if b"\r" in head and b"\n" not in head else file


def read_head(file: InputFile, num_bytes: int = 1 << 18) -> bytes:
    """Return the first decompressed bytes of a file, without a byte order mark.

    Raises:
        InputError: the file is UTF-16 or UTF-32, or nothing is in it.
    """
    stream = file.open()
    try:
        head = file.read(stream, num_bytes)
    finally:
        stream.close()
    if head.startswith((*_UTF16_MARKS, *_UTF32_MARKS)):
        kind = "UTF-32" if head.startswith(_UTF32_MARKS) else "UTF-16"
        raise InputError(
            f"{file.name}:1: {kind} text, expected UTF-8; convert it with iconv, iconv -f "
            f"{kind} -t UTF-8 FILE > NEW"
        )
    if not head:
        raise InputError(f"{file.name}: the file is empty, expected data")
    return head.removeprefix(UTF8_MARK)
