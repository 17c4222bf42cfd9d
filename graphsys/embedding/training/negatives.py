"""What negatives are drawn from: tables of the partitions in memory, by edge type.

Everything comes from the store's own index: the degree of a node is the length of its
row, the relations it was seen with are in the row, and what is known of a query is the
row of its node. So no pass over all edges and no hash of them is needed, and graphs
larger than memory cost only what the resident partitions take.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.data.schedule import BucketTask, Part
from graphsys.embedding.model import RelationSet
from graphsys.embedding.spec.losses import loss_of
from graphsys.embedding.training.negative_tables import (
    degree_weights,
    layout,
    nothing_known,
    require_sound,
    uniform_candidates,
)
from graphsys.graph.csr import Csr, read_only
from graphsys.kernels.cpu.alias_table import build_alias
from graphsys.kernels.cpu.embedding import negatives as kernels
from graphsys.kernels.cpu.embedding.chunk import Edges
from graphsys.kernels.cpu.embedding.known import Known
from graphsys.kernels.cpu.embedding.negatives import Candidates, Sampler
from graphsys.storage.reader import GraphReader

Floats = npt.NDArray[np.float32]

SRC: Final = 0
DST: Final = 1


@dataclass(frozen=True, kw_only=True)
class PartTables:
    """What one side of an edge type is drawn from in one partition.

    Attributes:
        shares, aliases, node_bias: See :class:`Sampler`.
        type_begins, type_nodes: See :class:`Sampler`.
    """

    shares: Floats
    aliases: npt.NDArray[np.uint32]
    node_bias: Floats
    type_begins: npt.NDArray[np.int64]
    type_nodes: npt.NDArray[np.uint32]


class Negatives:
    """Draws for a run: its pools, and tables for the partitions in memory."""

    def __init__(self, graph: GraphReader, config: EmbeddingConfig) -> None:
        self._graph = graph
        self._config = config
        self._drawn = config.drawn_pools
        self._has_degree = any(pool.kind == "degree" for pool in self._drawn)
        self._has_type = any(pool.kind == "type" for pool in self._drawn)
        self._tables: dict[tuple[str, int, Part], PartTables] = {}
        self.pools = layout(config)

    def hold(self, parts: Iterable[Part]) -> None:
        """Forget the tables of all partitions but these."""
        wanted = set(parts)
        self._tables = {key: t for key, t in self._tables.items() if key[2] in wanted}

    def candidates(
        self, relations: RelationSet, step: BucketTask, edges: Edges
    ) -> Candidates:
        """Return what the queries of a bucket are compared with.

        Args:
            relations: The edge type.
            step: The bucket.
            edges: Its edges, in their order.
        """
        pools = self._config.pools
        has_hard = any(pool.kind == "hard" for pool in pools)
        batch = sum(pool.adversarial for pool in pools if pool.kind == "batch")
        temperatures = [batch, *(pool.adversarial for pool in self._drawn)]
        has_weights = any(temperatures) or (
            has_hard and loss_of(self._config.loss).has_mean
        )
        return Candidates(
            pools=self.pools,
            src=self.sampler(relations, step, edges, SRC),
            dst=self.sampler(relations, step, edges, DST),
            src_known=self.known(relations, step, SRC),
            dst_known=self.known(relations, step, DST),
            temperatures=np.array(temperatures if has_weights else [], dtype=np.float32),
            has_hard=has_hard,
        )

    def none(self) -> Candidates:
        """Return candidates for a bucket without edges, to compile the kernels with."""
        return uniform_candidates(self._config, (1, 1))

    def sampler(
        self, relations: RelationSet, step: BucketTask, edges: Edges, side: int
    ) -> Sampler:
        """Return what one side of a bucket is drawn from.

        Args:
            relations: The edge type.
            step: The bucket.
            edges: Its edges, in their order.
            side: ``SRC`` or ``DST``.
        """
        part = (step.src, step.dst)[side]
        num_nodes = int(np.diff(self._graph.offsets(part[0]))[part[1]])
        key = (relations.name, side, part)
        if key not in self._tables:
            self._tables[key] = self._build(relations, part, num_nodes, side)
        tables = self._tables[key]
        return Sampler(
            num_nodes=num_nodes,
            shares=tables.shares,
            aliases=tables.aliases,
            type_begins=tables.type_begins,
            type_nodes=tables.type_nodes,
            pool_bias=self._pool_bias(part[0], num_nodes, side),
            node_bias=tables.node_bias,
            has_type_bias=np.array(
                [pool.importance and pool.kind == "type" for pool in self._drawn],
                dtype=np.uint8,
            ),
            edge_bias=self._edge_bias(relations, part, num_nodes, edges, side),
        )

    def known(self, relations: RelationSet, step: BucketTask, side: int) -> Known:
        """Return the answers known of the queries for one side of a bucket.

        Args:
            relations: The edge type.
            step: The bucket.
            side: Where the answers are: ``SRC`` or ``DST``.
        """
        if not self._config.reads_known_edges:
            return nothing_known()
        answers, query = (step.src, step.dst) if side == SRC else (step.dst, step.src)
        index = self._index(relations, query, DST if side == SRC else SRC)
        offsets = self._graph.offsets(answers[0])
        relation = np.empty(0, np.uint16) if index.relation is None else index.relation
        return Known(
            indptr=read_only(index.indptr),
            indices=read_only(index.indices),
            relation=read_only(relation),
            first=int(offsets[answers[1]]),
            num_nodes=int(offsets[answers[1] + 1] - offsets[answers[1]]),
        )

    def _index(self, relations: RelationSet, part: Part, side: int) -> Csr:
        """Return the rows of a partition's nodes as sources, or as destinations."""
        kind = relations.edge_type
        index = (self._graph.out_index, self._graph.in_index)[side](kind, part[1])
        require_sound(index, len(relations.relations), f"{relations.name!r}", self._graph)
        return index

    def _build(
        self, relations: RelationSet, part: Part, num_nodes: int, side: int
    ) -> PartTables:
        degrees = [pool for pool in self._drawn if pool.kind == "degree"]
        shares = np.ones((len(degrees), num_nodes), np.float32)
        aliases = np.zeros((len(degrees), num_nodes), np.uint32)
        has_bias = any(pool.importance for pool in degrees)
        node_bias = np.zeros((len(degrees), num_nodes if has_bias else 0), np.float32)
        begins, nodes = np.zeros(1, np.int64), np.empty(0, np.uint32)
        if self._has_degree or self._has_type:
            index = self._index(relations, part, side)
            for t, pool in enumerate(degrees):
                weights = degree_weights(index.indptr, pool.exponent)
                build_alias(weights, shares[t], aliases[t])
                if pool.importance:
                    with np.errstate(divide="ignore"):
                        node_bias[t] = -np.log(weights / weights.sum())
            if self._has_type:
                relation = index.relation
                codes = np.empty(0, np.uint16) if relation is None else relation
                begins, nodes = kernels.collect_types(
                    read_only(index.indptr), read_only(codes), len(relations.relations)
                )
        return PartTables(
            shares=shares,
            aliases=aliases,
            node_bias=node_bias,
            type_begins=begins,
            type_nodes=nodes,
        )

    def _is_disabled(self, side: int) -> bool:
        """Whether the nodes of a side are no negatives; their scores become -inf."""
        config = self._config
        return (config.disable_src_negatives, config.disable_dst_negatives)[side]

    def _pool_bias(self, node_type: str, num_nodes: int, side: int) -> Floats:
        """Return the constant part of each pool's logQ correction, float32 ``[P]``."""
        if self._is_disabled(side):
            return np.full(len(self._drawn), -np.inf, np.float32)
        return np.array(
            [
                self._log_weight(node_type, pool.num)
                if pool.kind == "uniform"
                else self._log_weight(node_type, pool.num * num_nodes)
                for pool in self._drawn
            ],
            dtype=np.float32,
        ) * np.array([pool.importance for pool in self._drawn], dtype=np.float32)

    def _log_weight(self, node_type: str, share: int) -> float:
        """Return the log of how many nodes of a type one of ``share`` stands for.

        Pools with weights estimate the same sum over all nodes, so each gets its part.
        """
        num_estimates = sum(pool.importance for pool in self._config.pools)
        others = max(self._graph.num_nodes_of(node_type) - 1, 1)
        return float(np.log(others / share / max(num_estimates, 1)))

    def _edge_bias(
        self, relations: RelationSet, part: Part, num_nodes: int, edges: Edges, side: int
    ) -> Floats:
        """Return the logQ correction of in-batch negatives, but for the chunk's size."""
        if self._is_disabled(side):
            return np.full(len(edges.src), -np.inf, np.float32)
        if not any(p.importance for p in self._config.pools if p.kind == "batch"):
            return np.empty(0, np.float32)
        is_mixed = len(relations.relations) == 1 or not self._config.is_cut_by_relation
        none = read_only(np.empty(0, np.uint32))
        bias = np.empty(len(edges.src), np.float32)
        kernels.batch_bias(
            (edges.src, edges.dst)[side],
            none if is_mixed else edges.relation,
            edges.order,
            num_nodes,
            bias,
        )
        bias += np.float32(self._log_weight(part[0], num_nodes))
        return bias


def sampler_bytes(
    graph: GraphReader, config: EmbeddingConfig, relations: RelationSet, step: BucketTask
) -> int:
    """Return what the tables of a bucket take at most; what is known stays mapped."""
    kind, drawn = relations.edge_type, config.drawn_pools
    per_node = sum(8 + 4 * pool.importance for pool in drawn if pool.kind == "degree")
    has_batch = any(pool.importance and pool.kind == "batch" for pool in config.pools)
    total = 8 * step.num_edges if has_batch else 0
    num_edges = graph.num_edges_of(kind, graph.default_split(kind))
    for part in (step.src, step.dst):
        num_nodes = int(np.diff(graph.offsets(part[0]))[part[1]])
        total += per_node * num_nodes
        if any(pool.kind == "type" for pool in drawn):
            total += 4 * min(num_edges, num_nodes * len(relations.relations))
    return total
