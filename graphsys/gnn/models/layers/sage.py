"""GraphSAGE: a node's own row beside an aggregate of its neighbors'."""

from typing import Any, Literal, get_args

import torch
from torch import nn

from graphsys.core.errors import ConfigError
from graphsys.gnn.model_spec import ModelSpec, register
from graphsys.gnn.models.layers.lstm import NeighborLSTM
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.ops.functional import is_beginning, spmm, spmm_with_own
from graphsys.gnn.ops.sparse_features import Linear, transform_first

Aggregator = Literal["mean", "sum", "max", "pool", "lstm"]


class SAGE(nn.Module):
    """``x' = W_self x + W_neighbor AGG(neighbors) + b``.

    Args:
        num_in: Features of the input.
        num_out: Features of the output.
        aggregator: ``mean``, ``sum``, ``max``, ``pool``: the maximum of
            ``relu(W x + b)``, or ``lstm``: the last state over neighbors in random order.

    References:
        Hamilton, Ying, Leskovec, "Inductive representation learning on large graphs",
        NeurIPS 2017.
    """

    def __init__(self, num_in: int, num_out: int, aggregator: Aggregator = "mean") -> None:
        super().__init__()
        if aggregator not in get_args(Aggregator):
            raise ConfigError(
                f"aggregator: got {aggregator!r}, expected mean, sum, max, pool or lstm"
            )
        self.aggregator = aggregator
        self.own = Linear(num_in, num_out)
        self.neighbor = Linear(num_in, num_out, bias=False)
        self.pool = Linear(num_in, num_in) if aggregator == "pool" else None
        self.lstm = NeighborLSTM(num_in) if aggregator == "lstm" else None

    def forward(
        self, rows: SparseRows, x_src: torch.Tensor, x_dst: torch.Tensor
    ) -> torch.Tensor:
        """Return the new rows ``[D, num_out]``."""
        if self.pool is not None:
            pooled = spmm(rows, torch.relu(self.pool(x_src)), reduce="max")
            return self.own(x_dst) + self.neighbor(pooled)  # type: ignore[no-any-return]
        if self.lstm is not None:
            return self.own(x_dst) + self.neighbor(self.lstm(rows, x_src))  # type: ignore[no-any-return]
        if self.aggregator == "max":
            largest = spmm(rows, x_src, reduce="max")
            return self.own(x_dst) + self.neighbor(largest)  # type: ignore[no-any-return]
        reduce: Literal["mean", "sum"] = "sum" if self.aggregator == "sum" else "mean"
        is_weighed = rows.weight is not None
        if is_weighed:
            reduce = "sum"
        num_out, num_in = self.neighbor.weight.shape
        if transform_first(rows, x_src, num_in, num_out):
            first: torch.Tensor = self.own(x_dst)
            return first + spmm(rows, self.neighbor(x_src), rows.weight, reduce)
        if rows.is_prefix and is_beginning(x_dst, x_src) and not is_weighed:
            messages, x_dst = spmm_with_own(rows, x_src, reduce)
        else:
            messages = spmm(rows, x_src, rows.weight, reduce)
        own: torch.Tensor = self.own(x_dst)
        if own.dtype != messages.dtype:  # mixed precision
            return own + self.neighbor(messages)  # type: ignore[no-any-return]
        # added where the product is: a row of the output is large, and written once
        return own.addmm_(messages, self.neighbor.weight.T)


def _device_gap(config: Any) -> tuple[str, str] | None:
    return ("aggregator", "max, mean, pool, sum") if config.aggregator == "lstm" else None


register(
    ModelSpec(
        name="sage",
        make_layer=lambda config, num_in, num_out, is_last: SAGE(
            num_in, num_out, config.aggregator
        ),
        is_linear=lambda config: config.aggregator in ("mean", "sum"),
        reads_shares=lambda config: config.aggregator == "mean",
        device_gap=_device_gap,
    )
)
