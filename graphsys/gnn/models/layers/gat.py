"""Graph attention: neighbors weighted by learned scores, in several heads."""

from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from graphsys.gnn.model_spec import ModelSpec, register
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.ops.functional import attention_scores, sddmm, segment_softmax, spmm
from graphsys.gnn.ops.sparse_features import Linear

SLOPE = 0.2


class _Attention(nn.Module):
    """What both versions share: heads, dropout of shares, concatenation or mean."""

    def __init__(
        self,
        num_in: int,
        num_out: int,
        num_heads: int = 8,
        *,
        is_concatenating: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.num_heads, self.num_out, self.dropout = num_heads, num_out, dropout
        self.is_concatenating = is_concatenating
        self.source = Linear(num_in, num_heads * num_out, bias=False)
        nn.init.xavier_uniform_(self.source.weight)
        self.bias = nn.Parameter(
            torch.zeros(num_out * (num_heads if is_concatenating else 1))
        )

    def _heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(-1, self.num_heads, self.num_out)

    def _gather(
        self, rows: SparseRows, scores: torch.Tensor, messages: torch.Tensor
    ) -> torch.Tensor:
        shares = segment_softmax(rows, scores)
        shares = functional.dropout(shares, self.dropout, self.training)
        summed = spmm(rows, messages, shares)
        summed = summed.flatten(1) if self.is_concatenating else summed.mean(dim=1)
        return summed + self.bias


class GAT(_Attention):
    """``score = leaky_relu(a_src . W x_u + a_dst . W x_v)``, over neighbors and self.

    Args:
        num_in: Features of the input.
        num_out: Features of each head.
        num_heads: Heads.
        is_concatenating: Heads side by side, else their mean.
        dropout: Chance of a neighbor to be left out while training.

    References:
        Velickovic et al., "Graph attention networks", ICLR 2018.
    """

    def __init__(
        self, num_in: int, num_out: int, num_heads: int = 8, **options: float
    ) -> None:
        super().__init__(num_in, num_out, num_heads, **options)  # type: ignore[arg-type]
        self.of_src = nn.Parameter(torch.empty(num_heads, num_out))
        self.of_dst = nn.Parameter(torch.empty(num_heads, num_out))
        nn.init.xavier_uniform_(self.of_src)
        nn.init.xavier_uniform_(self.of_dst)

    def forward(
        self, rows: SparseRows, x_src: torch.Tensor, x_dst: torch.Tensor
    ) -> torch.Tensor:
        """Return the new rows ``[D, heads * num_out]`` or ``[D, num_out]``."""
        rows = rows.with_self
        messages = self._heads(self.source(x_src))
        own = (
            messages[: rows.num_dst] if rows.is_prefix else self._heads(self.source(x_dst))
        )
        scores = sddmm(
            rows, (messages * self.of_src).sum(-1), (own * self.of_dst).sum(-1), "add"
        )
        return self._gather(rows, functional.leaky_relu(scores, SLOPE), messages)


class GATv2(_Attention):
    """``score = a . leaky_relu(W_src x_u + W_dst x_v)``, over neighbors and self.

    Args:
        num_in: Features of the input.
        num_out: Features of each head.
        num_heads: Heads.
        is_concatenating: Heads side by side, else their mean.
        dropout: Chance of a neighbor to be left out while training.

    References:
        Brody, Alon, Yahav, "How attentive are graph attention networks?", ICLR 2022.
    """

    def __init__(
        self, num_in: int, num_out: int, num_heads: int = 8, **options: float
    ) -> None:
        super().__init__(num_in, num_out, num_heads, **options)  # type: ignore[arg-type]
        self.target = Linear(num_in, num_heads * num_out, bias=False)
        self.attention = nn.Parameter(torch.empty(num_heads, num_out))
        nn.init.xavier_uniform_(self.target.weight)
        nn.init.xavier_uniform_(self.attention)

    def forward(
        self, rows: SparseRows, x_src: torch.Tensor, x_dst: torch.Tensor
    ) -> torch.Tensor:
        """Return the new rows ``[D, heads * num_out]`` or ``[D, num_out]``."""
        rows = rows.with_self
        messages, own = self._heads(self.source(x_src)), self._heads(self.target(x_dst))
        scores = attention_scores(rows, messages, own, self.attention, SLOPE)
        return self._gather(rows, scores, messages)


def _make(kind: Any, config: Any, num_in: int, num_out: int, is_last: bool) -> nn.Module:
    """Return a hidden layer, whose heads share the output, or the last one."""
    dropout = config.attention_dropout
    if is_last:
        heads = config.output_heads
        last: nn.Module = kind(
            num_in, num_out, heads, is_concatenating=False, dropout=dropout
        )
        return last
    hidden: nn.Module = kind(num_in, num_out // config.heads, config.heads, dropout=dropout)
    return hidden


for _name, _kind in (("gat", GAT), ("gatv2", GATv2)):
    register(
        ModelSpec(
            name=_name,
            make_layer=partial(_make, _kind),
            is_linear=lambda config: True,
            has_heads=True,
        )
    )
