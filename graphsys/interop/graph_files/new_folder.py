"""A folder of files that appears whole, and replaces only one that was made here."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from graphsys.core import ownership
from graphsys.core.errors import ConfigError, OutputExistsError
from graphsys.storage.folder_kinds import kind_of, require_outside
from graphsys.storage.transaction import disk_errors, sync_folder


def require_free(out: Path, *, overwrite: bool) -> None:
    """Refuse a folder that may not be written, before any work is done.

    Raises:
        ConfigError: It is a graph or a run, lies in one, is no folder, or holds files that
            no export wrote.
        OutputExistsError: It exists, with files in it, and ``overwrite`` is off.
    """
    require_outside(out)
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise ConfigError(f"{out} is no folder; name a new one")
    if not out.exists() or not any(out.iterdir()):
        return
    if (kind := kind_of(out)) is not None:
        raise ConfigError(f"{out} is a {kind}; name a new folder")
    listed = ownership.claimed_names(out)
    if not ownership.is_claimed(out):
        raise ConfigError(f"{out} holds files that no export wrote; name a new folder")
    if others := ownership.strangers(out, lambda it: it in listed or _is_claim(it)):
        raise ConfigError(
            f"{out} holds {others[0]!r}, which no export wrote; name a new folder"
        )
    if not overwrite:
        raise OutputExistsError(f"{out} exists; replace it with --overwrite")


@contextlib.contextmanager
def new_folder(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a folder to write files in; at the end it takes its place.

    A hidden file in it lists what was written, so that a later export may replace it. What
    a killed writer of the same folder left beside it goes.

    Args:
        out: The folder to make, or to replace.
        overwrite: Replace one that an export made.

    Raises:
        ConfigError: As :func:`require_free`.
        OutputExistsError: As :func:`require_free`.
        StorageFullError: It cannot be written; the old one stays.
    """
    require_free(out, overwrite=overwrite)
    with disk_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        _sweep(out)
        draft = ownership.make_folder(ownership.draft_of(out))
        lock = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            ownership.claim(draft)
            yield draft
            ownership.unclaim(draft)
            names = sorted(ownership.files_below(draft))
            ownership.claim(draft, names, moved_to=out.name)
            for name in names:
                _sync(draft / name)
            require_free(out, overwrite=overwrite)
            _move(draft, out)
        finally:
            ownership.remove_folder(draft)
            os.close(lock)


def _move(draft: Path, out: Path) -> None:
    aside = ownership.draft_of(out)
    if out.exists():
        claims = {it.name for it in out.iterdir() if _is_claim(it.name)}
        ownership.claim(out, ownership.claimed_names(out) | claims, moved_to=aside.name)
        out.rename(aside)
    draft.rename(out)
    sync_folder(out.parent)
    ownership.remove_claimed(aside, lambda name: False)
    ownership.remove_empty(aside)


def _is_claim(name: str) -> bool:
    """Return whether a name is of a claim, be it for another name of the folder."""
    return ownership.CLAIM.fullmatch(name) is not None


def _sweep(out: Path) -> None:
    """Remove the unfinished folders of writers that are dead: nobody holds their locks."""
    for path in out.parent.iterdir():
        is_left = ownership.is_draft(path.name, out.name)
        if not is_left or path.is_symlink() or not path.is_dir():
            continue
        with contextlib.suppress(OSError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                ownership.remove_claimed(path, lambda name: True)
            finally:
                os.close(lock)


def _sync(file: Path) -> None:
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
