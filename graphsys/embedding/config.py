"""What a user sets: one frozen config, from a preset, a TOML file and overrides."""
# ruff: noqa: RUF009  (option() only makes a field)

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from graphsys.core.config import apply_overrides, from_mapping, load_toml, option
from graphsys.core.errors import ConfigError, unknown_name
from graphsys.embedding.control_config import ControlConfig
from graphsys.embedding.pools import PoolConfig, check_pools, usual_pools

OperatorName = Literal[
    "identity", "translation", "diagonal", "linear", "affine", "complex_diagonal",
    "rotation",
]  # fmt: skip
ComparatorName = Literal["dot", "cos", "l2", "squared_l2"]
RowDtype = Literal["float32", "bfloat16", "float16"]
LossName = Literal["softmax", "logistic", "ranking"]
OrderName = Literal[
    "auto", "inside_out", "outside_in", "affinity", "random", "hilbert", "beta", "comet"
]

ANY_RELATION = "*"
SHORTHAND = ("num_batch_negatives", "num_uniform_negatives", "importance_weights")
PRESET_DIR = Path(__file__).parent / "presets"


@dataclass(frozen=True, kw_only=True)
class RelationConfig:
    """What differs for one relation."""

    operator: OperatorName | None = option(None, "operator; the config's if not given")
    weight: float = option(1.0, "factor on the loss of its edges", minimum=0)
    lr: float | None = option(
        None, "learning rate of its operator; relation_lr if not given", above=0
    )
    all_negatives: bool = option(
        False, "every node of the resident partition is a negative of its edges"
    )


@dataclass(frozen=True, kw_only=True)
class NodeTypeConfig:
    """What differs for the nodes of one type."""

    dim: int | None = option(None, "length of its embeddings", minimum=1)
    init_scale: float | None = option(
        None, "standard deviation of the first values", above=0
    )
    global_embedding: bool | None = option(
        None, "one more trained vector, added to every row of the type"
    )
    features: str | None = option(
        None, "bag feature of the graph: a row is pooled from rows of its features"
    )
    pooling: Literal["mean", "sum"] = option(
        "mean", "how the rows of the features of a node become its row"
    )


