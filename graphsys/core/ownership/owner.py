"""Is this ours? Every removal of files, folders and objects asks here, none is elsewhere.

What is removed was proven to be ours by one of these, and everything else stays:

- This process made it: a folder known by its inode (:func:`make_folder`), or a draft, whose
  name has random digits (:func:`draft_of`).
- A manifest lists it: ``graph.json``, ``run.json`` and ``checkpoint.json`` name every file
  of the state that they commit (:func:`remove_listed`).
- A claim lies in its folder (:func:`claim`): a file ``.graphsys-<16 random digits>``, whose
  text repeats the digits and names the folder. A copy of the folder under another name has
  none. Folders have claims while no manifest lists their files: those of a writer, killed
  or not, and those of a state that was replaced while somebody reads it. Of them goes what
  has the name of a part of a graph or a run, or what the claim lists
  (:func:`remove_claimed`).

A finished graph or run has no claim in it: its manifest is the proof, in those from before
there were claims too. On object stores all of this is the same, with objects.
"""

import contextlib
import fcntl
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

from graphsys.core.plain_files import read_plain

CLAIM: Final = re.compile(r"\.graphsys-([0-9a-f]{16})")
"""Names of claims."""
_MOST_DELETED: Final = 1000  # by one request
_CUT_SHORT: Final[dict[str, Any]] = {"files": []}
"""What an empty claim says: its writer was killed before the text, so it lists nothing."""
_made: set[tuple[int, int]] = set()
"""Devices and inodes of the folders that this process made."""


# ---- claims


def new_claim(folder_name: str, listed: Iterable[str] | None = None) -> tuple[str, bytes]:
    """Return name and text of a claim.

    Args:
        folder_name: Last component of the folder that it lies in.
        listed: Names in the folder that are ours; None for all that its parts are named
            like.
    """
    token = secrets.token_hex(8)
    said: dict[str, Any] = {"graphsys": token, "folder": folder_name}
    if listed is not None:
        said["files"] = sorted(listed)
    text = json.dumps(said) + "\n"
    return f".graphsys-{token}", text.encode()


def is_claim(name: str, text: bytes, folder_name: str) -> bool:
    """Return whether a file, by its name and text, is a claim of a folder."""
    return _parsed(name, text, folder_name) is not None


def _parsed(name: str, text: bytes, folder_name: str) -> dict[str, Any] | None:
    match = CLAIM.fullmatch(name)
    with contextlib.suppress(ValueError, RecursionError):
        said = json.loads(text)
        if match is not None and isinstance(said, dict):
            is_right = (
                said.get("graphsys") == match[1] and said.get("folder") == folder_name
            )
            return said if is_right else None
    return None


def claim(
    folder: Path, listed: Iterable[str] | None = None, *, moved_to: str | None = None
) -> None:
    """Say that a folder, or what is listed of it, is ours, unless it says so.

    Where that cannot be written, a folder of :func:`make_folder` goes if it is empty.

    Args:
        folder: The folder, just made, or proven to be ours.
        listed: As for :func:`new_claim`.
        moved_to: The name that it will have, where the claim is to hold from then on.

    Raises:
        OSError: It cannot be written.
    """
    found = _claims(folder)
    if moved_to is None and any(said is not _CUT_SHORT for said in found.values()):
        return
    name, text = new_claim(moved_to or folder.name, listed)
    # Only a file that this call makes: an old one's text is not to be written over.
    file = os.open(
        folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644
    )
    try:
        os.write(file, text)
    except OSError:
        os.unlink(folder / name)
        _remove_empty_made(folder)  # which nobody could tell from a user's
        raise
    finally:
        os.close(file)
    for cut, said in found.items():
        if said is _CUT_SHORT:
            cut.unlink(missing_ok=True)


def is_claimed(folder: Path) -> bool:
    """Return whether a claim of a folder lies in it."""
    return bool(_claims(folder))


def claimed_names(folder: Path) -> set[str]:
    """Return the names that the claims of a folder list."""
    lists = [said.get("files") for said in _claims(folder).values()]
    return {str(name) for files in lists if isinstance(files, list) for name in files}


def unclaim(folder: Path) -> None:
    """Take back a claim, when a manifest lists what is there; never raises."""
    for file in _claims(folder):
        with contextlib.suppress(OSError):
            file.unlink()


