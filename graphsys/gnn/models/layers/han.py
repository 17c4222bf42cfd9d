"""Attention over metapaths: among the neighbors by each, then among the metapaths."""

from collections.abc import Mapping, Sequence

import torch
from torch import nn
from torch.nn import functional

from graphsys.gnn.model_spec import ModelSpec, register
from graphsys.gnn.models.layers.gat import GAT
from graphsys.gnn.models.model import key_of
from graphsys.gnn.ops.adjacency import SparseRows

Relation = tuple[str, str, str]  # name, node type, neighbors' type
_WIDTH = 128


class HAN(nn.Module):
    """``z = sum_p share_p z_p``: ``z_p`` is GAT's row by metapath p, after an ELU.

    ``share = softmax(mean_v q . tanh(W z_vp + b))``, the same for all nodes, so that rows
    of the whole graph are to be given.

    Args:
        relations: Name, node type and neighbors' type of each metapath, within one type.
        num_in: Features of the input.
        num_out: Features of the output, all heads together.
        num_heads: Heads.
        dropout: Chance of a neighbor to be left out while training.

    References:
        Wang et al., "Heterogeneous graph attention network", WWW 2019.
    """

    def __init__(
        self,
        relations: Sequence[Relation],
        num_in: int,
        num_out: int,
        num_heads: int = 8,
        *,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.node_type, self.names = relations[0][1], [name for name, _, _ in relations]
        size = num_out // num_heads
        self.by_path = nn.ModuleDict(
            {key_of(n): GAT(num_in, size, num_heads, dropout=dropout) for n in self.names}
        )
        self.hidden = nn.Linear(num_out, _WIDTH)
        self.query = nn.Parameter(torch.randn(_WIDTH) / _WIDTH**0.5)

    def forward(
        self,
        rows: Mapping[str, SparseRows],
        x_src: Mapping[str, torch.Tensor],
        x_dst: Mapping[str, torch.Tensor],
    ) -> dict[str, torch.Tensor]:
        """Return the new rows of the type ``[D, num_out]``."""
        x, own = x_src[self.node_type], x_dst[self.node_type]
        by_path = torch.stack(
            [
                functional.elu(self.by_path[key_of(name)](rows[name], x, own))
                for name in self.names
            ]
        )
        scores = (torch.tanh(self.hidden(by_path)) @ self.query).mean(dim=1)
        return {self.node_type: torch.einsum("p,pdf->df", scores.softmax(dim=0), by_path)}


register(
    ModelSpec(
        name="han",
        make_hop=lambda config, relations, num_in, num_out: HAN(
            relations, num_in, num_out, config.heads, dropout=config.attention_dropout
        ),
        messages="metapaths",
        exit_layers=1,
        has_activation=True,
        is_linear=lambda config: True,
        has_heads=True,
    )
)
