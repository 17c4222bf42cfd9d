"""Relations of a graph and their operators: names, codes, parameters."""

import math
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError, unknown_name
from graphsys.core.rng import generator
from graphsys.core.types import EdgeType
from graphsys.embedding.config import EmbeddingConfig, relation_settings, require_dim
from graphsys.embedding.type_configs import RelationConfig
from graphsys.kernels.cpu.embedding import losses, operators, regularizers, scores
from graphsys.kernels.cpu.embedding.bias import BIASED
from graphsys.kernels.cpu.embedding.calls import Objective
from graphsys.kernels.cpu.embedding.operators import Operators

Floats = npt.NDArray[np.float32]

OPERATOR_CODES: Final = {
    "identity": operators.IDENTITY,
    "translation": operators.TRANSLATION,
    "diagonal": operators.DIAGONAL,
    "linear": operators.LINEAR,
    "complex_diagonal": operators.COMPLEX,
    "affine": operators.AFFINE,
    "rotation": operators.ROTATION,
}
COMPARATOR_CODES: Final = {
    "dot": scores.DOT,
    "cos": scores.COS,
    "squared_l2": scores.SQUARED_L2,
    "l2": scores.L2,
}
REGULARIZER_CODES: Final = {
    "n3": regularizers.N3,
    "l2": regularizers.SQUARES,
}
LOSS_CODES: Final = {
    "softmax": losses.SOFTMAX,
    "logistic": losses.LOGISTIC,
    "ranking": losses.RANKING,
}


class HasRelations(Protocol):
    """The part of a graph that names its edge types and relations."""

    @property
    def edge_types(self) -> list[EdgeType]:
        """All edge types."""
        ...

    def edge_type_name(self, edge_type: EdgeType) -> str:
        """Return the name of an edge type."""
        ...

    def relations(self, edge_type: EdgeType) -> list[str] | None:
        """Return the relations of an edge type, or None if it is one itself."""
        ...


@dataclass(frozen=True, kw_only=True)
class RelationSet:
    """The relations of one edge type.

    Attributes:
        name: Name of the edge type in the graph.
        edge_type: Its source type, relation and destination type.
        relations: Names of the relations, in the order of their codes in the graph.
        codes: Operator of each, int64 ``[R]``.
        offsets: Where the parameters of each begin, int64 ``[R + 1]``.
        weights: Loss weight of each, float32 ``[R]``.
        lr_factors: Learning rate of each operator, by that of all, float32 ``[R]``.
        all_negatives: Whether all nodes of a partition are its negatives, bool ``[R]``.
        num_sides: 2 with reciprocal relations, else 1.
        seed: Of the first parameters where they are random, else None.
    """

    name: str
    edge_type: EdgeType
    relations: list[str]
    codes: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    weights: Floats
    lr_factors: Floats
    all_negatives: npt.NDArray[np.bool_]
    num_sides: int
    seed: int | None = None

    @property
    def has_complex(self) -> bool:
        """Whether rows are complex numbers."""
        return bool(np.isin(self.codes, (operators.COMPLEX, operators.ROTATION)).any())

    def initial(self) -> Floats:
        """Return the first parameters and their Adagrad state.

        Returns:
            float32 ``[2 * sides, parameters]``: parameters and state of each side.
        """
        table = np.zeros((2 * self.num_sides, int(self.offsets[-1])), dtype=np.float32)
        for side in range(self.num_sides):
            for r, code in enumerate(self.codes):
                low, high = self.offsets[r], self.offsets[r + 1]
                values = _identity_parameters(int(code), int(high - low))
                if self.seed is not None:
                    rng = generator(self.seed, "operators", self.name, side, r)
                    values = _random_parameters(int(code), int(high - low), rng)
                table[2 * side, low:high] = values
        return table

    def operators(self, table: Floats) -> Operators:
        """View a parameter table as the kernels take it."""
        is_reciprocal = self.num_sides == 2
        empty = np.empty(0, dtype=np.float32)
        return Operators(
            codes=self.codes,
            offsets=self.offsets,
            parameters=table[0],
            state=table[1],
            back_parameters=table[2] if is_reciprocal else empty,
            back_state=table[3] if is_reciprocal else empty,
            is_reciprocal=is_reciprocal,
            has_complex=self.has_complex,
            lr_factors=self.lr_factors,
        )


