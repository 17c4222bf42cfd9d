"""Where one try of a task of an ingest writes: temporary space, and files of the graph.

A task that runs twice writes the same files again, under other names that become theirs
when they are complete.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from graphsys.core import ownership
from graphsys.distributed.shared_files import SharedFiles
from graphsys.storage.manifest import FileEntry
from graphsys.storage.scratch import Scratch
from graphsys.storage.transaction import Transaction


@contextmanager
def own_scratch(folder: Path, memory_bytes: int) -> Iterator[Scratch]:
    """Have temporary space for one try of a task."""
    own = ownership.make_folder(folder / f"try-{uuid.uuid4().hex}")
    try:
        yield Scratch(own, memory_bytes)
    finally:
        ownership.remove_folder(own)


class TaskFiles(Transaction):
    """The files of a generation that one task writes; who began it commits them.

    Args:
        store: The graph's folder.
        generation: Number of the generation.
        scratch_dir: Folder of temporary files.
    """

    # not the base's: it begins a generation
    def __init__(self, store: SharedFiles, generation: int, scratch_dir: Path) -> None:
        self.path, self.generation, self.scratch_dir = store.path, generation, scratch_dir
        self.files = []
        self._store = store

    def file(self, path: str) -> Path:
        """Return where a file is that a task wrote, here to be mapped."""
        return self._store.local(path)

    def add_file(self, path: str, batch: pa.RecordBatch | pa.Table) -> FileEntry:
        """Write a file as the base does; it is there when it is complete."""
        new = os.path.relpath(self.scratch_dir / f"new-{uuid.uuid4().hex}", self.path)
        written = super().add_file(new, batch)
        self._store.add(path, self.path / new)
        self.files.remove(written)
        entry = replace(written, path=path)
        self.files.append(entry)
        return entry
