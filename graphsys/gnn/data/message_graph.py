"""Where a network's messages come from: samples of a graph, or all of it at once."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.errors import ConfigError, InvalidGraphError, cut_list, unknown_name
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.labels import NO_TIME, read_times
from graphsys.gnn.model_spec import spec_of
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.ops.gcn_norm import weigh
from graphsys.gnn.part_specs import SAMPLERS
from graphsys.sampling import (
    Block,
    ImportanceSampler,
    NeighborSampler,
    Sample,
    message_rows,
    metapath_rows,
    relation_rows,
    rows_of,
)
from graphsys.sampling.adjacency import REVERSED, PartitionedCsr, Side
from graphsys.sampling.layerwise import LayerSampler
from graphsys.sampling.multi_hop import HopSampler
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
Layer = dict[str, SparseRows]
_MAX_PLACES = 2**31


class MessageGraph:
    """The relations of a graph and the samplers over them.

    Args:
        graph: An open graph.
        config: Model, edge types, fanouts.
        node_type: Whose rows are wanted; PinSage's walks begin and end there.

    Attributes:
        relations: Name, node type and neighbors' type of each relation.
        sampler: Of training batches.

    Raises:
        ConfigError: Edge types that do not suit the model.
        UnknownNameError: An edge type that is not in the graph.
    """

    def __init__(self, graph: GraphReader, config: GnnConfig, node_type: str) -> None:
        self.config = config
        spec = spec_of(config.model)
        self.has_degrees, self._has_loops = spec.weights == "degrees", spec.has_loops
        self._is_walked = spec.messages == "walks"
        self.sampler: HopSampler
        if spec.messages == "walks":
            self._graph_rows = walk_rows(graph, config, node_type)
            self.sampler = self._importance(config.hop_fanouts)
            self.rows = self.sampler.rows
        elif spec.messages == "relations":
            self.rows = tuple(relation_rows(graph, config.edge_types))
            self.sampler = _make_sampler(self.rows, config)
        elif spec.messages == "metapaths":
            if config.batch_size:
                raise ConfigError(
                    f"batch_size: got {config.batch_size} with model {config.model}, "
                    "expected 0, for the shares of its metapaths are means over all nodes"
                )
            self.rows = tuple(metapath_rows(graph, node_type, config.edge_types))
            self.sampler = _make_sampler(self.rows, config)
        else:
            self.rows = tuple(
                message_rows(graph, config.edge_types, reverse=config.reverse_edges)
            )
            is_by_layer = spec.messages == "layers"
            self.sampler = (_by_layer if is_by_layer else _make_sampler)(self.rows, config)
        self.relations = [(r.name, r.node_type, r.neighbor_type) for r in self.rows]
        self._graph = graph
        self._times: dict[str, Ints] = {}

    def sample(self, seeds: Mapping[str, Ints], *, epoch: int, batch: int) -> Sample:
        """Sample the surroundings of seeds, before their times where those count.

        Raises:
            UnknownNameError: A seed is not in the graph.
            ConfigError: Nodes have no column ``time``, though those count.
            InvalidGraphError: Seeds have no time.
        """
        if not SAMPLERS.get(self.config.sampler).has_times:
            return self.sampler.sample(seeds, epoch=epoch, batch=batch)
        times = {name: self._times_of(name, nodes) for name, nodes in seeds.items()}
        return self.sampler.sample(seeds, epoch=epoch, batch=batch, times=times)

    def _times_of(self, node_type: str, nodes: Ints) -> Ints:
        if node_type not in self._times:
            self._times[node_type] = read_times(self._graph, node_type)
        times = self._times[node_type][nodes]
        if len(missing := nodes[times == NO_TIME]):
            ids = self._graph.ids_of(node_type, missing[:6]).to_pylist()
            raise InvalidGraphError(
                f"{len(missing)} of {len(nodes)} nodes of type {node_type!r} have no time, "
                f"before which to sample: {cut_list(ids)}"
            )
        return times

    @property
    def node_types(self) -> list[str]:
        """Node types that take part."""
        return list(self.sampler.sizes)

    @property
    def input_types(self) -> list[str]:
        """Node types that a network reads."""
        return self.node_types

    def one_hop(self, k: int) -> HopSampler:
        """Return the sampler of inference for layer ``k``: all neighbors, or PinSage's."""
        if self._is_walked:
            return self._importance((self.config.hop_fanouts[-1 - k],))
        return NeighborSampler(self.rows, [-1], seed=self.config.seed)

    def wrap(self, layers: Sequence[Mapping[str, Block]]) -> list[Layer]:
        """Return the rows of each layer of a sample, without copying them."""
        return [
            {
                name: self._weighed(
                    SparseRows.of(block, is_prefix=own == other), name, block
                )
                for name, own, other in self.relations
                for block in [layer[name]]
            }
            for layer in layers
        ]

    def whole(self) -> Layer:
        """Return the whole graph as the rows of one layer; all layers may share it.

        Raises:
            ConfigError: It is too large for that.
        """
        layer = {}
        for rows in self.rows:
            if max(rows.num_nodes, rows.num_neighbors) >= _MAX_PLACES:
                raise ConfigError(
                    f"batch_size: got 0 for a graph of {rows.num_nodes} nodes; a whole "
                    f"graph has fewer than {_MAX_PLACES}; train in batches"
                )
            indptr = np.concatenate([[0], np.cumsum(rows.degrees())]).astype(np.int64)
            parts = [index.indices.astype(np.int32) for index in rows.indexes]
            indices = np.concatenate(parts) if parts else np.empty(0, np.int32)
            is_prefix = rows.node_type == rows.neighbor_type
            whole = SparseRows(indptr, indices, rows.num_neighbors, is_prefix=is_prefix)
            if self.has_degrees:
                src, dst = self._degrees[rows.name]
                weigh(whole, src, dst, has_self=is_prefix and self._has_loops)
            layer[rows.name] = whole
        return layer

    @cached_property
    def _degrees(self) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """Degrees of sources and of destinations, by relation."""
        found = {}
        for rows in self.rows:
            own = torch.from_numpy(rows.degrees().astype(np.float32))
            other = own
            if rows.node_type != rows.neighbor_type:
                side: Side = "in" if rows.name.endswith(REVERSED) else "out"
                opposite = rows_of(self._graph, rows.name.removesuffix(REVERSED), side)
                other = torch.from_numpy(opposite.degrees().astype(np.float32))
            found[rows.name] = (other, own)
        return found

    def _weighed(self, rows: SparseRows, name: str, block: Block) -> SparseRows:
        if self.has_degrees:
            src, dst = self._degrees[name]
            weigh(
                rows,
                src[torch.from_numpy(block.src_nodes)],
                dst[torch.from_numpy(block.dst_nodes)],
                has_self=rows.is_prefix and self._has_loops,
                shares=rows.weight,
            )
        return rows

    def _importance(self, counts: tuple[int, ...]) -> ImportanceSampler:
        config, (rows, back) = self.config, self._graph_rows
        if any(count < 0 for count in counts):
            raise ConfigError(
                f"fanouts: got {list(counts)} with model pinsage, expected numbers >= 1, "
                "for its neighborhoods are ranked"
            )
        return ImportanceSampler(
            rows,
            back,
            num_neighbors=counts,
            num_walks=config.num_walks,
            walk_length=config.walk_length,
            restart=config.restart,
            frontier=config.frontier,
            seed=config.seed,
        )


