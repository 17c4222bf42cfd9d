"""A vertex program on a cluster: workers started, watched, started again, and asked."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError, NotConvergedError
from graphsys.core.events import is_recording
from graphsys.core.progress import SILENT, Progress
from graphsys.core.remote.locations import Location, is_remote
from graphsys.distributed.cluster import (
    Cluster,
    connected,
    refuse_views,
    threads_per_worker,
)
from graphsys.distributed.ownership import Ownership, most_owners
from graphsys.distributed.profile_events import tell_parts
from graphsys.distributed.shared_work import SHARED, SharedWork, result_of
from graphsys.distributed.work import ProgramWork
from graphsys.distributed.worker import run_until_done
from graphsys.engine.algorithms.algorithm import Algorithm
from graphsys.engine.execute.prepared import PreparedProgram, table_of
from graphsys.engine.memory_plan import MemoryPlan
from graphsys.engine.native_plan import NativeRun
from graphsys.engine.program_run import ProgramRun
from graphsys.engine.result import Result, cut_short
from graphsys.engine.topology import Topology
from graphsys.storage.objects.copies import location_of
from graphsys.storage.reader import GraphReader

_TAKEN = ("max_supersteps", "num_threads", "checkpoint", "checkpoint_every", "resume")


@dataclass(frozen=True, kw_only=True)
class ClusterResult(Result):
    """The outcome of a run on a cluster.

    Attributes:
        workers: How many.
        restarts: How often all of them were started again.
        bytes_sent: Bytes of arrays that left workers in every superstep, int64 ``[S]``;
            those before the checkpoint that a run went on from are not known to it.
        bytes_setup: Bytes that left them before the first.
        bytes_bound: What a superstep in which all nodes send must move at least, by the
            partitioning: a message for every copy of a node at another worker.
        waited_seconds: Time that workers waited for others, the longest.
        per_worker: Of every worker its ``waiting_seconds``, ``sending_seconds`` (handing
            messages to the network) and ``work_seconds`` (the rest) in the supersteps.
    """

    workers: int
    restarts: int
    bytes_sent: npt.NDArray[np.int64]
    bytes_setup: int
    bytes_bound: int
    waited_seconds: float
    per_worker: Sequence[Mapping[str, float]]

    def figures(self) -> dict[str, Any]:
        """Return what a report tells besides what a run on one machine does."""
        return {
            "workers": self.workers,
            "restarts": self.restarts,
            "bytes_sent": int(self.bytes_sent.sum()) + self.bytes_setup,
            "bytes_largest_superstep": int(self.bytes_sent.max(initial=0)),
            "bytes_bound": self.bytes_bound,
            "waited_seconds": self.waited_seconds,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRun:
    """A program made ready for a cluster.

    Attributes:
        prepared: What one machine would run: checked and compiled.
        work: What workers are told.
        cluster: Where they are.
        require_convergence: Whether a limit that ends the run is an error.
    """

    prepared: ProgramRun | NativeRun
    work: ProgramWork | SharedWork
    cluster: Cluster
    require_convergence: bool = False

    @property
    def implementation(self) -> str:
        """How one machine would run it."""
        return self.prepared.implementation

    @property
    def choice(self) -> MemoryPlan:
        """How one machine would use memory."""
        return self.prepared.choice

    @classmethod
    def of(
        cls,
        prepared: NativeRun | ProgramRun,
        algorithm: str,
        parameters: Mapping[str, Any],
        cluster: Cluster,
    ) -> "ClusterRun":
        """Make a prepared program a run on a cluster.

        Args:
            prepared: What one machine would run.
            algorithm: A listed name, or ``file.py:Class``.
            parameters: Of the program, by name.
            cluster: Where to run.

        Raises:
            ConfigError: a program or a setting that a cluster does not take, a graph with
                fewer partitions than workers.
        """
        if isinstance(prepared, NativeRun):
            return cls._of_native(prepared, cluster)
        prepared_work = prepared.work
        settings = {n: v for n, v in prepared.settings.items() if v is not None}
        must_converge = bool(settings.pop("require_convergence", False))
        for name in settings.keys() - set(_TAKEN):
            raise ConfigError(f"{name} does not go with --cluster; leave out one of them")
        refuse_work(prepared.name, prepared_work)
        graph = _graph_for(cluster, prepared_work.topology)
        name, checkpoint = algorithm, settings.get("checkpoint")
        if ".py" in name:
            file, _, kind = name.partition(".py")
            name = f"{Path(file).resolve()}.py{kind}"
        work = ProgramWork(
            graph=location_of(Path(graph.path)),
            algorithm=name,
            parameters=dict(parameters),
            max_supersteps=settings.get("max_supersteps"),
            threads=settings.get("num_threads"),
            checkpoint=None if checkpoint is None else _same_everywhere(checkpoint),
            checkpoint_every=settings.get("checkpoint_every", 10),
            resume=bool(settings.get("resume", False)),
        )
        return cls(
            prepared=prepared, work=work, cluster=cluster, require_convergence=must_converge
        )

    @classmethod
    def _of_native(cls, prepared: NativeRun, cluster: Cluster) -> "ClusterRun":
        if prepared.name not in SHARED:
            raise ConfigError(f"{prepared.name} is native, a cluster runs vertex programs")
        graph = _graph_for(cluster, prepared.topology)
        work = SharedWork(
            graph=location_of(Path(graph.path)),
            algorithm=prepared.name,
            threads=prepared.options.get("num_threads"),
            neighbors=cluster.local_workers or None,
        )
        return cls(prepared=prepared, work=work, cluster=cluster)

    def run(self, progress: Progress = SILENT) -> ClusterResult:
        """Run it: workers that are lost are started again from the last checkpoint.

        Raises:
            MissingDependencyError: Ray is not installed.
            ClusterError: nothing answers, or workers are lost again and again.
            NotConvergedError: a limit ended the run, and that was to be an error.
        """
        is_local = self.cluster.local_workers > 0
        with connected(self.cluster) as workers:
            if not is_local:
                workers = min(workers, _most_workers(self._topology))
            threads = self.work.threads or threads_per_worker(workers, is_local=is_local)
            work = replace(self.work, threads=threads, is_profiled=is_recording())
            progress.stage(self.prepared.name, None, "supersteps")
            try:
                parts, restarts = run_until_done(work, workers, progress)
                tell_parts(parts, restarts, sum(part["bound"] for part in parts))
                return self._result(parts, restarts)
            finally:
                progress.close()

    @property
    def _topology(self) -> Topology:
        prepared = self.prepared
        return (
            prepared.topology if isinstance(prepared, NativeRun) else prepared.work.topology
        )

    def explanation(self) -> str:
        """Tell what :meth:`run` will do."""
        where = self.cluster.address or f"{self.cluster.local_workers} local workers"
        if isinstance(self.prepared, NativeRun):
            return (
                f"{self.prepared.explanation()}\non {where}: every worker makes the rows "
                "and counts over its share of them; counts are added up by their owners"
            )
        return (
            f"{self.prepared.explanation()}\non {where}: every worker streams its own "
            "partitions; dense supersteps pull from copies of neighbors that are sent when "
            "changed, sparse ones send messages combined before they leave"
        )

    def _result(self, parts: list[dict[str, Any]], restarts: int) -> ClusterResult:
        at = parts[0]["position"]
        states, prepared = combined(parts), self.prepared
        remedy = ""
        if not isinstance(prepared, NativeRun):
            remedy = prepared.work.program.when_cut_short
        if self.require_convergence and not at.converged:
            raise NotConvergedError(cut_short(prepared.name, at.superstep, remedy))
        answer: float | None = None
        if isinstance(prepared, NativeRun):
            table, answer = result_of(prepared, parts, states)
        else:
            made = prepared.work
            made.program.totals = at.totals
            table = table_of(made.plan, made.topology, states)
            answer = made.program.answer(table) if at.converged else None
        return ClusterResult(
            source=table,
            algorithm=self.prepared.name,
            supersteps=at.superstep,
            seconds=max(part["seconds"] for part in parts),
            compile_seconds=max(part["compile_seconds"] for part in parts),
            converged=at.converged,
            result=answer,
            remedy=remedy,
            workers=len(parts),
            restarts=restarts,
            bytes_sent=np.sum([part["bytes"] for part in parts], axis=0, dtype=np.int64),
            bytes_setup=sum(part["setup_bytes"] for part in parts),
            bytes_bound=sum(part["bound"] for part in parts),
            waited_seconds=max(part["waited_s"] for part in parts),
            per_worker=[_split(part.get("steps") or []) for part in parts],
        )


def implementation_for(algorithm: Algorithm, asked: str | None) -> str:
    """Return how a cluster runs a listed algorithm: by its program, or a shared loop.

    Raises:
        ConfigError: it has neither, or another implementation is asked for.
    """
    if algorithm.name in SHARED and asked != "program":
        return "native"
    if not algorithm.program:
        raise ConfigError(
            f"{algorithm.name} has no vertex program, which is what a cluster runs; leave "
            "out --cluster"
        )
    if asked == "native":
        raise ConfigError(
            "a cluster runs vertex programs; leave out --implementation native or --cluster"
        )
    return "program"


def combined(parts: Sequence[Mapping[str, Any]]) -> dict[str, npt.NDArray[Any]]:
    """Return the states of all nodes ``[N]`` by name, of what all workers gave back."""
    states = {}
    for name in parts[0]["states"]:
        pieces = {
            low: piece
            for part in parts
            for (low, _), piece in zip(part["spans"], part["states"][name], strict=True)
        }
        states[name] = np.concatenate([pieces[low] for low in sorted(pieces)])
    return states


def _same_everywhere(place: str | os.PathLike[str]) -> str:
    """Return a path or a location as workers in other folders are told it."""
    if is_remote(place):
        return str(Location.parse(place))
    return str(Path(place).resolve())


def _split(steps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return how a worker's time in supersteps splits."""
    waiting, sending, all_of_it = (
        sum(step[name] for step in steps)
        for name in ("waiting_seconds", "sending_seconds", "seconds")
    )
    return {
        "work_seconds": all_of_it - waiting - sending,
        "sending_seconds": sending,
        "waiting_seconds": waiting,
    }


def refuse_work(name: str, work: PreparedProgram) -> None:
    """Refuse a program that workers cannot run.

    Raises:
        ConfigError: it reads columns of edges that workers do not hold.
    """
    columns = [n for n, it in work.plan.spec.edge_states.items() if it.is_column]
    if columns:
        raise ConfigError(
            f"{name} reads {', '.join(columns)} of edges, which workers do not hold; they "
            "read weight, time and relation; leave out --cluster"
        )
    if work.plan.spec.edge_states and work.program.simple:
        raise ConfigError(
            f"{name} keeps states of edges of the simple graph, which workers cannot; "
            "leave out --cluster"
        )


def _graph_for(cluster: Cluster, topology: Topology) -> GraphReader:
    """Return the store that workers open, or refuse it."""
    if topology.graph is None:
        raise ConfigError("a cluster takes a graph's folder; these edges are in memory")
    refuse_views(topology.graph)
    if cluster.local_workers:
        Ownership.of(topology, cluster.local_workers)
    return topology.graph


def _most_workers(topology: Topology) -> int:
    graph = topology.graph
    assert graph is not None  # ClusterRun.of looked
    return most_owners(graph)
