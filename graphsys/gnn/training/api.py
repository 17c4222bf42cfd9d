"""Training a network: what is checked before, where the run is built, the report."""

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from graphsys.core.caller_warnings import note
from graphsys.core.config import load_toml
from graphsys.core.errors import BudgetError, ConfigError
from graphsys.core.memory import MemoryMeter, format_bytes, parse_bytes
from graphsys.core.progress import IN_NOTEBOOKS, Progress
from graphsys.core.rng import draw_key
from graphsys.datasets.temporary import stored_graph
from graphsys.gnn import run as runs
from graphsys.gnn.config import GnnConfig, load_config, num_threads
from graphsys.gnn.config_checks import require_drawn, unread_settings
from graphsys.gnn.context import GnnContext
from graphsys.gnn.data.device_transfer import DeviceTransfer, open_transfer
from graphsys.gnn.data.features import InputFeatures, InputShape, require_types
from graphsys.gnn.data.graph_batches import GraphBatches
from graphsys.gnn.data.message_graph import MessageGraph
from graphsys.gnn.data.owners import Owners
from graphsys.gnn.data.split_names import require_watched
from graphsys.gnn.model_spec import is_file, models, spec_of
from graphsys.gnn.models.graph_network import GraphNetwork
from graphsys.gnn.models.model import Model, key_of
from graphsys.gnn.models.network import Network
from graphsys.gnn.models.stream import StreamModel, StreamNetwork
from graphsys.gnn.ops.adjacency import kernel_threads
from graphsys.gnn.part_specs import TASKS
from graphsys.gnn.process_group import joined_process_group
from graphsys.gnn.tasks.factory import make_task
from graphsys.gnn.tasks.regression import NodeRegression
from graphsys.gnn.tasks.side_losses import add_side_tasks
from graphsys.gnn.tasks.task import Learned, NodeClassification, Task
from graphsys.gnn.training.plan import (
    bytes_beyond,
    checkpoint_bytes,
    disk_bytes,
    enough_bytes,
    exceeds,
    learned_bytes,
    may_choose_layers,
    plan_within,
)
from graphsys.gnn.training.trainer import GnnTrainer
from graphsys.storage.reader import GraphReader
from graphsys.storage.runs import run_folder
from graphsys.training import checkpoint
from graphsys.training.callbacks import Callback, require_callbacks
from graphsys.training.config import require_config
from graphsys.training.report import TrainReport, report_of
from graphsys.training.tensorboard import find_writer

_METER_S = 0.1  # seconds between looks at the memory
_PLANNED = ("planned_memory_bytes", "planned_memory_split", "recomputed_layers")


