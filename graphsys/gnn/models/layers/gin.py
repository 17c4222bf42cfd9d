"""Graph isomorphism networks: sums, so that different multisets stay different."""

import torch
from torch import nn

from graphsys.gnn.model_spec import ModelSpec, register
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.ops.functional import is_beginning, spmm, spmm_with_own


class GIN(nn.Module):
    """``x' = MLP((1 + eps) x + sum of neighbors)``, eps learned.

    Args:
        num_in: Features of the input.
        num_out: Features of the output, and of the hidden layer.

    References:
        Xu et al., "How powerful are graph neural networks?", ICLR 2019.
    """

    def __init__(self, num_in: int, num_out: int) -> None:
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(()))
        self.mlp = nn.Sequential(
            nn.Linear(num_in, num_out), nn.ReLU(), nn.Linear(num_out, num_out)
        )

    def forward(
        self, rows: SparseRows, x_src: torch.Tensor, x_dst: torch.Tensor
    ) -> torch.Tensor:
        """Return the new rows ``[D, num_out]``."""
        if rows.is_prefix and is_beginning(x_dst, x_src):
            messages, x_dst = spmm_with_own(rows, x_src, "sum")
        else:
            messages = spmm(rows, x_src)
        return self.mlp((1 + self.eps) * x_dst + messages)  # type: ignore[no-any-return]


register(
    ModelSpec(
        name="gin",
        make_layer=lambda config, num_in, num_out, is_last: GIN(num_in, num_out),
    )
)