@dataclass(frozen=True, kw_only=True)
class EmbeddingConfig(ControlConfig):
    """Everything an embedding run depends on besides the graph."""

    dim: int = option(100, "length of an embedding", minimum=1)
    epochs: int = option(10, "passes over the training edges", minimum=1)
    seed: int = option(0, "seed of all random draws", minimum=0)
    threads: int = option(0, "worker threads, 0: one per core", minimum=0)
    deterministic: bool = option(
        False, "one worker, so that a rerun or a resumed run is equal bit by bit"
    )
    operator: OperatorName = option("identity", "operator of every relation")
    comparator: ComparatorName = option("dot", "how two rows are compared")
    bias: bool = option(
        False, "the first dimension of a row is left out there and added to the score"
    )
    global_embedding: bool = option(
        False, "one more trained vector per node type, added to all of its rows"
    )
    loss: LossName = option("softmax", "loss over a positive and its negatives")
    margin: float = option(0.1, "margin of the ranking loss", minimum=0)
    reciprocal: bool = option(
        False, "two operators per relation, one for each direction of the query"
    )
    relations: Mapping[str, RelationConfig] = option(
        {}, 'settings per relation; all are to be listed, or "*" for the rest'
    )
    node_types: Mapping[str, NodeTypeConfig] = option({}, "settings per node type")
    edge_types: tuple[str, ...] = option((), "edge types to train on; all by default")
    edge_weights: bool = option(True, "use the column weight, where there is one")
    batch_size: int = option(1000, "positives per optimiser step", minimum=1)
    num_batch_negatives: int = option(
        500, "positives that share negatives, each other's among them; 0: none", minimum=0
    )
    num_uniform_negatives: int = option(
        500, "uniform negatives per chunk, from the resident partition", minimum=0
    )
    importance_weights: bool = option(
        False, "let a uniform negative count for all nodes it stands for (softmax)"
    )
    negatives: tuple[PoolConfig, ...] = option(
        (), "[[negatives]] tables, one per pool, in place of the three keys above"
    )
    disable_src_negatives: bool = option(
        False, "sources are no negatives: only destinations are asked for"
    )
    disable_dst_negatives: bool = option(
        False, "destinations are no negatives: only sources are asked for"
    )
    mask_known_edges: bool = option(
        False, "never count a known answer of a query, of this partition, as a negative"
    )
    lr: float = option(0.1, "learning rate of the embeddings", above=0)
    relation_lr: float | None = option(None, "of the operators; lr by default", above=0)
    lr_schedule: Literal["constant", "linear"] = option(
        "constant", "linear: both rates fall by the same amount every epoch, to lr / epochs"
    )
    regulariser: float = option(0.0, "coefficient of the regulariser per query", minimum=0)
    regulariser_kind: Literal["n3", "l2"] = option(
        "n3", "sum of cubed moduli, or of squares"
    )
    operator_init: Literal["identity", "random"] = option(
        "identity", "first operators: change nothing, or turn rows at random"
    )
    init_scale: float = option(0.001, "standard deviation of the first values", above=0)
    bucket_order: OrderName = option(
        "auto",
        "auto: fewest bytes read and written for --memory; inside_out without it",
    )
    buffer_partitions: int = option(
        0, "partitions in memory; 0: as --memory allows, without it the fewest", minimum=0
    )
    join_partitions: bool = option(
        False, "train all partitions as one, in memory, with negatives from all nodes"
    )
    prefetch: bool = option(
        True, "read and write partitions while others are trained, with one to spare"
    )
    max_norm: float | None = option(
        None, "longest row: a longer one is shortened after its update", above=0
    )
    row_dtype: RowDtype = option(
        "float32",
        "how rows are stored; 16 bits are rounded at random, arithmetic is float32",
    )

    def __post_init__(self) -> None:
        """Check what concerns several fields at once.

        Raises:
            UnknownNameError: An operator, comparator or loss that there is not.
            ConfigError: Fields that contradict each other.
        """
        super().__post_init__()
        for kind, names, known in (
            ("operator", [self.operator], OperatorName),
            ("operator", [r.operator for r in self.relations.values()], OperatorName),
            ("comparator", [self.comparator], ComparatorName),
            ("loss", [self.loss], LossName),
        ):
            for given in names:
                if given is not None and given not in get_args(known):
                    raise unknown_name(kind, given, get_args(known))
        if not any(t.dim for t in self.node_types.values()):
            for name in {self.operator, *(r.operator for r in self.relations.values())}:
                require_dim(name, self.dim, "dim")
        if self.bias and min(self.dim, *(self.dim_of(t) for t in self.node_types), 2) < 2:
            raise ConfigError(
                "bias: got true with dim 1, expected at least 2 (the bias and a dimension "
                "to compare)"
            )
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
        if self.num_batch_negatives + self.num_uniform_negatives == 0:
            raise ConfigError(
                "num_batch_negatives and num_uniform_negatives: got 0 and 0, expected "
                "negatives of at least one kind"
            )
        if self.importance_weights and self.loss != "softmax":
            raise ConfigError(
                f"importance_weights: got true with the loss {self.loss}, expected the "
                "loss softmax, whose sum over negatives it estimates"
            )

    def _check_disabled(self) -> None:
        if self.disable_src_negatives and self.disable_dst_negatives:
            raise ConfigError(
                "disable_src_negatives and disable_dst_negatives: got true and true, "
                "expected negatives on one side at least; remove one of them"
            )
        if not (self.disable_src_negatives or self.disable_dst_negatives):
            return
        for name, relation in self.relations.items():
            if relation.all_negatives:
                side = "src" if self.disable_src_negatives else "dst"
                raise ConfigError(
                    f"relations.{name}.all_negatives: got true with "
                    f"disable_{side}_negatives, which does not hold for all nodes; remove "
                    "one of them"
                )

    def _check_joined(self) -> None:
        if not self.join_partitions:
            return
        for name in ("init_from", "eval_fraction", "buffer_partitions"):
            if getattr(self, name):
                raise ConfigError(
                    f"{name}: got {getattr(self, name)!r} with join_partitions, which it "
                    "does not go with; leave one of them out"
                )

    @property
    def chunk_size(self) -> int:
        """Positives that share one set of negatives."""
        batch = [pool.num for pool in self.pools if pool.kind == "batch"]
        return batch[0] if batch else self.batch_size

    @property
    def pools(self) -> tuple[PoolConfig, ...]:
        """The pools of negatives, the shorthand spelled out."""
        return self.negatives or usual_pools(
            self.num_batch_negatives, self.num_uniform_negatives, self.importance_weights
        )

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


def require_dim(operator: str | None, dim: int, where: str) -> None:
    """Check that rows have a length that an operator can work on.

    Raises:
        ConfigError: They have not.
    """
    if operator in ("complex_diagonal", "rotation") and dim % 2:
        raise ConfigError(
            f"{where}: got {dim}, expected an even number for the operator {operator} "
            "(real parts, then imaginary parts)"
        )


def preset_names() -> list[str]:
    """Return the names of the presets, sorted."""
    return sorted(path.stem for path in PRESET_DIR.glob("*.toml"))


def load_config(
    *,
    preset: str | None = None,
    file: str | Path | None = None,
    overrides: Iterable[str] = (),
) -> EmbeddingConfig:
    """Build a config from a preset or a file, with ``key=value`` overrides on top.

    Raises:
        ConfigError: Both are given, or a setting is wrong.
        UnknownNameError: There is no such preset.
    """
    mapping: Mapping[str, Any] = {}
    where = "settings"
    if preset is not None and file is not None:
        raise ConfigError(f"got preset {preset!r} and config file {file}; give one of them")
    if preset is not None:
        if preset not in preset_names():
            raise unknown_name("preset", preset, preset_names())
        mapping, where = load_toml(PRESET_DIR / f"{preset}.toml"), f"preset {preset}"
    elif file is not None:
        mapping, where = load_toml(Path(file)), Path(file).name
    merged = apply_overrides(mapping, overrides)
    if merged.get("negatives") and not mapping.get("negatives"):
        for name in SHORTHAND:  # of the preset or file, which the override replaces
            if name in mapping and merged[name] == mapping[name]:
                del merged[name]
    return from_mapping(EmbeddingConfig, merged, where=where)


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
