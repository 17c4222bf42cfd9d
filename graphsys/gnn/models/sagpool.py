"""SAGPool: after every layer the nodes that a layer of attention scores highest stay."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.features import InputShape
from graphsys.gnn.data.graph_batches import membership
from graphsys.gnn.model_spec import ModelSpec, register
from graphsys.gnn.models.graph_network import GraphNetwork
from graphsys.gnn.models.layers.gcn import GCN
from graphsys.gnn.models.model import Relation, Rows, Tensors, key_of
from graphsys.gnn.ops.adjacency import SparseRows

Ints = npt.NDArray[np.int64]


class SagPool(GraphNetwork):
    """Graph convolutions; after each, of a graph's n nodes ``ceil(pool_ratio n)`` stay.

    ``z = GCN(A, X)`` with one output scores the nodes; the best of each graph, ties by the
    order of the nodes, have ``x' = x tanh(z)`` and the edges between them (top-k pooling
    scores by a projection of x alone, and has no A). Readouts are those of
    :class:`~graphsys.gnn.models.graph_network.GraphNetwork`, of what stays; the paper has
    the mean beside the maximum there, and three linear layers behind their sum.

    Args:
        config: Layers and their sizes, ``pool_ratio``.
        relations: Name, node type and neighbors' type of each relation within graphs.
        shapes: Input of every node type.
        num_out: Scores of a graph.
        graph_type: Node type of the graphs.

    References:
        Lee, Lee, Kang, "Self-attention graph pooling", ICML 2019, the hierarchical
        architecture. Gao, Ji, "Graph U-Nets", ICML 2019, for top-k pooling.
    """

    def __init__(
        self,
        config: GnnConfig,
        relations: Sequence[Relation],
        shapes: Mapping[str, InputShape],
        num_out: int,
        graph_type: str,
    ) -> None:
        inner = replace(config, model="gcn")
        super().__init__(inner, relations, shapes, num_out, graph_type)
        self.attention = nn.ModuleList(
            nn.ModuleDict({key_of(name): GCN(config.dim, 1) for name, _, _ in relations})
            for _ in range(config.layers)
        )

    def _pool(self, k: int, rows: Rows, h: Tensors) -> tuple[Rows, Tensors]:
        """Return the nodes that stay, and the rows between them and of graphs."""
        layers: Any = self.attention[k]
        scores: dict[str, torch.Tensor] = {}
        for name, own, other in self.relations:
            found = layers[key_of(name)](rows[name], h[other], h[own])[:, 0]
            scores[own] = scores[own] + found if own in scores else found
        # nodes that no edges reach have no scores, and stay
        kept = {name: np.arange(len(values), dtype=np.int64) for name, values in h.items()}
        for name, values in scores.items():
            members = rows[membership(name)]
            kept[name] = _best(members, values, self.config.pool_ratio)
        pooled: dict[str, SparseRows] = {}
        for name, own, other in self.relations:
            pooled[name] = _between(rows[name], kept[own], kept[other])
        new = {}
        for name, values in h.items():
            members = rows[membership(name)]
            every = np.arange(members.num_dst, dtype=np.int64)
            pooled[membership(name)] = _between(members, every, kept[name])
            chosen = torch.from_numpy(kept[name])
            new[name] = values[chosen]
            if name in scores:
                new[name] = new[name] * torch.tanh(scores[name][chosen])[:, None]
        return pooled, new


def _best(members: SparseRows, scores: torch.Tensor, ratio: float) -> Ints:
    """Return the nodes with the highest scores of each graph, rising.

    Args:
        members: Rows of graphs, which list their nodes.
        scores: Of the nodes ``[n]``.
        ratio: Share of the nodes of a graph, rounded up.
    """
    sizes = np.diff(members.indptr)
    graph_of = np.repeat(np.arange(len(sizes)), sizes)
    own = scores.detach().float().numpy()[members.indices]
    order = np.lexsort((members.indices, -own, graph_of))
    rank = np.arange(len(order)) - np.repeat(members.indptr[:-1], sizes)
    is_kept = rank < np.ceil(np.round(ratio * sizes, 6))[graph_of]
    return np.sort(members.indices[order[is_kept]]).astype(np.int64)


def _between(rows: SparseRows, dst: Ints, src: Ints) -> SparseRows:
    """Return the entries between some destinations and some sources, in their numbers."""
    place = np.full(rows.num_src, -1, dtype=np.int32)
    place[src] = np.arange(len(src), dtype=np.int32)
    lengths = np.diff(rows.indptr)[dst]
    begins = rows.indptr[dst] - (np.cumsum(lengths) - lengths)
    entries = np.arange(int(lengths.sum())) + np.repeat(begins, lengths)
    found = place[rows.indices[entries]]
    row_of = np.repeat(np.arange(len(dst)), lengths)[found >= 0]
    counts = np.bincount(row_of, minlength=len(dst))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return SparseRows(indptr, found[found >= 0], len(src), is_prefix=rows.is_prefix)


register(
    ModelSpec(
        name="sagpool",
        make_graph_model=SagPool,
        device_gap=lambda config: ("model", "all but sagpool and diffpool"),
    )
)
