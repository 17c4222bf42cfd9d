"""What surrounds the loop of a training: warm start before, hooks during, drift after."""

from pathlib import Path
from typing import Any

from graphsys.core.errors import ConfigError, CorruptStoreError
from graphsys.core.progress import Progress
from graphsys.embedding import run as runs
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.data.schedule import Layout, Step
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.model import RelationSet
from graphsys.embedding.rows.table_files import TableFiles
from graphsys.embedding.training.backend import Backend
from graphsys.embedding.training.hooks.control import InheritedRates, Selection, Watch
from graphsys.embedding.training.hooks.drift import drift
from graphsys.embedding.training.hooks.edge_sets import only_new
from graphsys.embedding.training.hooks.epoch_end import EpochEnd, prune_best
from graphsys.embedding.training.hooks.incremental import list_new_edges
from graphsys.embedding.training.hooks.warm_start import (
    open_source,
    warm_start,
    with_inherited_rates,
)
from graphsys.embedding.training.trainer import Trainer
from graphsys.embedding.training_log import TrainingLog
from graphsys.storage.reader import Graph


def source_of(
    graph: Graph,
    config: EmbeddingConfig,
    model: list[RelationSet],
    started: runs.RunState | None,
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


def supervise(
    path: Path,
    graph: Graph,
    config: EmbeddingConfig,
    model: list[RelationSet],
    steps: list[Step],
    state: runs.RunState,
    layout: Layout,
    backend: Backend,
    source: Embeddings | None,
    progress: Progress,
) -> Trainer:
    """Carry a run to its end.

    Args:
        path: The run's folder.
        graph: The graph.
        config: The settings.
        model: The relations.
        steps: The buckets of an epoch.
        state: The checkpoint to go on from; changed.
        layout: Order of the units and size of the buffer.
        backend: Where slices are trained.
        source: A run to begin with, where that has not been done.
        progress: Receives the stages.

    Raises:
        ConfigError: Nothing of the graph is in ``source``, or nothing is new.
    """
    log = TrainingLog(path, state.log_bytes)
    try:
        if source is not None:
            _begin_with(source, path, graph, config, model, steps, state, progress)
            log.write("warm_start", **state.warm)
        if config.train_only == "new":
            steps = only_new(path, state, graph, model, config, steps)
        hooks = [Selection(), Watch(log), EpochEnd(log)]
        if config.init_factor != 1.0:
            model = with_inherited_rates(model, state.warm["relations"], config.init_factor)
            hooks = [InheritedRates(), *hooks]
        trainer = Trainer(path, graph, config, model, steps, state, hooks, layout, backend)
        trainer.run(progress)
    finally:
        log.close()
    prune_best(path, config, state)
    found = _drift_since(path, graph, config)
    if found is not None:
        state.metrics["drift"] = found
    return trainer


def _begin_with(
    old: Embeddings,
    path: Path,
    graph: Graph,
    config: EmbeddingConfig,
    model: list[RelationSet],
    steps: list[Step],
    state: runs.RunState,
    progress: Progress,
) -> None:
    """Take over rows and operators, list what is new, and commit that.

    Until the commit the run has no note of a warm start: after a kill a resume does it
    all again.
    """
    files = TableFiles(path, graph, model, config, state)
    facts = warm_start(files, graph, model, config, old, progress)
    if config.train_only == "new":
        facts["new_edges"] = list_new_edges(files, graph, model, steps, old.graph)
        if not facts["new_edges"]:
            raise ConfigError(
                f"train_only: {graph.path} has no edge that {old.graph.path}, the graph "
                f"of {old.path}, lacks; append some, or train all"
            )
    files.flush(state)
    state.warm = facts
    runs.commit(path, state)
    files.committed()


def _drift_since(
    path: Path, graph: Graph, config: EmbeddingConfig
) -> dict[str, dict[str, Any]] | None:
    """Return the drift of a finished run since the one it began with.

    None if that run or its graph is not there any more, as after a resume much later.
    """
    if config.init_from is None:
        return None
    try:
        return drift(config.init_from, Embeddings(path, graph=graph))
    except (ConfigError, CorruptStoreError):
        return None
