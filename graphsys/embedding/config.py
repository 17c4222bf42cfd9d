"""What a user sets: one frozen config, from a preset, a TOML file and overrides."""
# ruff: noqa: RUF009  (option() only makes a field)

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from graphsys.core.config import option
from graphsys.core.errors import ConfigError
from graphsys.embedding.control_config import ControlConfig
from graphsys.embedding.negatives_config import PoolConfig, check_pools, usual_pools
from graphsys.embedding.spec import comparators, losses, operators
from graphsys.embedding.type_configs import NodeTypeConfig, RelationConfig
from graphsys.storage.grouped.affine_plane import ORDERS
from graphsys.training.config import ConfigLoader
from graphsys.training.learning_rate import Schedule

RowDtype = Literal["float32", "bfloat16", "float16", "int8"]
ParameterExchange = Literal["server", "all_reduce"]
Optimizer = Literal["row_adagrad", "adagrad", "adam"]
Mode = Literal["sampled", "1vsall", "kvsall"]
OrderName = Literal[
    "auto", "inside_out", "outside_in", "affinity", "random", "hilbert", "beta", "comet"
]

ANY_RELATION = "*"
SHORTHAND = ("num_batch_negatives", "num_uniform_negatives", "importance_weights")


@dataclass(frozen=True, kw_only=True)
class EmbeddingConfig(ControlConfig):
    """Everything an embedding run depends on besides the graph."""

    # fmt: off
    # the model
    dim: int = option(100, "Length of an embedding.", minimum=1, group="Model")
    operator: str = option(
        "identity",
        "How a relation changes the row of an edge's destination before it is compared "
        "(with reciprocal, of whichever end is given): complex_diagonal is ComplEx, "
        "translation TransE, diagonal DistMult, linear RESCAL, rotation RotatE.",
        group="Model", choices=operators.OPERATORS.names, plugins=operators.GROUP,
    )
    comparator: str = option(
        "dot",
        "How two rows are compared; higher scores are better. dot is the inner product, "
        "cos that of rows of length 1; l2, squared_l2 and l1 are minus distances, "
        "complex_l1 minus the sum of moduli, RotatE's.",
        group="Model",
        choices=comparators.COMPARATORS.names, plugins=comparators.GROUP,
    )
    bias: bool = option(
        False,
        "The first number of a row is left out of the comparison and added to the score.",
        group="Model",
    )
    global_embedding: bool = option(
        False, "One more trained vector per node type is added to all of its rows.",
        group="Model",
    )
    reciprocal: bool = option(
        False, "Two operators per relation, one for each direction of a question.",
        group="Model",
    )
    relations: Mapping[str, RelationConfig] = option(
        {},
        'Settings of single relations, as [relations.NAME] tables; all relations are to be '
        'listed, or "*" for the rest.',
        group="Model",
    )
    node_types: Mapping[str, NodeTypeConfig] = option(
        {}, "Settings of single node types, as [node_types.NAME] tables.", group="Model"
    )
    edge_types: tuple[str, ...] = option(
        (), "Edge types to train on; by default all.", group="Model"
    )
    edge_weights: bool = option(
        True,
        "Use the edges' column weight, where there is one, as a factor on their loss.",
        group="Model",
    )
    operator_init: Literal["identity", "random"] = option(
        "identity", "What operators do at first: nothing, or turn rows at random.",
        group="Model",
    )
    init_scale: float = option(
        0.001, "Standard deviation of the first values of rows.", above=0, group="Model"
    )
    max_norm: float | None = option(
        None, "Longest length of a row; a longer one is shortened after its update.",
        above=0, group="Model",
    )
    row_dtype: RowDtype = option(
        "float32",
        "How rows are stored; 16 and 8 bits are rounded at random, arithmetic stays "
        "float32. int8: whole numbers, and a scale in two more bytes of a row.",
        group="Model",
    )
    # the loss and its negatives
    loss: str = option(
        "softmax", "Loss of an edge against its negatives.", group="Loss",
        choices=losses.LOSSES.names, plugins=losses.GROUP,
    )
    margin: float = option(
        0.1, "How much higher an edge is to score than its negatives.",
        minimum=0, group="Loss", applies="loss = ranking",
    )
    label_smoothing: float = option(
        0.0,
        "Share of a question's labels that is spread over all nodes alike.",
        minimum=0, maximum=0.9, group="Loss", applies="mode = 1vsall or kvsall",
    )
    dropout: float = option(
        0.0,
        "Share of the numbers of a question's row, after its operator, that is left out at "
        "random in training.",
        minimum=0, maximum=0.9, group="Loss", applies="reciprocal = true",
    )
    relation_prediction: float = option(
        0.0,
        "Weight of a second loss, of an edge's relation among all relations of its edge "
        "type, between the same two nodes; 0: none.",
        minimum=0, group="Loss", applies="comparator = dot",
    )
    regularizer: float = option(
        0.0, "Strength of the penalty on the rows and operators of a question.",
        minimum=0, group="Loss", aliases=("regulariser",),
    )
    regularizer_kind: Literal["n3", "l2", "dura"] = option(
        "n3",
        "The penalty: the sum of cubed moduli, or of squares; dura has the squares of what "
        "an operator makes of a question's row in place of the operator's.",
        group="Loss", applies="regularizer > 0", aliases=("regulariser_kind",),
    )
    mode: Mode = option(
        "sampled",
        "What a question, one end of an edge and its relation, is compared with. sampled: "
        "the negatives below; 1vsall: all nodes in memory, edge by edge; kvsall: all of "
        "them, each question once an epoch, with all its known answers as targets.",
        group="Negatives",
    )
    weigh_by_answers: bool = option(
        False,
        "A question counts as often as edges answer it, as in the other modes: the loss of "
        "1vsall for the cost of kvsall.",
        group="Negatives", applies="mode = kvsall",
    )
    num_batch_negatives: int = option(
        500, "Edges that share negatives, each other's ends among them; 0: none.",
        minimum=0, group="Negatives", applies="mode = sampled",
    )
    num_uniform_negatives: int = option(
        500, "Negatives of such a group drawn from all nodes of the partition in memory.",
        minimum=0, group="Negatives", applies="mode = sampled",
    )
    importance_weights: bool = option(
        False,
        "A drawn negative counts for all nodes that it stands for, with a loss that sums "
        "over negatives, such as softmax.",
        group="Negatives", applies="mode = sampled",
    )
    negatives: tuple[PoolConfig, ...] = option(
        (), "Pools of negatives as [[negatives]] tables, in place of the three keys above.",
        group="Negatives",
    )
    disable_src_negatives: bool = option(
        False, "Sources are no negatives: only destinations are asked for.",
        group="Negatives",
    )
    disable_dst_negatives: bool = option(
        False, "Destinations are no negatives: only sources are asked for.",
        group="Negatives",
    )
    mask_known_edges: bool = option(
        False, "A known answer of a question is never counted as a negative.",
        group="Negatives",
    )
    # how it is learned
    epochs: int = option(
        10, "Passes over the training edges.", minimum=1, group="Training", resumable=True
    )
    batch_size: int = option(
        1000, "Edges of an optimizer step.", minimum=1, group="Training"
    )
    optimizer: Optimizer = option(
        "row_adagrad",
        "Optimizer of rows. row_adagrad has a sum of squares a row, adagrad one a number, "
        "which takes as much memory as float32 rows. adam moves the rows of a batch, takes "
        "twice that, and wants an lr near 0.001; operators keep Adagrad, at relation_lr.",
        group="Training",
    )
    lr: float = option(0.1, "Learning rate of the embeddings.", above=0, group="Training")
    relation_lr: float | None = option(
        None, "Learning rate of the operators; by default lr.", above=0, group="Training"
    )
    lr_schedule: Schedule = option(
        "constant",
        "How both learning rates fall, epoch by epoch. linear: by the same amount, down to "
        "lr / epochs; cosine: by half a wave; plateau: by lr_factor when lr_patience "
        "evaluations bring no better monitor.",
        group="Training",
    )
    lr_patience: int = option(
        2, "Evaluations in a row without a better one, after which the rates fall.",
        minimum=1, group="Training", applies="lr_schedule = plateau",
    )
    lr_factor: float = option(
        0.5, "What they fall by.",
        above=0, maximum=1, group="Training", applies="lr_schedule = plateau",
    )
    seed: int = option(0, "Seed of all random draws.", minimum=0, group="Training")
    deterministic: bool = option(
        False, "Use one worker, so that a rerun or a resumed run is equal bit by bit.",
        group="Training",
    )
    # this machine
    threads: int = option(
        0, "Worker threads; 0: one per core.", minimum=0, group="Machine", resumable=True
    )
    bucket_order: OrderName = option(
        "auto",
        "Order in which buckets are trained; auto: the one that reads and writes least for "
        "--memory, inside_out without it.",
        group="Machine",
    )
    buffer_partitions: int = option(
        0, "Partitions in memory; 0: as many as --memory allows, the fewest without it.",
        minimum=0, group="Machine",
    )
    join_partitions: bool = option(
        False, "Train all partitions as one, in memory, with negatives from all nodes.",
        group="Machine",
    )
    partition_groups: int = option(
        0, "Train partitions in so many groups, one in memory at a time, with negatives "
        "from all of it; groups change until each two partitions have met, in every epoch "
        "anew. The graph needs the square of it in partitions; 0: none.",
        minimum=0, group="Machine",
    )
    prefetch: bool = option(
        True, "Read and write partitions while others are trained, with one to spare.",
        group="Machine",
    )
    parameter_exchange: ParameterExchange = option(
        "server",
        "How workers of a cluster share operators and global vectors: what changed by a "
        "server, or all of them by all-reduce.",
        group="Machine", applies="--cluster",
    )
    parameter_servers: int = option(
        0, "Servers that share out the parameters of a training on a cluster; 0: one, or, "
        "of some megabytes, as many as make exchanges fast, by a model of measured times.",
        minimum=0, group="Machine", applies="--cluster",
    )
    # fmt: on

    def __post_init__(self, of_preset: tuple[tuple[str, Any], ...]) -> None:
        """Check what concerns several fields at once.

        Raises:
            UnknownNameError: An operator, comparator or loss that there is not.
            ConfigError: Fields that contradict each other.
        """
        comparators.comparator_of(self.comparator)
        losses.loss_of(self.loss)
        operators.operator_of(self.operator)
        super().__post_init__(of_preset)
        if not any(t.dim for t in self.node_types.values()):
            for name in {self.operator, *(r.operator for r in self.relations.values())}:
                require_dim(self, name, self.dim, "dim")
        if self.bias and min(self.dim, *(self.dim_of(t) for t in self.node_types), 2) < 2:
            raise ConfigError(
                "bias: got true with dim 1, expected at least 2 (the bias and a dimension "
                "to compare)"
            )
        if self.dropout and not self.reciprocal:
            raise ConfigError(
                f"dropout: got {self.dropout} without reciprocal, expected questions that "
                "are no candidates at once; --set reciprocal=true"
            )
        if self.regularizer_kind == "dura" and not self.reciprocal:
            raise ConfigError(
                "regularizer_kind: got dura without reciprocal, expected an operator on "
                "the row of every question; --set reciprocal=true"
            )
        self._check_relation_prediction()
        if self.lr_schedule == "plateau":
            self.require_watched("lr_schedule", self.lr_schedule)
        self._check_mode()
        if self.mode == "sampled":
            self._check_negatives()
        self._check_disabled()
        self._check_joined()

    def _check_negatives(self) -> None:
        if self.negatives:
            check_pools(self.negatives, self.loss, self.batch_size)
            for name in SHORTHAND:
                value, default = getattr(self, name), type(self).__dataclass_fields__[name]
                if value != default.default:
                    raise ConfigError(
                        f"{name}: got {value} beside [[negatives]], which replace it; "
                        "write it as a [[negatives]] table or remove it"
                    )
            return
        if self.num_batch_negatives > self.batch_size:
            raise ConfigError(
                f"num_batch_negatives: got {self.num_batch_negatives}, expected at most "
                f"batch_size, {self.batch_size}"
            )
        has_pools = self.num_batch_negatives + self.num_uniform_negatives > 0
        if not has_pools and not self.has_all_negatives:
            raise ConfigError(
                "num_batch_negatives and num_uniform_negatives: got 0 and 0, expected "
                "negatives of at least one kind, or all nodes for every relation: --set "
                "'relations.\"*\".all_negatives=true'"
            )
        if self.importance_weights:
            losses.require_trait(
                self.loss,
                "estimates_sum",
                "importance_weights",
                "true",
                "whose sum over negatives it estimates",
            )

    def _check_relation_prediction(self) -> None:
        weight = self.relation_prediction
        if not weight:
            return
        if self.comparator != "dot":
            raise ConfigError(
                f"relation_prediction: got {weight} with comparator {self.comparator}, "
                "expected dot; --set comparator=dot"
            )
        if self.bias:
            raise ConfigError(
                f"relation_prediction: got {weight} with bias, which is the same for all "
                "relations; --set bias=false"
            )
        operators_used = {self.operator, *(r.operator for r in self.relations.values())}
        if operators_used <= {"identity", None}:
            raise ConfigError(
                f"relation_prediction: got {weight} with operator identity, the same for "
                "all relations; --set operator=complex_diagonal"
            )

    def _check_mode(self) -> None:
        if self.mode == "sampled":
            if self.label_smoothing:
                raise ConfigError(
                    f"label_smoothing: got {self.label_smoothing} with mode sampled, "
                    "expected all nodes; --set mode=1vsall"
                )
            return
        if self.mode == "kvsall":
            reason = "which take several answers of a question"
            losses.require_trait(self.loss, "targets", "mode", "kvsall", reason)
        elif self.loss != "softmax":
            raise ConfigError(
                f"loss: got {self.loss} with mode 1vsall, expected softmax; --set "
                "loss=softmax, or with other losses --set "
                "'relations.\"*\".all_negatives=true' --set mode=sampled"
            )
        refused: dict[str, object] = {"negatives": self.negatives}
        if self.mode == "kvsall":  # known answers are targets, of train and of all edges
            names = (
                "mask_known_edges",
                "eval_fraction",
                "partition_groups",
                "relation_prediction",
            )
            refused |= {name: getattr(self, name) for name in names}
            refused["edge_sets.split"] = [it.split for it in self.edge_sets if it.split]
        elif self.label_smoothing:
            refused["mask_known_edges"] = self.mask_known_edges
        sampled = "" if self.label_smoothing else ", or --set mode=sampled"
        for name, value in refused.items():
            if value:
                raise ConfigError(
                    f"{name}: got {value!r} with mode {self.mode}, which it does not go "
                    f"with; leave one of them out{sampled}"
                )

    def _check_disabled(self) -> None:
        if self.disable_src_negatives and self.disable_dst_negatives:
            raise ConfigError(
                "disable_src_negatives and disable_dst_negatives: got true and true, "
                "expected negatives on one side at least; remove one of them"
            )
        if not (self.disable_src_negatives or self.disable_dst_negatives):
            return
        if self.mode != "sampled":
            raise ConfigError(
                f"mode: got {self.mode} with negatives of one side disabled, which does "
                "not hold for all nodes; leave one of them out"
            )
        for name, relation in self.relations.items():
            if relation.all_negatives:
                side = "src" if self.disable_src_negatives else "dst"
                raise ConfigError(
                    f"relations.{name}.all_negatives: got true with "
                    f"disable_{side}_negatives, which does not hold for all nodes; remove "
                    "one of them"
                )

    def _check_joined(self) -> None:
        apart = ("init_from", "eval_fraction")
        refused = {
            "join_partitions": (*apart, "buffer_partitions", "partition_groups"),
            "partition_groups": (*apart, "mask_known_edges"),
        }
        for setting, names in refused.items():
            for name in names if getattr(self, setting) else ():
                if getattr(self, name):
                    raise ConfigError(
                        f"{name}: got {getattr(self, name)!r} with {setting}, which it "
                        "does not go with; leave one of them out"
                    )
        if self.partition_groups and self.partition_groups not in ORDERS:
            raise ConfigError(
                f"partition_groups: got {self.partition_groups}, expected one of "
                f"{', '.join(map(str, ORDERS))}; to train all partitions as one: --set "
                "join_partitions=true"
            )

    @property
    def has_all_negatives(self) -> bool:
        """Whether every relation is compared with all nodes, so that no pool is needed."""
        relations = self.relations.values()
        return bool(relations) and all(relation.all_negatives for relation in relations)

    @property
    def chunk_size(self) -> int:
        """Positives that share one set of negatives."""
        batch = [pool.num for pool in self.pools if pool.kind == "batch"]
        return batch[0] if batch else self.batch_size

    @property
    def pools(self) -> tuple[PoolConfig, ...]:
        """The pools of negatives, the shorthand spelled out."""
        if self.mode != "sampled":
            return ()
        return self.negatives or usual_pools(
            self.num_batch_negatives, self.num_uniform_negatives, self.importance_weights
        )

    @property
    def reads_known_edges(self) -> bool:
        """Whether known answers are looked up: to be masked, or as targets."""
        return self.mask_known_edges or self.mode == "kvsall"

    @property
    def drawn_pools(self) -> tuple[PoolConfig, ...]:
        """The pools whose nodes are drawn: all but the batch."""
        return tuple(pool for pool in self.pools if pool.kind != "batch")

    @property
    def num_drawn(self) -> int:
        """Negatives per chunk and side besides the other positives."""
        return sum(pool.num_drawn for pool in self.drawn_pools)

    @property
    def is_cut_by_relation(self) -> bool:
        """Whether the edges of a chunk share one relation."""
        return not self.reciprocal or any(pool.kind == "type" for pool in self.pools)

    def of_type(self, node_type: str) -> NodeTypeConfig:
        """Return the settings of a node type."""
        return self.node_types.get(node_type) or NodeTypeConfig()

    def dim_of(self, node_type: str) -> int:
        """Return the length of the embeddings of a node type."""
        return self.of_type(node_type).dim or self.dim

    def init_scale_of(self, node_type: str) -> float:
        """Return the standard deviation of the first values of a node type."""
        return self.of_type(node_type).init_scale or self.init_scale

    def has_global(self, node_type: str) -> bool:
        """Whether a node type has a vector that is added to all of its rows."""
        own = self.of_type(node_type).global_embedding
        return self.global_embedding if own is None else own


