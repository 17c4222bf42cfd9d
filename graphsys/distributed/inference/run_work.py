"""A run that workers open: where it is, and which checkpoint of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from graphsys.core.checksums import digest
from graphsys.core.errors import ConfigError
from graphsys.distributed.cluster import Cluster, threads_per_worker
from graphsys.storage.objects.copies import location_of


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
        checkpoint: What tells its last checkpoint from others.
        threads: Of a worker.
    """

    path: str
    graph: str
    checkpoint: str
    threads: int


def work_of(
    path: Path, graph: str | Path, state: CheckpointKey, cluster: Cluster
) -> RunWork:
    """Return what the workers of a cluster are told of a run that is open here."""
    is_local = cluster.local_workers > 0
    return RunWork(
        path=location_of(path),
        graph=location_of(Path(graph)),
        checkpoint=checkpoint_of(state),
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
    if checkpoint_of(state) != work.checkpoint:
        raise ConfigError(
            f"{path} was trained further while it was asked; ask again when the training "
            "is over"
        )
