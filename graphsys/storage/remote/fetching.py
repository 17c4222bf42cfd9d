"""Opening what is on an object store: a graph file by file, a run as a whole.

Of a graph only ``graph.json`` is fetched when it is opened. A file comes when it is first
mapped, and small ones of its folder with it: the partitions of a table are mostly read one
after the other, and a request each takes longer than their bytes. What is computed on the
graph never asks for features, a training never for indexes that it does not use.
"""

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from graphsys.core.caller_warnings import note
from graphsys.core.checksums import digest
from graphsys.core.errors import ConfigError, CorruptStoreError, InvalidGraphError
from graphsys.core.plain_files import parse_json
from graphsys.core.remote.locations import Location, Place, is_remote, new_progress
from graphsys.core.threads import map_in_order
from graphsys.storage.folder_kinds import RUN_NAME
from graphsys.storage.manifest import MANIFEST_NAME, FileEntry, Manifest, check_path
from graphsys.storage.objects.copies import (
    Copy,
    Fetched,
    cache_errors,
    copy_at,
    copy_of,
    make_room,
    open_copy,
)
from graphsys.storage.objects.object_store import ObjectStore
from graphsys.storage.remote import hub_folder

STORED: Final = "stored"
"""What run.json of an object store says besides: the run's files and their folder."""
_FOLDER: Final = re.compile(r"gen-\d{1,20}")
_TOGETHER_BYTES: Final = 256 << 20
_THREADS: Final = 8  # they wait for answers


def graph_folder(place: Place) -> Path:
    """Return the folder to map of a graph, wherever it lies.

    Raises:
        InvalidGraphError: the location holds no graph.
        CorruptStoreError: its graph.json is damaged.
        ConfigError: there is no such bucket, or this user may not read it.
        ObjectStoreError: the storage fails.
    """
    if not is_remote(place):
        return Path(place)
    location = Location.parse(place)
    head = read_head(location, MANIFEST_NAME)
    if head is None:
        raise InvalidGraphError(
            f"{location} has no {MANIFEST_NAME}; expected what `graphsys ingest ... -o "
            f"{location}` writes"
        )
    copy = open_copy(location, head)
    _write(copy.folder / MANIFEST_NAME, head)
    manifest = Manifest.read(copy.folder)
    (copy.folder / f"gen-{manifest.generation}").mkdir(exist_ok=True)
    return copy.folder


def read_head(location: Location, name: str) -> bytes | None:
    """Return ``graph.json`` or ``run.json`` of a location, None where there is none.

    Raises:
        ConfigError: there is no such bucket, or this user may not read it.
    """
    store = ObjectStore(location)
    head = store.read(name)
    if head is None:
        store.require_bucket()
    return head


class LazyFiles:
    """The files of a graph's copy, fetched when they are first mapped."""

    def __init__(self, copy: Copy, entries: Iterable[FileEntry]) -> None:
        self._copy = copy
        self._files = {it.path: _fetched(it) for it in entries}
        self._here: set[str] = set()
        self._folders: dict[str, list[str]] = {}
        for path in self._files:
            self._folders.setdefault(str(PurePosixPath(path).parent), []).append(path)

    @classmethod
    def of(cls, folder: Path, entries: Iterable[FileEntry]) -> "LazyFiles | None":
        """Return the files of a copy; None for a folder that is none."""
        copy = copy_at(folder)
        return None if copy is None else cls(copy, entries)

    def bring(self, path: str) -> None:
        """Have a file here, and small ones beside it.

        Raises:
            CorruptStoreError: it is missing, or not what was written.
            ObjectStoreError: the storage fails.
            ConfigError: the cache has no room.
        """
        if path in self._here or path not in self._files:
            return
        beside = [self._files[it] for it in self._folders[str(PurePosixPath(path).parent)]]
        missing = [it for it in beside if not self._copy.has(it)]
        if sum(it.bytes or 0 for it in missing) > _TOGETHER_BYTES:
            missing = [it for it in missing if it.name == path]
        fetch_all(self._copy, missing)
        self._here.add(path)

    def bring_anew(self, path: str) -> bool:
        """Have a file here again whose copy was damaged; false where it is not.

        Raises:
            CorruptStoreError: it is missing, or not what was written, there too.
            ObjectStoreError: the storage fails.
            ConfigError: the cache has no room.
        """
        if path not in self._files or not self._copy.drop_damaged(self._files[path]):
            return False
        note(
            f"a copy of {self._copy.location}/{path} in the cache was damaged; fetched anew"
        )
        fetch_all(self._copy, [self._files[path]])
        return True


