"""What one reader merged, kept in the user's cache for other processes to map.

Rows that were merged from a generation and its deltas, and the ids of all nodes that the
deltas brought, lie in ``merged/<graph>/<state>/``, where the graph is a digest of its path
and the state the fingerprint of all that they were made of: what an append left behind is
never read again, and the append removes it. A file ends in the checksum of its bytes and
gets its name when it is whole, so a kill leaves nothing. Who cannot write it (no cache, a
disk with little room) goes on without, and who removes it loses nothing. Beside the graph
nothing may lie that ``graph.json`` does not list.
"""

import contextlib
import hashlib
import mmap
import os
import re
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core import ownership
from graphsys.core.checksums import PREFIX, digest
from graphsys.core.errors import CorruptStoreError
from graphsys.core.user_cache import user_cache
from graphsys.graph.csr import Csr
from graphsys.storage.integrity import check_index, check_nodes
from graphsys.storage.manifest import (
    MANIFEST_NAME,
    EdgeTypeEntry,
    FileEntry,
    Manifest,
    file_name,
)
from graphsys.storage.mapped_files import MappedFile, MappedFiles
from graphsys.storage.stored_edges import index_of

PIECE: Final = 2 << 20
"""Bytes of the buffer, and of the kernel's large pages: pieces end where those do."""


class FileWriter:
    """A stream into a new file for Arrow's writers; the page cache has it in large pages.

    The kernel copies into a page of up to 2 MiB at once what it can read at once. From
    memory that is all of it; from a mapping whose pages nobody has touched it is a few, and
    then the file lies in the page cache in small pages for as long as it stays there: every
    process that maps it takes an interruption for each 64 KiB instead of each 2 MiB, and
    random reads miss the processor's table of pages. So all goes through a buffer.

    Args:
        fd: The empty file, open for writing; closing the stream leaves it open.
    """

    closed = False

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = memoryview(bytearray(PIECE))
        self._end = 0

    def write(self, data: Any) -> int:
        """Write bytes behind those of before; return how many.

        Raises:
            OSError: The disk is full, or it cannot be written.
        """
        left = memoryview(data).cast("B")
        size = len(left)
        while left:
            piece = self._buffer[: min(len(left), PIECE - self._end % PIECE)]
            piece[:] = left[: len(piece)]
            written = os.write(self._fd, piece)
            self._end += written
            left = left[written:]
        return size

    def tell(self) -> int:
        """Return the bytes written so far."""
        return self._end

    def flush(self) -> None:
        """Do nothing: all is with the kernel."""

    def close(self) -> None:
        """Take no more."""
        self.closed = True


_STATE: Final = 32  # digits of the fingerprint, and of a digest of a path
_STATE_NAME: Final = re.compile(rf"[0-9a-f]{{{_STATE}}}")
_NAME: Final = re.compile(r"(.+)-([0-9a-f]{32})\.arrow")
_PATH: Final = "path"  # a file that says of which graph it is
_WORTH_KEEPING: Final = 1 << 20
"""Bytes; less is merged faster than it is looked at."""
_MANY_PARTS: Final = 8
"""Fewer files of nodes are mapped one by one."""
_SHARE: Final = 4  # of the free space, the part that may be taken
_COLUMNS: Final = ("indptr", "indices", "weight", "relation", "time", "edge")

Merge = Callable[[], Csr]