def train(
    graph: GraphReader | str | os.PathLike[str],
    config: GnnConfig | None,
    out: str | Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    dry_run: bool = False,
    memory: int | str | None = None,
    device: str = "cpu",
    callbacks: Sequence[Callback] = (),
    progress: Progress = IN_NOTEBOOKS,
    owners: Owners | None = None,
    on_commit: Callable[[runs.GnnRunState], None] | None = None,
) -> TrainReport:
    """Train a graph neural network and leave a run on disk.

    Args:
        graph: An open graph, or its path.
        config: The settings; None for the defaults, or for ``resume`` those of the run.
            Of others a resume takes those that ``graphsys/gnn/SETTINGS.md`` says so of.
        out: Folder of the run.
        resume: Go on after the last epoch that left a checkpoint in ``out``.
        overwrite: Replace a run in ``out``, once the new one is complete; until then it
            is built beside it, and ``resume`` continues it.
        dry_run: Only plan: memory, and by a few batches that leave nothing, the time.
        memory: Budget of anonymous memory of the process, as ``"4GB"`` or in bytes; a plan
            that needs more is refused.
        device: Where to train, ``cpu`` or ``cuda``; a run may go on on another one.
        callbacks: Called while the training runs, in this order.
        progress: Receives an epoch per stage.
        owners: Who reads which nodes' rows, where several processes train and the config
            says so; see :func:`graphsys.distributed.train_gnn`.
        on_commit: Called with the state after each commit to ``out``, by whoever writes.

    Returns:
        What was done.

    Raises:
        ConfigError: Settings that do not fit the graph, or a resume with other settings
            or another graph; or no such device.
        InvalidGraphError: Labels are missing, or features are not finite.
        OutputExistsError: ``out`` exists.
        StoreBusyError: Another training writes to ``out``.
        BudgetError: The plan does not fit in the budget.
        StorageFullError: The disk is full; the last checkpoint stays.
        TrainingFailedError: The loss is not a number; the last checkpoint stays.
    """
    out, graph = Path(out), stored_graph(graph)
    budget = None if memory is None else parse_bytes(memory)
    if config is None:
        config = run_config(out) if resume else GnnConfig()
    require_config(config, GnnConfig, "a network")
    require_callbacks(callbacks)
    if not resume:
        _require_new(config, owners)
    threads = num_threads(config, graph.num_edges)
    transfer = open_transfer(device, config)
    has_gpu = transfer is not None and transfer.is_real
    with (
        joined_process_group() as process_group,
        torch.random.fork_rng(devices=[0] if has_gpu else []),
        kernel_threads(threads),
    ):
        if transfer is not None and process_group.world_size > 1:
            raise ConfigError(
                f"device='cuda': got {process_group.world_size} processes, expected one; "
                "those of torchrun train with device='cpu'"
            )
        if not dry_run and not process_group.rank:
            run_folder.require_free(out, resume=resume, overwrite=overwrite)
            if config.tensorboard:
                find_writer()
        if budget is not None and transfer is None and not _may_have_few(config):
            _require_tables(graph, config, budget)
        has_few_rows = budget is not None and transfer is None and _may_have_few(config)
        context = replace(
            build_context(graph, config, transfer, owners=owners, few_rows=has_few_rows),
            budget=budget,
            on_commit=on_commit,
        )
        if not resume:
            _require_new_of(context, is_noting=not process_group.rank)
        if transfer is None:
            _require_budget(context)
        if has_few_rows:  # the others fit: only now they are made
            made: Any = _network_of(context)
            made.recomputed = getattr(context.network, "recomputed", frozenset())
            context = replace(context, network=made)
        plan: Mapping[str, Any] = {}
        if dry_run or budget is not None:
            plan = plan_within(context, budget)
            if budget is not None and exceeds(plan["planned_memory_bytes"], budget):
                raise _refusal(plan["planned_memory_bytes"], budget, context)
            if dry_run:
                return TrainReport(
                    run=out, epochs=0, seconds=0.0, edges_per_second=0.0, metrics=plan
                )
        if not process_group.rank:
            kept = run_folder.folder_to_train(out, resume=resume, overwrite=overwrite)
            held = runs.read_state(kept).files if resume else {}
            checkpoint.require_disk(out, disk_bytes(context) - sum(held.values()))
        report = _train(
            out, context, callbacks, progress, resume=resume, overwrite=overwrite
        )
        planned = {name: plan[name] for name in _PLANNED if name in plan}
        return replace(report, metrics={**planned, **report.metrics})


def _require_new(config: GnnConfig, owners: Owners | None) -> None:
    """Refuse settings that a resumed run may have, but no new one."""
    require_drawn(config)
    if config.sample_at == "owners" and owners is None:
        raise ConfigError(
            "sample_at: got owners without --cluster, but one process has all nodes; add "
            "--cluster, or leave sample_at out"
        )


def _require_new_of(context: GnnContext, *, is_noting: bool) -> None:
    """Refuse what this graph has no split for, as :func:`_require_new`; note the rest."""
    if known := getattr(context.task, "known_splits", None):
        require_watched(context.config, known)
    if is_noting:
        _note_unread(context)


