"""How files of a run travel between machines: in a folder all see, or as objects.

Every file is written once, under a name that is never given twice, and run.json names those
of a checkpoint. So an object store needs no more than puts and gets: a file is put before
anybody is told of it, and goes when nobody can be told of it any more.
"""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Protocol

from graphsys.core.errors import CorruptStoreError
from graphsys.core.ownership import remove_listed
from graphsys.core.remote.locations import Location, show_as
from graphsys.core.threads import run_parallel
from graphsys.storage.objects.copies import Copy, Fetched
from graphsys.storage.objects.object_store import ObjectStore
from graphsys.storage.objects.s3_writer import S3Writer
from graphsys.storage.objects.staging import staging
from graphsys.storage.runs.run_folder import CONFIG_NAME, RUN_NAME, read_content
from graphsys.storage.runs.run_pins import remove_replaced

_THREADS: Final = 4  # they wait for answers
_HEADS: Final = (RUN_NAME, CONFIG_NAME)

Listed = Mapping[str, tuple[int, str]]
"""Files: bytes and checksum by name."""


class RunCheckpoint(Protocol):
    """What run.json says, of either trainer's runs."""

    files: dict[str, int]


class RunFiles:
    """The files of a run in a folder that all machines see: what is written has arrived."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_driver(cls, path: Path, through: str) -> "RunFiles":
        """Return the files of a run for who starts workers and keeps the run.

        Args:
            path: The run's folder.
            through: Folder of the run's location, in which workers of other machines
                find its files; empty: in ``path``, too.
        """
        if not through:
            return cls(path)
        place = Location.parse(through)
        files = _ObjectFiles(path, place)
        show_as(path, place.parent)  # it will be the run
        return files

    @classmethod
    def of_worker(
        cls, path: str, through: str, *, left_out: tuple[str, ...] = ()
    ) -> "RunFiles":
        """Return the files of a run for a worker, as it is told where they are.

        Args:
            path: As for the driver.
            through: As for the driver; the folder is one of the worker's own then, with
                the last checkpoint in it if there is one.
            left_out: How names of files begin that are brought when they are asked for.
        """
        if not through:
            return cls(Path(path))
        return _WorkerFiles(Location.parse(through), left_out)

    def bring(self, listed: Listed) -> None:
        """Have files here that others sent.

        Raises:
            CorruptStoreError: One is missing, or not what was written.
            ObjectStoreError: The storage fails.
        """

    def bring_checkpoint(self) -> None:
        """Have the last checkpoint here that was published.

        Raises:
            CorruptStoreError: A file is missing, or not what was written.
            ObjectStoreError: The storage fails.
        """

    def send(self, listed: Listed) -> None:
        """Have files of this folder where others find them.

        Raises:
            ObjectStoreError: The storage fails.
        """

    def let_go(self, listed: Listed) -> None:
        """Say that files were read here, or sent, and are not read from here again."""

    def drop(self, names: Iterable[str]) -> None:
        """Remove files that nobody needs any more, wherever they are."""
        remove_replaced(self.path, names)

    def publish(self, state: RunCheckpoint) -> None:
        """Have a committed checkpoint where workers find it that begin from now on.

        Raises:
            ObjectStoreError: The storage fails.
        """


class _ObjectFiles(RunFiles):
    """The files of a run in a folder of this machine, which travel as objects."""

    def __init__(self, path: Path, location: Location) -> None:
        super().__init__(path)
        self._copy = Copy(path, location)
        self._writer = S3Writer(location)
        self._last: set[str] = set()
        self._leaving: set[str] = set()

    def bring(self, listed: Listed) -> None:
        """Get files that are not here, several at a time."""
        files = [Fetched(name, name, *said) for name, said in listed.items()]
        missing = [file for file in files if not self._copy.has(file)]
        run_parallel(self._copy.fetch, missing, _THREADS)

    def bring_checkpoint(self) -> None:
        """Get run.json and the files that it names."""
        self._bring_checkpoint(())

    def send(self, listed: Listed) -> None:
        """Put files, several at a time."""
        self._put(listed)

    def drop(self, names: Iterable[str]) -> None:
        """Remove objects; what fails to go does so when the run is committed."""
        self._writer.remove(names)

    def publish(self, state: RunCheckpoint) -> None:
        """Put what of a checkpoint workers did not put themselves, then run.json.

        Files that it does not list any more stay until the one after it: who begins right
        now may have read the run.json before.
        """
        there, now = self._copy.store.sizes(), set(state.files)
        self._put([it for it in sorted(now) if there.get(it) != state.files[it]])
        if CONFIG_NAME not in there:
            self._put([CONFIG_NAME])
        self._put([RUN_NAME])
        self.drop(self._leaving - now)
        self._last, self._leaving = now, self._last - now

    def _put(self, names: Iterable[str]) -> None:
        def put(name: str) -> None:
            # a head replaces the one before; other names are given once
            to = self._writer if name in _HEADS else self._copy.store
            to.upload(self.path / name, name)

        run_parallel(put, names, _THREADS)

    def _bring_checkpoint(self, left_out: tuple[str, ...]) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        for name in _HEADS:  # they are replaced under their names: what is here is older
            remove_listed(self.path, [name])
            # in one request: of two, the second may find what was put meanwhile
            found = self._writer.read(name)
            if found is None:
                raise CorruptStoreError(
                    f"{self._copy.location}/{name} is missing, maybe since somebody wrote "
                    f"{self._copy.location} anew meanwhile; run the command again"
                )
            (self.path / name).write_bytes(found[0])
        said: dict[str, Any] = read_content(self.path)
        checksums = said["checksums"]
        self.bring(
            {
                name: (size, str(checksums.get(name, "")))
                for name, size in said["files"].items()
                if not name.startswith(left_out)
            }
        )


class _WorkerFiles(_ObjectFiles):
    """What a worker has of a run: the last checkpoint's head, and what it reads now."""

    def __init__(self, location: Location, left_out: tuple[str, ...]) -> None:
        self._stack = ExitStack()  # where a worker is killed, the next one drops its folder
        super().__init__(self._stack.enter_context(staging(location)), location)
        if is_begun(str(location)):
            self._bring_checkpoint(left_out)

    def let_go(self, listed: Listed) -> None:
        """Remove files from this machine."""
        super(_ObjectFiles, self).drop(listed)


def is_begun(through: str) -> bool:
    """Return whether a checkpoint was published at a location.

    Raises:
        ObjectStoreError: The storage fails.
    """
    return ObjectStore(Location.parse(through)).read(RUN_NAME) is not None
