"""What of a config concerns several settings at once: those that contradict each other.

Configs are checked when they are made, so that these functions know their class by its
fields alone.
"""

from collections.abc import Collection
from typing import Any

from graphsys.core.errors import ConfigError
from graphsys.gnn.model_spec import models, spec_of
from graphsys.gnn.part_specs import SAMPLERS, TASKS
from graphsys.training.config import require_evaluations, shown, unread


def check_together(config: Any) -> None:
    """Check settings against each other; each by itself is in range.

    Raises:
        ConfigError: Fields that contradict each other.
    """
    _check_layers(config)
    _check_model(config)
    _check_links(config)
    if config.side_tasks:
        _check_side_tasks(config)
    _check_sampler(config)
    if config.weighted:
        _check_weighted(config)
    _check_folds(config)
    _check_classes(config)
    require_evaluations(config)
    if config.lr_schedule == "plateau" and not config.eval_every:
        raise ConfigError(
            "lr_schedule: got plateau and eval_every 0, expected evaluations while "
            "training; --set eval_every=1"
        )
    if config.is_of_graphs:
        _check_graphs(config)
    if config.sample_at == "owners":
        _check_owners(config)
    if config.sharding == "parameters":
        _check_sharded(config)


def require_drawn(config: Any) -> None:
    """Check that what is drawn with replacement is drawn.

    Of new trainings only: runs from before this was checked have such settings.

    Raises:
        ConfigError: ``replace`` with all neighbors.
    """
    if config.replace and min(config.hop_fanouts) < 0:
        raise ConfigError(
            f"replace: got True with fanouts {shown(config.hop_fanouts)}, of which -1 "
            "takes all neighbors and draws none; expected False, or fanouts of 1 and more"
        )


def unread_settings(config: Any, learned: Collection[str], node_type: str) -> list[str]:
    """Return a line for each setting that is not at its default and that nothing reads.

    They are told, not refused. What a preset chose is not told: nobody asked for it.

    Args:
        config: The settings.
        learned: Node types that the network has learned rows of.
        node_type: Whose nodes a batch is of; "" for all types.
    """
    spec = spec_of(config.model)
    takes_all = config.is_whole_graph or config.is_of_graphs or spec.messages == "none"
    draws_none = takes_all or config.is_of_events
    is_directed = config.is_of_events or spec.messages not in ("edges", "layers")
    of_batch = node_type in learned if node_type else learned
    whose = f"nodes of type {node_type!r}" if node_type else "nodes"
    reasons = (
        ("fanouts", takes_all or not spec.reads_fanouts, "no neighbors are drawn"),
        ("frontier", draws_none, "no neighbors are drawn"),
        ("replace", draws_none or spec.messages == "walks", "no neighbors are drawn"),
        ("reverse_edges", is_directed, "the model says which way edges go"),
        ("accumulate", config.is_full_batch, "an epoch is one batch"),
        ("epoch_batches", config.is_full_batch, "an epoch is one batch"),
        ("activation", spec.has_activation, "its layers have their own"),
        ("learned_rows", not learned, "all nodes have features, no rows are learned"),
        (
            "row_decay",
            not of_batch,
            f"the {whose} of a batch have no learned rows; weight_decay is of weights",
        ),
    )
    parts = {"model": models.modules, "task": TASKS.modules}
    where = f"model {config.model}, batch_size {config.batch_size} and task {config.task}"
    return unread(config, reasons, parts, where)


def _check_layers(config: Any) -> None:
    if config.lr_base_batch and config.is_full_batch:
        raise ConfigError(
            f"lr_base_batch: got {config.lr_base_batch} with batch_size 0, whose steps "
            "have no size to compare; expected 0"
        )
    if config.fanouts and len(config.fanouts) != config.layers:
        raise ConfigError(
            f"fanouts: got {len(config.fanouts)} ({', '.join(map(str, config.fanouts))}) "
            f"for {config.layers} layers, expected one per layer"
        )
    if any(fanout < -1 or fanout == 0 for fanout in config.fanouts):
        raise ConfigError(
            f"fanouts: got {list(config.fanouts)}, expected numbers >= 1, or -1 for all"
        )
    if spec_of(config.model).has_heads and config.dim % config.heads:
        raise ConfigError(
            f"dim: got {config.dim}, expected a multiple of heads, {config.heads}"
        )


