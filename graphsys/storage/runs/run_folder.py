"""The folder of a training run: who may write it, what it was trained on, atomic commits.

A checkpoint's files are written under names that were never used, then flushed; replacing
``run.json`` makes them the checkpoint, and only then do the old ones go. A run that is to
replace another is built beside it (``run_replacement``).
"""

import contextlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from graphsys.core.arrays import load_array
from graphsys.core.checksums import PREFIX, file_digest
from graphsys.core.config import difference
from graphsys.core.errors import (
    ConfigError,
    CorruptStoreError,
    OutputExistsError,
    TrainingFailedError,
)
from graphsys.core.notes import note
from graphsys.core.plain_files import read_json
from graphsys.core.threads import map_in_order
from graphsys.storage.checked_files import CheckedFiles
from graphsys.storage.folder_kinds import CONFIG_NAME as CONFIG_NAME
from graphsys.storage.folder_kinds import RUN_NAME as RUN_NAME
from graphsys.storage.folder_kinds import require_outside
from graphsys.storage.locks import LOCK_NAME, WriterLock
from graphsys.storage.manifest import checksum_of
from graphsys.storage.objects.copies import location_of
from graphsys.storage.reader import Graph
from graphsys.storage.remote.fetching import run_folder as local_run
from graphsys.storage.runs.run_replacement import (
    begin_replacement,
    drop_staged,
    finish_replacement,
    is_staged,
    put_back,
    replace_run,
    staging_path,
    where_it_is,
)
from graphsys.storage.transaction import disk_errors

GNN: Final = "gnn"
"""What runs of graph neural networks say they are; those of embeddings say nothing."""
FORMAT_VERSION: Final = 2
"""From 2 on ``run.json`` has a checksum of its own, and one for every file."""
_ADVICE: Final = "train the run again, or go on from a copy of a preserved checkpoint"


def is_gnn_run(path: str | os.PathLike[str]) -> bool:
    """Tell whether a folder, or a location, holds a run of a graph neural network."""
    folder = local_run(path)
    try:
        content = read_json(folder / RUN_NAME)
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("kind") == GNN


