"""Verify a graph, a run or a model hub's folder of one, here or on an object store.

Of an object store every object is fetched anew, into a folder that goes again: a copy that
was found whole says nothing about what lies there now.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from graphsys.core.caller_warnings import note
from graphsys.core.errors import CorruptStoreError, InvalidGraphError
from graphsys.core.ownership import claimed_objects
from graphsys.core.progress import SILENT, Progress
from graphsys.core.remote.locations import Location, Place, is_remote
from graphsys.core.threads import map_in_order
from graphsys.storage.folder_kinds import CONFIG_NAME, RUN_NAME
from graphsys.storage.manifest import MANIFEST_NAME, Manifest
from graphsys.storage.objects.copies import Fetched, copy_of
from graphsys.storage.objects.object_store import ObjectStore
from graphsys.storage.objects.staging import staging
from graphsys.storage.remote.fetching import run_files
from graphsys.storage.remote.hub_folder import (
    SETTINGS_NAME,
    WEIGHTS_NAME,
    is_hub_folder,
    unpacked_anew,
)
from graphsys.storage.verify.run import verify_run
from graphsys.storage.verify.verify import VerifyReport, verify

_LEFT: Final = (
    "is no part of it: a killed writer left it, or one is writing now; the next writer "
    "removes it"
)
_STRANGE: Final = "is not listed; remove it"
_THREADS: Final = 8


def verify_folder(place: Place, progress: Progress = SILENT) -> VerifyReport:
    """Read a whole graph or run and report everything that is wrong with it.

    Args:
        place: Its folder or location.
        progress: Told of what is fetched, hashed and checked.

    Raises:
        InvalidGraphError: there is neither.
        ObjectStoreError: the storage fails.
    """
    if is_remote(place):
        return _verify_remote(Location.parse(place), progress)
    path = Path(place)
    if is_hub_folder(path) and not (path / MANIFEST_NAME).exists():
        return _verify_hub(path, progress)
    is_run = (path / RUN_NAME).exists() and not (path / MANIFEST_NAME).exists()
    return (verify_run if is_run else verify)(path, progress)


def _verify_hub(path: Path, progress: Progress) -> VerifyReport:
    """Check the run that a hub's folder holds, whose numbers are all in one file."""
    try:
        with unpacked_anew(path) as folder:
            problems = verify_run(folder, progress).problems
    except CorruptStoreError as err:
        return VerifyReport.of({SETTINGS_NAME: str(err).removeprefix(f"{path} ")})
    texts = (RUN_NAME, CONFIG_NAME)
    of_texts = [f"{it.file} in it {it.what}" for it in problems if it.file in texts]
    of_tensors = [f"{it.file} in it {it.what}" for it in problems if it.file not in texts]
    found = {SETTINGS_NAME: of_texts, WEIGHTS_NAME: of_tensors}
    return VerifyReport.of(
        {name: "; ".join(whats) for name, whats in found.items() if whats}
    )


def _verify_remote(location: Location, progress: Progress) -> VerifyReport:
    store = ObjectStore(location)
    sizes = store.sizes()
    if not sizes:
        store.require_bucket()
        raise InvalidGraphError(f"{location} holds no graph and no run; expected one")
    head_name = RUN_NAME if RUN_NAME in sizes else MANIFEST_NAME
    with staging(location) as folder:
        folder.mkdir()
        head = store.read(head_name)
        if head is None:
            problems = {head_name: "is missing"}
            return VerifyReport.of(problems | _unlisted(store, sizes, set(), head_name))
        try:
            files = _files(location, folder, head_name, head)
        except (CorruptStoreError, InvalidGraphError) as err:
            what = " ".join(str(err).split()).removeprefix(f"{folder}/{head_name}")
            return VerifyReport.of({head_name: what.lstrip(": ")})
        _fetch(store, folder, files, sizes, progress)
        _drop_damaged_copies(location, head, folder, head_name)
        report = (verify_run if head_name == RUN_NAME else verify)(folder, progress)
        keys = {file.name: file.key for file in files}
        found = {keys.get(it.file, it.file): it.what for it in report.problems}
        strays = _unlisted(store, sizes, set(keys.values()), head_name)
        return VerifyReport.of(found | strays)


def _drop_damaged_copies(
    location: Location, head: bytes, folder: Path, head_name: str
) -> None:
    """Look at the copies in the cache too, which are what is used."""
    if (copy := copy_of(location, head)) is None:
        return
    if head_name == RUN_NAME:
        files = run_files(location, head)[1]
    else:
        entries = Manifest.read(folder).files
        files = [
            Fetched(it.path, it.path, it.bytes, it.xxh3 or it.checksum) for it in entries
        ]
    for file in files:
        if copy.drop_damaged(file):
            note(f"a copy of {location}/{file.key} in the cache was damaged and is dropped")


def _files(location: Location, folder: Path, head_name: str, head: bytes) -> list[Fetched]:
    """Write graph.json or run.json, and return the files that it lists."""
    if head_name == RUN_NAME:
        text, files = run_files(location, head)
        (folder / head_name).write_bytes(text)
        return files
    (folder / head_name).write_bytes(head)
    manifest = Manifest.read(folder)
    (folder / f"gen-{manifest.generation}").mkdir()
    return [Fetched(it.path, it.path, it.bytes) for it in manifest.files]


def _fetch(
    store: ObjectStore,
    folder: Path,
    files: list[Fetched],
    sizes: Mapping[str, int],
    progress: Progress,
) -> None:
    """Fetch what is there of the files, as it is."""
    there = [file for file in files if file.key in sizes]
    progress.stage("fetch", sum(sizes[file.key] for file in there), "bytes")

    def fetch(file: Fetched) -> Fetched:
        target = folder / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # removed right now: it is missing
            store.download(file.key, target)
        return file

    for file in map_in_order(fetch, there, num_threads=_THREADS):
        progress.advance(sizes[file.key])


def _unlisted(
    store: ObjectStore, sizes: Mapping[str, int], listed: set[str], head_name: str
) -> dict[str, str]:
    """Return the objects that nothing names; those of a writer by their folder."""
    problems: dict[str, str] = {}
    current = {PurePosixPath(name).parts[0] for name in listed}
    claims = claimed_objects(sizes, store.read)
    for name in sizes:
        first = PurePosixPath(name).parts[0]
        if name in listed or name == head_name:
            continue
        if first in current and name in claims.values():
            continue  # a writer was killed as it had committed
        is_left = first in claims and first not in current
        problems[first if is_left else name] = _LEFT if is_left else _STRANGE
    return problems