def _check_model(config: Any) -> None:
    spec = spec_of(config.model)
    if spec.is_of_links and not config.is_of_links:
        known = [name for name in TASKS.names() if TASKS.get(name).is_of_links]
        raise ConfigError(
            f"task: got {config.task} with model {config.model}, whose rows are "
            f"compared with each other; expected {' or '.join(known)}"
        )
    if spec.decoder and config.decoder not in ("dot", spec.decoder):
        raise ConfigError(
            f"decoder: got {config.decoder} with model {config.model}, whose rows have one "
            f"of their own; expected {spec.decoder}, or none"
        )
    if spec.make_graph_model is not None and not config.is_of_graphs:
        known = [name for name in TASKS.names() if TASKS.get(name).is_of_graphs]
        raise ConfigError(
            f"task: got {config.task} with model {config.model}, whose output is of whole "
            f"graphs; expected {' or '.join(known)}"
        )
    if spec.make_stream is not None:
        _check_events(config)
    if spec.messages in ("walks", "layers") and not config.batch_size:
        raise ConfigError(
            f"batch_size: got 0 with model {config.model}, expected at least 1, for its "
            "neighborhoods are sampled"
        )
    if config.learned_rows == "disk" and config.is_whole_graph:
        raise ConfigError(
            "learned_rows: got disk with messages over the whole graph (batch_size 0, "
            "or model lightgcn), whose rows are in memory all at once; expected memory"
        )


def _check_events(config: Any) -> None:
    """Check a model that follows edges in order of time."""
    known = [name for name in TASKS.names() if TASKS.get(name).is_of_events]
    for name, is_set, expected in (
        ("task", not TASKS.get(config.task).is_of_events, " or ".join(known)),
        ("batch_size", not config.batch_size, "at least 1, for it learns batch by batch"),
        ("negatives", config.negatives != "uniform", "uniform"),
        ("negatives_of", config.negatives_of != "batch", "batch"),
        ("in_batch", config.in_batch, "false, for its negatives are drawn"),
        ("num_negatives", not config.num_negatives, "at least 1"),
        ("alike_negatives", config.alike_negatives > 0, "0, for its negatives are drawn"),
        ("learned_rows", config.learned_rows == "disk", "memory"),
        ("sampler", not SAMPLERS.get(config.sampler).is_usual, "neighbor"),
        ("fanouts", min(config.hop_fanouts) < 1, "numbers >= 1: the latest neighbors"),
    ):
        if is_set:
            raise ConfigError(
                f"{name}: got {getattr(config, name)} with model {config.model}, which "
                f"follows edges in order of time; expected {expected}"
            )


def _check_links(config: Any) -> None:
    if len(config.hard_ranks) != 2 or not 0 <= config.hard_ranks[0] < config.hard_ranks[1]:
        raise ConfigError(
            f"hard_ranks: got {list(config.hard_ranks)}, expected a first rank >= 0 and "
            "a larger last one"
        )
    if config.hard_negatives and spec_of(config.model).messages != "walks":
        raise ConfigError(
            f"hard_negatives: got {config.hard_negatives} with model {config.model}, "
            "expected model pinsage, whose walks rank them"
        )
    if bool(config.alike_negatives) != bool(config.alike):
        raise ConfigError(
            f"alike_negatives: got {config.alike_negatives} with column "
            f"{config.alike!r}, expected both or none"
        )
    if not config.num_negatives and not config.in_batch:
        raise ConfigError("num_negatives: got 0, expected at least 1, or in_batch = true")
    if config.in_batch and not config.num_negatives and config.batch_size == 1:
        raise ConfigError(
            "in_batch: got true with batch_size 1 and num_negatives 0, expected more pairs "
            "in a batch, or other negatives: there are none"
        )
    is_skipgram = spec_of(config.model).is_skipgram
    if config.in_batch and (is_skipgram or config.negatives_of == "pair"):
        raise ConfigError(
            f"in_batch: got true with model {config.model} and negatives_of "
            f"{config.negatives_of}, expected another than gatne, and negatives_of batch"
        )


