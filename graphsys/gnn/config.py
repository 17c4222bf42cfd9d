"""What a user sets: one frozen config, from a preset, a TOML file and overrides."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graphsys.core.config import Checked, option
from graphsys.core.errors import ConfigError
from graphsys.core.threads import num_cores
from graphsys.gnn import part_specs
from graphsys.gnn.model_spec import GROUP, model_names, spec_of
from graphsys.gnn.part_specs import DECODERS, PAIR_LOSSES, SAMPLERS, TASKS
from graphsys.training.config import ConfigLoader

_SMALL_WORK = 1 << 22  # numbers added up by a layer
_OF_TIME = "temporal_link_prediction, change_prediction"
_OF_LINKS = f"link_prediction, recommendation, {_OF_TIME}"


@dataclass(frozen=True, kw_only=True)
class GnnConfig(Checked):
    """Everything a run of a graph neural network depends on besides the graph."""

    # fmt: off
    # what is learned
    task: str = option(
        "node_classification",
        "What is learned: classes of nodes, numbers of nodes, edges, who likes what, who "
        "meets whom next, or which links a snapshot brings.",
        group="Task", choices=TASKS.names, plugins=part_specs.TASKS_GROUP,
    )
    node_type: str = option(
        "", "Node type whose labels are learned; by default the only type that has them.",
        group="Task", applies="node_classification, regression",
    )
    label: str = option(
        "label",
        "Column of the labels: a class, a list of classes, or a number.",
        group="Task", applies="node_classification, regression",
    )
    split: str = option(
        "split", "Column of the nodes that says train, valid or test.",
        group="Task", applies="node_classification, regression",
    )
    edge_type: str = option(
        "", "Edge type that is learned; by default the only one.",
        group="Task", applies=_OF_LINKS,
    )
    positives: Literal["edges", "walks"] = option(
        "edges",
        "Which pairs of nodes are to score high: the ends of edges, or a node and one that "
        "a walk from it meets. gatne always takes pairs of nodes on walks.",
        group="Task", applies="link_prediction",
    )
    loss: str = option(
        "margin", "Loss of a pair against its negatives.",
        group="Task", applies=_OF_LINKS,
        choices=PAIR_LOSSES.names, plugins=part_specs.PAIR_LOSSES_GROUP,
    )
    decoder: str = option(
        "dot", "How the rows of two nodes become the score of the pair.",
        group="Task", applies=_OF_LINKS,
        choices=DECODERS.names, plugins=part_specs.DECODERS_GROUP,
    )
    margin: float = option(
        0.1, "How much higher a pair is to score than its negatives.",
        minimum=0, group="Task", applies="loss = margin",
    )
    valid_share: float = option(
        0.15, "Share of the edges that are valid, those before the ones of test, where the "
        "store has no split.",
        minimum=0, maximum=0.99, group="Task", applies=_OF_TIME,
    )
    test_share: float = option(
        0.15, "Share of the edges that are test, the last ones, where the store has no "
        "split.",
        minimum=0, maximum=0.99, group="Task", applies=_OF_TIME,
    )
    # the network
    model: str = option(
        "sage", "Layers of the network.", group="Model", choices=model_names,
        plugins=GROUP,
    )
    dim: int = option(
        64, "Features of a hidden row, all heads together.", minimum=1, group="Model"
    )
    layers: int = option(
        2, "Layers, which is also how many hops messages come from.",
        minimum=1, group="Model",
    )
    aggregator: Literal["mean", "sum", "max", "pool", "lstm"] = option(
        "mean", "How the rows of the neighbors become one.", group="Model", applies="sage"
    )
    bases: int = option(
        0, "Matrices that relations share; 0: each has its own.",
        minimum=0, group="Model", applies="rgcn",
    )
    heads: int = option(
        8, "Attention heads, which share dim.",
        minimum=1, group="Model", applies="gat, gatv2, hgt, han, tgn",
    )
    output_heads: int = option(
        1, "Attention heads of the last layer, whose outputs are averaged.",
        minimum=1, group="Model", applies="gat, gatv2, hgt, han",
    )
    time_window: float = option(
        0.0, "How long a pair is remembered, as a share of the time that the training "
        "edges span; 0: forever.",
        minimum=0, group="Model", applies="edgebank",
    )
    kl_weight: float = option(
        0.001, "Weight of how far the rows of nodes, as draws, are from N(0, 1).",
        minimum=0, group="Model", applies="evolving",
    )
    edge_dim: int = option(
        10, "Features of a relation's row.", minimum=1, group="Model", applies="gatne"
    )
    attention_dim: int = option(
        20, "Width of the attention over relations.",
        minimum=1, group="Model", applies="gatne",
    )
    activation: Literal["relu", "elu"] = option(
        "relu", "Function between two layers.", group="Model"
    )
    norm: Literal["none", "layer", "batch"] = option(
        "none", "Normalization of the rows before every layer.", group="Model"
    )
    residual: bool = option(
        False,
        "Add a layer's input to its output; the first and the last layer are then linear.",
        group="Model",
    )
    dropout: float = option(
        0.0, "Chance of a feature to be left out in training.",
        minimum=0, maximum=0.99, group="Model",
    )
    attention_dropout: float = option(
        0.0, "Chance of a neighbor to be left out of attention in training.",
        minimum=0, maximum=0.99, group="Model", applies="gat, gatv2, hgt, han",
    )
    # what the first layer reads
    features: tuple[str, ...] = option(
        (), "Features to read, by name; by default all of a node type.", group="Features"
    )
    normalize_features: bool = option(
        False, "Scale every row of features to the sum 1.", group="Features"
    )
    learned_rows: Literal["memory", "disk"] = option(
        "memory",
        "Where the learned rows of nodes without features are kept: in memory, where the "
        "optimizer moves all of them in every step, or in the run's files, where Adagrad "
        "moves those of a batch.",
        group="Features",
    )
    rows_lr: float = option(
        0.1, "Learning rate of rows on disk.",
        above=0, group="Features", applies="learned_rows = disk",
    )
    cache: Literal["none", "degree", "importance", "lru", "sieve"] = option(
        "none", "Which nodes' features are kept in memory between batches.",
        group="Features",
    )
    cache_memory: str = option(
        "256MB", "Memory for kept features, over all node types.", group="Features"
    )
    cache_device_memory: str = option(
        "", "Memory of the GPU for features of hot nodes, such as 2GB; by default none.",
        group="Features", applies="--device cuda",
    )
    # where messages come from
    edge_types: tuple[str, ...] = option(
        (), "Edge types that carry messages; by default all.", group="Sampling"
    )
    reverse_edges: bool = option(
        True, "Send messages against the direction of directed edges too.",
        group="Sampling",
    )
    fanouts: tuple[int, ...] = option(
        (),
        "Neighbors to sample per hop, the hop next to the seeds first (as in PyG; DGL has "
        "it last); -1: all. By default 10 each, 50 for pinsage.",
        group="Sampling",
    )
    frontier: Literal["all", "new"] = option(
        "all",
        "Whose neighbors a hop samples: those of all nodes so far (DGL), or of the new "
        "ones (PyG).",
        group="Sampling",
    )
    sampler: str = option(
        "neighbor",
        "How neighbors are drawn: each node draws its own; labor: nodes of a hop share "
        "them; temporal: by edges older than the seed's column time.",
        group="Sampling", choices=SAMPLERS.names,
        plugins=part_specs.SAMPLERS_GROUP,
    )
    recent: bool = option(
        False, "Take the latest neighbors instead of random ones.",
        group="Sampling", applies="sampler = temporal",
    )
    replace: bool = option(
        False, "Draw neighbors with replacement.", group="Sampling"
    )
    weighted: bool = option(
        False, "Draw neighbors in proportion to the edges' weights.", group="Sampling"
    )
    sample_at: Literal["store", "owners"] = option(
        "store", "Who reads rows and features: whoever needs them, or, of nodes in another "
        "worker's partitions, that worker.",
        group="Sampling", applies="--cluster",
    )
    num_walks: int = option(
        100, "Walks from a node, which choose its important neighbors.",
        minimum=1, group="Sampling", applies="pinsage",
    )
    walk_length: int = option(
        3, "Steps of a walk.", minimum=1, group="Sampling", applies="pinsage, gatne"
    )
    restart: float = option(
        0.5, "Chance of a walk to go back to its start after a step.",
        minimum=0, maximum=0.99, group="Sampling", applies="pinsage",
    )
    window: int = option(
        2, "Most steps between two nodes of a walk that make a pair.",
        minimum=1, group="Sampling", applies="gatne",
    )
    # negatives
    negatives: Literal["uniform", "degree"] = option(
        "uniform", "How negatives are drawn: all nodes alike, or by their degree.",
        group="Negatives", applies="link_prediction, recommendation",
    )
    num_negatives: int = option(
        500, "Negatives of a batch, or of a pair.",
        minimum=0, group="Negatives",
        applies=_OF_LINKS,
    )
    negatives_of: Literal["batch", "pair"] = option(
        "batch",
        "Whether a batch shares its negatives, or each pair has its own, none of which is "
        "a known answer.",
        group="Negatives", applies="link_prediction, recommendation",
    )
    in_batch: bool = option(
        False, "The second nodes of a batch's other pairs are negatives too.",
        group="Negatives", applies="link_prediction, recommendation",
    )
    alike_negatives: int = option(
        0, "Negatives per pair that have the same value as its node in the column alike.",
        minimum=0, group="Negatives", applies="link_prediction, recommendation",
    )
    alike: str = option(
        "", "Column of the nodes for alike_negatives, such as their category.",
        group="Negatives", applies="link_prediction, recommendation",
    )
    hard_negatives: int = option(
        0, "Most hard negatives per pair: none in the first epoch, one more in each.",
        minimum=0, group="Negatives", applies="pinsage",
    )
    hard_ranks: tuple[int, ...] = option(
        (2000, 5000),
        "First and last place, by visits of walks, from which hard negatives come.",
        group="Negatives", applies="pinsage",
    )
    # how it is learned
    epochs: int = option(
        10, "Passes over the training nodes or edges.", minimum=1, group="Training"
    )
    batch_size: int = option(
        1024, "Training nodes or edges of a step; 0: the whole graph at once.",
        minimum=0, group="Training",
    )
    epoch_batches: int = option(
        0, "Batches of an epoch at most, others in each; 0: all nodes or edges.",
        minimum=0, group="Training",
    )
    optimizer: Literal["adam", "lamb", "lars"] = option(
        "adam", "Optimizer; lamb and lars are for large batches: Adam's steps or those of "
        "momentum, scaled layer by layer; lars wants an lr near 1.",
        group="Training",
    )
    lr: float = option(0.01, "Learning rate.", above=0, group="Training")
    lr_warmup_epochs: float = option(
        0.0, "Epochs in which the learning rate rises from 0.", minimum=0, group="Training"
    )
    lr_base_batch: int = option(
        0, "Batch size that lr is meant for: with batch_size * accumulate k times as "
        "large, so is the learning rate (linear scaling); 0: lr as it is.",
        minimum=0, group="Training",
    )
    lr_decay: float = option(
        1.0, "Factor on the learning rate after every epoch.",
        above=0, maximum=1, group="Training",
    )
    weight_decay: float = option(
        0.0, "Strength of the L2 penalty on weights; decoupled for lamb, scaled with lars.",
        minimum=0, group="Training",
    )
    decay_layers: Literal["all", "first"] = option(
        "all", "Layers whose weights weight_decay concerns.", group="Training"
    )
    row_decay: float = option(
        0.0, "Strength of the L2 penalty on the learned rows of a batch.",
        minimum=0, group="Training",
    )
    accumulate: int = option(
        1, "Batches whose gradients make one step.", minimum=1, group="Training"
    )
    gradient_compression: Literal["none", "int8"] = option(
        "none",
        "How gradients travel between processes: as float32, or as 8 bits with the error "
        "of rounding added in the next step.",
        group="Training", applies="--cluster, torchrun",
    )
    precision: Literal["float32", "bfloat16"] = option(
        "float32",
        "Numbers that products of matrices are computed with; weights, sums over neighbors "
        "and losses stay float32.",
        group="Training",
    )
    recompute: bool = option(
        False,
        "Keep only the inputs of layers for the backward pass: less memory, a third more "
        "time.",
        group="Training",
    )
    seed: int = option(0, "Seed of all random draws.", minimum=0, group="Training")
    deterministic: bool = option(
        False, "Use one thread, so that a rerun or a resumed run is equal bit by bit.",
        group="Training",
    )
    # what is evaluated and kept
    eval_every: int = option(
        1, "Evaluate after every so many epochs; 0: never.", minimum=0, group="Evaluation"
    )
    eval_split: str = option(
        "valid", "Split that is evaluated while training.",
        group="Evaluation", aliases=("watch",),
    )
    monitor: Literal["loss", "metric"] = option(
        "metric",
        "The validation metric that early stopping watches: the task's, or the loss.",
        group="Evaluation",
    )
    patience: int = option(
        0,
        "End the training after so many evaluations without a better one; 0: train all "
        "epochs.",
        minimum=0, group="Evaluation",
    )
    keep: Literal["best", "last"] = option(
        "best", "Whether the run keeps the weights of the best epoch or of the last.",
        group="Evaluation",
    )
    # this machine
    threads: int = option(0, "Threads; 0: one per core.", minimum=0, group="Machine")
    prefetch: int = option(
        -1, "Batches that threads sample and gather ahead; 0: none; -1: none or one, as "
        "comes faster in the first 16 batches.",
        minimum=-1, maximum=64, group="Machine",
    )
    checkpoint_seconds: float = option(
        10.0, "Shortest time between two checkpoints; the last epoch always has one.",
        minimum=0, group="Machine",
    )
    tensorboard: bool = option(
        False, "Write curves for TensorBoard into the run.", group="Machine"
    )
    numbers: bool = option(
        False,
        "Count outputs, gradients and parameters by layer and size, and what of them 16 "
        "bits would not hold.",
        group="Machine",
    )

    # fmt: on

    def __post_init__(self) -> None:
        """Check what concerns several fields at once.

        Raises:
            UnknownNameError: There is not what a field names.
            ConfigError: Fields that contradict each other.
        """
        spec_of(self.model)
        for registry, name in (
            (TASKS, self.task),
            (SAMPLERS, self.sampler),
            (DECODERS, self.decoder),
            (PAIR_LOSSES, self.loss),
        ):
            registry.get(name)
        super().__post_init__()
        _check_layers(self)
        _check_model(self)
        _check_links(self)
        _check_sampler(self)
        if self.sample_at == "owners":
            _check_owners(self)

    @property
    def hop_fanouts(self) -> tuple[int, ...]:
        """Neighbors per hop."""
        default = spec_of(self.model).default_fanout
        return self.fanouts or (default,) * self.layers

    @property
    def is_of_links(self) -> bool:
        """Whether pairs of nodes are learned, not values of nodes."""
        return TASKS.get(self.task).is_of_links

    @property
    def is_full_batch(self) -> bool:
        """Whether an epoch is one step."""
        return self.batch_size == 0

    @property
    def is_whole_graph(self) -> bool:
        """Whether messages of a step go over the whole graph."""
        return self.is_full_batch or spec_of(self.model).is_whole_graph

    @property
    def is_of_events(self) -> bool:
        """Whether the model follows edges in order of time, as they happen."""
        return spec_of(self.model).make_stream is not None


def _check_layers(config: GnnConfig) -> None:
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


def _check_model(config: GnnConfig) -> None:
    spec = spec_of(config.model)
    if spec.is_of_links and not config.is_of_links:
        known = [name for name in TASKS.names() if TASKS.get(name).is_of_links]
        raise ConfigError(
            f"task: got {config.task} with model {config.model}, whose rows are "
            f"compared with each other; expected {' or '.join(known)}"
        )
    if spec.make_stream is not None:
        _check_events(config)
    if spec.messages == "walks" and not config.batch_size:
        raise ConfigError(
            f"batch_size: got 0 with model {config.model}, expected at least 1, for its "
            "neighborhoods are sampled"
        )
    if config.learned_rows == "disk" and config.is_whole_graph:
        raise ConfigError(
            "learned_rows: got disk with messages over the whole graph (batch_size 0, "
            "or model lightgcn), whose rows are in memory all at once; expected memory"
        )


def _check_events(config: GnnConfig) -> None:
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


def _check_links(config: GnnConfig) -> None:
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


def _check_sampler(config: GnnConfig) -> None:
    sampler, spec = SAMPLERS.get(config.sampler), spec_of(config.model)
    has_times = TASKS.get(config.task).has_times
    if config.recent and sampler.is_usual:
        known = [name for name in SAMPLERS.names() if SAMPLERS.get(name).can_be_recent]
        raise ConfigError(
            f"recent: got true with sampler {config.sampler}, expected sampler "
            f"{' or '.join(known)}"
        )
    is_other = not sampler.is_usual
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


def _check_owners(config: GnnConfig) -> None:
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
    ):
        if is_set:
            raise ConfigError(
                f"{name}: got {getattr(config, name)} with sample_at owners, which draws a "
                f"row by its node alone; expected {expected}"
            )


def num_threads(config: GnnConfig, num_edges: int) -> int:
    """Return the threads of a training: one where handing over would cost more than work.

    Args:
        config: The settings.
        num_edges: Of the graph.
    """
    if config.deterministic:
        return 1
    is_small = config.is_whole_graph and num_edges * config.dim < _SMALL_WORK
    is_small = is_small or config.is_of_events  # a few hundred events a step
    if config.threads or is_small:
        return config.threads or 1
    told = os.environ.get("LOCAL_WORLD_SIZE", "1")  # torchrun's: processes of this machine
    return max(num_cores() // max(int(told), 1), 1) if told.isdigit() else num_cores()


_LOADER = ConfigLoader(GnnConfig, Path(__file__).parent / "presets")
preset_names = _LOADER.preset_names
load_config = _LOADER.load
