"""Checkpoints that stay: copies of a run's state at some epochs, by hard links.

A preserved checkpoint is a run of its own in ``RUN/checkpoints/<epoch>``: the same files
(no file of a checkpoint is ever changed, so links will do), ``config.toml`` and
``run.json``. It can be opened, evaluated, exported and warm started from like any run.
"""

import contextlib
import dataclasses
import os
import shutil
from pathlib import Path

from graphsys.core import ownership
from graphsys.core.errors import ConfigError, cut_list
from graphsys.embedding import run as runs
from graphsys.storage.locks import is_pinned
from graphsys.storage.runs import run_folder
from graphsys.storage.runs.run_replacement import part_of
from graphsys.storage.transaction import disk_errors, sync_file

FOLDER = "checkpoints"


def checkpoint_path(path: Path, epoch: int) -> Path:
    """Return the folder of the checkpoint preserved after so many epochs."""
    return path / FOLDER / str(epoch)


def preserved_epochs(path: Path) -> list[int]:
    """Return after how many epochs a run has preserved checkpoints, ascending."""
    folder = path / FOLDER
    names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isdigit())


def find_checkpoint(path: Path, epoch: int) -> Path:
    """Return the folder of a preserved checkpoint.

    Raises:
        ConfigError: It was not preserved; the message says which were.
    """
    found = checkpoint_path(path, epoch)
    if not (found / runs.RUN_NAME).exists():
        known = cut_list(preserved_epochs(path), 20) or "none"
        raise ConfigError(
            f"run {path} has no checkpoint of epoch {epoch}; preserved: {known} (they are "
            "kept every preserve_every epochs)"
        )
    return found


def preserve(path: Path, state: runs.EmbeddingRunState) -> None:
    """Keep the committed checkpoint of a run beside it, atomically.

    Args:
        path: The run's folder.
        state: Its current checkpoint, as committed, at the end of an epoch.

    Raises:
        StorageFullError: The disk is full; nothing is left behind.
    """
    target = checkpoint_path(path, state.epoch)
    if target.exists():  # a resumed run comes by again
        return
    new = target.with_name(target.name + ".new")
    _drop(new)
    try:
        with disk_errors(target):
            new.mkdir(parents=True)
            ownership.claim(new)
            _link_files(path, new, state.files)
            shutil.copyfile(path / runs.CONFIG_NAME, new / runs.CONFIG_NAME)
            run_folder.write_content(new, dataclasses.asdict(state))
            new.rename(target)
    except BaseException:
        _drop(new)
        raise


def restore(path: Path, state: runs.EmbeddingRunState, epoch: int) -> None:
    """Put the files of a preserved checkpoint in the place of the current ones.

    Args:
        path: The run's folder.
        state: Its state, whose files are replaced; the caller commits it.
        epoch: Which checkpoint.

    Raises:
        ConfigError: There is no such checkpoint.
        CorruptStoreError: A file of it is missing or damaged.
    """
    kept = find_checkpoint(path, epoch)
    before = runs.read_state(kept)
    runs.check_files(kept, before)
    with disk_errors(path):
        _link_files(kept, path, before.files)
    config = {n: c for n, c in state.checksums.items() if n == runs.CONFIG_NAME}
    state.files, state.checksums = dict(before.files), {**before.checksums, **config}


def prune(path: Path, keep: set[int]) -> None:
    """Remove preserved checkpoints of other epochs, and what a kill left of one."""
    for epoch in preserved_epochs(path):
        if epoch not in keep:
            _drop(checkpoint_path(path, epoch))
    for litter in (path / FOLDER).glob("*.new"):
        _drop(litter)
    ownership.remove_empty(path / FOLDER)


def _drop(kept: Path) -> None:
    """Remove a checkpoint, or one that was begun: what it lists, and is named like it."""
    is_part = part_of(kept)
    is_ours = (kept / runs.RUN_NAME).exists() or not ownership.strangers(kept, is_part)
    with contextlib.suppress(OSError):
        if is_ours and kept.is_dir() and not kept.is_symlink() and not is_pinned(kept):
            ownership.claim(kept)  # run.json goes among the first
            ownership.remove_claimed(kept, is_part)


def _link_files(source: Path, target: Path, names: dict[str, int]) -> None:
    """Link files, or copy them where the file system has no links."""
    for name in names:
        new = target / name
        if new.exists():  # no name is given twice: it is the same file
            continue
        new.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source / name, new)
        except OSError:
            shutil.copyfile(source / name, new)
            sync_file(new)
