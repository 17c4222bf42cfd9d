"""A run that replaces another: built beside it, then exchanged with it in one step.

The new run of ``OUT`` is built in ``.OUT.graphsys-next``, in which the file ``.replaces``
says so; a folder of that name without the file is somebody else's and stays untouched. When
the new run is complete, the two folders change names by one call of the system
(``renameat2`` with ``RENAME_EXCHANGE``), so that at every moment a whole run is at ``OUT``.
Then the old one and the file go. A kill leaves one of two things, and the next training of
``OUT`` sees which: ``.replaces`` beside ``OUT`` is a training to go on with or to drop;
``.replaces`` in ``OUT`` says that the exchange was made and only the old run is to go.

Where the file system cannot exchange, the old run is first moved to ``.OUT.graphsys-old``;
a kill right then leaves no run at ``OUT``, and the next training puts the old one back.
"""

import contextlib
import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from graphsys.core import ownership
from graphsys.core.caller_warnings import note
from graphsys.core.errors import OutputExistsError
from graphsys.core.plain_files import read_json
from graphsys.storage.folder_kinds import RUN_NAME, is_run_part
from graphsys.storage.transaction import disk_errors, sync_folder

STAGED_NAME: Final = ".replaces"
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
_UNSUPPORTED: Final = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


def real_place(out: Path) -> Path:
    """Return where a run is: what a link leads to, and a name for ``.``."""
    is_named = out.name not in ("", "..") and not out.is_symlink()
    return out if is_named else Path(os.path.realpath(out))


def staging_path(out: Path) -> Path:
    """Return where a run is built that will replace an existing one."""
    out = real_place(out)
    return out.with_name(f".{out.name}.graphsys-next")


def is_staged(out: Path) -> bool:
    """Return whether a run that is to replace another was begun and not completed."""
    staged = staging_path(out)
    return (staged / STAGED_NAME).exists() and (staged / RUN_NAME).exists()


def put_back(out: Path) -> None:
    """Put the run back that a kill left aside, where folders cannot be exchanged."""
    aside = _aside_path(out)
    if not out.exists() and (aside / RUN_NAME).exists() and ownership.is_claimed(aside):
        with contextlib.suppress(FileNotFoundError):  # another training did
            aside.rename(out)  # the claim names another folder from now on
            note(f"{out}: a training was killed as it replaced this run, which is back")


def finish_replacement(out: Path) -> None:
    """Remove the old run where a kill came right after the exchange; under the lock.

    Raises:
        StorageFullError: It cannot be removed.
    """
    if (out / STAGED_NAME).exists():
        with disk_errors(out):
            _drop_old(out)


def where_it_is(out: Path) -> str:
    """Say where a run is that a kill left beside its place; nothing where none is."""
    aside = _aside_path(out)
    if (aside / RUN_NAME).exists():
        return f"; a killed training left the run before at {aside}: rename it"
    if is_staged(out):
        return f"; {staging_path(out)} is to replace it: go on with --resume"
    return ""


def begin_replacement(out: Path) -> Path:
    """Make the folder for a run that will replace ``out``; drop one that was not completed.

    Returns:
        The folder.

    Raises:
        OutputExistsError: A folder of that name is somebody else's.
        StorageFullError: It cannot be made.
    """
    staged = staging_path(out)
    is_ours = (staged / STAGED_NAME).exists() or ownership.is_claimed(staged)
    if staged.exists() and not is_ours and any(staged.iterdir()):
        raise OutputExistsError(
            f"{staged}, where the new run would be built, exists and is none of ours; move "
            "it away"
        )
    with disk_errors(staged):
        if (staged / RUN_NAME).exists():
            note(
                f"a training that was to replace {out} had not been completed; it is "
                "dropped (--resume would have gone on with it)"
            )
            ownership.remove_listed(staged, [RUN_NAME])
        drop_staged(out)
        if staged.exists():
            found = next(ownership.files_below(staged), "a folder")
            raise OutputExistsError(
                f"{staged}, where the new run would be built, holds {found}, which is none "
                "of ours; move it away"
            )
        staged.mkdir(parents=True)
        ownership.claim(staged)
        (staged / STAGED_NAME).write_text(
            f"This run replaces {out.name} beside it when it is complete. Go on with "
            f"`graphsys train ... -o {out.name} --resume`, or remove this folder.\n"
        )
        sync_folder(staged)
        sync_folder(staged.parent)
    return staged


def drop_staged(out: Path) -> None:
    """Remove a run that was to replace ``out``: what says that it is ours goes last."""
    staged = staging_path(out)
    if not (staged / STAGED_NAME).exists():
        ownership.remove_claimed(staged, part_of(staged))
        ownership.remove_empty(staged)
        return
    is_part = part_of(staged)
    names = [it for it in ownership.files_below(staged) if is_part(it)]
    ownership.remove_listed(staged, (it for it in names if it != STAGED_NAME))
    ownership.prune(staged)
    ownership.remove_listed(staged, [STAGED_NAME])
    ownership.remove_empty(staged)


def part_of(run: Path) -> Callable[[str], bool]:
    """Return what tells which names in a run's folder are of files of the run."""
    listed: set[str] = set()
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        listed.update(map(str, read_json(run / RUN_NAME)["files"]))
    return lambda name: name in listed or is_run_part(name)


def replace_run(new: Path, out: Path) -> None:
    """Put a complete run, begun by :func:`begin_replacement`, in the place of the old one.

    Raises:
        StorageFullError: It cannot be moved; the old one stays.
        OutputExistsError: A folder is in the way that is somebody else's.
    """
    with disk_errors(out):
        ownership.unclaim(new)
        ownership.claim(out, moved_to=new.name)
        if not _exchange(new, out):
            aside = _aside_path(out)
            if aside.exists():
                raise OutputExistsError(f"{aside} is in the way; move it away")
            ownership.claim(out, moved_to=aside.name)
            out.rename(aside)
            new.rename(out)
        sync_folder(out.parent)
        _drop_old(out)


def _drop_old(out: Path) -> None:
    """Remove the run that was replaced, then the file that says that it can go."""
    staged, aside = staging_path(out), _aside_path(out)
    if (staged / RUN_NAME).exists():  # the file in ``out`` says whose that is
        ownership.claim(staged)
    for old in (staged, aside):
        ownership.remove_claimed(old, part_of(old))
        ownership.remove_empty(old)
        left = next(ownership.files_below(old), None) if old.exists() else None
        if left is not None:
            note(f"{old} was not removed: it holds {left}, which is no file of a run")
    ownership.remove_listed(out, [STAGED_NAME])
    sync_folder(out)


def _aside_path(out: Path) -> Path:
    out = real_place(out)
    return out.with_name(f".{out.name}.graphsys-old")


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders in one step; false where the system cannot."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    names = os.fsencode(one), os.fsencode(other)
    if call(_AT_FDCWD, names[0], _AT_FDCWD, names[1], ctypes.c_uint(_RENAME_EXCHANGE)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(other))
