"""Pairs of nodes that belong together: edges, or nodes on one walk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.core.errors import ConfigError, unknown_name
from graphsys.core.rng import generator
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.shuffled_edges import ShuffledEdges, SplitEdges
from graphsys.gnn.model_spec import spec_of
from graphsys.sampling import Block, rows_of, walk
from graphsys.sampling.adjacency import REVERSED, PartitionedCsr
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
MOST_IN_MEMORY = 1 << 22
"""Edges up to which an epoch's are shuffled in memory, 16 bytes each."""


class Pairs(Protocol):
    """Where positives come from.

    Attributes:
        edge_type: Name of the edge type that they follow.
        src_type: Node type of the first of each pair.
        dst_type: Node type of the second.
    """

    edge_type: str
    src_type: str
    dst_type: str

    def epoch(self, epoch: int) -> "Ints | ShuffledEdges":
        """Return the pairs of an epoch, shuffled; slices of it are int64 ``[n, 2]``."""


@dataclass
class EdgePairs:
    """The training edges of an edge type: in memory, or read where they lie if many."""

    edge_type: str
    src_type: str
    dst_type: str
    seed: int
    edges: SplitEdges

    def epoch(self, epoch: int) -> Ints | ShuffledEdges:
        """Return all of them, shuffled."""
        if len(self.edges) > MOST_IN_MEMORY:
            return ShuffledEdges(self.edges, self.seed, "pairs", epoch)
        pairs = self.edges.pairs(np.arange(len(self.edges)))
        return generator(self.seed, "pairs", epoch).permutation(pairs)


@dataclass
class WalkPairs:
    """A node with one that a short walk from it visits, once for each node with edges."""

    edge_type: str
    src_type: str
    dst_type: str
    seed: int
    path: list[PartitionedCsr]
    num_traversals: int
    p: float = 1.0
    q: float = 1.0

    def epoch(self, epoch: int) -> Ints:
        """Return a new pair for every node."""
        starts = np.flatnonzero(self.path[0].degrees() > 0)
        length = len(self.path) * self.num_traversals
        visited = walk(
            self.path, starts, length, p=self.p, q=self.q, seed=self.seed, epoch=epoch
        )
        stops = visited[:, len(self.path) :: len(self.path)]
        rng = generator(self.seed, "stops", epoch)
        chosen = stops[np.arange(len(starts)), rng.integers(0, stops.shape[1], len(starts))]
        is_pair = (chosen >= 0) & (chosen != starts)
        return rng.permutation(np.stack([starts[is_pair], chosen[is_pair]], axis=1))


def make_pairs(graph: GraphReader, config: GnnConfig) -> Pairs:
    """Return the positives that a config names.

    Raises:
        UnknownNameError: An edge type that is not in the graph.
        ConfigError: Several edge types to choose from, or none that leads to a pair.
    """
    name = learned_edge_type(graph, config)
    kind = graph.edge_type(name)
    if config.positives == "edges":
        is_of_one = spec_of(config.model).messages in ("walks", "metapaths")
        if is_of_one and kind.src_type != kind.dst_type:
            raise ConfigError(
                f"model {config.model} has rows for one node type, edges {name!r} join "
                f'{kind.src_type!r} and {kind.dst_type!r}; set positives = "walks"'
            )
        edges = SplitEdges(graph, name)
        if not len(edges):
            raise ConfigError(f"edge type {name!r} has no training edges to learn from")
        return EdgePairs(name, kind.src_type, kind.dst_type, config.seed, edges)
    node_type = config.node_type or kind.dst_type
    if node_type not in (kind.src_type, kind.dst_type):
        raise ConfigError(
            f"node_type: got {node_type!r}, but edges {name!r} join {kind.src_type!r} and "
            f"{kind.dst_type!r}"
        )
    is_dst = node_type == kind.dst_type
    path = [rows_of(graph, name, "in" if is_dst else "out")]
    if kind.src_type != kind.dst_type:
        path.append(rows_of(graph, name, "out" if is_dst else "in"))
    return WalkPairs(
        name,
        node_type,
        node_type,
        config.seed,
        path,
        config.walk_length,
        p=config.p,
        q=config.q,
    )


