"""What surrounds the loop of a training: warm start before, hooks during, drift after."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from graphsys.core.errors import ConfigError, CorruptStoreError
from graphsys.core.progress import Progress
from graphsys.embedding import run as runs
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.model import RelationSet
from graphsys.embedding.rows.table_files import TableFiles
from graphsys.embedding.training.hook import Hook
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
from graphsys.embedding.training_log import TrainingLog
from graphsys.storage.reader import GraphReader as Graph

T = TypeVar("T")


def source_of(
    graph: Graph,
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


@contextlib.contextmanager
def supervised(
    context: EmbeddingContext,
    source: Embeddings | None,
    progress: Progress,
    trainer: Callable[[EmbeddingContext, Sequence[Hook], TrainingLog], T],
) -> Iterator[T]:
    """Give the trainer of a run, with its hooks; end the run once it has been trained.

    Args:
        context: The training.
        source: A run to begin with, where that has not been done.
        progress: Receives the stages.
        trainer: Makes the trainer.

    Raises:
        ConfigError: Nothing of the graph is in ``source``, or nothing is new.
    """
    config, state = context.config, context.state
    log = TrainingLog(context.path, state.log_bytes)
    try:
        if source is not None:
            _begin_with(context, source, progress)
            log.write("warm_start", **state.warm)
        context, hooks = with_hooks(context, log)
        yield trainer(context, hooks, log)
    finally:
        log.close()
    prune_best(context.path, config, state)
    found = _drift_since(context)
    if found is not None:
        state.metrics["drift"] = found


def with_hooks(
    context: EmbeddingContext, log: TrainingLog
) -> tuple[EmbeddingContext, list[Hook]]:
    """Return what is trained, once a warm start is done, and the hooks of its loop.

    Args:
        context: The training.
        log: Where hooks write.

    Raises:
        ConfigError: All new edges are held out.
    """
    config = context.config
    if config.train_only == "new":
        context = replace(context, steps=only_new(context))
        if not context.steps:
            raise ConfigError(
                f"train_only: all new edges of {context.graph.path} are held out by "
                f"eval_fraction, {config.eval_fraction}; append more, or train all"
            )
    hooks: list[Hook] = [Selection(), Watch(log), EpochEnd(log)]
    if config.numbers or config.tensorboard:
        from graphsys.embedding.training.hooks.numbers import Numbers  # torch

        folder = context.path if config.tensorboard else None
        hooks.insert(2, Numbers(folder, context.state.epoch, counts=config.numbers))
    if config.init_factor != 1.0:
        known = context.state.warm["relations"]
        model = with_inherited_rates(context.model, known, config.init_factor)
        context = replace(context, model=model)
        hooks = [InheritedRates(), *hooks]
    return context, hooks


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


def _drift_since(context: EmbeddingContext) -> dict[str, dict[str, Any]] | None:
    """Return the drift of a finished run since the one it began with.

    None if that run or its graph is not there any more, as after a resume much later.
    """
    init_from = context.config.init_from
    if init_from is None:
        return None
    try:
        return drift(init_from, Embeddings(context.path, graph=context.graph))
    except (ConfigError, CorruptStoreError):
        return None
