"""Training an embedding: what is checked before, where the run is built, the report."""

import dataclasses
import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from graphsys.core.errors import (
    ConfigError,
    CorruptStoreError,
    InvalidGraphError,
)
from graphsys.core.memory import (
    MemoryMeter,
    available_bytes,
    parse_bytes,
    release_free_memory,
    resident_bytes,
    return_large_blocks,
)
from graphsys.core.progress import IN_NOTEBOOKS, Progress
from graphsys.core.rng import generator
from graphsys.datasets.temporary import stored_graph
from graphsys.embedding import checkpoints
from graphsys.embedding import run as runs
from graphsys.embedding.blas import single_threaded_blas
from graphsys.embedding.config import EmbeddingConfig, load_config
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.data.held_out import with_split
from graphsys.embedding.data.held_out_split import GraphWithHeldOut
from graphsys.embedding.data.schedule import BucketTask, Layout
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.model import RelationSet, relation_sets
from graphsys.embedding.rows.table_files import TableFiles
from graphsys.embedding.training.bucket_trainer import compile_kernels
from graphsys.embedding.training.edge_sets import list_steps, settled
from graphsys.embedding.training.incremental import list_new_edges
from graphsys.embedding.training.plan import Planner, TrainingPlan
from graphsys.embedding.training.probe import probe
from graphsys.embedding.training.trainer import Backend, EmbeddingTrainer
from graphsys.embedding.training.unread_settings import note_unread
from graphsys.embedding.training.warm_start import open_source, warm_start
from graphsys.embedding.training_log import TrainingLog
from graphsys.storage.grouped.affine_plane import ORDERS
from graphsys.storage.grouped.merged_view import JoinedGraph
from graphsys.storage.grouped.pair_view import Meetings, PairGraph, draw_meetings
from graphsys.storage.reader import GraphReader
from graphsys.storage.runs.run_folder import GNN, folder_to_train, read_content, writing
from graphsys.training import checkpoint
from graphsys.training.callbacks import Callback, require_callbacks
from graphsys.training.config import require_config
from graphsys.training.report import TrainReport, report_of

_METER_S = 0.1  # seconds between looks at the memory


def train(
    graph: GraphReader | str | os.PathLike[str],
    config: EmbeddingConfig | None,
    out: str | Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    dry_run: bool = False,
    memory: int | str | None = None,
    device: str = "cpu",
    callbacks: Sequence[Callback] = (),
    progress: Progress = IN_NOTEBOOKS,
) -> TrainReport:
    """Train embeddings and leave a run on disk.

    Args:
        graph: What is trained on, open or its path; nodes and partitions are the store's.
        config: Model, negatives, optimizer and so on (``graphsys/embedding/SETTINGS.md``).
            A resume takes the run's; of others those that the page says so of. None
            else for the defaults.
        out: Folder of the run.
        resume: Go on after the last bucket that a checkpoint of ``out`` holds.
        overwrite: Replace a run in ``out``, once the new one is complete; what a kill
            leaves of that is gone on with by ``resume``.
        dry_run: Only plan: what memory, disk and traffic the run would take, and, by a
            second of training that leaves nothing, how long.
        memory: Budget of anonymous memory of the process, as ``"4GB"`` or in bytes: the
            largest buffer of partitions that fits is taken, and the order with the fewest
            bytes. None: the smallest buffer, within what is available.
        device: ``"cpu"``, or ``"cuda"`` for Triton kernels; not a setting of the run, so
            that a resume may change it.
        callbacks: Called while the training runs, in this order.
        progress: Receives an epoch per stage.

    Returns:
        What was done.

    Raises:
        ConfigError: Settings that do not fit the graph, or a resume with other settings
            or another graph.
        MissingDependencyError: A package for the device is not installed.
        OutputExistsError: ``out`` exists.
        InvalidGraphError: The graph has weights that cannot be trained.
        CorruptStoreError: The graph's files are damaged.
        StoreBusyError: Another training writes to ``out``.
        BudgetError: The tables do not fit in the budget.
        StorageFullError: The disk is full; the last checkpoint stays.
        TrainingFailedError: The loss is not a number; the last checkpoint stays.
    """
    out, graph = Path(out), stored_graph(graph)
    stated = None if memory is None else parse_bytes(memory)
    if config is None:
        config = run_config(out) if resume else EmbeddingConfig()
    require_config(config, EmbeddingConfig, "embeddings")
    require_callbacks(callbacks)
    backend = _open_backend(device, config)
    context = open_context(graph, config, out)
    if not dry_run:
        runs.require_free(out, resume=resume, overwrite=overwrite)
        if config.tensorboard:
            from graphsys.training.tensorboard import find_writer  # torch

            find_writer()
    if not resume:
        note_unread(config, context.model, graph)
    started = last_checkpoint(out, resume)
    source = source_of(graph, config, context.model, started)
    return_large_blocks()
    with single_threaded_blas():
        if device == "cpu" or dry_run:
            compile_kernels(context)
        plan = _make_plan(context, stated, started)
        if dry_run:
            measured = probe(context)
            metrics = {**plan.as_metrics(), **measured.estimate(plan, config)}
            return TrainReport(
                run=out, epochs=0, seconds=0.0, edges_per_second=0.0, metrics=metrics
            )
    checkpoint.require_disk(out, plan.disk_bytes)
    with writing(out, resume=resume, overwrite=overwrite) as path:
        state = open_state(path, graph, config, plan.layout, resume=resume)
        context = dataclasses.replace(context, path=path, state=state, layout=plan.layout)
        try:
            with (
                single_threaded_blas(),
                MemoryMeter(_METER_S) as meter,
                closing(TrainingLog(path, state.log_bytes)) as log,
            ):
                context = begin(context, source, log, progress)
                trainer = EmbeddingTrainer(context, callbacks, log, backend)
                trainer.run(progress)
        # A new run that was refused leaves nothing that a user would have to remove.
        except (ConfigError, InvalidGraphError, CorruptStoreError):
            if not resume and not state.files:
                runs.discard(path)
            raise
    trainer.stats.update(state.metrics)
    state.metrics["planned_memory_bytes"] = plan.memory_bytes
    state.metrics["planned_memory_split"] = dict(plan.memory_split)
    state.metrics["peak_memory_bytes"] = meter.peak_bytes
    if trainer.memory is not None and (split := trainer.memory.split(meter.peak_bytes)):
        state.metrics["peak_memory_split"] = split
    return report_of(out, state)


