"""Writing to an object store: made in a folder here, uploaded beside, committed by a put.

Files go below ``gen-<n>/``, where n is of this writer alone. Then one conditional put of
graph.json or run.json makes them the graph or the run: of several writers that began at
the same state, the storage lets one through, and the others remove what they uploaded. A
kill before the put leaves what was there before, and files that nothing names.

Who may remove those? Only what is ours goes: what the head listed, and what lies beside a
claim (``core/ownership``). There are no locks. But a writer reads the state before it
uploads anything. So all claimed files that lie there right before our put are of writers
that read a state from before it: they cannot commit any more, and their files can go.
"""

import contextlib
import dataclasses
import json
import re
import secrets
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from graphsys.core import ownership
from graphsys.core.checksums import file_digest
from graphsys.core.errors import (
    ConfigError,
    GraphsysError,
    ObjectStoreError,
    OutputExistsError,
    StoreBusyError,
)
from graphsys.core.plain_files import parse_json
from graphsys.core.remote.locations import Location, Place, new_progress
from graphsys.core.threads import map_in_order
from graphsys.storage.folder_kinds import RUN_NAME, is_generation_part, is_run_part
from graphsys.storage.locks import LOCK_NAME
from graphsys.storage.manifest import MANIFEST_NAME, Manifest
from graphsys.storage.objects.object_store import ObjectStore
from graphsys.storage.objects.s3_writer import S3Writer
from graphsys.storage.objects.staging import staging
from graphsys.storage.remote.fetching import STORED, with_files
from graphsys.storage.remote.surroundings import KINDS, require_outside

_GENERATION: Final = re.compile(r"gen-\d{1,20}")
_THREADS: Final = 4
_RANDOM_BITS: Final = 20


@contextmanager
def published(
    place: Place, head_name: str, *, overwrite: bool, number: int | None = None
) -> Iterator[Path]:
    """Give a folder that does not exist; what is there at the end is at ``place`` then.

    Args:
        place: A location of an object store.
        head_name: ``graph.json`` or ``run.json``.
        overwrite: Whether what is there may be replaced; it stays if anything fails.
        number: Of the generation, from :func:`own_number`, where others put files into
            its folder meanwhile: those of the right size are not uploaded again, and files
            of a graph need not be here; all others go at the end.

    Raises:
        OutputExistsError: something is there that may not be replaced.
        StoreBusyError: another process wrote there meanwhile.
        ConfigError: no such bucket, no right to write, or no storage to write to.
        MissingDependencyError: boto3 is not installed.
        ObjectStoreError: the storage fails.
    """
    location = Location.parse(place)
    publication = _Publication(location, head_name, number)
    publication.begin(overwrite=overwrite)
    if number is not None:  # others put files there from now on
        publication.claim()
    with staging(location) as folder:
        with publication.cleaned():
            yield folder
        if (folder / head_name).exists():
            publication.publish(folder)
        elif number is not None:  # a dry run leaves nothing
            publication.drop()


def own_number() -> int:
    """Return the number of a generation that no other writer has, and later is larger."""
    milliseconds = time.time_ns() // 1_000_000
    return (milliseconds << _RANDOM_BITS) + secrets.randbits(_RANDOM_BITS)


def generation_folder(place: Place, number: int) -> str:
    """Return the location of a generation's files."""
    return f"{Location.parse(place)}/gen-{number}"


@dataclass(slots=True)
class _Upload:
    """Files of a folder and the head that names them, as they are to be on the storage.

    Attributes:
        files: The files by name; others may have put them, then they need not be here.
        sizes: Their bytes.
        head: The head.
    """

    files: dict[str, Path]
    sizes: dict[str, int]
    head: bytes