def _note_unread(context: GnnContext) -> None:
    """Say which settings have no effect on this graph, and what of it says nothing."""
    config, network, task = context.config, context.network, context.task
    if context.task.process_group.owners is None and not config.normalize_features:
        _note_large(context.features)
    types = context.features.shapes
    learned = [n for n in types if key_of(n) in network.learned or n in network.stored]
    for text in unread_settings(
        config, learned, "" if config.is_of_links else task.node_type
    ):
        note(text)
    if config.eval_every and getattr(task, "is_watching_one_class", False):
        note(
            f"all nodes of split {config.eval_split!r} are of one class, of which roc_auc "
            f"says nothing: {task.metric} is watched"
        )
    split, is_by_metric = config.eval_split, config.eval_every and config.monitor != "loss"
    if is_by_metric and isinstance(task, NodeRegression) and split in task.splits:
        told = f"all nodes of split {split!r} have one label, of which r2 says nothing"
        if not task.is_told(split):
            note(f"{told}: loss is watched")


def _note_large(features: InputFeatures) -> None:
    """Say which features have numbers that hide all others."""
    for node_type, feature, most in features.large():
        note(
            f"feature {feature!r} of node type {node_type!r} has numbers as large as "
            f"{most:.6g}, where networks expect some of about 1, so that it hides the "
            "others; scale it, such as by its mean and standard deviation, and ingest again"
        )


def build_context(
    graph: GraphReader,
    config: GnnConfig,
    transfer: DeviceTransfer | None = None,
    *,
    is_checking: bool = True,
    owners: Owners | None = None,
    few_rows: bool = False,
    learned: Learned | None = None,
) -> GnnContext:
    """Return what a training is about, with a network that has its first weights.

    Args:
        graph: An open graph.
        config: The settings.
        transfer: Takes batches to a device; the network is there, then.
        is_checking: Whether to look at all features once.
        owners: Who reads which nodes' rows; by default who needs them.
        few_rows: Whether to make one learned row of each type alone, which
            :func:`~graphsys.gnn.training.plan.bytes_beyond` takes for all.
        learned: Of the labels of another graph, if those of this are not to be read.

    Raises:
        ConfigError: Settings that do not fit the graph.
        InvalidGraphError: Labels are missing, or features are not finite.
    """
    # Before the task, whose decoder draws its first weights: they depend on the seed alone.
    torch.manual_seed(int(draw_key(config.seed, "decoder")) >> 1)
    task = make_task(graph, config, learned)
    if config.learned_rows == "disk" and task.process_group.world_size > 1:
        raise ConfigError(
            f"learned_rows: got disk with {task.process_group.world_size} processes, "
            "which do not share their rows; expected memory, or one process"
        )
    if owners is not None:
        task.process_group = replace(task.process_group, owners=owners)
    seen = TASKS.get(config.task).view(graph, config)
    make_messages = GraphBatches if config.is_of_graphs else MessageGraph
    message_graph = make_messages(seen, config, task.node_type)
    require_types(graph, message_graph.node_types, task.node_type)
    if owners is not None:
        message_graph.sampler = owners.sampler(message_graph.sampler)
    features = InputFeatures(graph, message_graph.input_types, config, owners)
    if isinstance(message_graph, GraphBatches):
        features.learn_by_degree(message_graph.degrees())
    if is_checking:
        features.check()
    shapes = features.shapes
    if few_rows:
        shapes = {
            name: replace(shape, num_learned=min(shape.num_learned, 1))
            for name, shape in shapes.items()
        }
    network = _make_model(config, message_graph, shapes, task)
    _require_weights(network, features)
    if transfer is not None:
        network.to(transfer.device)
        if is_checking and config.cache_device_memory:  # the cache is of training
            features.cache_on(transfer.device, config)
    return GnnContext(
        graph=graph,
        config=config,
        task=task,
        message_graph=message_graph,
        features=features,
        network=network,
        transfer=transfer,
    )


def _require_tables(graph: GraphReader, config: GnnConfig, budget: int) -> None:
    """Refuse a training whose learned rows alone are beyond its budget.

    Models that make rows themselves are built without memory first, on torch's device
    ``meta``.
    """
    with torch.device("meta"):
        context = build_context(graph, config, is_checking=False)
    unmade = [*context.network.parameters(), *context.network.buffers()]
    needed = checkpoint_bytes(context) + sum(tensor.nbytes for tensor in unmade)
    if exceeds(needed, budget):
        raise _refusal(needed, budget, context)