def open_context(
    graph: GraphReader, config: EmbeddingConfig, out: Path
) -> EmbeddingContext:
    """Return what will be trained, before there is a run.

    Raises:
        ConfigError: Settings that do not fit the graph.
    """
    model = relation_sets(graph, config)
    if config.eval_every:
        seen = GraphWithHeldOut(graph, config) if config.eval_fraction else graph
        with_split(seen, model, config.eval_split)  # one that is not there ends here
    trained = JoinedGraph(graph) if config.join_partitions else graph
    regroup = None
    if config.partition_groups:
        _require_partitions(graph, config.partition_groups)
        trained = PairGraph(graph, _meetings_of(graph, config, 0))

        def regroup(epoch: int) -> list[BucketTask]:
            trained.meet(_meetings_of(graph, config, epoch))
            return list_steps(trained, model, config)

    folder = next(p for p in (out.absolute(), *out.absolute().parents) if p.exists())
    return EmbeddingContext(
        path=folder,
        graph=trained,
        config=config,
        model=model,
        steps=list_steps(trained, model, config),
        regroup=regroup,
    )


def _meetings_of(
    graph: GraphReader, config: EmbeddingConfig, epoch: int
) -> dict[str, Meetings]:
    rng = generator(config.seed, "groups of partitions", epoch)
    return draw_meetings(graph, config.partition_groups, rng)


def _require_partitions(graph: GraphReader, num_groups: int) -> None:
    """Refuse groups that the partitions are too few for.

    Raises:
        ConfigError: No node type has a partition for every point of the plane.
    """
    most = max(map(graph.num_partitions, graph.node_types))
    if most < num_groups**2:
        fitting = [q for q in ORDERS if q * q <= most]
        fewer = f"--set partition_groups={fitting[-1]}, or " if fitting else ""
        raise ConfigError(
            f"partition_groups: got {num_groups}, which takes {num_groups**2} partitions, "
            f"each in a group with every other one once; the graph has {most}: {fewer}"
            f"`graphsys partition {graph.path} --partitioner hash --partitions "
            f"{num_groups**2} -o GRAPH2`"
        )


def _make_plan(
    context: EmbeddingContext, stated: int | None, started: runs.EmbeddingRunState | None
) -> TrainingPlan:
    """Choose the buffer and the order; a run that began keeps its order.

    Raises:
        BudgetError: The smallest buffer does not fit.
    """
    release_free_memory()  # what compiling took
    base = resident_bytes()
    budget = available_bytes() + base if stated is None else stated
    planner = Planner(context, base)
    if started is None:
        return planner.plan(planner.choose(budget, is_stated=stated is not None))
    order = started.order or {"name": "inside_out", "capacity": 2}
    layout = planner.choose(budget, is_stated=stated is not None, order=order["name"])
    return planner.plan(dataclasses.replace(layout, order_capacity=order["capacity"]))


def last_checkpoint(out: Path, resume: bool) -> runs.EmbeddingRunState | None:
    """Return the checkpoint that a resume goes on from."""
    if not resume:
        return None
    return runs.read_state(folder_to_train(out, resume=True, overwrite=False))


def source_of(
    graph: GraphReader,
    config: EmbeddingConfig,
    model: list[RelationSet],
    started: runs.EmbeddingRunState | None,
) -> Embeddings | None:
    """Open the run to begin with; None if there is none, or it has been done.

    Args:
        graph: The graph.
        config: The settings.
        model: The relations.
        started: The checkpoint that a resume goes on from, if it is one.

    Raises:
        ConfigError: The run is not there, or does not fit.
    """
    if config.init_from is None or (started is not None and started.warm):
        return None
    return open_source(config, graph, model)


