"""What of files is held whole while they are read, and how much they give when unpacked.

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
import pyarrow.parquet as pq
import pyarrow.types as pt

from graphsys.core.errors import InputError
from graphsys.datasets.files import PIECE_BYTES, input_file

_MATLAB_HEADER = 128  # bytes of text, version and order
_COMPRESSED, _ZLIB_HEAD = 15, 1 << 10
_MATRIX_COPIES = 3.6  # of a matrix's bytes, with its entries sorted and compared: measured
_SPARSE_COPIES = 1.4  # of a matrix by rows: the row of each entry beside what is stored
_UNDER_WAY_BYTES = 56 << 20  # of batches: what any ingest counts for its chunks
_ARRAYS = (".npz", ".npy", ".mat")
_ARROW_MAGIC = b"ARROW1\0\0"
_PARQUET_MAGIC = b"PAR1"
_SMALL_BYTES = 8 << 20  # what gives more counts as large, whatever more it gives
_NUMBER_BYTES, _TEXT_BYTES = 8, 32  # a cell in memory


def whole_bytes(files: Iterable[Path]) -> int:
    """Return the bytes of files that are in memory at a time, 0 for those read in pieces.

    Only directories, headers and the heads of buffers are read. What is damaged counts as
    nothing here: its reader says what is wrong.

    Args:
        files: Paths of files; others are passed over.
    """
    return sum(_whole_bytes(path) for path in files if path.is_file())


def may_hold_text(files: Iterable[Path]) -> bool:
    """Return whether ids of files may be text, by their names: arrays hold numbers."""
    return not all(path.suffix.lower() in _ARRAYS for path in files)


def unpacked_bytes(files: Iterable[Path]) -> int | None:
    """Return the bytes that files give when they are read, None if one does not tell.

    Tables state their rows: forty million equal ones take kilobytes on disk. Of compressed
    text some megabytes are read, no more: None then, for it is not small.

    Args:
        files: Their paths; pipes, folders and addresses of object stores do not tell.
    """
    sizes = [_unpacked_bytes(path) for path in files]
    return None if None in sizes else sum(size or 0 for size in sizes)


def _unpacked_bytes(path: Path) -> int | None:
    if not path.is_file():
        return None
    stored = path.stat().st_size
    try:
        with path.open("rb") as stream:
            head = stream.read(len(_ARROW_MAGIC))
        if head.startswith(_PARQUET_MAGIC):
            return max(stored, _of_parquet(path))
        if head == _ARROW_MAGIC:  # a batch that is held whole is counted as that
            return stored if _of_batches(path) else max(stored, _of_arrow(path))
        file = input_file(path)
        if file.compression is None:
            return stored
        opened, total = file.open(), 0
        try:
            while total < _SMALL_BYTES and (piece := file.read(opened, PIECE_BYTES)):
                total += len(piece)
        finally:
            opened.close()
    except (OSError, ValueError, struct.error, InputError, pa.ArrowException):
        return None
    return max(stored, total) if total < _SMALL_BYTES else None


def _of_parquet(path: Path) -> int:
    table = pq.ParquetFile(path)
    return int(table.metadata.num_rows) * _row_bytes(table.schema_arrow)


def _of_arrow(path: Path) -> int:
    rows = 0
    with pa.memory_map(str(path)) as stream:
        row_bytes = _row_bytes(pa.ipc.open_file(stream).schema)
        stream.seek(len(_ARROW_MAGIC))
        while (message := _next_message(stream)) is not None:
            if message.type == "record batch":
                rows += _rows_of_batch(bytes(message.metadata))
    return rows * row_bytes


def _row_bytes(schema: pa.Schema) -> int:
    return sum(
        _NUMBER_BYTES if pt.is_primitive(kind) else _TEXT_BYTES for kind in schema.types
    )


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


def _rows_of_batch(metadata: bytes) -> int:
    """Return the rows of a record batch: ``length`` (0) of ``Message.header`` (2)."""
    batch = _follow(metadata, _field(metadata, _follow(metadata, 0), 2))
    place = _field(metadata, batch, 0)
    return int(struct.unpack_from("<q", metadata, place)[0]) if place else 0


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
