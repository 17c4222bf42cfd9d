"""Patterns and motifs counted on a cluster: workers started, watched and asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphsys.core.events import is_recording
from graphsys.core.progress import SILENT, Progress
from graphsys.distributed.cluster import (
    Cluster,
    connected,
    refuse_views,
    threads_per_worker,
)
from graphsys.distributed.mining_work import MiningWork
from graphsys.distributed.profile_events import tell_parts
from graphsys.distributed.worker import run_until_done
from graphsys.mining.census.shapes import shapes_of
from graphsys.mining.count_plan import check_induced
from graphsys.mining.pattern import Pattern
from graphsys.storage.objects.copies import location_of
from graphsys.storage.reader import GraphReader


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCounts:
    """What a cluster counted, and how that went.

    Attributes:
        counts: By the patterns' texts, or the motifs' names.
        seconds: Of the longest worker, without compiling.
        compile_seconds: The longest of a worker.
        workers: How many.
        restarts: How often all of them were started again.
        bytes_sent: Bytes of sums that left workers.
        waited_seconds: Time that workers waited for others, the longest.
        load_imbalance: Longest time outside exchanges over the mean.
    """

    counts: dict[str, int]
    seconds: float
    compile_seconds: float
    workers: int
    restarts: int
    bytes_sent: int
    waited_seconds: float
    load_imbalance: float

    def figures(self) -> dict[str, Any]:
        """Return what is printed besides the counts and the seconds."""
        return {
            "workers": self.workers,
            "restarts": self.restarts,
            "bytes_sent": self.bytes_sent,
            "waited_seconds": self.waited_seconds,
            "load_imbalance": self.load_imbalance,
        }


def count_on_cluster(
    graph: GraphReader,
    cluster: Cluster,
    *,
    patterns: Sequence[str] = (),
    motifs: int | None = None,
    induced: str = "edge",
    labels: str | None = None,
    disconnected: bool = False,
    num_threads: int | None = None,
    progress: Progress = SILENT,
) -> ClusterCounts:
    """Count patterns, or all motifs of a size; lost workers have all begin again.

    Args:
        graph: An open store.
        cluster: Where to run.
        patterns: Texts, as for :func:`graphsys.mining.count_all`.
        motifs: Count all connected motifs of so many nodes instead.
        induced: ``edge`` or ``vertex``.
        labels: As for :func:`graphsys.mining.count_all`.
        disconnected: As for :func:`graphsys.mining.count_all`.
        num_threads: Of a worker.
        progress: Receives a stage.

    Raises:
        ConfigError: a pattern that is not one, a view of times.
        ClusterError: nothing answers, workers are lost again and again, or have too little
            memory.
        MissingDependencyError: Ray is not installed.
    """
    refuse_views(graph)
    check_induced(induced)
    for text in patterns:
        Pattern.of(text, disconnected=disconnected)
    if motifs is not None:
        shapes_of(motifs)
    is_local = cluster.local_workers > 0
    with connected(cluster) as workers:
        work = MiningWork(
            graph=location_of(Path(graph.path)),
            patterns=tuple(patterns),
            motifs=motifs,
            induced=induced,
            labels=labels,
            disconnected=disconnected,
            threads=num_threads or threads_per_worker(workers, is_local=is_local),
            neighbors=workers if is_local else None,
            is_profiled=is_recording(),
        )
        progress.stage("count", None, "sums")
        try:
            parts, restarts = run_until_done(work, workers, progress)
            tell_parts(parts, restarts)
        finally:
            progress.close()
    busy = [part["seconds"] - part["waited_s"] for part in parts]
    return ClusterCounts(
        counts=parts[0]["counts"],
        seconds=max(part["seconds"] for part in parts),
        compile_seconds=max(part["compile_seconds"] for part in parts),
        workers=len(parts),
        restarts=restarts,
        bytes_sent=sum(part["bytes"] for part in parts),
        waited_seconds=max(part["waited_s"] for part in parts),
        load_imbalance=max(busy) * len(busy) / max(sum(busy), 1e-9),
    )