def describe_graph(graph: Graph) -> dict[str, Any]:
    """Return what identifies a graph: where it lies, what it holds, its span of time."""
    window = {"window": list(graph.window)} if graph.window else {}
    return window | {
        "path": location_of(graph.path),
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
        ConfigError: There is nothing to resume, or it lies in another run or a graph.
    """
    require_outside(out)
    is_run = (out / RUN_NAME).exists()
    if resume:
        if not is_run and not is_staged(out):
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


def folder_to_train(out: Path, *, resume: bool, overwrite: bool) -> Path:
    """Return the folder that a training writes to: the run's, or one that replaces it."""
    if resume:
        return staging_path(out) if is_staged(out) else out
    return staging_path(out) if overwrite and (out / RUN_NAME).exists() else out


@contextlib.contextmanager
def writing(out: Path, *, resume: bool, overwrite: bool) -> Iterator[Path]:
    """Hold the folder of a run for a training, and give the folder to write to.

    That is another one where a run is to be replaced; it takes the place of ``out`` when
    the block ends without an error.

    Raises:
        StoreBusyError: Another training writes there.
        StorageFullError: A folder cannot be made or moved.
        OutputExistsError: The folder to build a replacement in is somebody else's.
    """
    put_back(out)
    with locked(out):
        finish_replacement(out)
        path = folder_to_train(out, resume=resume, overwrite=overwrite)
        if path == out:
            yield out
            return
        if not resume:
            begin_replacement(out)
        with locked(path):
            try:
                yield path
            except BaseException:
                if not (path / RUN_NAME).exists():
                    with contextlib.suppress(OSError):
                        drop_staged(out)
                raise
            if (out / RUN_NAME).exists():
                replace_run(path, out)


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


def read_content(path: Path, newest: int = FORMAT_VERSION) -> dict[str, Any]:
    """Return what ``run.json`` says, whose own checksum was compared.

    Args:
        path: The run's folder.
        newest: The newest version of the format that is understood.

    Raises:
        FileNotFoundError: There is none.
        CorruptStoreError: It cannot be understood, was altered, or is newer.
    """
    file = path / RUN_NAME
    try:
        content = read_json(file)
        if not isinstance(content, dict):
            raise ValueError("expected an object")
        version = int(content["format_version"])
        if version > newest:
            raise ValueError(f"format {version} is newer than {newest}")
        stated = content.pop("checksum", None)
        if version > 1 and stated != checksum_of(content):
            raise ValueError("it does not match its own checksum")
        if not isinstance(content["graph"]["path"], str):
            raise ValueError("graph.path is missing")
    except FileNotFoundError as err:
        raise FileNotFoundError(where_it_is(path)) from err
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as err:
        raise CorruptStoreError(
            f"{file} cannot be read: {err}; train again or install a newer graphsys"
        ) from err
    return content


def write_content(path: Path, content: Mapping[str, Any]) -> None:
    """Replace ``run.json`` by what a checkpoint says, with a checksum of its own.

    Raises:
        StorageFullError: It cannot be written; the old one stays.
        TrainingFailedError: The folder, or a file of the checkpoint, is gone.
    """
    require_there(path, content["files"], content["checksums"])
    whole = {**content, "format_version": FORMAT_VERSION}
    whole["checksum"] = checksum_of(whole)
    write_durably(path / RUN_NAME, (json.dumps(whole, indent=1) + "\n").encode())


def require_there(path: Path, files: Mapping[str, int], checksums: Iterable[str]) -> None:
    """Check that nobody took away a run's folder, or files of it, while it is trained.

    Args:
        path: The run's folder.
        files: Bytes of files that should be there, by name.
        checksums: Names of files that have checksums, such as ``config.toml``.

    Raises:
        TrainingFailedError: Something is gone or was cut; the message says what.
    """
    for name in dict.fromkeys((*checksums, *files)):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            size = (path / name).stat().st_size
            if size == files.get(name, size):
                continue
        raise TrainingFailedError(
            f"{path / name} was removed or changed while the run was trained; leave the "
            "folder alone and train again"
        )


def check_files(
    path: Path,
    files: Mapping[str, int],
    checksums: Mapping[str, Any],
    *,
    content: bool = True,
) -> None:
    """Check that the files of a checkpoint are there in full, and are what was written.

    Their content is compared once: it is remembered which files were (``checked_files``).

    Args:
        path: The run's folder.
        files: Their bytes, by name.
        checksums: ``xxh3:`` and the checksum of all bytes, by name; in runs from before
            version 2 the CRC-32 of the array in the file, an int.
        content: Whether to compare checksums too.

    Raises:
        CorruptStoreError: One is missing, or has another size or content.
    """
    for name, size in files.items():
        try:
            found = (path / name).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            raise CorruptStoreError(
                f"{path / name} is missing from the checkpoint; {_ADVICE}"
            ) from None
        if found != size:
            raise CorruptStoreError(
                f"{path / name} has {found} bytes, {RUN_NAME} says {size}; {_ADVICE}"
            )
    if content and files and not checksums:
        note(
            f"{path} is a run from before files had checksums: only their sizes were "
            "compared"
        )
    if content:
        _check_content(path, checksums)


def _check_content(path: Path, checksums: Mapping[str, Any]) -> None:
    known = CheckedFiles(path)
    unknown = [name for name in checksums if not known.is_known(name, str(checksums[name]))]

    def look(name: str) -> tuple[str, str | int]:
        return name, _found_checksum(path / name, checksums[name])

    for name, found in map_in_order(look, unknown):
        if found != checksums[name]:
            raise CorruptStoreError(
                f"{path / name} has the checksum {_shown(found)}, {RUN_NAME} says "
                f"{_shown(checksums[name])}; {_ADVICE}"
            )
        known.remember(name, str(checksums[name]))


def _found_checksum(file: Path, stated: str | int) -> str | int:
    try:
        if isinstance(stated, str):
            return file_digest(file)
        array = load_array(file)
        return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    except (OSError, ValueError, EOFError) as err:
        raise CorruptStoreError(f"{file} cannot be read: {err}; {_ADVICE}") from err


def _shown(checksum: str | int) -> str:
    text = checksum if isinstance(checksum, str) else f"{checksum:08x}"
    return text.removeprefix(PREFIX)


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


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; one that is gone has none."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