def _require_budget(context: GnnContext) -> None:
    """Refuse a training whose plan cannot be made within its budget, where it has one."""
    if context.budget is None:
        return
    needed = bytes_beyond(context, context.budget)
    if needed is not None and may_choose_layers(context):
        network: Any = context.network
        network.recomputed = frozenset(range(context.config.layers))
        needed = bytes_beyond(context, context.budget)
    if needed is not None:
        raise _refusal(needed, context.budget, context)


def _refusal(needed: int, budget: int, context: GnnContext) -> BudgetError:
    """Return the error for a budget below the plan, with an amount that works."""
    enough = math.ceil(enough_bytes(needed) / 10**6)
    return BudgetError(
        f"memory: the training takes about {format_bytes(needed)}, the budget is "
        f"{format_bytes(budget)}; give --memory {enough}MB or more, or smaller "
        f"batch_size, fanouts, dim or prefetch{_disk_advice(context)}"
    )


def _disk_advice(context: GnnContext) -> str:
    """Say what keeps learned rows out of memory, where there are some in it."""
    config = context.network.config
    is_in_memory = config.is_whole_graph or config.is_of_graphs
    is_in_memory = is_in_memory or spec_of(config.model).make_model is not None
    if not len(context.network.learned) or is_in_memory:
        return ""
    size = learned_bytes(context)
    return (
        f", or learned_rows=disk (they have {format_bytes(size)}, their moments twice that)"
    )


def _may_have_few(config: GnnConfig) -> bool:
    """Tell whether batches of a network can be tried with one learned row for all."""
    is_own = config.is_of_events or config.is_of_graphs
    is_own = is_own or spec_of(config.model).make_model is not None
    return not (is_own or config.is_whole_graph or config.learned_rows == "disk")


def _network_of(context: GnnContext) -> Model:
    """Return the network of a training with its first weights, with all learned rows."""
    shapes = context.features.shapes
    config, messages = context.config, context.message_graph
    return _make_model(config, messages, shapes, context.task)


def _make_model(
    config: GnnConfig,
    message_graph: MessageGraph,
    shapes: Mapping[str, InputShape],
    task: Task,
) -> Model:
    torch.manual_seed(int(draw_key(config.seed, "weights")) >> 1)
    relations = message_graph.relations
    make = spec_of(config.model).make_model
    if config.is_of_events:
        assert isinstance(task.decoder, StreamModel)  # the task made it
        return StreamNetwork(config, task.decoder)
    if make is not None:
        made: Model = make(config, relations, shapes, task.decoder)
        return made
    if config.is_of_graphs:
        of_graphs: Any = spec_of(config.model).make_graph_model or GraphNetwork
        found: Model = of_graphs(config, relations, shapes, task.num_out, task.node_type)
        return found
    wanted = None if task.decoder is not None else [task.node_type]
    network = Network(config, relations, shapes, task.num_out, task.decoder, wanted)
    add_side_tasks(network, config, shapes, task)
    return network


def _require_weights(network: Model, features: InputFeatures) -> None:
    """Refuse a network that has nothing to learn."""
    has_rows = any(name in network.stored for name in features.shapes)
    if network.config.is_of_events or has_rows or any(True for _ in network.parameters()):
        return
    if is_file(network.config.model):
        raise ConfigError(
            f"model {network.config.model} has nothing to learn: its layers have no "
            "parameters; make some in __init__, torch.nn.Linear or torch.nn.Parameter"
        )
    raise ConfigError(
        f"model {network.config.model} learns the rows of nodes without features and "
        "nothing else, and all nodes have features: set model=sage, which learns of those"
    )


def run_config(out: str | Path, overrides: Iterable[str] = ()) -> GnnConfig:
    """Return the settings of the run that a resume goes on with.

    Args:
        out: Folder of the run.
        overrides: ``key=value`` settings on top, some of which the resume may change.

    Raises:
        ConfigError: There is no run, or a setting is wrong.
    """
    return checkpoint.run_config(out, overrides, load_config, check=runs.read_state)