def _check_side_tasks(config: Any) -> None:
    """Check that batches of pairs have rows and features that a side task can compare."""
    spec, task = spec_of(config.model), TASKS.get(config.task)
    is_own = spec.make_model is not None or spec.make_stream is not None
    for name, is_set, expected in (
        (
            "task",
            not task.is_of_links or task.is_of_events,
            "link_prediction or recommendation, whose rows are compared",
        ),
        ("model", is_own, "a model of layers, which read features"),
        ("model", spec.is_whole_graph, "a model that samples"),
        ("batch_size", not config.batch_size, "at least 2: the others are negatives"),
    ):
        if is_set:
            raise ConfigError(
                f"{name}: got {getattr(config, name)} with side_tasks "
                f"{', '.join(config.side_tasks)}, expected {expected}"
            )


def _check_weighted(config: Any) -> None:
    """Check that neighbors are drawn, so that weights of edges can say which."""
    spec = spec_of(config.model)
    for is_set, reason in (
        (spec.make_stream is not None, "it takes the latest neighbors"),
        (config.is_of_graphs, "all of a graph is read"),
        (spec.messages == "walks", "its walks take every edge alike"),
        (spec.messages == "none", "it reads no messages"),
        (config.is_whole_graph, "all neighbors send messages (batch_size 0)"),
    ):
        if is_set:
            raise ConfigError(
                f"weighted: got true with model {config.model} and task {config.task}, "
                f"expected neighbors that are drawn: {reason}; --set weighted=false"
            )


def _check_sampler(config: Any) -> None:
    sampler, spec = SAMPLERS.get(config.sampler), spec_of(config.model)
    has_times = TASKS.get(config.task).has_times
    if config.recent and sampler.is_usual:
        known = [name for name in SAMPLERS.names() if SAMPLERS.get(name).can_be_recent]
        raise ConfigError(
            f"recent: got true with sampler {config.sampler}, expected sampler "
            f"{' or '.join(known)}"
        )
    if config.labor_iterations:
        _check_iterations(config)
    if config.weighted and sampler.has_shares(config) and not spec.reads_shares(config):
        raise ConfigError(
            f"weighted: got true with sampler {config.sampler} and model {config.model}, "
            "whose neighbors count alike; expected model gcn, hep, rgcn or sage with "
            "aggregator mean, or sampler neighbor"
        )
    is_other, is_by_layer = not sampler.is_usual, spec.messages == "layers"
    for name, is_set, reason in (
        (
            "replace",
            config.replace and not sampler.can_replace,
            "it draws without replacement",
        ),
        ("weighted", config.weighted and not sampler.can_weigh, "it draws all alike"),
        ("recent", config.recent and not sampler.can_be_recent, "it knows no time"),
        ("recent", config.recent and config.weighted, "the latest are not drawn"),
        ("model", is_other and spec.messages == "walks", "its neighborhoods are walked"),
        ("model", is_other and is_by_layer, "a hop of it is sampled as one"),
        ("replace", config.replace and is_by_layer, "a hop of ahep is sampled as one"),
        ("weighted", config.weighted and is_by_layer, "a hop of ahep is sampled as one"),
        ("batch_size", is_other and config.is_full_batch, "the whole graph is not sampled"),
        (
            "model",
            spec.has_loops and not sampler.has_all_edges,
            "its sums know later edges",
        ),
        ("task", sampler.has_times and not has_times, "times are those of labeled nodes"),
    ):
        if is_set:
            raise ConfigError(
                f"{name}: got {getattr(config, name)} with sampler {config.sampler}, "
                f"expected otherwise: {reason}"
            )


def _check_iterations(config: Any) -> None:
    """Check that a sampler gives weights, and that the model's means heed them."""
    asked = f"labor_iterations: got {config.labor_iterations} with"
    if not SAMPLERS.get(config.sampler).can_iterate:
        known = [name for name in SAMPLERS.names() if SAMPLERS.get(name).can_iterate]
        raise ConfigError(
            f"{asked} sampler {config.sampler}, expected sampler {' or '.join(known)}, or 0"
        )
    if not spec_of(config.model).reads_shares(config):
        raise ConfigError(
            f"{asked} model {config.model}, whose neighbors count alike; expected model "
            "gcn, hep, rgcn or sage with aggregator mean, or 0"
        )


