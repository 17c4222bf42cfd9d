"""The files by which tasks of an ingest tell each other: whole or not there, named by task.

All lie in one folder that every machine sees. A task that runs twice writes the same files
again, under other names that become theirs when they are complete.
"""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.arrays import load_array, npy_pieces
from graphsys.storage.manifest import FileEntry
from graphsys.storage.scratch import Scratch
from graphsys.storage.transaction import Transaction


def save(path: Path, values: "npt.NDArray[Any] | pa.Array") -> None:
    """Write an array."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    if isinstance(values, np.ndarray):
        with new.open("wb") as stream:
            stream.writelines(npy_pieces(values))
    else:
        batch = pa.record_batch([values], ["value"])
        with new.open("wb") as stream, pa.ipc.new_file(stream, batch.schema) as writer:
            writer.write(batch)
    new.replace(path)


def load(path: Path, *, is_arrow: bool = False) -> Any:
    """Return what :func:`save` wrote, mapped."""
    if not is_arrow:
        return load_array(path)
    return pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0).column(0)


@contextmanager
def own_scratch(folder: Path, memory_bytes: int) -> Iterator[Scratch]:
    """Have temporary space for one try of a task."""
    own = folder / f"try-{uuid.uuid4().hex}"
    own.mkdir(parents=True)
    try:
        yield Scratch(own, memory_bytes)
    finally:
        shutil.rmtree(own, ignore_errors=True)


class TaskFiles(Transaction):
    """The files of a generation that one task writes; who began it commits them.

    Args:
        path: The graph's folder.
        generation: Number of the generation.
        scratch_dir: Folder of temporary files.
    """

    # not the base's: it begins a generation
    def __init__(self, path: Path, generation: int, scratch_dir: Path) -> None:
        self.path, self.generation, self.scratch_dir = path, generation, scratch_dir
        self.files = []

    def add_file(self, path: str, batch: pa.RecordBatch | pa.Table) -> FileEntry:
        """Write a file as the base does; it is there when it is complete."""
        new = os.path.relpath(self.scratch_dir / f"new-{uuid.uuid4().hex}", self.path)
        written = super().add_file(new, batch)
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        (self.path / new).replace(target)
        self.files.remove(written)
        entry = replace(written, path=path)
        self.files.append(entry)
        return entry
