"""A network trained on a cluster: workers started, watched, started again from the run."""

import math
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphsys.core.errors import ClusterError, ConfigError, WorkerLostError
from graphsys.core.events import is_recording
from graphsys.core.progress import SILENT, Progress
from graphsys.datasets.temporary import stored_graph
from graphsys.distributed import ray
from graphsys.distributed.cluster import Cluster, connected, refuse_views
from graphsys.distributed.gnn.worker import GnnWork, GnnWorker, Rendezvous, TrainingEvents
from graphsys.distributed.group import (
    START_S,
    WATCH_S,
    RestartBudget,
    WorkerGroup,
    ask_aside,
)
from graphsys.distributed.ownership import most_owners, require_partitions
from graphsys.distributed.profile_events import tell_trainers
from graphsys.distributed.run_files import RunFiles, is_begun
from graphsys.distributed.train_report import ClusterTrainReport
from graphsys.distributed.transport.connections import Address
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.run import read_state, remove_superseded
from graphsys.gnn.training.api import change_settings, state_to_go_on_from
from graphsys.gnn.training.plan import moments_share, weights_share
from graphsys.storage.objects.copies import location_of
from graphsys.storage.reader import GraphReader
from graphsys.storage.runs import run_folder
from graphsys.storage.runs.run_replacement import is_staged
from graphsys.training.callbacks import Callback, require_callbacks
from graphsys.training.report import TrainReport

_TOLD_S = 10.0
"""How long what others say is waited for, where one says that it lost them."""


def train_gnn(
    graph: GraphReader | str | os.PathLike[str],
    config: GnnConfig | None,
    out: str | Path,
    *,
    cluster: Cluster,
    resume: bool = False,
    overwrite: bool = False,
    dry_run: bool = False,
    memory: int | str | None = None,
    device: str = "cpu",
    through: str = "",
    callbacks: Sequence[Callback] = (),
    progress: Progress = SILENT,
) -> ClusterTrainReport:
    """Train a graph neural network on a cluster and leave the run that one machine leaves.

    Every worker samples its share of each batch from the store, or has the owners of nodes
    sample (``sample_at``); gradients are added by gloo. Workers that are lost are started
    again from the run's last checkpoint.

    Args:
        graph: An open graph, or its path, which all machines see.
        config: The settings; None as in :func:`graphsys.gnn.train`.
        out: Folder of the run, which all machines see unless ``through`` is given.
        cluster: Where to train.
        resume: Go on from the last checkpoint of ``out``, with any number of workers.
        overwrite: Replace a run in ``out``, once the new one is complete.
        dry_run: Only plan: what one process with whole batches would take, which is more
            than a worker's share does; of an optimizer that workers share, a worker's part.
        memory: Refused: budgets are of one process.
        device: ``cpu``; others are refused.
        through: Folder on an object store (``s3://...``) through which files travel
            between machines that do not see ``out``; what is left there at the end, the
            run's files among it, is the caller's to use or to remove.
        callbacks: Called in the process of the first worker, in this order. Ray takes
            copies of them there, by cloudpickle: what they keep, they keep there, and may
            tell by files. After workers are lost, new copies see the training start again.
        progress: Receives an epoch per stage.

    Returns:
        What was done; ``metrics`` have ``restarts``, and of the workers since the last
        start ``world_size``, ``allreduce_bytes``, ``communication_seconds``,
        ``load_imbalance`` and ``per_worker``.

    Raises:
        ConfigError: A setting that does not go with a cluster, or fewer partitions than
            workers that own them; as on one machine.
        ClusterError: Nothing answers, or workers are lost again and again.
    """
    from graphsys import gnn

    out, graph = Path(out), stored_graph(graph)
    if config is None:
        config = gnn.run_config(out) if resume else GnnConfig()
    require_callbacks(callbacks)
    _refuse(graph, config, memory, device)
    if through and config.tensorboard:
        raise ConfigError(
            "tensorboard: got true with a run on an object store, where workers of several "
            "machines put checkpoints only; expected false, or a folder all of them mount"
        )
    if config.sample_at == "owners":
        require_partitions(graph, cluster.local_workers)
    if dry_run:
        alone = replace(config, sample_at="store")
        plan = gnn.train(graph, alone, out, dry_run=True, progress=progress)
        workers = max(cluster.local_workers, 1)
        return _reported(plan, workers, _shared_plan(plan.metrics, config, workers))
    run_folder.require_free(out, resume=resume, overwrite=overwrite)
    with connected(cluster) as workers:
        if config.sample_at == "owners":
            workers = min(workers, most_owners(graph))
        work = GnnWork(
            graph=location_of(graph.path),
            config=config,
            out=str(out.resolve()),
            resume=resume,
            overwrite=overwrite,
            workers=workers,
            local_workers=cluster.local_workers,
            through=through,
            is_profiled=is_recording(),
            callbacks=tuple(callbacks),
        )
        files = RunFiles.of_driver(out, through)
        if through and resume:
            state = state_to_go_on_from(out, config)
            change_settings(out, config, state)
            files.publish(state)
        try:
            told, restarts = _train_until_done(work, progress)
        finally:
            progress.close()
        files.bring_checkpoint()
        if through:
            remove_superseded(out, read_state(out))
    report: TrainReport = told[0]["report"]
    _tell(told, restarts)
    found = _reported(report, workers, {"restarts": restarts})
    return replace(found, run=out, restarts=restarts)


