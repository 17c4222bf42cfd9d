"""HEP and AHEP: nodes are rebuilt from neighbors, type by type; from all, or from few."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from graphsys.gnn.model_spec import ModelSpec, register
from graphsys.gnn.models.model import Relation, Tensors, key_of
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.ops.functional import weighed_mean
from graphsys.gnn.ops.sparse_features import Linear, transform_first


class HEP(nn.Module):
    """``x'_v = tanh(e_v + r_v)``: a node's embedding, and what its neighbors make of it.

    ``e_v = W_t x_v + b_t`` with matrices of the node's type t, ``r_v`` the sum over
    relations c of ``W_c mean_{u in N_c(v)} x_u``, which is a linear layer of the means side
    by side. The loss of embedding propagation wants ``r_v`` nearer to ``e_v`` than to the
    ``e_w`` of a random node w of the type and the hop:
    ``mean_v max(0, margin + |r_v - e_v| - |r_v - e_w|)``, in every layer over all nodes
    with neighbors. ``propagation_weight`` of it is added to the loss of the task;
    ``weight_decay`` is the third term of the paper's loss.

    HEP reads all neighbors. AHEP is the same layer on a few sources, which all nodes of a
    hop share (:class:`~graphsys.sampling.layerwise.LayerSampler`): means are then sums by
    the weights of a sample. Neighbors are of a type by their relation, so that one node
    type twice has two matrices; AliGraph's shares by features of edges are left out.

    Args:
        relations: Name, node type and neighbors' type of each.
        num_in: Features of the input.
        num_out: Features of the output.
        margin: How much nearer.
        weight: Of the loss of embedding propagation.

    Attributes:
        side_loss: That loss of the batch read last, weighted; None outside training.

    References:
        Zhu et al., "AliGraph: a comprehensive graph neural network platform", VLDB 2019,
        section 4.2 (AHEP). Zheng et al., "Heterogeneous embedding propagation for
        large-scale e-commerce user alignment", ICDM 2018 (HEP). Garcia-Duran and Niepert,
        "Learning graph representations with embedding propagation", NeurIPS 2017, for the
        loss.
    """

    def __init__(
        self,
        relations: Sequence[Relation],
        num_in: int,
        num_out: int,
        margin: float,
        weight: float,
    ) -> None:
        super().__init__()
        self.relations, self.margin, self.weight = list(relations), margin, weight
        self.side_loss: torch.Tensor | None = None
        targets = dict.fromkeys(key_of(own) for _, own, _ in relations)
        self.own = nn.ModuleDict({t: Linear(num_in, num_out) for t in targets})
        self.of = nn.ModuleDict(
            {key_of(r): Linear(num_in, num_out, bias=False) for r, _, _ in relations}
        )

    def forward(
        self,
        rows: Mapping[str, SparseRows],
        x_src: Mapping[str, Any],
        x_dst: Mapping[str, Any],
    ) -> Tensors:
        """Return the new rows by type ``[D, num_out]``."""
        embedded: Tensors = {}
        rebuilt: Tensors = {}
        degrees: Tensors = {}
        for name, own, other in self.relations:
            if own not in x_dst or other not in x_src:
                continue
            each = rows[name]
            if own not in embedded:
                embedded[own] = self.own[key_of(own)](x_dst[own])[: each.num_dst]
            found = _mean(each, x_src[other], self.of[key_of(name)])
            rebuilt[own] = rebuilt[own] + found if own in rebuilt else found
            degrees[own] = degrees.get(own, 0) + each.degrees
        self.side_loss = None
        if self.training and self.weight and embedded:
            self.side_loss = self.weight * self._propagation(embedded, rebuilt, degrees)
        return {t: torch.tanh(e + rebuilt[t]) for t, e in embedded.items()}

    def _propagation(self, embedded: Tensors, rebuilt: Tensors, degrees: Tensors) -> Any:
        """Return the mean loss of embedding propagation over nodes with neighbors."""
        losses, counts = [], []
        for node_type, e in embedded.items():
            has_neighbors = degrees[node_type] > 0
            r = rebuilt[node_type]
            drawn = torch.randint(max(len(e), 1), (len(e),), device=e.device)
            others = e.index_select(0, drawn)  # whose gradient is faster than that of []
            gap = functional.pairwise_distance(r, e) - functional.pairwise_distance(
                r, others
            )
            losses.append((torch.relu(self.margin + gap) * has_neighbors).sum())
            counts.append(has_neighbors.sum())
        return torch.stack(losses).sum() / torch.stack(counts).sum().clamp(min=1)


def _mean(rows: SparseRows, x: Any, linear: Any) -> torch.Tensor:
    """Return ``W`` times the mean of each row, or an estimate by weights of entries."""
    is_before = transform_first(rows, x, linear.in_features, linear.out_features)
    x = linear(x) if is_before else x
    found = weighed_mean(rows, x)
    return found if is_before else linear(found)


def _make_hop(config: Any, relations: Any, num_in: int, num_out: int) -> HEP:
    return HEP(relations, num_in, num_out, config.margin, config.propagation_weight)


register(
    ModelSpec(
        name="hep",
        make_hop=_make_hop,
        reads_shares=lambda config: True,
        exit_layers=1,
        has_activation=True,
        is_linear=lambda config: True,
        default_fanout=-1,
    )
)
register(
    ModelSpec(
        name="ahep",
        make_hop=_make_hop,
        messages="layers",
        exit_layers=1,
        has_activation=True,
        is_linear=lambda config: True,
        default_fanout=256,
    )
)