def begin(
    context: EmbeddingContext,
    source: Embeddings | None,
    log: TrainingLog,
    progress: Progress,
) -> EmbeddingContext:
    """Return what is trained, once a warm start is done.

    Args:
        context: The training.
        source: A run to begin with, where that has not been done.
        log: The run's log.
        progress: Receives a stage.

    Raises:
        ConfigError: Nothing of the graph is in ``source``, or nothing is new.
    """
    if source is not None:
        _begin_with(context, source, progress)
        log.write("warm_start", **context.state.warm)
    return settled(context)


def _begin_with(context: EmbeddingContext, old: Embeddings, progress: Progress) -> None:
    """Take over rows and operators, list what is new, and commit that.

    Until the commit the run has no note of a warm start: after a kill a resume does it
    all again.
    """
    files = TableFiles(context)
    facts = warm_start(context, files, old, progress)
    if context.config.train_only == "new":
        facts["new_edges"] = list_new_edges(context, files, old.graph)
        if not facts["new_edges"]:
            raise ConfigError(
                f"train_only: {context.graph.path} has no edge that {old.graph.path}, the "
                f"graph of {old.path}, lacks; append some, or train all"
            )
    files.flush(context.state)
    context.state.warm = facts
    runs.commit(context.path, context.state)
    files.committed()


def run_config(out: str | Path, overrides: Iterable[str] = ()) -> EmbeddingConfig:
    """Return the settings of the run that a resume goes on with.

    Args:
        out: Folder of the run.
        overrides: ``key=value`` settings on top, some of which the resume may change.

    Raises:
        ConfigError: There is no run, or a setting is wrong.
    """
    return checkpoint.run_config(out, overrides, load_config, check=_require_own)


def _require_own(path: Path) -> None:
    """Refuse the folder of a network's run.

    Raises:
        ConfigError: It is one.
    """
    if read_content(path).get("kind") == GNN:
        raise ConfigError(
            f"{path} is a run of a graph neural network, expected one of embeddings; go on "
            "with it by train gnn, or give another folder"
        )


def open_state(
    path: Path, graph: GraphReader, config: EmbeddingConfig, layout: Layout, *, resume: bool
) -> runs.EmbeddingRunState:
    """Return the checkpoint to go on from; of a new run the first, which is committed.

    Raises:
        ConfigError: A resume with settings that may not change, or another graph.
        CorruptStoreError: The checkpoint is damaged.
    """
    if resume:
        return _state_to_go_on_from(path, graph, config)
    order = {"name": layout.order, "capacity": layout.order_capacity}
    state = runs.EmbeddingRunState(graph=runs.describe_graph(graph), order=order)
    state.checksums[runs.CONFIG_NAME] = runs.write_config(path, config)
    runs.commit(path, state)
    return state


def _state_to_go_on_from(
    path: Path, graph: GraphReader, config: EmbeddingConfig
) -> runs.EmbeddingRunState:
    """Return the checkpoint that a resume goes on from, perhaps with other settings."""
    state = runs.read_state(path)
    changes = checkpoint.changed_settings(path, config)
    runs.require_same_graph(state.graph, graph, path)
    runs.check_files(path, state)
    runs.remove_superseded(path, state)
    if changes:
        checkpoint.require_epochs(path, config, state.epoch, state.unit)
        _prepare_change(path, config, state)
    if changes or not checkpoint.is_sealed(state):
        checkpoint.change_settings(path, config, state)
    return state


def _prepare_change(
    path: Path, config: EmbeddingConfig, state: runs.EmbeddingRunState
) -> None:
    """See to it that a run can be trained for more epochs than it was begun for.

    Raises:
        ConfigError: It ended with rows of its best epoch, and has not the last ones.
    """
    before = runs.read_config(path)
    if config.epochs == before.epochs:
        return
    is_over = state.is_complete and (state.is_stopped or state.epoch >= before.epochs)
    if is_over and state.best and state.best["epoch"] != state.epoch:
        raise ConfigError(
            f"the run {path} ended after {state.epoch} epochs with the rows of its best, "
            f"{state.best['epoch']} (patience {before.patience}), and has not the last "
            "ones; train on from the best in a new run: `graphsys train embedding GRAPH "
            f"-o NEW --config {path / runs.CONFIG_NAME} --set init_from={path}`"
        )
    if is_over and state.best:  # the run itself was the checkpoint of its best epoch
        checkpoints.preserve(path, state)
    checkpoint.note_rates(config, before.epochs)


def _open_backend(device: str, config: EmbeddingConfig) -> Backend:
    """Return the backend of a device by name.

    Raises:
        ConfigError: There is no such device, here or at all, or it lacks a setting.
        MissingDependencyError: A package for it is not installed.
    """
    if device == "cpu":
        return Backend()
    if device != "cuda":
        raise ConfigError(f"--device: got {device!r}, expected cpu or cuda")
    from graphsys.embedding.training.cuda.bucket_trainer import cuda_backend

    return cuda_backend(config)
