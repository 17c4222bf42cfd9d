"""A run that workers open: where it is, which checkpoint of it, and where parts go."""

import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from graphsys.core import ownership
from graphsys.core.checksums import digest
from graphsys.core.errors import ConfigError, GraphsysError
from graphsys.core.remote.locations import Location, Place, is_remote
from graphsys.distributed.cluster import Cluster, threads_per_worker
from graphsys.distributed.shared_files import SharedFiles, shared_files
from graphsys.storage.objects.copies import location_of
from graphsys.storage.objects.object_store import ObjectStore
from graphsys.storage.objects.s3_writer import S3Writer
from graphsys.storage.reader import GraphReader
from graphsys.storage.remote.publishing import own_number

_LEFT_S: Final = 86_400.0
"""Where nothing was written for longer on an object store, which has no locks, a killed
command left what there is."""


@contextmanager
def parts_beside(out: Place) -> Iterator[SharedFiles]:
    """Have files beside a file or folder for as long as the context lasts.

    Those of killed commands for the same file go: on an object store after a day in
    which none of them wrote.
    """
    if is_remote(out):
        with _objects_beside(Location.parse(out)) as files:
            yield files
        return
    out = Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    left = re.compile(rf"\.{re.escape(out.name)}\.[0-9a-f]{{16}}\.parts")
    for path in filter(lambda path: left.fullmatch(path.name), out.parent.iterdir()):
        with suppress(OSError), ownership.held_alone(path):
            ownership.remove_claimed(path, lambda _: True)
    # not by the process: machines that share the folder number theirs alike
    folder = out.with_name(f".{out.name}.{secrets.token_hex(8)}.parts")
    ownership.make_folder(folder)
    try:
        with ownership.held_alone(folder):  # first: what is claimed and not held is swept
            ownership.claim(folder)
            yield SharedFiles(folder)
    finally:
        ownership.remove_folder(folder)


@contextmanager
def _objects_beside(out: Location) -> Iterator[SharedFiles]:
    """Have objects below ``.NAME.parts/`` beside a location."""
    key = "/".join(filter(None, [out.parent.key, f".{out.name}.parts"]))
    beside = Location(out.scheme, out.bucket, key)
    last: dict[str, float] = {}
    written = ObjectStore(beside).written()
    for name, seconds in written.items():
        number = name.partition("/")[0]
        last[number] = max(seconds, last.get(number, 0.0))
    oldest = time.time() - _LEFT_S
    claimed = ownership.claimed_objects(written, ObjectStore(beside).read)
    left = {it for it, seconds in last.items() if it in claimed and seconds < oldest}
    S3Writer(beside).remove(name for name in written if name.partition("/")[0] in left)
    own = own_number()
    with shared_files(f"{beside}/{own}") as files:
        try:
            name, text = ownership.new_claim(str(own))
            (files.path / f"new-{name}").write_bytes(text)
            files.add(name, files.path / f"new-{name}")
            yield files
        finally:
            with suppress(GraphsysError):  # it goes later, and may not hide what failed
                files.remove_folder("")


class CheckpointKey(Protocol):
    """What tells one checkpoint of a run from the next."""

    serial: int
    checksums: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWork:
    """A run by its folders, which every machine sees.

    Attributes:
        path: Folder of the run.
        graph: Folder of the graph it was trained on.
        checkpoint: State and settings of the checkpoint, which who asks has pinned.
        threads: Of a worker.
        model: Where the file of its own model is, if it has one.
    """

    path: str
    graph: str
    checkpoint: tuple[Any, Any]
    threads: int
    model: str | None = None

    @property
    def pinned(self) -> tuple[Any, Any] | None:
        """The checkpoint to open in a folder that all see, where a pin keeps its files.

        A training may have gone on in the folder since. None on an object store: who opens
        it there gets the last one, and has to check by :func:`require_checkpoint`.
        """
        return None if is_remote(self.path) else self.checkpoint


class PinnedRun(Protocol):
    """A run of either trainer, open here."""

    path: Path
    state: Any
    config: Any
    graph: GraphReader


def work_of(run: PinnedRun, cluster: Cluster) -> RunWork:
    """Return what the workers of a cluster are told of a run that is open here."""
    is_local = cluster.local_workers > 0
    return RunWork(
        path=location_of(run.path),
        graph=location_of(Path(run.graph.path)),
        checkpoint=(run.state, run.config),
        threads=threads_per_worker(max(cluster.local_workers, 1), is_local=is_local),
    )


def checkpoint_of(state: CheckpointKey) -> str:
    """Return what tells a checkpoint of a run from others."""
    return f"{state.serial} {digest(repr(sorted(state.checksums.items())).encode())}"


def require_checkpoint(work: RunWork, path: Path, state: CheckpointKey) -> None:
    """Check that a worker has opened what the others have.

    Raises:
        ConfigError: A training has gone on meanwhile.
    """
    if checkpoint_of(state) != checkpoint_of(work.checkpoint[0]):
        raise ConfigError(
            f"{path} was trained further while it was asked; ask again when the training "
            "is over"
        )
