"""Embeddings trained on a cluster: what goes with it; again from the last checkpoint."""

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphsys.core.caller_warnings import note
from graphsys.core.errors import (
    ConfigError,
    CorruptStoreError,
    InvalidGraphError,
)
from graphsys.core.events import is_recording
from graphsys.core.progress import SILENT, Progress
from graphsys.datasets.temporary import stored_graph
from graphsys.distributed.cluster import (
    Cluster,
    connected,
    refuse_views,
    threads_per_worker,
)
from graphsys.distributed.embedding.epochs import ClusterTrainer
from graphsys.distributed.embedding.work import (
    EmbeddingWork,
    layout_of,
    one_partition_parts,
)
from graphsys.distributed.embedding.worker_pool import ServerLostError
from graphsys.distributed.group import RestartBudget
from graphsys.distributed.train_report import ClusterTrainReport
from graphsys.embedding import run as runs
from graphsys.embedding.blas import single_threaded_blas
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.training import api
from graphsys.embedding.training.bucket_trainer import compile_kernels
from graphsys.embedding.training.plan import Planner
from graphsys.embedding.training.unread_settings import note_unread
from graphsys.embedding.training_log import TrainingLog
from graphsys.storage.objects.copies import location_of
from graphsys.storage.reader import GraphReader
from graphsys.storage.runs.run_folder import writing
from graphsys.training.callbacks import Callback, require_callbacks
from graphsys.training.checkpoint import require_disk
from graphsys.training.report import report_of
from graphsys.training.tensorboard import find_writer

_MOST_SERVERS = 64


