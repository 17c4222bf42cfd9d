"""What a user sets: one frozen config, from a preset, a TOML file and overrides."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from graphsys.core.config import OfPresets, option
from graphsys.core.threads import num_cores
from graphsys.gnn import part_specs
from graphsys.gnn.config_checks import check_together
from graphsys.gnn.model_spec import GROUP, is_file, model_names, spec_of
from graphsys.gnn.part_specs import DECODERS, PAIR_LOSSES, SAMPLERS, SIDE_TASKS, TASKS
from graphsys.gnn.user_models import load_named, require_word_for
from graphsys.training.config import ConfigLoader
from graphsys.training.learning_rate import Schedule

_SMALL_WORK = 1 << 22  # numbers added up by a layer
_OF_LABELS = "node_classification, regression, graph_classification"
_OF_CLASSES = "node_classification, graph_classification"
_OF_TIME = "temporal_link_prediction, change_prediction"
_OF_LINKS = f"link_prediction, recommendation, {_OF_TIME}"


@dataclass(frozen=True, kw_only=True)
class GnnConfig(OfPresets):
    """Everything a run of a graph neural network depends on besides the graph."""

    # fmt: off
    # what is learned
    task: str = option(
        "node_classification",
        "What is learned: classes of nodes or of graphs, numbers of nodes, edges, who "
        "likes what, who meets whom next, or which links a snapshot brings.",
        group="Task", choices=TASKS.names, plugins=part_specs.TASKS_GROUP,
    )
    node_type: str = option(
        "", "Node type whose labels are learned, by default the only one that has them; or "
        "that walks begin at.",
        group="Task", applies=f"{_OF_LABELS}, positives = walks, gatne",
    )
    label: str = option(
        "label",
        "Column of the labels: a class, a list of classes, or a number.",
        group="Task", applies=_OF_LABELS,
    )
    split: str = option(
        "split", "Column of the nodes that says train, valid or test.",
        group="Task", applies=_OF_LABELS,
    )
    class_weights: Literal["none", "balanced"] = option(
        "none",
        "balanced: in the loss that is trained each class counts alike, however many are "
        "of it; what is watched and measured stays as it is.",
        group="Task", applies=_OF_CLASSES,
    )
    label_smoothing: float = option(
        0.0, "Share of the target that is spread over all classes in training.",
        minimum=0, maximum=1, group="Task", applies=_OF_CLASSES,
    )
    folds: int = option(
        0, "Parts of the graphs, with as many of each class, of which one is test and the "
        "others train; 0: the column split says which are.",
        minimum=0, group="Task", applies="graph_classification",
    )
    fold: int = option(
        0, "The part that is test, from 0.",
        minimum=0, group="Task", applies="graph_classification",
    )
    edge_type: str = option(
        "", "Edge type that is learned; by default the only one.",
        group="Task", applies=_OF_LINKS,
    )
    positives: Literal["edges", "walks"] = option(
        "edges",
        "Which pairs of nodes are to score high: the ends of edges, or a node and one that "
        "a walk from it meets. gatne always takes pairs of nodes on walks.",
        group="Task", applies="link_prediction, recommendation",
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
        0.1, "How much higher a pair is to score than its negatives; how much nearer a "
        "node is to be to what its neighbors make of it than another is.",
        minimum=0, group="Task", applies="loss = margin, hep, ahep",
    )
    side_tasks: Mapping[str, float] = option(
        {},
        "What is learned beside links from the same rows, with the weight of its loss. "
        "content: a node's row is told by the node's own features from those of others.",
        minimum=0, group="Task", applies="link_prediction, recommendation",
        plugins=part_specs.SIDE_TASKS_GROUP,
    )
    temperature: float = option(
        0.1, "What cosines of rows and features, or of two rows, are divided by.",
        above=0, group="Task", applies="side_tasks = content, decoder = cosine",
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
        "sage", "Layers of the network; or a user's own, my_model.py:Net.",
        group="Model", choices=model_names, plugins=GROUP, takes_files=True,
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
    readout: Literal["sum", "mean", "max"] = option(
        "sum", "How the rows of a graph's nodes become one.",
        group="Model", applies="graph_classification",
    )
    prior: str = option(
        "", "The feature that has the rows of nodes in a knowledge graph; the other "
        "features are their rows in a behavior graph.",
        group="Model", applies="bem",
    )
    prior_std: float = option(
        0.1, "Standard deviation of a correction of such a number, before any data.",
        above=0, group="Model", applies="bem",
    )
    corrected: Literal["observed", "prior"] = option(
        "observed",
        "Which rows come out: those of the behavior graph as the corrected knowledge has "
        "them, or those of the knowledge graph, corrected.",
        group="Model", applies="bem",
    )
    pool_ratio: float = option(
        0.5, "Share of the nodes of a graph that stay after a layer.",
        above=0, maximum=1, group="Model", applies="sagpool",
    )
    clusters: int = option(
        10, "Clusters that the nodes of a graph are assigned to.",
        minimum=1, group="Model", applies="diffpool",
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
        minimum=1, group="Model", applies="gat, gatv2",
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
    propagation_weight: float = option(
        1.0, "Weight of the loss of nodes that are rebuilt from their neighbors.",
        minimum=0, group="Model", applies="hep, ahep",
    )
    senses: int = option(
        4, "Rows of a node, one for each of its senses, which share dim; 1: DeepWalk.",
        minimum=1, group="Model", applies="mixture",
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
        minimum=0, maximum=0.99, group="Model", applies="gat, gatv2, han, tgn",
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
        True, "Send messages against the direction of directed edges too. pinsage, gatne, "
        "han and models of events say themselves which way edges go.",
        group="Sampling",
    )
    fanouts: tuple[int, ...] = option(
        (),
        "Neighbors to sample per hop, the hop next to the seeds first (as in PyG; DGL has "
        "it last); -1: all. By default 10 each, 50 for pinsage, all for hep. For ahep: "
        "nodes of each relation that all nodes of a hop share, by default 256. "
        "None are drawn with batch_size=0.",
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
    labor_iterations: int = option(
        0, "Rounds in which neighbors that many nodes of a hop have become likelier, so "
        "that a hop has fewer nodes; -1: until that changes little.",
        minimum=-1, group="Sampling", applies="sampler = labor",
    )
    recent: bool = option(
        False, "Take the latest neighbors instead of random ones.",
        group="Sampling", applies="sampler = temporal",
    )
    replace: bool = option(
        False, "Draw neighbors with replacement.", group="Sampling"
    )
    weighted: bool = option(
        False, "Draw neighbors in proportion to the edges' weights; with labor means are "
        "weighed too.",
        group="Sampling",
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
        3, "Steps of a walk.",
        minimum=1, group="Sampling", applies="pinsage, gatne, positives = walks",
    )
    restart: float = option(
        0.5, "Chance of a walk to go back to its start after a step.",
        minimum=0, maximum=0.99, group="Sampling", applies="pinsage",
    )
    p: float = option(
        1.0, "Return parameter of node2vec: a walk goes back to the last node 1/p times as "
        "often as to a common neighbor.",
        above=0, group="Sampling", applies="positives = walks, gatne",
    )
    q: float = option(
        1.0, "In-out parameter of node2vec: a walk goes to a node without an edge to the "
        "last one 1/q times as often.",
        above=0, group="Sampling", applies="positives = walks, gatne",
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
        10, "Passes over the training nodes, edges or graphs.",
        minimum=1, group="Training", resumable=True,
    )
    batch_size: int = option(
        1024, "Training nodes, edges or graphs of a step; 0: the whole graph at once.",
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
    lr_schedule: Schedule = option(  # noqa: RUF009  (option() only makes a field)
        "constant",
        "How the learning rate falls, step by step. linear: by the same amount, to 0; "
        "cosine: by half a wave; plateau: by lr_factor when lr_patience evaluations bring "
        "no better monitor.",
        group="Training",
    )
    lr_patience: int = option(
        2, "Evaluations in a row without a better one, after which the rate falls.",
        minimum=1, group="Training", applies="lr_schedule = plateau",
    )
    lr_factor: float = option(
        0.5, "What it falls by.",
        above=0, maximum=1, group="Training", applies="lr_schedule = plateau",
    )
    clip_norm: float | None = option(
        None, "Longest length of the gradients of a step, all together; longer ones are "
        "shortened.",
        above=0, group="Training",
    )
    weight_decay: float = option(
        0.0, "Strength of the L2 penalty on weights; decoupled for lamb, scaled with lars.",
        minimum=0, group="Training",
    )
    decay_layers: Literal["all", "first"] = option(
        "all", "Layers whose weights weight_decay concerns.", group="Training"
    )
    row_decay: float = option(
        0.0, "Strength of the L2 penalty on the learned rows of a batch's nodes.",
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
    sharding: Literal["none", "optimizer", "parameters"] = option(
        "none",
        "What each process has a share of (ZeRO): nothing; the optimizer's moments, where "
        "it moves that share of the weights and sends them to the others; or parameters, "
        "gradients and moments, where a layer's weights are whole while it runs.",
        group="Training", applies="--cluster, torchrun", resumable=True,
    )
    precision: Literal["float32", "bfloat16"] = option(
        "float32",
        "Numbers that products of matrices are computed with; weights, sums over neighbors "
        "and losses stay float32.",
        group="Training",
    )
    sparsity: float = option(
        0.0,
        "Share of the weights of linear layers that are zero: the smallest are dropped, "
        "others grow (RigL).",
        minimum=0, maximum=0.99, group="Training",
    )
    sparsity_every: int = option(
        10, "Steps after which weights are dropped and others grow.",
        minimum=1, group="Training", applies="sparsity > 0",
    )
    recompute: Literal["auto", "none", "all"] = option(
        "auto",
        "Layers that keep their inputs alone for the backward pass, for less memory and up "
        "to a third more time: those that --memory asks for, none, or all.",
        group="Training", values_before={False: "auto", True: "all"},
    )
    seed: int = option(0, "Seed of all random draws.", minimum=0, group="Training")
    deterministic: bool = option(
        False, "Use one thread, so that a rerun or a resumed run is equal bit by bit.",
        group="Training",
    )
    # what is evaluated and kept
    eval_every: int = option(
        1, "Evaluate after every so many epochs; 0: never.",
        minimum=0, group="Evaluation", resumable=True,
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
    target: float | None = option(
        None,
        "Value of monitor; the report says how long the training took to reach it.",
        group="Evaluation",
    )
    stop_at_target: bool = option(
        False, "End the training when an evaluation has reached target.", group="Evaluation"
    )
    patience: int = option(
        0,
        "End the training after so many evaluations without a better one; 0: train all "
        "epochs.",
        minimum=0, group="Evaluation", resumable=True,
    )
    keep: Literal["best", "last"] = option(
        "best", "Whether the run keeps the weights of the best epoch or of the last.",
        group="Evaluation",
    )
    # this machine
    threads: int = option(
        0, "Threads; 0: one per core.", minimum=0, group="Machine", resumable=True
    )
    prefetch: int = option(
        -1, "Batches that threads sample and gather ahead; 0: none; -1: none or one, as "
        "comes faster in the first 16 batches.",
        minimum=-1, maximum=64, group="Machine", resumable=True,
    )
    checkpoint_seconds: float = option(
        10.0, "Shortest time between two checkpoints; the last epoch always has one.",
        minimum=0, group="Machine", resumable=True,
    )
    tensorboard: bool = option(
        False, "Write curves for TensorBoard into the run.", group="Machine", resumable=True
    )
    numbers: bool = option(
        False,
        "Count outputs, gradients and parameters by layer and size, and what of them 16 "
        "bits would not hold.",
        group="Machine", resumable=True,
    )

    # fmt: on

    def __post_init__(self, of_preset: tuple[tuple[str, Any], ...]) -> None:
        """Check what concerns several fields at once.

        Raises:
            UnknownNameError: There is not what a field names.
            ConfigError: Fields that contradict each other.
        """
        if is_file(self.model):
            object.__setattr__(self, "model", load_named(self.model))
        spec_of(self.model)
        named: list[tuple[Any, str]] = [
            (TASKS, self.task),
            (SAMPLERS, self.sampler),
            (DECODERS, self.decoder),
            (PAIR_LOSSES, self.loss),
            *((SIDE_TASKS, name) for name in self.side_tasks),
        ]
        for registry, name in named:
            registry.get(name)
        super().__post_init__(of_preset)
        check_together(self)

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
    def is_of_graphs(self) -> bool:
        """Whether whole graphs are learned, from a store of many small ones."""
        return TASKS.get(self.task).is_of_graphs

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


_LOADER = ConfigLoader(
    GnnConfig, Path(__file__).parent / "presets", check_run=require_word_for
)
preset_names = _LOADER.preset_names
load_config = _LOADER.load
