"""Graph convolution: sums weighted by degrees, with a linear layer (GCN) or without."""

import torch
from torch import nn

from graphsys.gnn.model_spec import ModelSpec, register
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.ops.functional import spmm
from graphsys.gnn.ops.sparse_features import Linear, transform_first


class GCN(nn.Module):
    """``x' = W sum_u x_u / sqrt((d_u + 1) (d_v + 1)) + b`` over neighbors and itself.

    The weights come with the rows (:func:`graphsys.gnn.ops.gcn_norm.weigh`), for the
    degrees are those of the whole graph; rows without any are taken for a whole graph.

    Args:
        num_in: Features of the input.
        num_out: Features of the output.

    References:
        Kipf, Welling, "Semi-supervised classification with graph convolutional networks",
        ICLR 2017.
    """

    def __init__(self, num_in: int, num_out: int) -> None:
        super().__init__()
        self.linear = Linear(num_in, num_out, bias=False)
        nn.init.xavier_uniform_(self.linear.weight)
        self.bias = nn.Parameter(torch.zeros(num_out))

    def forward(
        self, rows: SparseRows, x_src: torch.Tensor, x_dst: torch.Tensor
    ) -> torch.Tensor:
        """Return the new rows ``[D, num_out]``."""
        weight, own = degree_weights(rows)
        num_out, num_in = self.linear.weight.shape
        if transform_first(rows, x_src, num_in, num_out):
            x_src = self.linear(x_src)
            x_dst = x_src[: rows.num_dst] if rows.is_prefix else self.linear(x_dst)
            return spmm(rows, x_src, weight) + own[:, None] * x_dst + self.bias
        summed = spmm(rows, x_src, weight) + own[:, None] * x_dst
        return self.linear(summed) + self.bias  # type: ignore[no-any-return]


class LightGCN(nn.Module):
    """``x' = sum_u x_u / sqrt(d_u d_v)``: no parameters, no self-loop.

    References:
        He et al., "LightGCN: simplifying and powering graph convolution network for
        recommendation", SIGIR 2020.
    """

    def forward(
        self, rows: SparseRows, x_src: torch.Tensor, x_dst: torch.Tensor
    ) -> torch.Tensor:
        """Return the new rows ``[D, F]``."""
        return spmm(rows, x_src, degree_weights(rows)[0])


def degree_weights(rows: SparseRows) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the weights of entries ``[E]`` and of the rows' own nodes ``[D]``.

    Those that the rows bring along; else, for a whole graph, GCN's of its degrees.
    """
    if rows.weight is not None:
        own = rows.self_weight
        none = torch.zeros(rows.num_dst, device=rows.device) if own is None else own
        return rows.weight, none
    from graphsys.gnn.ops.gcn_norm import weigh

    return weigh(rows, rows.degrees, rows.degrees)


register(
    ModelSpec(
        name="gcn",
        make_layer=lambda config, num_in, num_out, is_last: GCN(num_in, num_out),
        weights="degrees",
        has_loops=True,
        is_linear=lambda config: True,
        reads_shares=lambda config: True,
    )
)
register(
    ModelSpec(
        name="lightgcn",
        make_layer=lambda config, num_in, num_out, is_last: LightGCN(),
        weights="degrees",
        is_mean_of_layers=True,
        is_of_links=True,
        is_whole_graph=True,
    )
)
