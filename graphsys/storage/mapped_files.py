"""The listed files of a store, mapped; each is looked at when it is first asked for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from graphsys.core.errors import CorruptStoreError
from graphsys.storage.first_look import FirstLook
from graphsys.storage.manifest import FileEntry, Manifest

_UNREADABLE = (
    pa.ArrowException, OSError, ValueError, LookupError, TypeError, AttributeError,
)  # fmt: skip


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

    @contextmanager
    def reading(
        self, path: str, check: Callable[[pa.RecordBatch], None]
    ) -> Iterator[pa.RecordBatch]:
        """Map a file; the first time, check that it is what was written.

        Raises:
            CorruptStoreError: it is not, or cannot be read.
        """
        try:
            source = pa.memory_map(str(self._root / path), "rb")
            whole = source.read_buffer()
            batch = pa.ipc.open_file(pa.BufferReader(whole)).get_batch(0)
            batch.validate()
            self._first_look.require(self.entries[path], whole, batch, check)
            yield batch
        except _UNREADABLE as err:
            raise CorruptStoreError(
                f"{path} of graph {self._root} cannot be read ({err}); "
                "run `graphsys verify`, then ingest again"
            ) from err

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
