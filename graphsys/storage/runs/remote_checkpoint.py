"""Trainings on an object store: the folder they write to, and the last checkpoint.

That is the run that is committed, or what a training on a cluster put after that and then
died: its workers put each checkpoint below the ``gen-<n>/`` that would have become the
run's, ``run.json`` last.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from graphsys.core.errors import ConfigError, CorruptStoreError
from graphsys.core.plain_files import parse_json
from graphsys.core.remote.locations import Location, Place, is_remote
from graphsys.storage.folder_kinds import CONFIG_NAME, RUN_NAME
from graphsys.storage.manifest import check_path
from graphsys.storage.objects.copies import Copy, Fetched
from graphsys.storage.objects.object_store import ObjectStore
from graphsys.storage.objects.staging import staging
from graphsys.storage.remote.fetching import fetch_all, read_head, run_files
from graphsys.storage.remote.publishing import generation_folder, own_number, published

_HEAD: Final = re.compile(rf"gen-(\d{{1,20}})/{re.escape(RUN_NAME)}")


@dataclass(frozen=True, slots=True)
class RemoteCheckpoint:
    """A checkpoint on an object store.

    Attributes:
        location: The run's location.
        text: Its run.json, as runs have it in folders.
        files: Its other files.
    """

    location: Location
    text: bytes
    files: list[Fetched]

    def bring(self, folder: Path, *, head_only: bool = False) -> None:
        """Have it in a folder, whose run it is then.

        Args:
            folder: The folder.
            head_only: Bring the settings, and none of what was trained.

        Raises:
            CorruptStoreError: A file is missing, or not what was written.
            ObjectStoreError: The storage fails.
        """
        folder.mkdir(parents=True, exist_ok=True)
        copy = Copy(folder, self.location)
        for file in self.files:
            if file.name == CONFIG_NAME:
                copy.fetch(file)
        if not head_only:
            fetch_all(copy, [file for file in self.files if not copy.has(file)])
        (folder / RUN_NAME).write_bytes(self.text)


def last_checkpoint(place: Place) -> RemoteCheckpoint | None:
    """Return the last checkpoint of a location; None where there is none.

    Raises:
        CorruptStoreError: Its run.json is damaged.
        ConfigError: There is no such bucket, or it may not be read.
        ObjectStoreError: The storage fails.
    """
    location = Location.parse(place)
    head, committed = read_head(location, RUN_NAME), -1
    if head is not None:
        text, files = run_files(location, head)
        folders = {file.key.partition("/")[0] for file in files}
        committed = max((_number(f"{it}/{RUN_NAME}") for it in folders), default=-1)
    numbers = {_number(name) for name in ObjectStore(location).sizes()}
    for number in sorted((it for it in numbers if it > committed), reverse=True):
        if (found := _left_by(location, number)) is not None:  # later ones had begun only
            return found
    return None if head is None else RemoteCheckpoint(location, text, files)


@contextmanager
def settings_folder(place: Place) -> Iterator[Path]:
    """Give a folder with the settings of a run's last checkpoint: the run's, if it is here.

    Raises:
        ConfigError: There is no run.
    """
    if not is_remote(place):
        yield Path(place)
        return
    with staging(Location.parse(place)) as folder:
        require_checkpoint(place).bring(folder, head_only=True)
        yield folder


def require_checkpoint(place: Place) -> RemoteCheckpoint:
    """Return the last checkpoint of a location.

    Raises:
        ConfigError: There is none.
    """
    found = last_checkpoint(place)
    if found is None:
        raise ConfigError(f"{place} holds no run to resume; train without --resume")
    return found


def _number(name: str) -> int:
    found = _HEAD.fullmatch(name)
    return int(found[1]) if found else -1


def _left_by(location: Location, number: int) -> RemoteCheckpoint | None:
    """Return what a training put that was never committed; None if it had begun only."""
    name = f"gen-{number}/{RUN_NAME}"
    text = ObjectStore(location).read(name)
    if text is None:  # removed right now, by one that was committed
        return None
    where = Path(f"{location}/{name}")
    try:
        said: dict[str, Any] = parse_json(text)
        sizes, checksums = said["files"], said["checksums"]
        files = [
            Fetched(it, f"gen-{number}/{it}", int(size), str(checksums.get(it, "")))
            for it, size in sizes.items()
        ]
    except (ValueError, LookupError, TypeError, AttributeError) as err:
        raise CorruptStoreError(f"{where} cannot be read: {err}; train again") from err
    for file in files:
        check_path(file.name, where)
    if not files:
        return None
    config = Fetched(CONFIG_NAME, f"gen-{number}/{CONFIG_NAME}", None)
    return RemoteCheckpoint(location, text, [config, *files])


@contextlib.contextmanager
def run_target(out: Path, cluster: str | None, how: dict[str, Any]) -> Iterator[Path]:
    """Give the folder that a training writes to.

    Of a location on an object store that is a folder here, which is uploaded and committed
    when the block ends without an error.

    Args:
        out: What the user named.
        cluster: Where it is trained.
        how: Arguments of ``train``; nothing is left to overwrite in a folder of our own,
            and ``through`` is added where machines do not share it. By ``resume`` the last
            checkpoint is in the folder, whoever made it.

    Raises:
        ConfigError: it is trained by processes of torchrun, or nothing is to be resumed.
        OutputExistsError: a run is there and may not be replaced.
        StoreBusyError: another process wrote there meanwhile.
        ObjectStoreError: the storage fails.
    """
    if not is_remote(out):
        yield out
        return
    is_shared = cluster is not None and not cluster.startswith("local:")
    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise ConfigError(
            f"{out} is on an object store, and processes of torchrun share the folder of "
            "the run they train; train to a folder that all of them mount, or by --cluster"
        )
    overwrite, how["overwrite"] = how["overwrite"], False
    if how["resume"] and how["dry_run"]:
        with settings_folder(out) as folder:
            yield folder
        return
    number = own_number() if is_shared else None
    if number is not None:
        how["through"] = generation_folder(out, number)
    replaces = overwrite or how["resume"]
    with published(out, RUN_NAME, overwrite=replaces, number=number) as folder:
        if how["resume"]:  # looked for now: what is committed from here on is not replaced
            require_checkpoint(out).bring(folder)
        yield folder