class _Publication:
    """One writer of a location."""

    def __init__(self, location: Location, head_name: str, number: int | None) -> None:
        self._location, self._head_name = location, head_name
        self._is_shared = number is not None
        self._number = own_number() if number is None else number
        self._writer, self._store = S3Writer(location), ObjectStore(location)
        self._before: tuple[bytes, str] | None = None
        self._claim: str | None = None

    def begin(self, *, overwrite: bool) -> None:
        """Read the state that is to be replaced, before anything is uploaded."""
        here, kind = self._location, KINDS[self._head_name]
        self._before = self._writer.read(self._head_name)
        if self._before is not None and not overwrite:
            raise OutputExistsError(
                f"{here} already holds a {kind}; choose another output or pass --overwrite"
            )
        found = self._store.sizes()
        if not found:
            self._store.require_bucket()
        self._refuse_strange(found)
        require_outside(here)

    def claim(self) -> None:
        """Say that the generation's folder is ours, until the head lists its files.

        Raises:
            ObjectStoreError: the storage fails.
        """
        folder = f"gen-{self._number}"
        name, text = ownership.new_claim(folder)
        self._writer.put(f"{folder}/{name}", text)
        self._claim = f"{folder}/{name}"

    def drop(self) -> None:
        """Remove what this writer put, which nobody will commit."""
        self._remove_own(())

    def _refuse_strange(self, names: Collection[str], *, is_begun: bool = False) -> None:
        """Refuse to write beside objects that are no graph's or run's.

        What is named like a generation stays, whosever it is, where there is a graph or a
        run; or where this writer has begun, as another may have, meanwhile.
        """
        is_empty = self._before is None and not is_begun
        claims = ownership.claimed_objects(names, self._store.read) if is_empty else {}
        for name in sorted(names):
            folder, _, rest = name.partition("/")
            is_like = bool(rest) and _GENERATION.fullmatch(folder) is not None
            is_known = is_like and (not is_empty or folder in claims)
            if name != self._head_name and not is_known:
                kind = KINDS[self._head_name]
                if self._is_copied_run():
                    raise OutputExistsError(
                        f"{self._location} holds a {kind} that was copied there as a "
                        "folder, which is read but not written; copy it to a local folder "
                        "and work there, or choose another output"
                    )
                raise OutputExistsError(
                    f"{self._location} already exists: it holds {name!r}, which is no part "
                    f"of a {kind}; choose another output"
                )

    def _is_copied_run(self) -> bool:
        """Whether there is a run as folders have it: its head says nothing of objects."""
        if self._before is None or self._head_name == MANIFEST_NAME:
            return False
        try:
            return STORED not in json.loads(self._before[0])
        except (ValueError, TypeError):
            return False

    def publish(self, folder: Path) -> None:
        """Upload what is in a folder, and commit it."""
        make = _graph_upload if self._head_name == MANIFEST_NAME else _run_upload
        upload = make(folder, self._number)
        with self.cleaned(upload.files):
            if self._claim is None:
                self.claim()
            self._upload(upload.files, upload.sizes)
            left = self._others(upload.files)
        is_ours = self._commit(upload)
        if not is_ours:
            self._remove_own(upload.files)
            raise StoreBusyError(
                f"{self._location} was written by another process meanwhile, and stays as "
                "that wrote it; nothing of this command is kept: to replace it, run the "
                "command again with --overwrite"
            )
        folders = {name.partition("/")[0] for name in left} - {f"gen-{self._number}"}
        self._remove([*left, str(self._claim)], folders)

    @contextmanager
    def cleaned(self, files: Collection[str] = ()) -> Iterator[None]:
        """Remove what was put into the folder if the block fails.

        Unless workers put a checkpoint there, which names files: ``--resume`` goes on from
        it.

        Args:
            files: What this process puts.
        """
        try:
            yield
        except BaseException:
            if (files or self._is_shared) and not self._has_checkpoint():
                self._remove_own(files)
            raise

    def _has_checkpoint(self) -> bool:
        if not self._is_shared:
            return False
        try:
            head = self._store.read(f"gen-{self._number}/{self._head_name}")
            return head is not None and bool(json.loads(head)["files"])
        except (GraphsysError, ValueError, LookupError, TypeError):
            return True  # in doubt: if there is none, all goes with the next one committed

    def _upload(self, files: dict[str, Path], sizes: dict[str, int]) -> None:
        there = self._store.sizes() if self._is_shared else {}
        missing = [
            name
            for name, size in sizes.items()
            if there.get(name) != size and (files[name].exists() or not self._is_shared)
        ]
        progress = new_progress()
        progress.stage(
            f"upload {self._location}", sum(sizes[name] for name in missing), "bytes"
        )

        def send(name: str) -> str:
            self._store.upload(files[name], name)
            return name

        for name in map_in_order(send, missing, num_threads=_THREADS):
            progress.advance(sizes[name])
        progress.close()
        found = self._store.sizes()
        for name, size in sizes.items():
            if found.get(name) != size:
                raise ObjectStoreError(
                    f"{self._location}/{name} has {found.get(name, 0)} of {size} bytes "
                    "after its upload; run the command again"
                )

    def _others(self, files: Collection[str]) -> list[str]:
        """Return the files of ours that nobody can commit once we have these.

        Those of the head that is replaced, and those in generations of writers that were
        killed, or read it before: the head lists the ones, claims lie beside the others.
        """
        there = self._store.sizes()
        self._refuse_strange(there, is_begun=True)  # a run beside a graph
        claims = ownership.claimed_objects(there, self._store.read)
        is_graph = self._head_name == MANIFEST_NAME
        is_part = is_generation_part if is_graph else is_run_part
        listed = _listed(b"" if self._before is None else self._before[0])
        found = []
        for name in {*there, *self._writer.begun()}:
            folder, _, rest = name.partition("/")
            is_ours = folder in claims and (
                is_part(rest) or ownership.CLAIM.fullmatch(rest)
            )
            if name not in files and (name in listed or is_ours):
                found.append(name)
        return sorted(found)

    def _commit(self, upload: _Upload) -> bool:
        """Put the head; false where another writer was first.

        Where no answer comes, or the user interrupts, the put may still arrive: then its
        files stay.

        Raises:
            ObjectStoreError: the storage fails, and whether it was put is not known.
        """
        etag = self._before[1] if self._before else None
        try:
            return self._writer.put_if(self._head_name, upload.head, etag)
        except ConfigError:  # refused
            self._remove_own(upload.files)
            raise
        except ObjectStoreError as err:
            with contextlib.suppress(GraphsysError):
                found = self._writer.read(self._head_name)
                if found is not None and found[0] == upload.head:
                    return True
            raise ObjectStoreError(
                f"{err}; it is not known whether this was committed, and its files stay: "
                f"look with `graphsys verify {self._location}`"
            ) from None

    def _remove_own(self, names: Iterable[str]) -> None:
        """Remove files of this writer: those named, and what others put beside them."""
        generation, own = f"gen-{self._number}", set(names)
        if self._is_shared:
            with contextlib.suppress(GraphsysError):
                found = self._store.sizes()
                own.update(it for it in found if it.startswith(f"{generation}/"))
        if self._claim is not None:
            own.add(self._claim)
        self._remove(own, [generation])

    def _remove(self, names: Iterable[str], folders: Iterable[str]) -> None:
        self._writer.remove(names)
        self._writer.drop_parts(folders)


