"""A vertex program on a cluster: workers started, watched, started again, and asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from graphsys.core.deps import require
from graphsys.core.errors import ClusterError, ConfigError, GraphsysError, NotConvergedError
from graphsys.core.progress import SILENT, Progress
from graphsys.distributed.cluster import (
    Cluster,
    connected,
    refuse_views,
    threads_per_worker,
)
from graphsys.distributed.ownership import Ownership
from graphsys.distributed.work import ProgramWork
from graphsys.engine.algorithms.algorithm import Algorithm
from graphsys.engine.execute.budget import Choice
from graphsys.engine.execute.prepared import PreparedProgram, table_of
from graphsys.engine.native_plan import NativeRun
from graphsys.engine.program_run import ProgramRun
from graphsys.engine.result import Result
from graphsys.storage.objects.copies import location_of

MAX_RESTARTS = 3
"""How often lost workers are started again before a run is given up."""
_WATCH_S = 0.5
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
    """

    workers: int
    restarts: int
    bytes_sent: npt.NDArray[np.int64]
    bytes_setup: int
    bytes_bound: int
    waited_seconds: float

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

    prepared: ProgramRun
    work: ProgramWork
    cluster: Cluster
    require_convergence: bool = False
    implementation: ClassVar[str] = "program"

    @property
    def choice(self) -> Choice:
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
        if not isinstance(prepared, ProgramRun):
            raise ConfigError(f"{prepared.name} is native, a cluster runs vertex programs")
        prepared_work = prepared.work
        settings = {n: v for n, v in prepared.settings.items() if v is not None}
        must_converge = bool(settings.pop("require_convergence", False))
        for name in settings.keys() - set(_TAKEN):
            raise ConfigError(f"{name} does not go with --cluster; leave out one of them")
        _refuse(prepared.name, prepared_work)
        graph = prepared_work.topology.graph
        if graph is None:
            raise ConfigError("a cluster takes a graph's folder; these edges are in memory")
        refuse_views(graph)
        if cluster.local_workers:
            Ownership.of(prepared_work.topology, cluster.local_workers)
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
            checkpoint=None if checkpoint is None else str(Path(checkpoint).resolve()),
            checkpoint_every=settings.get("checkpoint_every", 10),
            resume=bool(settings.get("resume", False)),
        )
        return cls(
            prepared=prepared, work=work, cluster=cluster, require_convergence=must_converge
        )

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
                workers = min(workers, _most_workers(self.prepared.work))
            threads = self.work.threads or threads_per_worker(workers, is_local=is_local)
            work = replace(self.work, threads=threads)
            progress.stage(self.prepared.name, None, "supersteps")
            try:
                parts, restarts = _run_until_done(work, workers, progress)
                return self._result(parts, restarts)
            finally:
                progress.close()

    def explanation(self) -> str:
        """Tell what :meth:`run` will do."""
        where = self.cluster.address or f"{self.cluster.local_workers} local workers"
        return (
            f"{self.prepared.explanation()}\non {where}: every worker streams its own "
            "partitions; dense supersteps pull from copies of neighbors that are sent when "
            "changed, sparse ones send messages combined before they leave"
        )

    def _result(self, parts: list[dict[str, Any]], restarts: int) -> ClusterResult:
        prepared, first = self.prepared.work, parts[0]
        topology, at = prepared.topology, first["position"]
        if self.require_convergence and not at.converged:
            raise NotConvergedError(
                f"{prepared.plan.spec.name} did not converge within {at.superstep} "
                "supersteps"
            )
        program = prepared.program
        program.totals = at.totals
        table = table_of(prepared.plan, topology, combined(parts))
        return ClusterResult(
            source=table,
            algorithm=self.prepared.name,
            supersteps=at.superstep,
            seconds=max(part["seconds"] for part in parts),
            compile_seconds=max(part["compile_seconds"] for part in parts),
            converged=at.converged,
            result=program.answer(table) if at.converged else None,
            workers=len(parts),
            restarts=restarts,
            bytes_sent=np.sum([part["bytes"] for part in parts], axis=0, dtype=np.int64),
            bytes_setup=sum(part["setup_bytes"] for part in parts),
            bytes_bound=sum(part["bound"] for part in parts),
            waited_seconds=max(part["waited_s"] for part in parts),
        )


def implementation_for(algorithm: Algorithm, asked: str | None) -> str:
    """Return how a cluster runs a listed algorithm: by its vertex program.

    Raises:
        ConfigError: it has none, or another implementation is asked for.
    """
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


def _refuse(name: str, work: PreparedProgram) -> None:
    if work.plan.spec.edge_states:
        raise ConfigError(
            f"{name} keeps states of edges, which lie with both ends; leave out --cluster"
        )
    if work.program.simple:
        raise ConfigError(
            f"{name} runs on the simple graph, which is made as one; leave out --cluster"
        )


def _most_workers(work: PreparedProgram) -> int:
    graph = work.topology.graph
    assert graph is not None  # ClusterRun.of looked
    return max(graph.num_partitions(kind) for kind in graph.node_types)


def _run_until_done(
    work: ProgramWork, num_workers: int, progress: Progress
) -> tuple[list[dict[str, Any]], int]:
    """Run, again after workers were lost; return what each gave back, and how often."""
    for restarts in range(MAX_RESTARTS + 1):
        parts = _run_once(work, num_workers, progress)
        if parts is not None:
            return parts, restarts
        work = replace(work, resume=work.checkpoint is not None)
    raise ClusterError(
        f"workers were lost {MAX_RESTARTS + 1} times; look at the memory and the system "
        "logs of the machines, then run the command again"
    )


def _run_once(
    work: ProgramWork, num_workers: int, progress: Progress
) -> list[dict[str, Any]] | None:
    """Start workers and run; None where one of them was lost."""
    ray = require("ray", extra="ray")
    from graphsys.distributed.actors import start_workers

    workers = start_workers(num_workers)
    try:
        running = [
            worker.run_among.remote(rank, workers, work)
            for rank, worker in enumerate(workers)
        ]
        done, waiting = 0, list(running)
        while waiting:
            ready, waiting = ray.wait(waiting, num_returns=1, timeout=_WATCH_S)
            for reference in ready:
                ray.get(reference)  # raises what the worker raised
            done = _tell(ray, workers[0], progress, done)
        parts: list[dict[str, Any]] = ray.get(running)
        return parts
    except ray.exceptions.RayActorError:
        return None
    except ray.exceptions.RayTaskError as err:
        if isinstance(err.cause, GraphsysError):
            raise err.cause from None
        raise
    finally:
        for worker in workers:
            ray.kill(worker)


def _tell(ray: Any, worker: Any, progress: Progress, told: int) -> int:
    """Show how far the run is; return the supersteps that were shown."""
    from graphsys.distributed.actors import MAIL

    try:
        asked = worker.supersteps_done.options(concurrency_group=MAIL).remote()
        done: int = ray.get(asked, timeout=_WATCH_S)
    except ray.exceptions.GetTimeoutError:
        return told
    if done > told:
        progress.advance(done - told)
    return max(done, told)
