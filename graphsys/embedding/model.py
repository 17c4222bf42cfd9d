"""Relations of a graph and their operators: names, codes, parameters."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError, unknown_name
from graphsys.core.rng import generator
from graphsys.core.types import EdgeType
from graphsys.embedding.config import EmbeddingConfig, relation_settings, require_dim
from graphsys.embedding.spec.operators import OperatorSpec, operator_of
from graphsys.embedding.type_configs import RelationConfig

if TYPE_CHECKING:
    from graphsys.kernels.cpu.embedding.operators import Operators

Floats = npt.NDArray[np.float32]

_CUSTOM: Final = -1


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
        codes: Operator of each, int64 ``[R]``; -1 for one of another package.
        offsets: Where the parameters of each begin, int64 ``[R + 1]``.
        weights: Loss weight of each, float32 ``[R]``.
        lr_factors: Learning rate of each operator, by that of all, float32 ``[R]``.
        all_negatives: Whether all nodes of a partition are its negatives, bool ``[R]``.
        num_sides: 2 with reciprocal relations, else 1.
        seed: Of the first parameters where they are random, else None.
        specs: What the operator of each is.
        dim: Length of the rows that the edge type joins.
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
    specs: tuple[OperatorSpec, ...] = ()
    dim: int = 0

    @property
    def has_complex(self) -> bool:
        """Whether rows are complex numbers."""
        return any(spec.is_complex for spec in self.specs)

    @cached_property
    def kernel_codes(self) -> npt.NDArray[np.int64]:
        """Operator of each as kernels take it (see ``kernels/cpu/embedding/operators``).

        Raises:
            ConfigError: A function of another package does not compile.
        """
        codes, addresses = self.codes.copy(), list[int]()
        for r in np.flatnonzero(codes == _CUSTOM):
            codes[r] = -(len(codes) + len(addresses))
            addresses += self.specs[r].addresses
        return np.concatenate([codes, np.array(addresses, dtype=np.int64)])

    def initial(self) -> Floats:
        """Return the first parameters and their Adagrad state.

        Returns:
            float32 ``[2 * sides, parameters]``: parameters and state of each side.
        """
        table = np.zeros((2 * self.num_sides, int(self.offsets[-1])), dtype=np.float32)
        for side in range(self.num_sides):
            for r, spec in enumerate(self.specs):
                rng = None
                if self.seed is not None:
                    rng = generator(self.seed, "operators", self.name, side, r)
                low, high = self.offsets[r], self.offsets[r + 1]
                table[2 * side, low:high] = spec.first(self.dim, rng)
        return table

    def operators(self, table: Floats) -> "Operators":
        """View a parameter table as the kernels take it."""
        is_reciprocal = self.num_sides == 2
        empty = np.empty(0, dtype=np.float32)
        from graphsys.kernels.cpu.embedding.operators import Operators  # numba

        return Operators(
            codes=self.kernel_codes,
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
        specs = tuple(operator_of(s.operator or config.operator) for s in used)
        codes = [_CUSTOM if spec.code is None else spec.code for spec in specs]
        sizes = [spec.num_parameters(dim) for spec in specs]
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
                all_negatives=np.array(
                    [s.all_negatives or config.mode != "sampled" for s in used],
                    dtype=np.bool_,
                ),
                num_sides=2 if config.reciprocal else 1,
                seed=config.seed if config.operator_init == "random" else None,
                specs=specs,
                dim=dim,
            )
        )
    return result


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
        where = f"dim of node type {kind.src_type!r}"
        require_dim(config, settings.operator or config.operator, dim, where)
    return dim
