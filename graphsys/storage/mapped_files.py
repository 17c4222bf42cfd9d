"""The listed files of a store, mapped; each is looked at when it is first asked for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import CorruptStoreError
from graphsys.graph.file_columns import FileColumn
from graphsys.storage.checked_files import FirstLook
from graphsys.storage.manifest import FileEntry, Manifest
from graphsys.storage.remote.fetching import LazyFiles

_UNREADABLE = (
    pa.ArrowException,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedFile:
    """A file as it is mapped.

    Attributes:
        path: The file.
        whole: All its bytes.
        batch: The record batch in it.
    """

    path: Path
    whole: pa.Buffer
    batch: pa.RecordBatch

    def place(self, values: npt.NDArray[Any]) -> FileColumn:
        """Return where a view of a column lies in the file."""
        begin = values.__array_interface__["data"][0] - self.whole.address
        return FileColumn(path=self.path, begin=begin, length=len(values))


class MappedFiles:
    """Maps files of a graph.

    Args:
        root: The graph's folder.
        manifest: What it lists.
        bounds: What files are checked against; of a store with deltas the manifest of
            before, so that an append does not make anybody look at all files again.
    """

    def __init__(self, root: Path, manifest: Manifest, bounds: Manifest) -> None:
        self._root = root
        self.entries: dict[str, FileEntry] = {e.path: e for e in manifest.files}
        self._first_look = FirstLook(root, bounds)
        self._remote = LazyFiles.of(root, manifest.files)

    @contextmanager
    def reading(
        self, path: str, check: Callable[[pa.RecordBatch], None]
    ) -> Iterator[pa.RecordBatch]:
        """Map a file and give its record batch: see :meth:`mapping`."""
        with self.mapping(path, check) as mapped:
            yield mapped.batch

    @contextmanager
    def mapping(
        self,
        path: str,
        check: Callable[[pa.RecordBatch], None],
        entry: FileEntry | None = None,
    ) -> Iterator[MappedFile]:
        """Map a file; the first time, check that it is what was written.

        Args:
            path: The file, relative to the graph's folder.
            check: Checks what it says; raises ValueError.
            entry: What is known of it, where the manifest does not list it.

        Raises:
            CorruptStoreError: it is not, or cannot be read.
        """
        if self._remote is not None:
            self._remote.bring(path)
        try:
            try:
                mapped = self._looked_at(path, check, entry)
            except _UNREADABLE:
                # The copy in the cache may be damaged while the object is whole: one more
                # try.
                if self._remote is None or not self._remote.bring_anew(path):
                    raise
                mapped = self._looked_at(path, check, entry)
            yield mapped
        except _UNREADABLE as err:
            raise CorruptStoreError(
                f"{path} of graph {self._root} cannot be read ({err}); "
                "run `graphsys verify`, then ingest again"
            ) from err

    def _looked_at(
        self, path: str, check: Callable[[pa.RecordBatch], None], entry: FileEntry | None
    ) -> MappedFile:
        source = pa.memory_map(str(self._root / path), "rb")
        whole = source.read_buffer()
        batch = pa.ipc.open_file(pa.BufferReader(whole)).get_batch(0)
        batch.validate()
        self._first_look.require(entry or self.entries[path], whole, batch, check)
        return MappedFile(path=self._root / path, whole=whole, batch=batch)

    def batch(self, path: str, check: Callable[[pa.RecordBatch], None]) -> pa.RecordBatch:
        """Return what a file holds; see :meth:`reading`."""
        with self.reading(path, check) as batch:
            return batch

    def is_listed(self, path: str, num_nodes: int) -> bool:
        """Return whether there is a file; one that holds nothing of any node need not be.

        Raises:
            CorruptStoreError: there should be one.
        """
        if num_nodes and path not in self.entries:
            raise CorruptStoreError(
                f"graph.json of graph {self._root} lists no {path}, which should have "
                f"the rows of {num_nodes} nodes; ingest again"
            )
        return path in self.entries
