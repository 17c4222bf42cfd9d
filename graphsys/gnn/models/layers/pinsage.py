"""PinSage's convolution: an importance-weighted pool of transformed neighbors."""

import torch
from torch import nn
from torch.nn import functional

from graphsys.gnn.model_spec import ModelSpec, register
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.ops.functional import spmm
from graphsys.gnn.ops.sparse_features import Linear


class PinSage(nn.Module):
    """CONVOLVE: ``n = sum_v alpha_v relu(Q x_v + q)``, then ``z = relu(W [x; n] + w)``.

    The result is divided by its length. ``alpha`` are the weights of the rows (shares of
    visits, see :class:`graphsys.sampling.ImportanceSampler`); without any it is the mean.

    Args:
        num_in: Features of the input.
        num_out: Features of the output.
        num_hidden: Features of a message (the paper's m); as the output by default.

    References:
        Ying et al., "Graph convolutional neural networks for web-scale recommender
        systems", KDD 2018, algorithm 1.
    """

    def __init__(self, num_in: int, num_out: int, num_hidden: int | None = None) -> None:
        super().__init__()
        hidden = num_hidden or num_out
        self.message = Linear(num_in, hidden)
        self.combine = Linear(num_in + hidden, num_out)

    def forward(
        self, rows: SparseRows, x_src: torch.Tensor, x_dst: torch.Tensor
    ) -> torch.Tensor:
        """Return the new rows, of length 1 each ``[D, num_out]``."""
        messages = torch.relu(self.message(x_src))
        reduce = "mean" if rows.weight is None else "sum"
        pooled = spmm(rows, messages, rows.weight, reduce)  # type: ignore[arg-type]
        combined = torch.relu(self.combine(torch.cat([x_dst, pooled], dim=1)))
        return functional.normalize(combined, dim=1)


register(
    ModelSpec(
        name="pinsage",
        make_layer=lambda config, num_in, num_out, is_last: PinSage(num_in, num_out),
        messages="walks",
        exit_layers=2,
        has_activation=True,
        default_fanout=50,
    )
)