def _make_sampler(rows: Sequence[PartitionedCsr], config: GnnConfig) -> HopSampler:
    made: HopSampler = SAMPLERS.get(config.sampler).make(rows, config)
    return made


def _by_layer(rows: Sequence[PartitionedCsr], config: GnnConfig) -> LayerSampler:
    counts, frontier = config.hop_fanouts, config.frontier
    return LayerSampler(rows, counts, frontier=frontier, seed=config.seed)


def walk_rows(
    graph: GraphReader, config: GnnConfig, node_type: str
) -> tuple[PartitionedCsr, PartitionedCsr | None]:
    """Return the rows of PinSage's walks: within a type, or over another and back.

    Raises:
        UnknownNameError: An edge type that is not in the graph.
        ConfigError: Not exactly one edge type to walk along.
    """
    names = list(config.edge_types) or [graph.edge_type_name(k) for k in graph.edge_types]
    for name in names:
        if name not in graph.manifest.edge_types:
            raise unknown_name("edge type", name, graph.manifest.edge_types)
    names = [
        n for n in names if node_type in (graph.edge_type(n)[0], graph.edge_type(n)[2])
    ]
    if len(names) != 1:
        raise ConfigError(
            f"model pinsage walks along one edge type from {node_type!r}; found "
            f"{', '.join(names) or 'none'}; choose one with edge_types"
        )
    kind = graph.edge_type(names[0])
    if kind.src_type == kind.dst_type:
        return rows_of(graph, names[0], "in"), None
    is_dst = kind.dst_type == node_type
    ends: tuple[Side, Side] = ("in", "out") if is_dst else ("out", "in")
    return rows_of(graph, names[0], ends[0]), rows_of(graph, names[0], ends[1])
