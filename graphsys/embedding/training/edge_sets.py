"""Which buckets an epoch trains: edge sets in order, each in parts, bucket by bucket."""

from dataclasses import replace

import numpy as np

from graphsys.core.errors import ConfigError, unknown_name
from graphsys.core.types import Bucket
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.control_config import EdgeSetConfig
from graphsys.embedding.data.edge_selection import (
    EdgePart,
    Rows,
    edges_to_train,
    held_out_edges,
    num_held_out,
)
from graphsys.embedding.data.schedule import BucketTask, inside_out
from graphsys.embedding.model import RelationSet
from graphsys.embedding.training.incremental import read_new_edges
from graphsys.embedding.training.warm_start import with_inherited_rates
from graphsys.storage.grouped.pair_view import PairGraph
from graphsys.storage.reader import GraphReader


def list_steps(
    graph: GraphReader, model: list[RelationSet], config: EmbeddingConfig
) -> list[BucketTask]:
    """List the buckets of one epoch: set by set, part by part, inside out.

    Args:
        graph: The graph.
        model: Its relations.
        config: ``edge_sets``, ``edge_chunks`` and ``eval_fraction``.

    Returns:
        The buckets with edges to be trained.

    Raises:
        UnknownNameError: A set names an edge type that is not trained.
        ConfigError: A set has no edges, or there are none at all.
    """
    steps: list[BucketTask] = []
    phase = 0
    for number, chosen in enumerate(config.edge_sets or (EdgeSetConfig(),)):
        found = _steps_of(graph, model, chosen, number)
        for part in range(config.edge_chunks):
            for step in found:
                rest = step.num_edges - num_held_out(step.num_edges, config.eval_fraction)
                cut = EdgePart(number=part, total=config.edge_chunks)
                if cut.size(rest):
                    size = cut.size(rest)
                    steps.append(replace(step, num_edges=size, part=cut, phase=phase))
            phase += 1
    if not steps:
        raise ConfigError("the graph has no training edges; there is nothing to train on")
    return steps


def only_new(context: EmbeddingContext) -> list[BucketTask]:
    """Return the buckets of an epoch that have new edges, once those are listed."""
    result = []
    for step in context.steps:
        relations = context.model[step.edge_type]
        rows = read_new_edges(
            context.path, context.state, relations.name, step.split, step.bucket
        )
        counts = context.graph.bucket_counts(relations.edge_type, step.split)
        num_edges = int(counts[step.bucket])
        held = held_out_of(context.config, relations.name, step, num_edges)
        chosen = edges_to_train(num_edges, held, step.part, rows)
        if chosen is not None and len(chosen):
            result.append(replace(step, num_edges=len(chosen)))
    return result


def settled(context: EmbeddingContext) -> EmbeddingContext:
    """Return what is trained, once a warm start is done: new edges, inherited rates.

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
    if config.init_factor != 1.0:
        known = context.state.warm["relations"]
        model = with_inherited_rates(context.model, known, config.init_factor)
        context = replace(context, model=model)
    return context


def choose_edges(
    context: EmbeddingContext, epoch: int, step: BucketTask, order: Rows
) -> Rows:
    """Choose the edges of a bucket: none held out, none of other parts, only new ones.

    Args:
        context: The training.
        epoch: Epochs completed.
        step: The bucket.
        order: Positions in the bucket, uint32.

    Returns:
        Those that are trained; ``order`` itself for all.
    """
    name, only = context.model[step.edge_type].name, None
    if context.config.train_only == "new":
        only = read_new_edges(context.path, context.state, name, step.split, step.bucket)
    held = held_out_of(context.config, name, step, len(order))
    chosen = edges_to_train(len(order), held, step.part, only)
    return order if chosen is None else chosen


def held_out_of(
    config: EmbeddingConfig, name: str, step: BucketTask, num_edges: int
) -> Rows:
    """Return the held-out edges of a bucket of the edge type ``name``."""
    if not config.eval_fraction:
        return np.empty(0, dtype=np.uint32)
    return held_out_edges(
        config.seed, config.eval_fraction, name, step.split, step.bucket, num_edges
    )


def _steps_of(
    graph: GraphReader, model: list[RelationSet], chosen: EdgeSetConfig, number: int
) -> list[BucketTask]:
    """List the buckets of one set, edge type by edge type, with all of their edges."""
    names = [relations.name for relations in model]
    for name in chosen.edge_types:
        if name not in names:
            err = unknown_name("edge type", name, names)
            raise type(err)(f"edge_sets[{number}]: {err}")
    steps = []
    for k, relations in enumerate(model):
        kind = relations.edge_type
        split = chosen.split or graph.default_split(kind)
        is_chosen = not chosen.edge_types or relations.name in chosen.edge_types
        if not is_chosen or split not in graph.splits(kind):
            continue
        counts = graph.bucket_counts(kind, split)
        meets = graph if isinstance(graph, PairGraph) else None
        for bucket in inside_out(Bucket(*ends) for ends in np.argwhere(counts).tolist()):
            src, dst = (kind.src_type, bucket[0]), (kind.dst_type, bucket[1])
            turn = meets.round_of(kind, bucket) if meets else 0
            size = int(counts[bucket])
            steps.append(BucketTask(k, bucket, src, dst, size, split=split, round=turn))
    if chosen.split is not None and not steps:
        known = sorted({s for m in model for s in graph.splits(m.edge_type)})
        raise ConfigError(
            f"edge_sets[{number}]: split {chosen.split!r} has no edges; the graph has "
            f"{', '.join(known)}"
        )
    return steps