def _listed(head: bytes) -> set[str]:
    """Return the objects that a head lists; of a damaged one those that can be read."""
    with contextlib.suppress(ValueError, LookupError, TypeError, AttributeError):
        content = parse_json(head)
        if (stored := content.get(STORED)) is not None:
            return {f"{stored['folder']}/{name}" for name in stored["files"]}
        if isinstance(content["files"], list):
            return {str(entry["path"]) for entry in content["files"]}
    return set()


def _graph_upload(folder: Path, number: int) -> _Upload:
    """Return a graph's files under another generation's number."""
    manifest = Manifest.read(folder)
    old, new = f"gen-{manifest.generation}/", f"gen-{number}/"
    names = {it.path: new + it.path.removeprefix(old) for it in manifest.files}
    entries = [dataclasses.replace(it, path=names[it.path]) for it in manifest.files]
    moved = dataclasses.replace(manifest, generation=number, files=entries)
    files = {names[path]: folder / path for path in names}
    sizes = {names[it.path]: it.bytes for it in manifest.files}
    return _Upload(files, sizes, moved.to_json().encode())


def _run_upload(folder: Path, number: int) -> _Upload:
    """Return the files of a run, and a run.json that lists them."""
    left_out = (RUN_NAME, LOCK_NAME)
    found = {
        file.relative_to(folder).as_posix(): file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.is_symlink()
    }
    found = {
        name: file
        for name, file in found.items()
        if name not in left_out and not ownership.CLAIM.fullmatch(file.name)
    }
    listed = {
        name: (file.stat().st_size, file_digest(file)) for name, file in found.items()
    }
    generation = f"gen-{number}"
    head = with_files((folder / RUN_NAME).read_bytes(), generation, listed)
    files = {f"{generation}/{name}": file for name, file in found.items()}
    sizes = {f"{generation}/{name}": size for name, (size, _) in listed.items()}
    return _Upload(files, sizes, head)
