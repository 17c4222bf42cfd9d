"""The folder of a training run: who may write it, what it was trained on, atomic commits.

A checkpoint's files are written under names that were never used, then flushed; replacing
``run.json`` makes them the checkpoint, and only then do the old ones go.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from graphsys.core.config import difference
from graphsys.core.errors import ConfigError, CorruptStoreError, OutputExistsError
from graphsys.storage.locks import LOCK_NAME, WriterLock
from graphsys.storage.reader import Graph
from graphsys.storage.transaction import disk_errors

RUN_NAME: Final = "run.json"
CONFIG_NAME: Final = "config.toml"
GNN: Final = "gnn"
"""What runs of graph neural networks say they are; those of embeddings say nothing."""


def is_gnn_run(path: str | os.PathLike[str]) -> bool:
    """Tell whether a folder holds a run of a graph neural network."""
    try:
        content = json.loads((Path(path) / RUN_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("kind") == GNN


def describe_graph(graph: Graph) -> dict[str, Any]:
    """Return what identifies a graph: where it lies and what it holds."""
    return {
        "path": str(graph.path.resolve()),
        "generation": graph.generation,
        "fingerprint": graph.fingerprint,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "partitions": {name: graph.num_partitions(name) for name in graph.node_types},
    }


def is_same_graph(stated: dict[str, Any], graph: Graph) -> bool:
    """Tell whether a graph holds what the one of a run held, wherever it lies."""
    return not difference(stated, describe_graph(graph) | {"path": stated["path"]})


def require_same_graph(stated: dict[str, Any], graph: Graph, path: Path) -> None:
    """Check that a graph is the one that a run was trained on.

    Raises:
        ConfigError: It is another; the message says in what.
    """
    changes = difference(stated, describe_graph(graph) | {"path": stated["path"]})
    if changes:
        raise ConfigError(
            f"the run {path} was trained on another graph ({'; '.join(changes)}); give "
            "the graph it was trained on, or train a new run"
        )


def require_free(out: Path, *, resume: bool, overwrite: bool) -> None:
    """Check that the output may be written.

    Raises:
        OutputExistsError: A run is there and neither option was given, or other files.
        ConfigError: There is nothing to resume.
    """
    is_run = (out / RUN_NAME).exists()
    if resume:
        if not is_run and not (staging_path(out) / RUN_NAME).exists():
            raise ConfigError(f"{out} holds no run to resume; train without --resume")
        return
    if is_run and not overwrite:
        raise OutputExistsError(
            f"{out} holds a run; continue it with --resume or replace it with --overwrite"
        )
    names = {p.name for p in out.iterdir()} if out.is_dir() else set()
    if out.is_dir() and not names and not overwrite:
        raise OutputExistsError(
            f"{out} already exists, an empty folder; remove it or pass --overwrite"
        )
    names -= {LOCK_NAME, CONFIG_NAME, f"{RUN_NAME}.new", f"{CONFIG_NAME}.new"}
    if not is_run and (names or (out.exists() and not out.is_dir())):
        raise OutputExistsError(f"{out} exists and is no run; choose another output")


def staging_path(out: Path) -> Path:
    """Return where a run is built that will replace an existing one."""
    return out.with_name(out.name + ".partial")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a folder's writer lock; a folder made for it goes if nothing came of it.

    Raises:
        StoreBusyError: Another training writes there.
        StorageFullError: The folder cannot be made.
    """
    is_new = not path.exists()
    with disk_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        lock = WriterLock(path)
    try:
        yield
    finally:
        lock.release()
        if is_new:
            with contextlib.suppress(OSError):
                path.rmdir()


def check_files(path: Path, files: dict[str, int]) -> None:
    """Check that every file of a checkpoint is there in full.

    Raises:
        CorruptStoreError: One is missing or has another size.
    """
    for name, size in files.items():
        try:
            found = (path / name).stat().st_size
        except FileNotFoundError:
            raise CorruptStoreError(
                f"{path / name} is missing from the checkpoint; train the run again"
            ) from None
        if found != size:
            raise CorruptStoreError(
                f"{path / name} has {found} bytes, {RUN_NAME} says {size}; train the "
                "run again"
            )


def write_durably(file: Path, data: bytes | memoryview) -> None:
    """Replace a file atomically and durably.

    Raises:
        StorageFullError: It cannot be written; the old one stays.
    """
    new = file.with_name(file.name + ".new")
    with disk_errors(file):
        try:
            with new.open("wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            new.replace(file)
        finally:
            new.unlink(missing_ok=True)
        sync_folder(file.parent)


def replace_run(new: Path, out: Path) -> None:
    """Put a finished run in the place of the old one, which goes.

    Raises:
        StorageFullError: It cannot be moved.
    """
    old = out.with_name(out.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    with disk_errors(out):
        out.rename(old)
        new.rename(out)
        sync_folder(out.parent)
    shutil.rmtree(old, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; one that is gone has none."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
