"""Our neighbor sampler as PyG's: for NodeLoader and LinkLoader."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from graphsys.core.deps import require
from graphsys.core.errors import ConfigError
from graphsys.core.types import EdgeType
from graphsys.facade.columns import is_heterogeneous, relations
from graphsys.sampling import Block, NeighborSampler, Sample, TemporalSampler
from graphsys.sampling.temporal import Choice
from graphsys.storage.reader import GraphReader

pyg_sampler = require("torch_geometric.sampler", extra="pyg")
pyg_neighbors = require("torch_geometric.sampler.neighbor_sampler", extra="pyg")

Fanouts = Sequence[int] | Mapping[Any, Sequence[int]]


class GraphsysSampler(pyg_sampler.BaseSampler):  # type: ignore[misc,name-defined]  # PyG is untyped
    """Samples neighbors straight from a store's mapped index files.

    Nodes and edges come hop by hop, so ``trim_to_layer`` works. Edge ids are places in the
    index: rows of :func:`to_data`'s edges, and what :class:`EdgeAttributes` reads. Output
    tensors are copies (PyG wants int64, blocks have int32), the sampler's own buffers are
    used again.

    Draws follow ``torch.manual_seed``, and in worker processes the seed that the loader
    gives them. Loaders fork their workers, which share the mapped files; threads within a
    process may share a sampler as well.

    Args:
        graph: An open graph.
        num_neighbors: Neighbors per hop, the hop next to the seeds first (PyG's order); -1
            for all. Or a mapping with a list for each edge type.
        is_replacing: Whether a neighbor may be drawn several times.
        is_weighted: Whether neighbors are drawn in proportion to the edges' weights.
        reverse: Whether directed edges are traveled both ways; edges against a type are
            of type ``(dst, rev_NAME, src)``.
        is_temporal: Whether to follow edges strictly before the seed's time alone (PyG's
            own sampler takes those at that time too). Loaders then want ``input_time`` or
            ``edge_label_time``; as in PyG, every seed has nodes of its own, and ``batch``
            says which.
        temporal_strategy: Which of them: ``uniform`` or ``latest`` (PyG: ``last``).

    Raises:
        ConfigError: Fanouts that do not fit, weights or times that are not there.

    Examples:
        >>> import graphsys as gs, tempfile, torch
        >>> from torch_geometric.loader import NodeLoader
        >>> folder = tempfile.mkdtemp()
        >>> _ = gs.ingest({"src": [0, 1, 2, 3], "dst": [1, 2, 0, 1]}, folder + "/g")
        >>> graph = gs.open(folder + "/g")
        >>> from graphsys.interop import pyg
        >>> loader = NodeLoader(
        ...     pyg.stores(graph), GraphsysSampler(graph, [-1]), torch.tensor([1])
        ... )
        >>> [(batch.num_nodes, batch.num_edges) for batch in loader]
        [(3, 2)]
    """

    def __init__(
        self,
        graph: GraphReader,
        num_neighbors: Fanouts,
        *,
        is_replacing: bool = False,
        is_weighted: bool = False,
        reverse: bool = False,
        is_temporal: bool = False,
        temporal_strategy: Choice = "uniform",
    ) -> None:
        self.is_temporal = is_temporal
        self.kinds = relations(graph, reverse=reverse)
        self.is_hetero = is_heterogeneous(graph, self.kinds)
        self.node_types = graph.node_types
        self.num_nodes = {name: graph.num_nodes_of(name) for name in graph.node_types}
        rows, fanouts = list(self.kinds.values()), self._by_name(num_neighbors)
        self._sampler: NeighborSampler
        if not is_temporal:
            self._sampler = NeighborSampler(
                rows,
                fanouts,
                frontier="new",
                is_replacing=is_replacing,
                is_weighted=is_weighted,
            )
            return
        if is_replacing:
            raise ConfigError(
                "is_replacing: got True with is_temporal, expected False; older edges are "
                "drawn without replacement"
            )
        self._sampler = TemporalSampler(
            rows,
            fanouts,
            frontier="new",
            choice=temporal_strategy,
            is_weighted=is_weighted,
            is_disjoint=True,
        )

    def sample_from_nodes(self, index: Any, **kwargs: Any) -> Any:
        """Return the surroundings of a batch of nodes; called by NodeLoader.

        Raises:
            ConfigError: Seeds with times for a sampler that is not temporal, or the other
                way round; a node twice in a batch, unless temporal.
        """
        del kwargs  # nothing of PyG's own is passed on here
        self._check_time(index.time)
        seeds, times = index.node, index.time
        if self.is_hetero:
            seeds = {index.input_type: seeds}
            times = None if times is None else {index.input_type: times}
        out = self._sample(seeds, times)
        found = out.num_sampled_nodes
        if self.is_hetero:
            found = found[index.input_type]
        if found[0] != len(index.node):
            raise ConfigError(
                f"the batch names {len(index.node)} nodes, {found[0]} of them different; "
                "each may come once, take out repeated ones of input_nodes"
            )
        out.metadata = (index.input_id, index.time)
        return out

    def sample_from_edges(self, index: Any, neg_sampling: Any = None) -> Any:
        """Return the surroundings of a batch of edges' ends; called by LinkLoader.

        Negatives are PyG's (``binary`` and ``triplet``): drawn from all nodes of a type, so
        that some may be edges.

        Raises:
            ConfigError: Edges with times for a sampler that is not temporal, or the other
                way round.
        """
        self._check_time(index.time)
        counts = self.num_nodes
        return pyg_neighbors.edge_sample(
            index,
            self._sample,
            counts if self.is_hetero else next(iter(counts.values())),
            disjoint=self.is_temporal,
            neg_sampling=neg_sampling,
        )

    def _sample(self, seeds: Any, seed_time: Any = None) -> Any:
        draw = int(torch.randint(2**62, ()))
        times = None if seed_time is None else self._by_type(seed_time)
        with self._sampler.sample(self._by_type(seeds), batch=draw, times=times) as sample:
            return self._typed(sample) if self.is_hetero else self._untyped(sample)

    def _by_type(self, values: Any) -> dict[str, Any]:
        if self.is_hetero:
            return {name: each.numpy() for name, each in values.items()}
        return {self.node_types[0]: values.numpy()}

    def _check_time(self, time: Any) -> None:
        if time is not None and not self.is_temporal:
            raise ConfigError(
                "got times of seeds; GraphsysSampler samples without regard to time, leave "
                "out input_time and edge_label_time, or set is_temporal"
            )
        if time is None and self.is_temporal:
            raise ConfigError(
                "got no times of seeds, but is_temporal; give the loader input_time or "
                "edge_label_time"
            )

    def _untyped(self, sample: Sample) -> Any:
        (name,) = sample.layers[0]
        row, col, edge = _edges(sample.layers[0][name])
        return pyg_sampler.SamplerOutput(
            torch.from_numpy(sample.input_nodes.copy()),
            row,
            col,
            edge,
            batch=_groups(sample, self.node_types[0]),
            num_sampled_nodes=_hop_nodes(sample, self.node_types[0]),
            num_sampled_edges=_hop_edges(sample, name),
        )

    def _typed(self, sample: Sample) -> Any:
        none = np.empty(0, dtype=np.int64)
        edges = {
            tuple(kind): _edges(sample.layers[0][rows.name])
            for kind, rows in self.kinds.items()
        }
        return pyg_sampler.HeteroSamplerOutput(
            {
                name: torch.from_numpy(sample.nodes.get(name, none).copy())
                for name in self.node_types
            },
            {kind: row for kind, (row, _, _) in edges.items()},
            {kind: col for kind, (_, col, _) in edges.items()},
            {kind: edge for kind, (_, _, edge) in edges.items()},
            batch=None
            if sample.groups is None
            else {name: _groups(sample, name) for name in self.node_types},
            num_sampled_nodes={name: _hop_nodes(sample, name) for name in self.node_types},
            num_sampled_edges={
                tuple(kind): _hop_edges(sample, rows.name)
                for kind, rows in self.kinds.items()
            },
        )

    def _by_name(self, fanouts: Fanouts) -> Sequence[int] | Mapping[str, Sequence[int]]:
        if not isinstance(fanouts, Mapping):
            return fanouts
        names = {kind: rows.name for kind, rows in self.kinds.items()}
        return {
            names.get(EdgeType(*kind), str(kind)) if isinstance(kind, tuple) else kind: each
            for kind, each in fanouts.items()
        }


def _groups(sample: Sample, node_type: str) -> torch.Tensor | None:
    """Return the seed that each node belongs to, where seeds have nodes of their own."""
    if sample.groups is None:
        return None
    none = np.empty(0, dtype=np.int32)
    return torch.from_numpy(sample.groups.get(node_type, none).astype(np.int64))


def _edges(block: Block) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return sources, destinations and ids of a block's entries, as copies."""
    assert block.edge is not None  # neighbor samplers give it
    row = block.indices.astype(np.int64)
    col = np.repeat(np.arange(block.num_dst), np.diff(block.indptr))
    return (
        torch.from_numpy(row),
        torch.from_numpy(col),
        torch.from_numpy(block.edge.copy()),
    )


def _hop_nodes(sample: Sample, node_type: str) -> list[int]:
    counts = sample.hop_nodes.get(node_type, [0] * (len(sample.layers) + 1))
    return [int(it) for it in np.diff(counts, prepend=0)]


def _hop_edges(sample: Sample, name: str) -> list[int]:
    ends = [layer[name].num_edges for layer in reversed(sample.layers)]
    return [int(it) for it in np.diff(ends, prepend=0)]