class MergeCache:
    """Finds and keeps what was merged of one state of a store."""

    def __init__(self, root: Path, manifest: Manifest, files: MappedFiles) -> None:
        self._root, self._manifest, self._files = root, manifest, files
        self._new_ids: dict[str, pa.Array] = {}
        self._listed: dict[str, list[tuple[str, str, int]]] = {}

    @cached_property
    def _place(self) -> Path | None:
        """Where files of the state are; None where there is no cache."""
        own = _cache_of(self._root)
        return None if own is None else own / self._manifest.fingerprint[:_STATE]

    def index(
        self, name: str, what: str, num_rows: int, num_others: int, merge: Merge
    ) -> Csr:
        """Return merged rows: as they were kept, or merged now and then kept.

        Args:
            name: The edge type.
            what: The direction, and the partition or ``all``.
            num_rows: How many rows there are.
            num_others: Nodes of the type of the neighbors.
            merge: Merges them.
        """
        edge: EdgeTypeEntry = self._manifest.edge_types[name]
        folder = f"index/{file_name(name)}"
        check = partial(check_index, num_rows=num_rows, num_others=num_others, edge=edge)
        for mapped in self._mapped(folder, what, check):
            return index_of(mapped)
        index = merge()
        given = {key: getattr(index, key) for key in _COLUMNS}
        arrays = {key: values for key, values in given.items() if values is not None}
        size = sum(values.nbytes for values in arrays.values())
        if not index.files and size >= _WORTH_KEEPING:
            self._keep(folder, what, _one_row(arrays))
        return index

    def new_ids(
        self, node_type: str, first_part: int, read: Callable[[int], pa.ChunkedArray]
    ) -> pa.Array | None:
        """Return the ids of the nodes that deltas brought as one array; None of few deltas.

        Args:
            node_type: Their type.
            first_part: First partition that a delta brought.
            read: Returns the ids of a partition.
        """
        node = self._manifest.node_types[node_type]
        if node.num_partitions - first_part < _MANY_PARTS:
            return None
        if node_type not in self._new_ids:
            folder = f"nodes/{file_name(node_type)}"
            kind = pa.int64() if node.id_type == "int64" else pa.large_string()
            size = node.num_nodes - node.offsets[first_part]
            check = partial(check_nodes, size=size, id_type=kind)
            found = [it.batch.column("id") for it in self._mapped(folder, "ids", check)]
            if not found:
                parts = range(first_part, node.num_partitions)
                chunks = [chunk for part in parts for chunk in read(part).chunks]
                found = [pa.concat_arrays(chunks)]
                self._keep(folder, "ids", pa.record_batch(found, names=["id"]))
            self._new_ids[node_type] = found[0]
        return self._new_ids[node_type]

    def _mapped(
        self, folder: str, what: str, check: Callable[[pa.RecordBatch], None]
    ) -> Iterator[MappedFile]:
        """Yield the file of something, where there is one that is whole."""
        for name, checksum, size in self._names(folder):
            if not name.startswith(f"{what}-{checksum}"):
                continue
            path = f"{self._place}/{folder}/{name}"  # absolute: it is not the graph's
            entry = FileEntry(
                path=path, rows=1, bytes=size, checksum="", xxh3=f"{PREFIX}{checksum}"
            )
            try:
                with self._files.mapping(path, check, entry) as mapped:
                    pass
            except CorruptStoreError as err:
                # Arrow's own have no number: then it is damaged, and merged anew
                if getattr(err.__cause__, "errno", None) is None:
                    ownership.remove_cached(Path(path), _NAME, user_cache("merged"))
                continue
            yield mapped
            return

    def _names(self, folder: str) -> list[tuple[str, str, int]]:
        """Return names, checksums and sizes of the files in a folder."""
        if folder not in self._listed:
            found = []
            if self._place is not None:
                with contextlib.suppress(OSError):
                    for entry in os.scandir(self._place / folder):
                        match = _NAME.fullmatch(entry.name)
                        if match and entry.is_file(follow_symlinks=False):
                            found.append((entry.name, match[2], entry.stat().st_size))
            self._listed[folder] = found
        return self._listed[folder]

    def _keep(self, folder: str, what: str, batch: pa.RecordBatch) -> None:
        """Write a file, if that is possible; nothing depends on it."""
        if self._place is None:
            return
        path = self._place / folder
        with contextlib.suppress(OSError, pa.ArrowException, CorruptStoreError):
            if Manifest.read(self._root).fingerprint != self._manifest.fingerprint:
                return  # it would be of the past
            if not path.exists():
                _make_room(self._place.parent, self._root, self._place)
                path.mkdir(parents=True)
            room = os.statvfs(path)
            if room.f_bavail * room.f_frsize < _SHARE * batch.nbytes:
                return
            # without a name until it is whole: a kill leaves nothing of it
            fd = os.open(path, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
            try:
                with (
                    pa.PythonFile(FileWriter(fd), mode="w") as sink,
                    pa.ipc.new_file(sink, batch.schema) as writer,
                ):
                    writer.write(batch)
                with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as whole:
                    checksum = digest(whole).removeprefix(PREFIX)
                now = Manifest.read(self._root)
                if now.fingerprint == self._manifest.fingerprint:  # else it is of the past
                    name = path / f"{what}-{checksum}.arrow"
                    nameless = f"/proc/self/fd/{fd}"
                    os.link(nameless, name, src_dir_fd=fd, follow_symlinks=True)
            finally:
                os.close(fd)


def remove_kept(root: Path) -> None:
    """Remove what was kept of a graph; who has mapped it goes on reading it."""
    own = _cache_of(root)
    if own is not None and own.exists():
        _remove(own)


def kept_bytes(root: Path) -> int:
    """Return the bytes of what was kept of a graph."""
    own, total = _cache_of(root), 0
    for file in own.rglob("*.arrow") if own is not None else ():
        with contextlib.suppress(OSError):  # an append removes it just now
            total += file.stat(follow_symlinks=False).st_size
    return total


def _cache_of(root: Path) -> Path | None:
    """Return the folder of a graph in the user's cache."""
    cache = user_cache("merged")
    name = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:_STATE]
    return None if cache is None else cache / name


def _make_room(own: Path, root: Path, state: Path) -> None:
    """Make the folder of a graph; remove its other states, and graphs that are gone."""
    own.mkdir(exist_ok=True)
    (own / _PATH).write_text(str(root.resolve()))
    for other in own.iterdir():
        if other.is_dir() and other != state:
            ownership.remove_cached(other, _STATE_NAME, own.parent)
    for graph in own.parent.iterdir():
        with contextlib.suppress(OSError):
            if not (Path((graph / _PATH).read_text()) / MANIFEST_NAME).exists():
                _remove(graph)


def _remove(graph: Path) -> None:
    """Remove what is kept of a graph: its states, and the file that names it."""
    for state in graph.iterdir():
        ownership.remove_cached(state, _STATE_NAME, graph.parent)
    ownership.remove_cached(graph / _PATH, re.compile(_PATH), graph.parent)
    ownership.remove_empty(graph)


def _one_row(arrays: dict[str, npt.NDArray[Any]]) -> pa.RecordBatch:
    """Return arrays as an index file has them: one row of lists, without copies."""
    lists = [
        pa.LargeListArray.from_arrays(
            pa.array(np.array([0, len(values)], dtype=np.int64)),
            pa.Array.from_buffers(
                pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)]
            ),
        )
        for values in arrays.values()
    ]
    return pa.record_batch(lists, names=list(arrays))
