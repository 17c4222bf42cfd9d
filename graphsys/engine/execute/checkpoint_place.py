"""Where the checkpoints of a run lie: in a folder, or on an object store.

Either way a checkpoint is arrays in a folder of one superstep, and ``checkpoint.json``,
which names them: arrays first, and then that file in one step.
"""

import contextlib
import os
import re
import secrets
import shutil
from pathlib import Path
from typing import Final

from graphsys.core.errors import GraphsysError, OutputExistsError, StoreBusyError
from graphsys.core.remote.locations import Location, Place, is_remote
from graphsys.core.threads import run_parallel
from graphsys.storage import folder_kinds
from graphsys.storage.locks import LOCK_NAME, WriterLock
from graphsys.storage.objects.copies import Copy, Fetched
from graphsys.storage.objects.object_store import ObjectStore
from graphsys.storage.objects.s3_writer import S3Writer
from graphsys.storage.objects.staging import staging
from graphsys.storage.remote.surroundings import require_outside
from graphsys.storage.transaction import disk_errors, sync_folder

NAME: Final = "checkpoint.json"
_STEP: Final = re.compile(r"superstep-\d+(-[0-9a-f]+)?")
_THREADS: Final = 4  # they wait for answers


class CheckpointPlace:
    """A folder that all processes of a run see.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: WriterLock | None = None

    def __str__(self) -> str:
        """Return what messages call it."""
        return str(self.folder)

    @classmethod
    def at(cls, place: Place) -> "CheckpointPlace":
        """Return the place that a path or a location names."""
        if is_remote(place):
            return _ObjectPlace(Location.parse(place))
        return cls(Path(place))

    def claim(self) -> None:
        """Keep other runs from writing there; the folder is made.

        Raises:
            ConfigError: it lies inside a graph or a run.
            StoreBusyError: another run writes there.
            StorageFullError: it cannot be made.
        """
        folder_kinds.require_outside(self.folder)
        with disk_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = WriterLock(self.folder)

    def release(self) -> None:
        """Let another run write there, if this one might."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def require_own(self) -> None:
        """Refuse a place with files that are no checkpoints'.

        Raises:
            OutputExistsError: there are some.
        """
        ours = {NAME, f".{NAME}.new", LOCK_NAME}
        names = {path.name for path in self.folder.iterdir()} - ours
        self._refuse_others(names)

    def _refuse_others(self, names: set[str]) -> None:
        for name in sorted(names):
            if not _STEP.fullmatch(name):
                raise OutputExistsError(
                    f"{self} holds {name} and is no folder of checkpoints; choose another"
                )

    def look(self) -> None:
        """Have ``checkpoint.json`` in :attr:`folder`, if there is one."""

    def bring(self, name: str, num_bytes: int, checksum: str) -> None:
        """Have an array of the checkpoint in :attr:`folder`."""

    def name_of(self, superstep: int) -> str:
        """Return the name of a new folder of a superstep."""
        return f"superstep-{superstep}"

    def send(self, step: str) -> None:
        """Have what this process wrote for a superstep where a commit may name it."""
        sync_folder(self.folder / step)

    def commit(self, text: str, step: str) -> None:
        """Make ``checkpoint.json`` say something else, in one step; older arrays go.

        Raises:
            StoreBusyError: another run did meanwhile.
        """
        temporary = self.folder / f".{NAME}.new"
        with temporary.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.folder / NAME)
        sync_folder(self.folder)
        self.sweep(step)

    def sweep(self, kept: str | None) -> None:
        """Remove what was written and not committed, or is superseded."""
        for path in self.folder.iterdir():
            if _STEP.fullmatch(path.name) and path.name != kept:
                shutil.rmtree(path)
            elif path.name == f".{NAME}.new":
                path.unlink()


class _ObjectPlace(CheckpointPlace):
    """A folder of a bucket; what is read or written is in a folder of this machine first.

    There are no locks: names of arrays are of one run alone, and the put of
    ``checkpoint.json`` is conditional. Of two runs one gets through, the other ends. What
    lies there right before that put nobody can commit after it, and goes.
    """

    def __init__(self, location: Location) -> None:
        self._stack = contextlib.ExitStack()
        super().__init__(self._stack.enter_context(staging(location)))
        self.folder.mkdir()
        self._location, self._token = location, secrets.token_hex(4)
        self._copy, self._writer = Copy(self.folder, location), S3Writer(location)
        self._etag: str | None = None

    def __str__(self) -> str:
        return str(self._location)

    def claim(self) -> None:
        require_outside(self._location)
        if not self._copy.store.sizes():
            self._copy.store.require_bucket()

    def release(self) -> None:
        self._stack.close()

    def require_own(self) -> None:
        found = {name.partition("/")[0] for name in self._copy.store.sizes()}
        self._refuse_others(found - {NAME})

    def look(self) -> None:
        found = self._writer.read(NAME)
        if found is not None:
            (self.folder / NAME).write_bytes(found[0])
            self._etag = found[1]

    def bring(self, name: str, num_bytes: int, checksum: str) -> None:
        self._copy.fetch(Fetched(name, name, num_bytes, f"sha256:{checksum}"))

    def name_of(self, superstep: int) -> str:
        return f"superstep-{superstep}-{self._token}"

    def send(self, step: str) -> None:
        def put(file: Path) -> None:
            self._copy.store.upload(file, f"{step}/{file.name}")

        run_parallel(put, (self.folder / step).iterdir(), _THREADS)
        shutil.rmtree(self.folder / step)

    def commit(self, text: str, step: str) -> None:
        names = {*self._copy.store.sizes(), *self._writer.begun()}
        left = [it for it in names if it != NAME and not it.startswith(f"{step}/")]
        if not self._writer.put_if(NAME, text.encode(), self._etag):
            self._remove(step)
            raise StoreBusyError(
                f"{self._location} got a checkpoint of another run meanwhile, which stays; "
                "let that run end, or give this one another place"
            )
        found = self._writer.read(NAME)
        self._etag = None if found is None else found[1]
        self._writer.remove(left)
        self._writer.drop_parts({name.partition("/")[0] for name in left})

    def sweep(self, kept: str | None) -> None:
        for path in self.folder.glob("superstep-*"):
            shutil.rmtree(path)

    def _remove(self, step: str) -> None:
        own = [name for name in self._copy.store.sizes() if name.startswith(f"{step}/")]
        self._writer.remove(own)


def has_checkpoint(place: Place) -> bool:
    """Return whether there is a checkpoint, as far as can be told."""
    if not is_remote(place):
        return (Path(place) / NAME).exists()
    with contextlib.suppress(GraphsysError, OSError):
        return ObjectStore(Location.parse(place)).kind(NAME) == "file"
    return False