def require_dim(
    config: EmbeddingConfig, operator: str | None, dim: int, where: str
) -> None:
    """Check that rows have a length that an operator and the comparator can work on.

    Raises:
        ConfigError: They have not.
    """
    asking = []
    if operator is not None and operators.operator_of(operator).is_complex:
        asking.append(f"the operator {operator}")
    if comparators.comparator_of(config.comparator).is_complex:
        asking.append(f"the comparator {config.comparator}")
    if asking and dim % 2:
        raise ConfigError(
            f"{where}: got {dim}, expected an even number for {' and '.join(asking)} "
            "(real parts, then imaginary parts)"
        )


_LOADER = ConfigLoader(
    EmbeddingConfig, Path(__file__).parent / "presets", {"negatives": SHORTHAND}
)
preset_names = _LOADER.preset_names
load_config = _LOADER.load


def relation_settings(
    config: EmbeddingConfig, names_by_edge_type: Mapping[str, list[str]]
) -> dict[str, RelationConfig]:
    """Return the settings of every relation of the graph.

    Args:
        config: The config.
        names_by_edge_type: The relations of every edge type trained on.

    Raises:
        ConfigError: The config lists a relation that the graph lacks, or lists relations
            and leaves one of the graph's out.
    """
    known = [name for names in names_by_edge_type.values() for name in names]
    for name in config.relations:
        if name not in known and name != ANY_RELATION:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ConfigError(
                f"relations: {name!r} is not a relation of the graph, which has "
                f"{len(known)}{hint}"
            )
    rest = config.relations.get(ANY_RELATION)
    if not config.relations:
        rest = RelationConfig()
    for edge_type, names in names_by_edge_type.items():
        missing = [name for name in names if name not in config.relations]
        if missing and rest is None:
            raise ConfigError(
                f"relation {missing[0]!r} of edge type {edge_type!r} is missing from the "
                f"config, which lists {len(config.relations)}; add "
                f'[relations."{missing[0]}"], or [relations."*"] for the rest'
            )
    return {name: config.relations.get(name) or rest or RelationConfig() for name in known}
