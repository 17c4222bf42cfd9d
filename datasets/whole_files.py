"""What of files is held whole while they are read, by the sizes that they state.

Text, tables in Parquet and Arrow without compression are read piece by piece. Arrays of
.npz and variables of .mat are not, nor are compressed record batches of Arrow.
"""

import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

_MATLAB_HEADER = 128  # bytes of text, version and order
_COMPRESSED, _ZLIB_HEAD = 15, 1 << 10
_MATRIX_COPIES = 3.6  # of a matrix's bytes, with its entries sorted and compared: measured
_SPARSE_COPIES = 1.4  # of a matrix by rows: the row of each entry beside what is stored
_UNDER_WAY_BYTES = 56 << 20  # of batches: what any ingest counts for its chunks
_ARROW_MAGIC = b"ARROW1\0\0"


def whole_bytes(files: Iterable[Path]) -> int:
    """Return the bytes of files that are in memory at a time, 0 for those read in pieces.

    Only directories, headers and the heads of buffers are read. What is damaged counts as
    nothing here: its reader says what is wrong.

    Args:
        files: Paths of files; others are passed over.
    """
    return sum(_whole_bytes(path) for path in files if path.is_file())


def _whole_bytes(path: Path) -> int:
    try:
        with path.open("rb") as stream:
            head = stream.read(_MATLAB_HEADER)
        if head.startswith(b"PK") and path.suffix.lower() == ".npz":
            return _of_archive(path)
        if head.startswith(b"MATLAB 5.0") and head[126:] in (b"IM", b"MI"):
            return int(_MATRIX_COPIES * sum(_matlab_sizes(path, head[126:] == b"IM")))
        if head.startswith(_ARROW_MAGIC):
            return _of_batches(path)
    except (
        OSError,
        ValueError,
        struct.error,
        zlib.error,
        zipfile.BadZipFile,
        pa.ArrowException,
    ):
        pass
    return 0


def _of_archive(path: Path) -> int:
    with zipfile.ZipFile(path) as archive:
        sizes = {it.filename: it.file_size for it in archive.infolist()}
    return int(sum(sizes.values()) * (_SPARSE_COPIES if "indptr.npy" in sizes else 1))


def _matlab_sizes(path: Path, is_little: bool) -> Iterator[int]:
    """Yield the bytes of every variable; a compressed one says them in its first bytes."""
    tag = struct.Struct("<II" if is_little else ">II")
    with path.open("rb") as stream:
        stream.seek(_MATLAB_HEADER)
        while len(head := stream.read(tag.size)) == tag.size:
            kind, size = tag.unpack(head)
            after = stream.tell() + size
            if kind == _COMPRESSED:
                start = stream.read(min(size, _ZLIB_HEAD))
                yield tag.unpack(zlib.decompressobj().decompress(start, tag.size))[1]
            else:
                yield size
            stream.seek(after)


def _of_batches(path: Path) -> int:
    """Return the bytes of the largest compressed batch, twice where there are more."""
    sizes = []
    with pa.memory_map(str(path)) as stream:
        stream.seek(len(_ARROW_MAGIC))
        while (message := _next_message(stream)) is not None:
            if message.type == "record batch":
                sizes.append(_decompressed(bytes(message.metadata), message.body))
    return max(max(sizes, default=0) * min(2, len(sizes)) - _UNDER_WAY_BYTES, 0)


def _next_message(stream: Any) -> Any:
    try:
        return pa.ipc.read_message(stream)
    except EOFError:
        return None


def _decompressed(metadata: bytes, body: Any) -> int:
    """Return the bytes of a record batch's buffers, which state them; 0 as they lie.

    Of the flat buffers of Arrow's Message.fbs: ``Message.header`` (2), of it ``buffers``
    (2) and ``compression`` (3). A compressed buffer begins with its size, -1: it is not.
    """
    batch = _follow(metadata, _field(metadata, _follow(metadata, 0), 2))
    if not _field(metadata, batch, 3):
        return 0
    begin = _follow(metadata, _field(metadata, batch, 2))
    (count,) = struct.unpack_from("<I", metadata, begin)
    total = 0
    for k in range(count):
        offset, length = struct.unpack_from("<qq", metadata, begin + 4 + 16 * k)
        if length:
            (size,) = struct.unpack("<q", body.slice(offset, 8).to_pybytes())
            total += length if size < 0 else size
    return total


def _follow(data: bytes, place: int) -> int:
    return int(place + struct.unpack_from("<I", data, place)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """Return where a field of a table lies, 0 if it is left out."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", data, vtable)[0]:
        return 0
    offset = int(struct.unpack_from("<H", data, vtable + 4 + 2 * number)[0])
    return table + offset if offset else 0