def read_pairs(
    graph: GraphReader, name: str, split: str | None = None, *, relation: int | None = None
) -> Ints:
    """Return the edges of a split by the numbers of their ends, int64 ``[n, 2]``.

    Args:
        graph: An open graph.
        name: The edge type.
        split: The split; train by default.
        relation: Code of the relation that edges are to be of; any by default.
    """
    kind = graph.edge_type(name)
    src_offsets, dst_offsets = graph.offsets(kind.src_type), graph.offsets(kind.dst_type)
    found = []
    for i, j in graph.buckets(name, split):
        bucket = graph.bucket(name, i, j, split)
        src = bucket.src.astype(np.int64) + src_offsets[i]
        pairs = np.stack([src, bucket.dst.astype(np.int64) + dst_offsets[j]], axis=1)
        found.append(pairs if relation is None else pairs[bucket.relation == relation])
    return np.concatenate(found) if found else np.empty((0, 2), dtype=np.int64)


def without_pairs(
    layers: Sequence[Mapping[str, Block]],
    edge_type: str,
    src: Ints,
    dst: Ints,
    *,
    is_symmetric: bool = False,
    has_shares: bool = False,
) -> list[Mapping[str, Block]]:
    """Take the entries that are pairs of a batch out of blocks.

    A network that saw them would learn to copy the answer.

    Args:
        layers: Blocks by relation; the arrays are not changed.
        edge_type: Of the pairs.
        src: Numbers of the first of each pair ``[n]``.
        dst: Of the second ``[n]``.
        is_symmetric: Whether rows list both ends of an edge: undirected, of one node type.
        has_shares: Whether weights of a row sum to 1; what is left of it then does, too.
    """
    along, against = (dst, src), (src, dst)  # (row, entry)
    hidden = {
        edge_type: [along, against] if is_symmetric else [along],
        edge_type + REVERSED: [against],
    }
    return [
        {
            name: _without(block, hidden[name], has_shares) if name in hidden else block
            for name, block in layer.items()
        }
        for layer in layers
    ]


def _without(block: Block, wanted: list[tuple[Ints, Ints]], has_shares: bool) -> Block:
    rows = np.repeat(block.dst_nodes, np.diff(block.indptr))
    others = block.src_nodes[block.indices]
    size = 1 + max(int(part.max(initial=0)) for part in (others, *(o for _, o in wanted)))
    hidden = distinct(np.concatenate([own * size + other for own, other in wanted]))
    keys = rows * size + others
    places = np.minimum(np.searchsorted(hidden, keys), len(hidden) - 1)
    is_kept = hidden[places] != keys if len(hidden) else np.ones(len(keys), dtype=bool)
    ends = np.concatenate([[0], np.cumsum(is_kept)])
    weight = None if block.weight is None else block.weight[is_kept]
    if has_shares and weight is not None:
        local = np.repeat(np.arange(block.num_dst), np.diff(ends[block.indptr]))
        weight = weight / np.bincount(local, weight, block.num_dst)[local].astype("f4")
    return Block(
        indptr=ends[block.indptr],
        indices=block.indices[is_kept],
        src_nodes=block.src_nodes,
        dst_nodes=block.dst_nodes,
        edge=None if block.edge is None else block.edge[is_kept],
        weight=weight,
    )


def learned_edge_type(graph: GraphReader, config: GnnConfig) -> str:
    """Return the name of the edge type that a config learns.

    Raises:
        UnknownNameError: An edge type that is not in the graph.
        ConfigError: Several edge types to choose from, or none.
    """
    names = [graph.edge_type_name(kind) for kind in graph.edge_types]
    if config.edge_type:
        if config.edge_type not in names:
            raise unknown_name("edge type", config.edge_type, names)
        return config.edge_type
    if len(names) != 1:
        raise ConfigError(
            f"task {config.task}: the graph {graph.path} has edge types "
            f"{', '.join(names) or 'none'}; choose one with edge_type"
        )
    return names[0]