def relation_sets(graph: HasRelations, config: EmbeddingConfig) -> list[RelationSet]:
    """Lay out the relations of every edge type that is trained on.

    Raises:
        UnknownNameError: The config names an edge type that the graph lacks.
        ConfigError: The config's relations are not the graph's, there is no edge type, or
            the dimensions of an edge type's ends differ or do not suit an operator.
    """
    by_name = {graph.edge_type_name(kind): kind for kind in graph.edge_types}
    for name in config.edge_types:
        if name not in by_name:
            raise unknown_name("edge type", name, by_name)
    chosen = {
        name: kind
        for name, kind in by_name.items()
        if not config.edge_types or name in config.edge_types
    }
    if not chosen:
        raise ConfigError("the graph has no edge types; there is nothing to train on")
    names = {name: graph.relations(kind) or [name] for name, kind in chosen.items()}
    settings = relation_settings(config, names)
    result = []
    for name, kind in chosen.items():
        used = [settings[relation] for relation in names[name]]
        dim = _require_dims(kind, name, used, config)
        codes = [OPERATOR_CODES[s.operator or config.operator] for s in used]
        sizes = [_num_parameters(code, dim) for code in codes]
        lr = config.relation_lr or config.lr
        result.append(
            RelationSet(
                name=name,
                edge_type=kind,
                relations=names[name],
                codes=np.array(codes, dtype=np.int64),
                offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
                weights=np.array([s.weight for s in used], dtype=np.float32),
                lr_factors=np.array([(s.lr or lr) / lr for s in used], dtype=np.float32),
                all_negatives=np.array([s.all_negatives for s in used], dtype=np.bool_),
                num_sides=2 if config.reciprocal else 1,
                seed=config.seed if config.operator_init == "random" else None,
            )
        )
    return result


def objective_of(config: EmbeddingConfig) -> Objective:
    """Return what a config optimizes, as the kernels take it."""
    return Objective(
        comparator=COMPARATOR_CODES[config.comparator] + BIASED * config.bias,
        loss=LOSS_CODES[config.loss],
        margin=np.float32(config.margin),
    )


def _require_dims(
    kind: EdgeType, name: str, used: list[RelationConfig], config: EmbeddingConfig
) -> int:
    """Return the length of the rows that an edge type joins."""
    dim, other = config.dim_of(kind.src_type), config.dim_of(kind.dst_type)
    if dim != other:
        raise ConfigError(
            f"edge type {name!r} joins {kind.src_type!r} of dim {dim} with "
            f"{kind.dst_type!r} of dim {other}, expected equal ones; set "
            f"node_types.{kind.dst_type}.dim={dim}, or leave the edge type out with "
            "edge_types"
        )
    for settings in used:
        require_dim(
            settings.operator or config.operator, dim, f"dim of node type {kind.src_type!r}"
        )
    return dim


def _num_parameters(code: int, dim: int) -> int:
    sizes = {
        operators.IDENTITY: 0,
        operators.LINEAR: dim * dim,
        operators.AFFINE: dim * dim + dim,
        operators.ROTATION: dim // 2,
    }
    return sizes.get(code, dim)


def _side(size: int) -> int:
    """Return D for the D * D parameters of a linear operator, or D * D + D of an affine."""
    return math.isqrt(size)


def _identity_parameters(code: int, size: int) -> Floats:
    values = np.zeros(size, dtype=np.float32)
    if code == operators.DIAGONAL:
        values[:] = 1.0
    elif code == operators.COMPLEX:
        values[: size // 2] = 1.0
    elif code in (operators.LINEAR, operators.AFFINE):
        side = _side(size)
        values[: side * side].reshape(side, side).flat[:: side + 1] = 1.0
    return values


def _random_parameters(code: int, size: int, rng: np.random.Generator) -> Floats:
    """Draw an operator that keeps lengths: a rotation, signs; a short translation."""
    if code == operators.COMPLEX:
        angle = rng.uniform(0, 2 * np.pi, size // 2)
        return np.concatenate([np.cos(angle), np.sin(angle)]).astype(np.float32)
    if code == operators.ROTATION:
        return rng.uniform(-np.pi, np.pi, size).astype(np.float32)
    if code == operators.DIAGONAL:
        return rng.choice(np.array([-1.0, 1.0], dtype=np.float32), size)
    if code in (operators.LINEAR, operators.AFFINE):
        side = _side(size)
        turn = np.linalg.qr(rng.normal(size=(side, side))).Q.reshape(-1)
        shift = rng.normal(scale=0.1, size=size - side * side)
        return np.concatenate([turn, shift]).astype(np.float32)
    return rng.normal(scale=0.1, size=size).astype(np.float32)