def _train(
    out: Path,
    context: GnnContext,
    callbacks: Sequence[Callback],
    progress: Progress,
    *,
    resume: bool,
    overwrite: bool,
) -> TrainReport:
    process_group = context.task.process_group
    with contextlib.ExitStack() as holding:
        if process_group.rank:
            path = run_folder.folder_to_train(out, resume=resume, overwrite=overwrite)
        else:
            path = holding.enter_context(
                run_folder.writing(out, resume=resume, overwrite=overwrite)
            )
        state = _open_state(path, context, resume=resume)
        trainer = GnnTrainer(replace(context, path=path, state=state), callbacks)
        process_group.broadcast(
            None
        )  # all have read the checkpoint before the next one replaces it
        if resume and not process_group.rank:
            change_settings(path, context.config, state)
        with MemoryMeter(_METER_S) as meter:
            trainer.meter = meter
            trainer.run(progress)
    report = report_of(out, state)
    peak: dict[str, Any] = {"peak_memory_bytes": meter.peak_bytes}
    if split := trainer.stepper.memory.split(meter.peak_bytes):
        peak["peak_memory_split"] = split
    return replace(report, metrics={**report.metrics, **peak})


def _open_state(path: Path, context: GnnContext, *, resume: bool) -> runs.GnnRunState:
    graph, config = context.graph, context.config
    if resume:
        state = state_to_go_on_from(path, config)
        run_folder.require_same_graph(state.graph, graph, path)
        run_folder.check_files(path, state.files, state.checksums)
        if not context.task.process_group.rank:
            runs.remove_superseded(path, state)
        if context.on_commit is not None:  # who died may have given numbers nobody knows of
            state.serial = max(state.serial, time.time_ns() // 1_000_000)
        state.model_digest = models.digest_of(config.model)
        return state
    state = runs.GnnRunState(
        graph=run_folder.describe_graph(graph),
        num_out=context.task.num_out,
        classes=list(context.task.classes),
        units=list(context.task.units),
        node_type=context.task.node_type,
        is_multi=_has_several_classes(context.task),
        model_digest=models.digest_of(config.model),
    )
    if not context.task.process_group.rank:
        runs.begin(path, config, state)
        if context.on_commit is not None:
            context.on_commit(state)
    return state


def _has_several_classes(task: Task) -> bool:
    return isinstance(task, NodeClassification) and task.labels.is_multi


def state_to_go_on_from(path: Path, config: GnnConfig) -> runs.GnnRunState:
    """Return the checkpoint of a run, which can go on with these settings.

    Args:
        path: The run's folder.
        config: The settings, which may differ in what a resume may change.

    Raises:
        ConfigError: They differ in more, or leave nothing to train.
    """
    state = runs.read_state(path)
    if not checkpoint.changed_settings(path, config):
        return state
    checkpoint.require_epochs(path, config, state.epoch, state.batch)
    since_best = state.epoch - state.best_epoch
    is_waiting_over = 0 < config.patience <= since_best and state.best_epoch
    if state.epoch < config.epochs and is_waiting_over:
        raise ConfigError(
            f"the run {path} ended early after {state.epoch} epochs, {since_best} after "
            f"its best (patience {config.patience}); to train more, also give a larger one "
            "or --set patience=0"
        )
    before = int(load_toml(path / run_folder.CONFIG_NAME).get("epochs", config.epochs))
    checkpoint.note_rates(config, before)
    if config.sparsity and config.epochs != before:
        note(
            "sparsity: weights are dropped and grow until three quarters of all epochs: "
            f"from here on as in a run of {config.epochs}, before as in one of {before}"
        )
    return state


def change_settings(path: Path, config: GnnConfig, state: runs.GnnRunState) -> None:
    """Have a run go on with settings that :func:`state_to_go_on_from` has looked at.

    Args:
        path: The run's folder, which this process writes.
        config: The settings.
        state: Its checkpoint, brought up to date.
    """
    if checkpoint.changed_settings(path, config) or not checkpoint.is_sealed(state):
        checkpoint.change_settings(path, config, state)