def _tell(told: Sequence[Mapping[str, Any]], restarts: int) -> None:
    """Tell who profiles of the workers."""
    metrics = told[0]["report"].metrics
    alone = [{"rank": 0, "batches": metrics.get("batches", 0), "allreduce_bytes": 0}]
    facts = [
        {
            "rank": each["rank"],
            "units": each["batches"],
            "sent_bytes": each["allreduce_bytes"],
            "read_bytes": None,
            "written_bytes": None,
        }
        for each in metrics.get("per_worker", alone)
    ]
    tell_trainers("gnn", list(enumerate(told)), facts, restarts)


def _reported(
    report: TrainReport, workers: int, metrics: Mapping[str, Any]
) -> ClusterTrainReport:
    return ClusterTrainReport(
        run=report.run,
        epochs=report.epochs,
        seconds=report.seconds,
        edges_per_second=report.edges_per_second,
        metrics={**report.metrics, **metrics},
        workers=workers,
    )


def _shared_plan(
    plan: Mapping[str, Any], config: GnnConfig, workers: int
) -> dict[str, Any]:
    """Return what of one process's plan changes where workers share the moments, or all."""
    split, planned = dict(plan["planned_memory_split"]), plan["planned_memory_bytes"]
    kept = weights_share(config, workers)
    shares = {"optimizer": moments_share(config, workers)}
    shares |= {"parameters": kept, "gradients": kept}
    before = dict(split)
    for name in split.keys() & shares.keys():
        split[name] = math.ceil(split[name] * shares[name])
        planned -= before[name] - split[name]
    if split == before:
        return {}
    if kept < 1:  # the layer that runs is whole
        planned += plan["planned_gathered_bytes"]
    return {"planned_memory_bytes": planned, "planned_memory_split": split}


def _refuse(
    graph: GraphReader, config: GnnConfig, memory: int | str | None, device: str
) -> None:
    """Refuse what workers cannot do together.

    Raises:
        ConfigError: With what to leave out.
    """
    if memory is not None:
        raise ConfigError("memory does not go with --cluster; leave out one of them")
    if device != "cpu":
        raise ConfigError(
            f"device: got {device} with --cluster, whose workers train on the cpu; leave "
            "out one of them"
        )
    refuse_views(graph)
    if config.learned_rows == "disk":
        raise ConfigError(
            "learned_rows: got disk with --cluster, whose workers do not share those "
            "rows; expected memory, or leave out --cluster"
        )
    if config.is_whole_graph:
        given = "batch_size 0" if config.is_full_batch else f"model {config.model}"
        raise ConfigError(
            f"{given} passes over the whole graph in every step, which every worker would "
            "do again; set batch_size and a model that samples, or leave out --cluster"
        )


def _train_until_done(
    work: GnnWork, progress: Progress
) -> tuple[list[dict[str, Any]], int]:
    """Train, again after workers were lost; return what each told, and how often."""
    out, budget = Path(work.out), RestartBudget("go on with --resume")
    before, first = _identity(out), work
    while True:
        try:
            return _train_once(work, progress), budget.used
        except WorkerLostError:
            budget.take()
        if work.through:
            goes_on = is_begun(work.through)
        else:
            goes_on = is_staged(out) or _identity(out) != before
        work = replace(first, resume=first.resume or goes_on)


def _identity(out: Path) -> tuple[int, int] | None:
    """Return what tells one ``run.json`` from the next."""
    try:
        found = (out / run_folder.RUN_NAME).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _train_once(work: GnnWork, progress: Progress) -> list[dict[str, Any]]:
    """Start workers and train.

    Raises:
        WorkerLostError: One of them was lost.
    """
    is_local, shown = work.local_workers > 0, _Shown(progress)
    with WorkerGroup(RemoteGnnWorker, work.workers) as group:
        listening = group.begin("listening", is_local)
        master = ray.result(ray.call(group.workers[0], "address", is_local), START_S)
        key = secrets.token_bytes(32)
        meeting = Rendezvous(master=master, listening=listening, key=key)
        return group.run(
            "train",
            lambda rank: (rank, meeting, work),
            shown.ask,
            symptom=ClusterError,
            last_words_s=_TOLD_S,
        )


class RemoteGnnWorker(GnnWorker):
    """A worker in a process of its own."""

    def address(self, is_local: bool) -> Address:
        """Return where the others find this one."""
        return self.meet_at(_host(is_local))

    def listening(self, is_local: bool) -> Address:
        """Return where this one listens for questions."""
        return self.listen(_host(is_local))


def _host(is_local: bool) -> str:
    """Return this machine's address; one's own where all workers are here."""
    return "127.0.0.1" if is_local else ray.node_address()


class _Shown:
    """Draws what the first worker tells."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._number, self._steps = progress, 0, 0

    def ask(self, worker: Any) -> None:
        """Ask it, and draw what is new; who does not answer is asked again later."""
        begun = time.monotonic()
        told: TrainingEvents | None = ask_aside(worker, "events")
        if told is None:
            return
        if told.number != self._number:
            self._number, self._steps = told.number, 0
            self._progress.stage(*told.told)
        if told.steps > self._steps:
            self._progress.advance(told.steps - self._steps, **told.figures)
            self._steps = told.steps
        time.sleep(max(WATCH_S / 2 - (time.monotonic() - begun), 0))
