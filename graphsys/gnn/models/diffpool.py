"""DiffPool: nodes are assigned to clusters by weights that are learned with all else."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from graphsys.core.errors import ConfigError
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.features import InputShape
from graphsys.gnn.data.graph_batches import membership
from graphsys.gnn.model_spec import ModelSpec, register
from graphsys.gnn.models.graph_network import GraphNetwork
from graphsys.gnn.models.model import Relation, Rows, Tensors
from graphsys.gnn.ops.adjacency import SparseRows

_LEAST = 1e-12  # of a share whose logarithm is taken


class DiffPool(GraphNetwork):
    """GraphSAGE over the nodes, and over the ``clusters`` that they are assigned to.

    ``S = softmax(GNN_pool(A, X))`` and ``Z = GNN_embed(A, X)`` of each graph become ``X' =
    S^T Z`` and ``A' = S^T A S``, on which one more dense layer of GraphSAGE (mean) works.
    Scores are sums of linear layers of the readouts of all levels. The loss has, as means
    over the graphs of a batch, ``|A - S S^T|_F / n^2`` and the mean entropy of the rows of
    S besides. One level of pooling; the paper has two for larger graphs. Matrices of a
    batch are dense: graphs times the square of the largest one's nodes.

    Args:
        config: Layers and their sizes, ``clusters``.
        relations: Name, node type and neighbors' type of each relation within graphs.
        shapes: Input of the node type.
        num_out: Scores of a graph.
        graph_type: Node type of the graphs.

    Raises:
        ConfigError: Graphs are of several node types.

    References:
        Ying et al., "Hierarchical graph representation learning with differentiable
        pooling", NeurIPS 2018, equations 3 to 6 and section 3.4.
    """

    def __init__(
        self,
        config: GnnConfig,
        relations: Sequence[Relation],
        shapes: Mapping[str, InputShape],
        num_out: int,
        graph_type: str,
    ) -> None:
        if len(shapes) != 1:
            raise ConfigError(
                f"model {config.model}: graphs have nodes of types {', '.join(shapes)}, "
                "expected one type; take another model"
            )
        inner = replace(config, model="sage")
        super().__init__(inner, relations, shapes, num_out, graph_type)
        self.assigner = GraphNetwork(inner, relations, shapes, config.clusters, graph_type)
        self.assigner.scores = nn.ModuleList()  # rows of nodes are wanted
        self.assign = nn.Linear(config.dim, config.clusters)
        self.own = nn.Linear(config.dim, config.dim)
        self.near = nn.Linear(config.dim, config.dim, bias=False)
        self.cluster_scores = nn.Linear(config.dim, num_out)

    def forward(self, hops: Sequence[Rows], x: Mapping[str, Any]) -> Tensors:
        """Return the scores of a batch's graphs ``[graphs, num_out]``."""
        (rows,) = hops
        levels = list(self._levels(rows, x))
        _, h = levels[-1]
        (name,) = h
        members = rows[membership(name)]
        *_, (_, assigned) = self.assigner._levels(rows, x)
        shares = torch.softmax(self.assign(assigned[name]), dim=1)
        s, z = (_padded(members, values) for values in (shares, h[name]))
        a = torch.stack([_dense(rows[each], members) for each, _, _ in self.relations]).sum(
            0
        )
        clusters = s.transpose(1, 2) @ z
        between = s.transpose(1, 2) @ a @ s
        mean = between @ clusters / between.sum(dim=2, keepdim=True).clamp(min=_LEAST)
        made = torch.relu(self.own(clusters) + self.near(mean))
        pooled: dict[str, Any] = {"sum": made.sum, "mean": made.mean, "max": made.amax}
        found = pooled[self.config.readout](dim=1)
        self.side_loss = _side_loss(a, s, members) if self.training else None
        return {self._graph_type: self._scores(levels) + self.cluster_scores(found)}


def _places(members: SparseRows) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the graph of every node and its place among the nodes of that ``[n]``."""
    indptr = torch.from_numpy(members.indptr)
    sizes = torch.diff(indptr)
    listed = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    within = torch.arange(len(listed)) - indptr[:-1][listed]
    nodes = torch.from_numpy(members.indices).long()
    graph_of, place = torch.empty_like(listed), torch.empty_like(within)
    graph_of[nodes], place[nodes] = listed, within
    return graph_of, place


def _padded(members: SparseRows, rows: torch.Tensor) -> torch.Tensor:
    """Return rows of nodes by graph ``[graphs, most nodes, F]``, with zeros behind them."""
    graph_of, place = _places(members)
    most = int(members.degrees.max()) if members.num_dst else 0
    found = rows.new_zeros(members.num_dst, most, rows.shape[1])
    return found.index_put((graph_of, place), rows)


def _dense(rows: SparseRows, members: SparseRows) -> torch.Tensor:
    """Return the adjacency matrices of graphs ``[graphs, most nodes, most nodes]``."""
    graph_of, place = _places(members)
    most = int(members.degrees.max()) if members.num_dst else 0
    lengths = torch.diff(torch.from_numpy(rows.indptr))
    dst = torch.repeat_interleave(torch.arange(rows.num_dst), lengths)
    src = torch.from_numpy(rows.indices).long()
    found = torch.zeros(members.num_dst, most, most)
    where = (graph_of[dst], place[dst], place[src])
    return found.index_put(where, torch.ones(len(src)), accumulate=True)


def _side_loss(a: torch.Tensor, s: torch.Tensor, members: SparseRows) -> torch.Tensor:
    """Return how far clusters are from links, and how undecided nodes are."""
    sizes = members.degrees.clamp(min=1)
    gaps = (a - s @ s.transpose(1, 2)).square().sum(dim=(1, 2)).clamp(min=_LEAST).sqrt()
    entropy = -(s * s.clamp(min=_LEAST).log()).sum(dim=(1, 2))
    return (gaps / sizes.square() + entropy / sizes).mean()


register(
    ModelSpec(
        name="diffpool",
        make_graph_model=DiffPool,
        device_gap=lambda config: ("model", "all but sagpool and diffpool"),
    )
)