def _claims(folder: Path) -> dict[Path, dict[str, Any]]:
    """Return the claims of a folder, and what they say."""
    found = {}
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if CLAIM.fullmatch(name):
                with contextlib.suppress(OSError, ValueError):
                    text = read_plain(folder / name)
                    said = _parsed(name, text, folder.name) if text else _CUT_SHORT
                    if said is not None:
                        found[folder / name] = said
    return found


def remove_claimed(folder: Path, is_part: Callable[[str], bool]) -> bool:
    """Remove what is ours of a claimed folder, the claim last; never raises.

    Args:
        folder: The folder; without a claim nothing of it goes, and it only where this
            process made it and it is empty.
        is_part: Whether a name in it, with forward slashes, is of a file of ours.

    Returns:
        Whether the folder is gone.
    """
    claims = _claims(folder)
    if folder.is_symlink() or not claims:
        return _remove_empty_made(folder)
    lists = [said.get("files") for said in claims.values()]
    names = {str(name) for files in lists for name in files or ()}
    is_listed = all(isinstance(it, list) for it in lists)
    own = names if is_listed else {it for it in files_below(folder) if is_part(it)}
    with contextlib.suppress(OSError):
        remove_listed(folder, own - {file.name for file in claims})
        if not is_listed:
            prune(folder)
        for file in claims:
            file.unlink(missing_ok=True)
        remove_empty(folder)
        if folder.is_dir() and not os.listdir(folder):
            claim(folder, ())  # in use or not to be removed now: a later call tries again
    return not folder.exists()


def strangers(folder: Path, is_part: Callable[[str], bool]) -> list[str]:
    """Return the names of files in a folder that are no part of what is ours, in order."""
    own = {file.name for file in _claims(folder)}
    return sorted(it for it in files_below(folder) if it not in own and not is_part(it))


def files_below(folder: Path) -> Iterator[str]:
    """Yield the names of all that lies in a folder and is none, links among it."""
    for here, folders, files in os.walk(folder):
        at = os.path.relpath(here, folder)
        links = [name for name in folders if os.path.islink(os.path.join(here, name))]
        for name in (*files, *links):
            yield PurePosixPath(at, name).as_posix()


# ---- what a manifest lists


def remove_listed(root: Path, names: Iterable[str]) -> None:
    """Remove files that a manifest lists or listed, and the folders that are empty then.

    Args:
        root: The folder of the graph or the run, which stays.
        names: The files, relative to it. What leads out of it is left alone.

    Raises:
        OSError: One cannot be removed.
    """
    # A link may have been put in place of a folder since: nothing behind it is removed.
    inside = os.path.realpath(root)
    folders: set[Path] = set()
    for name in names:
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or not pure.parts:
            continue
        file = root.joinpath(*pure.parts)
        parent = os.path.realpath(file.parent)
        if parent != inside and not parent.startswith(os.path.join(inside, "")):
            continue
        if not file.is_dir() or file.is_symlink():
            file.unlink(missing_ok=True)
        folders.update(it for it in file.parents if root in it.parents)
    # Deepest first, as a folder goes only when those in it have gone.
    for folder in sorted(folders, key=lambda it: -len(it.parts)):
        remove_empty(folder)


def prune(folder: Path) -> None:
    """Remove the empty folders below a folder of ours; never raises."""
    for here, _, _ in os.walk(folder, topdown=False):
        if Path(here) != folder:
            remove_empty(Path(here))


def remove_empty(folder: Path) -> None:
    """Remove a folder that is empty; never raises."""
    with contextlib.suppress(OSError):
        folder.rmdir()


# ---- what this process made


def draft_of(file: Path) -> Path:
    """Return a name beside a file for what will replace it: of this writer alone."""
    return file.with_name(f".{file.name}.graphsys-{secrets.token_hex(8)}.new")


def is_draft(name: str, of: str | None = None) -> bool:
    """Return whether a name is of a draft, of a certain file's."""
    stem = r".+" if of is None else re.escape(of)
    return re.fullmatch(rf"\.{stem}\.graphsys-[0-9a-f]{{16}}\.new", name) is not None


