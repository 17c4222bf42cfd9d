"""The folder of a training run: who may write it, what it was trained on, atomic commits.

A checkpoint's files are written under names that were never used, then flushed; replacing
``run.json`` makes them the checkpoint, and only then do the old ones go. A run that is to
replace another is built beside it (``run_replacement``).
"""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from graphsys.core import ownership
from graphsys.core.config import difference
from graphsys.core.errors import (
    ConfigError,
    CorruptStoreError,
    OutputExistsError,
    TrainingFailedError,
)
from graphsys.core.plain_files import read_json
from graphsys.storage import transaction
from graphsys.storage.folder_kinds import CONFIG_NAME as CONFIG_NAME
from graphsys.storage.folder_kinds import RUN_NAME as RUN_NAME
from graphsys.storage.folder_kinds import is_run_part, require_outside
from graphsys.storage.locks import LOCK_NAME, WriterLock
from graphsys.storage.manifest import checksum_of
from graphsys.storage.objects.copies import location_of
from graphsys.storage.reader import GraphReader
from graphsys.storage.remote.fetching import run_folder as local_run
from graphsys.storage.runs.run_check import check_files as check_files
from graphsys.storage.runs.run_pins import forget, remove_left, replacing
from graphsys.storage.runs.run_replacement import (
    begin_replacement,
    drop_staged,
    finish_replacement,
    is_staged,
    part_of,
    put_back,
    real_place,
    replace_run,
    staging_path,
    where_it_is,
)
from graphsys.storage.transaction import disk_errors

GNN: Final = "gnn"
"""What runs of graph neural networks say they are; those of embeddings say nothing."""
FORMAT_VERSION: Final = 2
"""From 2 on ``run.json`` has a checksum of its own, and one for every file."""


def is_gnn_run(path: str | os.PathLike[str]) -> bool:
    """Tell whether a folder, or a location, holds a run of a graph neural network."""
    folder = local_run(path)
    try:
        content = read_json(folder / RUN_NAME)
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("kind") == GNN


def describe_graph(graph: GraphReader) -> dict[str, Any]:
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


def is_same_graph(stated: dict[str, Any], graph: GraphReader) -> bool:
    """Tell whether a graph holds what the one of a run held, wherever it lies."""
    return not difference(stated, describe_graph(graph) | {"path": stated["path"]})


def require_same_graph(stated: dict[str, Any], graph: GraphReader, path: Path) -> None:
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
    if out.is_dir() and not any(out.iterdir()) and not overwrite:
        raise OutputExistsError(
            f"{out} already exists, an empty folder; remove it or pass --overwrite"
        )
    if out.exists() and not out.is_dir():
        raise OutputExistsError(f"{out} exists and is no run; choose another output")
    if (found := _stranger(out)) is not None:
        if is_run:
            raise OutputExistsError(
                f"{out} holds {found!r}, which is no file of a run; move it away, or "
                "choose another output"
            )
        raise OutputExistsError(
            f"{out} exists and is no run; choose another output (it holds {found!r})"
        )


def _stranger(path: Path) -> str | None:
    """Return the name of something in a folder that no run and no killed training left."""
    if not path.is_dir():
        return None
    if (path / RUN_NAME).exists() or ownership.is_claimed(path):
        return next(iter(ownership.strangers(path, part_of(path))), None)
    return next((it for it in sorted(os.listdir(path)) if it != LOCK_NAME), None)


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
        OutputExistsError: The folder to build a replacement in is somebody else's; or a
            run that was put back now is not to be replaced.
    """
    out = real_place(out)
    put_back(out)
    with locked(out):
        finish_replacement(out)
        if (out / RUN_NAME).exists() and not (resume or overwrite):
            raise OutputExistsError(
                f"{out} holds a run; continue it with --resume or replace it with "
                "--overwrite"
            )
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
            if (path / RUN_NAME).exists():  # ``out`` may have been removed meanwhile
                replace_run(path, out)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a folder's writer lock; a folder made for it goes if nothing came of it.

    Until there is a ``run.json`` the folder is claimed, so that what a kill leaves of it is
    known to be ours.

    Raises:
        StoreBusyError: Another training writes there.
        OutputExistsError: It holds files that are no run's.
        StorageFullError: The folder cannot be made.
    """
    is_new = not path.exists()
    with disk_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        lock = WriterLock(path)
    try:
        if not (path / RUN_NAME).exists():
            if (found := _stranger(path)) is not None:
                raise OutputExistsError(
                    f"{path} exists and is no run; choose another output (it holds "
                    f"{found!r})"
                )
            with disk_errors(path):
                ownership.claim(path)
        yield
    finally:
        if (path / RUN_NAME).exists():
            ownership.unclaim(path)
        elif ownership.is_claimed(path):
            with contextlib.suppress(OSError):
                names = [it for it in ownership.files_below(path) if is_run_part(it)]
                ownership.remove_listed(path, (it for it in names if it != LOCK_NAME))
        forget(path)
        lock.release()
        remove_left(path)
        if is_new:
            ownership.remove_empty(path)


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
    with replacing(path):
        write_durably(path / RUN_NAME, (json.dumps(whole, indent=1) + "\n").encode())
    ownership.unclaim(path)  # it lists its files itself


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


def write_durably(file: Path, data: bytes | memoryview) -> None:
    """Replace a file atomically and durably.

    Raises:
        StorageFullError: It cannot be written; the old one stays.
    """
    new = ownership.draft_of(file)
    with disk_errors(file):
        try:
            with new.open("xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            new.replace(file)
        finally:
            ownership.remove_draft(new)
        sync_folder(file.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; one that is gone has none."""
    with contextlib.suppress(FileNotFoundError):
        transaction.sync_folder(folder)