def train_embedding(
    graph: GraphReader | str | os.PathLike[str],
    config: EmbeddingConfig | None,
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
    """Train embeddings on a cluster and leave the run that one machine leaves.

    A lock server gives workers buckets that share no partition, rows travel by the run's
    folder or an object store, operators by a parameter server. A worker that is lost is
    replaced and its bucket trained again; checkpoints are made between epochs.

    Source: Lerer et al., "PyTorch-BigGraph: A large-scale graph embedding system", MLSys
    2019, section 4.

    Args:
        graph: An open graph, or its path, which all machines see.
        config: The settings; None as in :func:`graphsys.embedding.train`.
            ``join_partitions`` is turned off; ``threads`` are those of a worker.
        out: Folder of the run, which all machines see unless ``through`` is given.
        cluster: Where to train.
        resume: Go on from the last checkpoint of ``out``, with any number of workers.
        overwrite: Replace a run in ``out``, once the new one is complete.
        dry_run: Only plan: what one process with two partitions would take.
        memory: Refused: budgets are of one process, a worker holds two partitions.
        device: ``cpu``; others are refused.
        through: Folder on an object store (``s3://...``) through which files travel
            between machines that do not see ``out``; what is left there at the end, the
            run's files among it, is the caller's to use or to remove.
        callbacks: Called in this process, in this order; a step is what workers gave back
            since the last, without ``work``. Where a server is lost, they see the training
            start again from its last checkpoint.
        progress: Receives an epoch per stage.

    Returns:
        What was done; ``metrics`` have ``restarts``, and of the workers since the last
        start what :func:`~graphsys.distributed.embedding.epochs.cluster_figures` says.

    Raises:
        ConfigError: What does not go with a cluster; as on one machine.
        ClusterError: Nothing answers, or workers are lost again and again.
        TrainingFailedError: The loss is not a number; the last checkpoint stays.
    """
    out, graph = Path(out), stored_graph(graph)
    if config is None:
        config = api.run_config(out) if resume else EmbeddingConfig()
    require_callbacks(callbacks)
    _refuse(graph, config, memory, device)
    asked, config = config, _apart(config)
    context = api.open_context(graph, config, out)
    most = _most_workers(context)
    _refuse_order(min(cluster.local_workers, most), config)
    if dry_run:
        plan = api.train(graph, config, out, dry_run=True, progress=progress)
        workers = min(max(cluster.local_workers, 1), most)
        return ClusterTrainReport(**vars(plan), workers=workers)
    runs.require_free(out, resume=resume, overwrite=overwrite)
    if config.tensorboard:
        find_writer()
    if not resume:
        note_unread(asked, context.model, graph)  # which knows what a preset chose
    with connected(cluster) as available:
        workers = _num_workers(available, most, config)
        is_local = cluster.local_workers > 0
        threads = config.threads or threads_per_worker(workers, is_local=is_local)
        told = replace(config, threads=threads)
        trained = _Trained(context, out, workers, told, through, callbacks)
        try:
            trained.train(progress, resume=resume, overwrite=overwrite)
        finally:
            progress.close()
    report = report_of(out, trained.state)
    metrics = {**report.metrics, **trained.figures, "restarts": trained.budget.used}
    return ClusterTrainReport(
        **{**vars(report), "metrics": metrics},
        workers=workers,
        restarts=trained.budget.used,
    )


class _Trained:
    """Trains, again from the last checkpoint where a server was lost."""

    def __init__(
        self,
        context: EmbeddingContext,
        out: Path,
        workers: int,
        config: EmbeddingConfig,
        through: str,
        callbacks: Sequence[Callback],
    ) -> None:
        self._context, self._out, self._workers = context, out, workers
        self._config, self._through = config, through  # of a worker
        self._callbacks = callbacks
        self.state = context.state
        self.budget = RestartBudget("go on with --resume")
        self.figures: dict[str, Any] = {}

    def train(self, progress: Progress, *, resume: bool, overwrite: bool) -> None:
        """Train and leave a run.

        Raises:
            ClusterError: Servers or workers are lost again and again.
        """
        context = self._context
        graph, config = context.graph, context.config
        begun = api.last_checkpoint(self._out, resume)
        source = api.source_of(graph, config, context.model, begun)
        if begun is not None:
            context = replace(context, layout=layout_of(begun))
        elif config.bucket_order != "auto":
            layout = replace(context.layout, order=config.bucket_order)
            context = replace(context, layout=layout)
        with single_threaded_blas():
            compile_kernels(context)  # once for the workers of this machine
        require_disk(self._out, Planner(context).plan(context.layout).disk_bytes)
        with writing(self._out, resume=resume, overwrite=overwrite) as path:
            goes_on = resume
            while True:
                self.state = api.open_state(
                    path, graph, config, context.layout, resume=goes_on
                )
                context = replace(context, path=path, state=self.state)
                try:
                    self._once(context, source, progress)
                    return
                except ServerLostError as err:
                    self.budget.take(err)
                    goes_on = True
                    source = source if not self.state.warm else None
                except (ConfigError, InvalidGraphError, CorruptStoreError):
                    if not resume and not self.state.files:
                        runs.discard(path)
                    raise

    def _once(
        self, context: EmbeddingContext, source: Embeddings | None, progress: Progress
    ) -> None:
        work = EmbeddingWork(
            graph=location_of(context.graph.path),
            path=str(context.path.resolve()),
            config=self._config,
            through=self._through,
            is_profiled=is_recording(),
        )
        with closing(TrainingLog(context.path, context.state.log_bytes)) as log:
            trainer = ClusterTrainer(
                api.begin(context, source, log, progress),
                log,
                work=work,
                num_workers=self._workers,
                budget=self.budget,
                callbacks=self._callbacks,
            )
            try:
                trainer.run(progress)
            finally:
                self.figures = trainer.figures


def _refuse(
    graph: GraphReader, config: EmbeddingConfig, memory: int | str | None, device: str
) -> None:
    """Refuse what workers cannot do.

    Raises:
        ConfigError: With what to leave out.
    """
    if memory is not None:
        raise ConfigError(
            "memory does not go with --cluster, whose workers hold two partitions each; "
            "leave out one of them"
        )
    if device != "cpu":
        raise ConfigError(
            f"device: got {device} with --cluster, whose workers train on the cpu; leave "
            "out one of them"
        )
    if config.parameter_servers > _MOST_SERVERS:
        raise ConfigError(
            f"parameter_servers: got {config.parameter_servers}, expected at most "
            f"{_MOST_SERVERS}: each is a process"
        )
    if config.numbers:
        raise ConfigError(
            "numbers: got true with --cluster, whose tables lie with the workers; leave "
            "out one of them"
        )
    if config.lr_schedule == "plateau":
        raise ConfigError(
            "lr_schedule: got plateau with --cluster, whose workers know no evaluations; "
            "leave out one of them"
        )
    refuse_views(graph)


def _apart(config: EmbeddingConfig) -> EmbeddingConfig:
    """Return settings under which partitions are trained apart."""
    if config.partition_groups:
        note(
            "partition_groups is turned off: workers train partitions as they are, and "
            "draw negatives from those they hold"
        )
        config = replace(config, partition_groups=0)
    if not config.join_partitions:
        return config
    note(
        "join_partitions is turned off: workers train partitions apart, and draw negatives "
        "from those they hold; on FB15k-237 with 4 partitions that took .014 of an MRR of "
        ".329"
    )
    return replace(config, join_partitions=False)


def _most_workers(context: EmbeddingContext) -> int:
    """Return how many workers can have two partitions each.

    Raises:
        ConfigError: There are no partitions to be trained side by side.
    """
    graph, always = context.graph, one_partition_parts(context)
    parts = {part for step in context.steps for part in (step.src, step.dst)} - always
    if not parts:
        raise ConfigError(
            f"{graph.path} has one partition, which one worker at a time can train; write "
            "it with more (graphsys partition GRAPH --partitioner random --partitions 8 -o "
            "GRAPH2), or leave out --cluster"
        )
    if always and context.config.row_dtype != "float32":
        names = ", ".join(sorted(name for name, _ in always))
        raise ConfigError(
            f"row_dtype: got {context.config.row_dtype} with --cluster, and {names} has "
            "one partition, whose changes workers add up; set float32, or partition it too"
        )
    if always and context.config.optimizer == "adam":
        # a mean that each of two workers lets fade by a half would be gone
        names = ", ".join(sorted(name for name, _ in always))
        raise ConfigError(
            f"optimizer: got adam with --cluster, and {names} has one partition, whose "
            "changes workers add up; set adagrad, or partition it too"
        )
    return max(len(parts) // 2, 1)


def _num_workers(available: int, most: int, config: EmbeddingConfig) -> int:
    """Return how many workers train.

    Raises:
        ConfigError: More than one, which the settings do not allow.
    """
    workers = min(available, most)
    if workers < available:
        note(
            f"{workers} of {available} workers train: each holds two partitions, and the "
            f"graph has {2 * most} or one more; partition it further (graphsys partition) "
            "for more"
        )
    _refuse_order(workers, config)
    return workers


def _refuse_order(workers: int, config: EmbeddingConfig) -> None:
    if config.deterministic and workers > 1:
        raise ConfigError(
            f"deterministic does not go with {workers} workers, whose order is that of the "
            "clock; take --cluster local:1 or leave out --cluster"
        )