def remove_draft(file: Path) -> None:
    """Remove a draft, if it is there.

    Raises:
        OSError: It cannot be removed.
    """
    if is_draft(file.name) and not file.is_dir():
        file.unlink(missing_ok=True)


@contextlib.contextmanager
def held_alone(path: Path) -> Iterator[None]:
    """Hold the lock of a file or folder, as who works on it does while it lives.

    Raises:
        OSError: Another process holds it, or it is gone.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY if path.is_dir() else os.O_RDWR
    lock = os.open(path, flags | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(lock)


def remove_made(file: Path) -> None:
    """Remove a file that this process gave its name, in a folder of ours, if it is there.

    Raises:
        OSError: It cannot be removed.
    """
    file.unlink(missing_ok=True)


def make_folder(folder: Path) -> Path:
    """Make a folder, and those above it, which this process may remove with all in it.

    Where it is interrupted, there is none.

    Raises:
        FileExistsError: There is one.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    is_new = not os.path.lexists(folder)
    try:
        folder.mkdir()
        return _known(folder)
    except KeyboardInterrupt:
        if is_new:
            remove_empty(folder)
        raise


def temporary(prefix: str = "graphsys-", parent: Path | None = None) -> Path:
    """Make a folder for temporary files, which :func:`remove_folder` removes."""
    return _known(Path(tempfile.mkdtemp(prefix=prefix, dir=parent)))


@contextlib.contextmanager
def temporary_folder(
    prefix: str = "graphsys-", parent: Path | None = None
) -> Iterator[Path]:
    """Have a folder for temporary files, which goes at the end with all in it."""
    folder = temporary(prefix, parent)
    try:
        yield folder
    finally:
        remove_folder(folder)


def remove_folder(folder: Path) -> None:
    """Remove a folder that this process made, with all in it; any other stays.

    Never raises: what cannot be removed is left to the next one that looks.
    """
    with contextlib.suppress(OSError):
        # By device and inode: another folder may have taken the name meanwhile.
        if (key := _key(folder)) in _made:
            _made.discard(key)
            shutil.rmtree(folder, ignore_errors=True)


def _remove_empty_made(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        if _key(folder) in _made:
            remove_empty(folder)
            return not folder.exists()
    return False


def _known(folder: Path) -> Path:
    _made.add(_key(folder))
    return folder


def _key(folder: Path) -> tuple[int, int]:
    found = os.stat(folder, follow_symlinks=False)
    return found.st_dev, found.st_ino


# ---- the user's cache


def remove_cached(path: Path, name: re.Pattern[str], root: Path | None) -> None:
    """Remove a file or folder of the user's cache, which can be made again.

    Nothing goes that lies elsewhere or has another name: ``$GRAPHSYS_CACHE`` may be a
    folder with files of the user's. What cannot be removed is left.

    Args:
        path: The file or folder.
        name: What its name has to be.
        root: The folder of the cache that it lies in, as ``user_cache`` gave it.
    """
    if root is None or not name.fullmatch(path.name) or path.is_symlink():
        return
    inside = os.path.join(os.path.realpath(root), "")
    if not os.path.join(os.path.realpath(path.parent), "").startswith(inside):
        return
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


# ---- objects


def remove_objects(client: Any, bucket: str, keys: Iterable[str]) -> None:
    """Remove objects that were proven to be ours: listed, claimed, or put by this process.

    Args:
        client: Of boto3.
        bucket: The bucket.
        keys: Keys of the objects.
    """
    named = [{"Key": key} for key in keys]
    for begin in range(0, len(named), _MOST_DELETED):
        some = named[begin : begin + _MOST_DELETED]
        client.delete_objects(Bucket=bucket, Delete={"Objects": some, "Quiet": True})


def claimed_objects(
    names: Iterable[str], read: Callable[[str], bytes | None]
) -> dict[str, str]:
    """Return the claims of folders among objects, by folder.

    Args:
        names: Names of objects: ``FOLDER/...``.
        read: Returns what an object holds.
    """
    found = {}
    for name in names:
        folder, _, rest = name.rpartition("/")
        if CLAIM.fullmatch(rest):
            text = read(name)
            if text is not None and is_claim(rest, text, folder.rpartition("/")[2]):
                found[folder] = name
    return found