def _check_folds(config: Any) -> None:
    if config.folds and not config.is_of_graphs:
        known = [name for name in TASKS.names() if TASKS.get(name).is_of_graphs]
        raise ConfigError(
            f"folds: got {config.folds} with task {config.task}, expected task "
            f"{' or '.join(known)}, or 0"
        )
    if config.folds == 1:
        raise ConfigError("folds: got 1, expected at least 2, or 0 for none")
    if config.fold >= max(config.folds, 1):
        raise ConfigError(
            f"fold: got {config.fold} of {config.folds} folds, expected 0 to "
            f"{max(config.folds - 1, 0)}"
        )


def _check_classes(config: Any) -> None:
    """Refuse what is asked of classes where none are learned."""
    if TASKS.get(config.task).has_classes:
        return
    known = [name for name in TASKS.names() if TASKS.get(name).has_classes]
    for name, default in (("class_weights", "none"), ("label_smoothing", 0.0)):
        if getattr(config, name) != default:
            raise ConfigError(
                f"{name}: got {getattr(config, name)} with task {config.task}, expected "
                f"task {' or '.join(known)}, or {default}"
            )


def _check_graphs(config: Any) -> None:
    """Check that a batch can be of whole graphs."""
    spec = spec_of(config.model)
    is_own = spec.make_model is not None or spec.make_stream is not None
    for name, is_set, expected in (
        ("model", is_own or spec.messages != "edges", "a model of layers"),
        ("batch_size", not config.batch_size, "at least 1: graphs of a step"),
        ("fanouts", bool(config.fanouts), "none: all of a graph is read"),
        ("sampler", not SAMPLERS.get(config.sampler).is_usual, "neighbor"),
        ("learned_rows", config.learned_rows == "disk", "memory"),
        ("sample_at", config.sample_at == "owners", "store"),
    ):
        if is_set:
            raise ConfigError(
                f"{name}: got {getattr(config, name)} with task {config.task}, whose "
                f"batches are of whole graphs; expected {expected}"
            )


def _check_owners(config: Any) -> None:
    """Check that rows are drawn node by node, so that another can draw them."""
    spec = spec_of(config.model)
    for name, is_set, expected in (
        (
            "model",
            spec.messages != "edges" or spec.make_stream is not None,
            "one whose messages come from edges",
        ),
        ("batch_size", config.is_whole_graph, "at least 1 and a model that samples"),
        ("sampler", SAMPLERS.get(config.sampler).has_times, "neighbor or labor"),
        ("labor_iterations", config.labor_iterations != 0, "0"),
        (
            "weighted",
            SAMPLERS.get(config.sampler).has_shares(config),
            "false, or sampler neighbor",
        ),
    ):
        if is_set:
            raise ConfigError(
                f"{name}: got {getattr(config, name)} with sample_at owners, which draws a "
                f"row by its node alone; expected {expected}"
            )


def _check_sharded(config: Any) -> None:
    """Check that weights are needed layer by layer, and each number by itself."""
    spec = spec_of(config.model)
    ways = (spec.make_model, spec.make_stream, spec.make_graph_model)
    for name, is_set, expected in (
        ("task", config.is_of_graphs, "one of nodes or edges"),
        (
            "model",
            spec.is_whole_graph or any(way is not None for way in ways),
            "a model of layers that samples",
        ),
        ("batch_size", config.is_full_batch, "at least 1"),
        ("optimizer", config.optimizer != "adam", "adam"),
        ("sparsity", config.sparsity > 0, "0"),
        ("gradient_compression", config.gradient_compression != "none", "none"),
        ("numbers", config.numbers, "false"),
        ("learned_rows", config.learned_rows == "disk", "memory"),
    ):
        if is_set:
            raise ConfigError(
                f"{name}: got {shown(getattr(config, name))} with sharding parameters, "
                f"where no process has all weights; expected {expected}, or sharding "
                "optimizer or none"
            )
