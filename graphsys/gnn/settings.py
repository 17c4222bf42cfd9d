"""The settings of a graph neural network, each by itself."""
# ruff: noqa: RUF009  (option() only makes a field)

from dataclasses import dataclass
from typing import Literal

from graphsys.core.config import option

TaskName = Literal["node_classification", "regression", "link_prediction", "recommendation"]
ModelName = Literal[
    "sage", "gcn", "gat", "gatv2", "gin", "rgcn", "hgt", "han", "pinsage", "lightgcn",
    "gatne",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class GnnSettings:
    """What a user sets; a :class:`graphsys.gnn.config.GnnConfig` is of ones that fit."""

    task: TaskName = option("node_classification", "what is learned")
    model: ModelName = option("sage", "the layers")
    dim: int = option(64, "features of a hidden row, all heads together", minimum=1)
    layers: int = option(2, "layers, and hops of a sample", minimum=1)
    aggregator: Literal["mean", "sum", "max", "pool", "lstm"] = option(
        "mean", "of model sage"
    )
    bases: int = option(0, "rgcn: matrices that relations share; 0: one each", minimum=0)
    heads: int = option(8, "heads of gat, gatv2, hgt and han, which share dim", minimum=1)
    output_heads: int = option(1, "heads of their last layer, averaged", minimum=1)
    edge_dim: int = option(10, "gatne: features of a relation's row", minimum=1)
    attention_dim: int = option(20, "gatne: width of its attention", minimum=1)
    activation: Literal["relu", "elu"] = option("relu", "between layers")
    norm: Literal["none", "layer", "batch"] = option("none", "before every layer")
    residual: bool = option(False, "add a layer's input to its output; linear at both ends")
    dropout: float = option(
        0.0, "chance of a feature to be left out", minimum=0, maximum=0.99
    )
    attention_dropout: float = option(
        0.0, "chance of a neighbor to be left out of attention", minimum=0, maximum=0.99
    )
    epochs: int = option(10, "passes over the training nodes or edges", minimum=1)
    seed: int = option(0, "seed of all random draws", minimum=0)
    threads: int = option(0, "threads, 0: one per core", minimum=0)
    deterministic: bool = option(
        False, "one thread, so that a rerun or a resumed run is equal bit by bit"
    )
    node_type: str = option("", "whose labels are learned; the only type that has them")
    label: str = option(
        "label", "column of the labels: a class, a list of classes, or a number"
    )
    split: str = option("split", "column that says train, valid or test")
    features: tuple[str, ...] = option((), "features by name; all of a type by default")
    learned_rows: Literal["memory", "disk"] = option(
        "memory",
        "where rows of nodes without features are: parameters that the optimizer moves all "
        "in every step, or the run's files, where Adagrad moves those of a batch",
    )
    rows_lr: float = option(0.1, "learning rate of rows on disk", above=0)
    cache: Literal["none", "degree", "importance", "lru", "sieve"] = option(
        "none", "rows of features that batches keep in memory: of whom"
    )
    cache_memory: str = option("256MB", "for those, over all node types")
    cache_device_memory: str = option("", "for hot rows kept on a GPU; none by default")
    normalize_features: bool = option(False, "scale every row of features to the sum 1")
    edge_types: tuple[str, ...] = option((), "edge types to use; all by default")
    reverse_edges: bool = option(True, "send messages against directed edges too")
    batch_size: int = option(
        1024, "training nodes or edges of a step; 0: the whole graph at once", minimum=0
    )
    fanouts: tuple[int, ...] = option(
        (),
        "neighbors per hop, the hop next to the seeds first (as in PyG; DGL has it last); "
        "-1: all; 10 each by default",
    )
    frontier: Literal["all", "new"] = option(
        "all", "whose neighbors a hop samples: all nodes so far (DGL), or new ones (PyG)"
    )
    sampler: Literal["neighbor", "labor", "temporal"] = option(
        "neighbor",
        "how neighbors are drawn: each node its own; labor: shared within a hop; temporal: "
        "by edges before the seed's own column time",
    )
    recent: bool = option(False, "temporal: take the latest neighbors, not random ones")
    replace: bool = option(False, "draw neighbors with replacement")
    weighted: bool = option(False, "draw neighbors in proportion to the edges' weights")
    num_walks: int = option(100, "PinSage: walks from a node", minimum=1)
    walk_length: int = option(3, "PinSage: traversals of a walk; gatne: steps", minimum=1)
    window: int = option(2, "gatne: steps between a pair of a walk, at most", minimum=1)
    restart: float = option(
        0.5, "PinSage: chance of a walk to go back", minimum=0, maximum=0.99
    )
    optimizer: Literal["adam", "lamb"] = option("adam", "lamb is for large batches")
    lr: float = option(0.01, "learning rate", above=0)
    weight_decay: float = option(0.0, "L2 penalty; of lamb decoupled decay", minimum=0)
    accumulate: int = option(1, "batches whose gradients make a step", minimum=1)
    precision: Literal["float32", "bfloat16"] = option(
        "float32", "of products; weights, sums over neighbors and losses stay float32"
    )
    recompute: bool = option(
        False, "activation checkpointing: keep a layer's input only, at a third more time"
    )
    decay_layers: Literal["all", "first"] = option("all", "whose weights the penalty is on")
    lr_warmup_epochs: float = option(0.0, "epochs in which lr rises from 0", minimum=0)
    lr_decay: float = option(1.0, "factor on lr after every epoch", above=0, maximum=1)
    edge_type: str = option(
        "", "link prediction: the edges that are learned; the only type"
    )
    positives: Literal["edges", "walks"] = option(
        "edges",
        "link prediction: pairs are edges, or a node and one on a walk from it; of gatne "
        "always those of walks' windows",
    )
    loss: Literal["margin", "logistic", "bpr", "softmax"] = option(
        "margin", "of link prediction and recommendation"
    )
    decoder: Literal["dot", "mlp", "distmult"] = option("dot", "scores of pairs of rows")
    margin: float = option(0.1, "by which a positive is to beat its negatives", minimum=0)
    num_negatives: int = option(500, "negatives of a batch, or of a pair", minimum=0)
    in_batch: bool = option(
        False, "the second nodes of a batch's other pairs are negatives too"
    )
    negatives: Literal["uniform", "degree"] = option("uniform", "how they are drawn")
    alike_negatives: int = option(
        0, "negatives per positive that have its value of column alike", minimum=0
    )
    alike: str = option("", "column of nodes, for alike_negatives: their category ...")
    negatives_of: Literal["batch", "pair"] = option(
        "batch", "whose they are: shared by a batch, or a pair's own, no known answers"
    )
    row_decay: float = option(
        0.0, "penalty on half the squares of a batch's learned rows, their mean", minimum=0
    )
    hard_negatives: int = option(
        0, "PinSage: most hard negatives per positive, one more each epoch", minimum=0
    )
    hard_ranks: tuple[int, ...] = option(
        (2000, 5000), "PinSage: visit ranks that those come from, first and last"
    )
    eval_every: int = option(
        1, "evaluate valid after every so many epochs; 0: never", minimum=0
    )
    watch: str = option("valid", "the split that is evaluated while training")
    monitor: Literal["loss", "metric"] = option("metric", "what of valid is watched")
    patience: int = option(
        0, "epochs without a better one on valid before the end; 0: all epochs", minimum=0
    )
    keep: Literal["best", "last"] = option("best", "which epoch's weights a run keeps")
    prefetch: int = option(
        1, "batches sampled and gathered ahead in threads; 0: none", minimum=0, maximum=64
    )
    checkpoint_seconds: float = option(
        10.0, "shortest time between checkpoints; the last epoch always has one", minimum=0
    )
    tensorboard: bool = option(False, "write curves for TensorBoard into the run")

    @property
    def hop_fanouts(self) -> tuple[int, ...]:
        """Neighbors per hop."""
        default = 50 if self.model == "pinsage" else 10
        return self.fanouts or (default,) * self.layers

    @property
    def is_of_links(self) -> bool:
        """Whether pairs of nodes are learned, not values of nodes."""
        return self.task in ("link_prediction", "recommendation")

    @property
    def is_full_batch(self) -> bool:
        """Whether an epoch is one step."""
        return self.batch_size == 0

    @property
    def is_whole_graph(self) -> bool:
        """Whether messages of a step go over the whole graph."""
        return self.is_full_batch or self.model == "lightgcn"
