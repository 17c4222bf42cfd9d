"""Where the checkpoints of a run lie: in a folder, or on an object store.

Either way a checkpoint is arrays in a folder of one superstep, and ``checkpoint.json``,
which names them: arrays first, and then that file in one step.
"""

import contextlib
import os
import re
import secrets
from pathlib import Path
from typing import Final

from graphsys.core import ownership
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
    """A folder that all processes of a run see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: WriterLock | None = None
        self._kept: str | None = None

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
        for path in sorted(self.folder.iterdir()):
            is_own = path.name in (NAME, LOCK_NAME) or ownership.is_draft(path.name, NAME)
            if not is_own and not self._is_step(path):
                self._refuse(path.name)

    def _refuse(self, name: str) -> None:
        raise OutputExistsError(
            f"{self} holds {name} and is no folder of checkpoints; choose another"
        )

    def _is_step(self, folder: Path) -> bool:
        """Whether a folder is of a superstep: claimed, or of the checkpoint there is.

        Or empty: a run that is killed may leave one before its claim is there.
        """
        if folder.is_symlink() or not folder.is_dir():
            return False
        is_ours = ownership.is_claimed(folder) or folder.name == self._kept
        return is_ours or _is_empty_step(folder)

    def begin(self, step: str) -> Path:
        """Return the folder of a superstep for its arrays, made if there is none.

        On a cluster the first worker makes it, and others call this after that.

        Raises:
            OutputExistsError: there is one that is none of ours.
        """
        folder = self.folder / step
        if not folder.exists():
            ownership.make_folder(folder)
        elif not (ownership.is_claimed(folder) or _is_empty_step(folder)):
            self._refuse(step)
        ownership.claim(folder)
        return folder

    def look(self) -> None:
        """Have ``checkpoint.json`` in :attr:`folder`, if there is one."""

    def found(self, step: str) -> None:
        """Take in which folder the checkpoint that is there has its arrays."""
        self._kept = step

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
        if self._kept is not None and self._kept != step:
            ownership.claim(self.folder / self._kept)  # nothing will list it
        # On the same file system, so that the rename is one step; flushed before it, or a
        # power cut could leave a name without content.
        draft = ownership.draft_of(self.folder / NAME)
        with draft.open("x") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.folder / NAME)
        sync_folder(self.folder)
        self._kept = step
        self.sweep(step)

    def sweep(self, kept: str | None) -> None:
        """Remove what was written and not committed, or is superseded."""
        for path in self.folder.iterdir():
            if path.name == kept:
                ownership.unclaim(path)
            elif _STEP.fullmatch(path.name):
                ownership.remove_claimed(path, _is_array)
            else:
                ownership.remove_draft(path)


def _is_empty_step(folder: Path) -> bool:
    return _STEP.fullmatch(folder.name) is not None and not any(folder.iterdir())


def _is_array(name: str) -> bool:
    return name.endswith(".npy") and "/" not in name


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
        found = self._copy.store.sizes()
        claimed = ownership.claimed_objects(found, self._copy.store.read)
        for name in sorted(found):
            if name != NAME and name.partition("/")[0] not in (*claimed, self._kept):
                self._refuse(name)

    def look(self) -> None:
        found = self._writer.read(NAME)
        if found is not None:
            (self.folder / NAME).write_bytes(found[0])
            self._etag = found[1]

    def bring(self, name: str, num_bytes: int, checksum: str) -> None:
        self._copy.fetch(Fetched(name, name, num_bytes, f"sha256:{checksum}"))

    def name_of(self, superstep: int) -> str:
        return f"superstep-{superstep}-{self._token}"

    def begin(self, step: str) -> Path:
        folder = self.folder / step
        if not folder.exists():
            ownership.make_folder(folder)
            ownership.claim(folder)
        return folder

    def send(self, step: str) -> None:
        def put(file: Path) -> None:
            self._copy.store.upload(file, f"{step}/{file.name}")

        files = [*(self.folder / step).iterdir()]
        claims = [file for file in files if ownership.CLAIM.fullmatch(file.name)]
        run_parallel(put, claims, 1)  # first: a kill leaves nothing that is not claimed
        run_parallel(put, [file for file in files if file not in claims], _THREADS)
        ownership.remove_folder(self.folder / step)

    def commit(self, text: str, step: str) -> None:
        # Listed before the put: what another run begins after it is not ours to remove.
        names = {*self._copy.store.sizes(), *self._writer.begun()}
        claims = ownership.claimed_objects(names, self._copy.store.read)
        before = {*claims, self._kept} - {None}
        left = [
            it
            for it in names
            if (found := it.partition("/")[0]) in before
            and (found != step or ownership.CLAIM.fullmatch(it.rpartition("/")[2]))
        ]
        if not self._writer.put_if(NAME, text.encode(), self._etag):
            self._remove(step)
            raise StoreBusyError(
                f"{self._location} got a checkpoint of another run meanwhile, which stays; "
                "let that run end, or give this one another place"
            )
        put = self._writer.read(NAME)
        self._etag = None if put is None else put[1]
        self._kept = step
        self._writer.remove(left)
        self._writer.drop_parts({name.partition("/")[0] for name in left} - {step})

    def sweep(self, kept: str | None) -> None:
        for path in self.folder.glob("superstep-*"):
            ownership.remove_folder(path)

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