def fetch_all(copy: Copy, files: Sequence[Fetched]) -> None:
    """Fetch files, several at a time, and tell how far it is."""
    if not files:
        return
    total = sum(it.bytes or 0 for it in files)
    make_room(copy, total)
    progress = new_progress()
    progress.stage(f"fetch {copy.location}", total, "bytes")

    def fetch(file: Fetched) -> Fetched:
        copy.fetch(file)
        return file

    for file in map_in_order(fetch, files, num_threads=_THREADS):
        progress.advance(file.bytes or 0)
    progress.close()


def _fetched(entry: FileEntry) -> Fetched:
    return Fetched(entry.path, entry.path, entry.bytes, entry.xxh3 or entry.checksum)


def run_folder(place: Place) -> Path:
    """Return the folder of a run, wherever it lies; of an object store all files come.

    Raises:
        ConfigError: the location holds no run, there is no such bucket, or it may not be
            read.
        CorruptStoreError: its run.json is damaged, or a file.
        ObjectStoreError: the storage fails.
    """
    if not is_remote(place):
        folder = Path(place)
        return hub_folder.unpacked(folder) if hub_folder.is_hub_folder(folder) else folder
    location = Location.parse(place)
    head = read_head(location, RUN_NAME)
    if head is None:
        raise ConfigError(
            f"{location} holds no run (no {RUN_NAME}); expected what `graphsys train ... "
            f"-o {location}` writes"
        )
    copy = open_copy(location, head)
    text, files = run_files(location, head)
    fetch_all(copy, [it for it in files if not copy.has(it)])
    _write(copy.folder / RUN_NAME, text)
    return copy.folder


def bring_run_anew(folder: Path) -> bool:
    """Have files of a run here again whose copies were damaged; false where none was.

    Raises:
        CorruptStoreError: One is not what was written on the storage, too.
        ObjectStoreError: The storage fails.
    """
    if (copy := copy_at(folder)) is None:
        return False
    head = read_head(copy.location, RUN_NAME)
    if head is None or copy_of(copy.location, head) is None:
        return False
    _, files = run_files(copy.location, head)
    damaged = [file for file in files if copy.drop_damaged(file)]
    if not damaged:
        return False
    note(f"copies of {copy.location} in the cache were damaged; fetched anew")
    return run_folder(str(copy.location)) == folder


def run_files(location: Location, head: bytes) -> tuple[bytes, list[Fetched]]:
    """Return what run.json says on a local disk, and the files of the run.

    Args:
        location: Where the run lies.
        head: Its run.json: of an upload, or of a run's folder that was copied there.

    Raises:
        CorruptStoreError: it cannot be understood, or names a file outside of the run.
    """
    where = Path(f"{location}/{RUN_NAME}")
    try:
        content = parse_json(head)
        stored = content.pop(STORED, None)
        if stored is None:
            stated = {**dict.fromkeys(content["files"]), **(content.get("checksums") or {})}
            found = ObjectStore(location).sizes()
            files = [
                Fetched(name, name, size, _text(stated.get(name)))
                for name, size in found.items()
                if name != RUN_NAME
            ]
            text = head
        else:
            if stored["checksum"] != digest(_plain(stored)):
                raise ValueError(f"{STORED} does not match its checksum")
            if not _FOLDER.fullmatch(stored["folder"]):
                raise ValueError(f"{STORED}.folder is none")
            files = [
                Fetched(name, f"{stored['folder']}/{name}", int(size), str(checksum))
                for name, (size, checksum) in stored["files"].items()
            ]
            text = run_text(content)
    except (ValueError, LookupError, TypeError, AttributeError) as err:
        raise CorruptStoreError(f"{where} cannot be read: {err}; train again") from err
    for file in files:
        check_path(file.name, where)
    return text, files


def with_files(text: bytes, folder: str, files: dict[str, tuple[int, str]]) -> bytes:
    """Return run.json as an object store has it: what it says, and where its files are.

    Args:
        text: Of the run's folder.
        folder: Below the location, in which the files are.
        files: Bytes and checksum of each, by name.
    """
    stored: dict[str, Any] = {
        "folder": folder,
        "files": {k: [*v] for k, v in files.items()},
    }
    stored["checksum"] = digest(_plain(stored))
    return run_text({**json.loads(text), STORED: stored})


def run_text(content: dict[str, Any]) -> bytes:
    """Return the text of a run.json, as runs are written."""
    return (json.dumps(content, indent=1) + "\n").encode()


def _plain(stored: dict[str, Any]) -> bytes:
    body = {key: value for key, value in stored.items() if key != "checksum"}
    return json.dumps(body, sort_keys=True).encode()


def _text(checksum: Any) -> str:
    return checksum if isinstance(checksum, str) else ""


@cache_errors()
def _write(file: Path, content: bytes) -> None:
    """Give a small file its content in one step; others may do the same."""
    if file.exists() and file.read_bytes() == content:
        return
    new = file.with_name(f"{file.name}.{os.getpid()}.part")
    new.write_bytes(content)
    new.replace(file)
