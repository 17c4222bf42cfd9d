"""Layers over all relations at once: relational convolution, and attention across types.

A layer here maps ``(rows by relation, x_src by type, x_dst by type)`` to the new rows of
every type that messages reach.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from graphsys.gnn.model_spec import ModelSpec, register
from graphsys.gnn.models.model import key_of
from graphsys.gnn.ops.adjacency import SparseRows, join_rows
from graphsys.gnn.ops.functional import (
    sddmm,
    segment_softmax,
    spmm,
    weighed_mean,
)
from graphsys.gnn.ops.sparse_features import Linear, SparseFeatures, transform_first

Relation = tuple[str, str, str]  # name, node type, neighbors' type
Tensors = dict[str, torch.Tensor]


class RGCN(nn.Module):
    """``x' = W_0 x + sum_r mean_{u in N_r} W_r x_u + b``, ``W_r = sum_b a_rb V_b``.

    Args:
        relations: Name, node type and neighbors' type of each.
        num_in: Features of the input.
        num_out: Features of the output.
        num_bases: Matrices V that relations share; 0: each relation has its own.

    References:
        Schlichtkrull et al., "Modeling relational data with graph convolutional
        networks", ESWC 2018, equations 2 and 3.
    """

    def __init__(
        self,
        relations: Sequence[Relation],
        num_in: int,
        num_out: int,
        num_bases: int = 0,
    ) -> None:
        super().__init__()
        self.relations = list(relations)
        count = num_bases or len(relations)
        self.bases = nn.Parameter(torch.empty(count, num_in, num_out))
        for base in self.bases:
            nn.init.xavier_uniform_(base.data)
        shares = torch.empty(len(relations), count)
        nn.init.xavier_uniform_(shares)
        self.shares = nn.Parameter(shares) if num_bases else None
        self.own = Linear(num_in, num_out)

    def weights(self) -> torch.Tensor:
        """Return the matrix of every relation ``[R, num_in, num_out]``."""
        if self.shares is None:
            return self.bases
        return torch.einsum("rb,bio->rio", self.shares, self.bases)

    def forward(
        self,
        rows: Mapping[str, SparseRows],
        x_src: Mapping[str, Any],
        x_dst: Mapping[str, Any],
    ) -> Tensors:
        """Return the new rows by type ``[D, num_out]``."""
        weights = self.weights()
        result: Tensors = {}
        for (name, node_type, other), weight in zip(self.relations, weights, strict=True):
            if node_type not in x_dst or other not in x_src:
                continue
            if node_type not in result:
                own: torch.Tensor = self.own(x_dst[node_type])
                result[node_type] = own[: rows[name].num_dst]
            x, each = x_src[other], rows[name]
            if transform_first(each, x, *weight.shape):
                x = x.times(weight) if isinstance(x, SparseFeatures) else x @ weight
                found = weighed_mean(each, x)
            else:
                found = weighed_mean(each, x) @ weight
            result[node_type] = result[node_type] + found
        return result


class HGT(nn.Module):
    """Heads of attention over the neighbors of all relations together, by their types.

    With keys, queries and values of each type and matrices of each relation r:
    ``score = (k_u A_r) . q_v mu_r / sqrt(F)``, softmax over all entries of v, messages
    ``v_u M_r``; then ``x' = s W gelu(sum) + (1 - s) x`` with a learned share s per type
    (where the widths agree).

    Args:
        relations: Name, node type and neighbors' type of each.
        num_in: Features of the input.
        num_out: Features of the output; a multiple of ``num_heads``.
        num_heads: Heads.

    References:
        Hu et al., "Heterogeneous graph transformer", WWW 2020, equations 1 to 5, without
        the encoding of time.
    """

    def __init__(
        self, relations: Sequence[Relation], num_in: int, num_out: int, num_heads: int
    ) -> None:
        super().__init__()
        self.relations, self.num_heads = list(relations), num_heads
        size = num_out // num_heads
        targets = dict.fromkeys(key_of(own) for _, own, _ in relations)
        sources = dict.fromkeys(key_of(other) for _, _, other in relations)
        self.query = nn.ModuleDict({t: Linear(num_in, num_out) for t in targets})
        self.key = nn.ModuleDict({t: Linear(num_in, num_out) for t in sources})
        self.value = nn.ModuleDict({t: Linear(num_in, num_out) for t in sources})
        self.out = nn.ModuleDict({t: Linear(num_out, num_out) for t in targets})
        self.skip = nn.ParameterDict(
            {t: torch.zeros(()) for t in targets} if num_in == num_out else {}
        )
        names = [key_of(name) for name, _, _ in relations]
        square = (num_heads, size, size)
        self.attention = nn.ParameterDict({n: torch.empty(square) for n in names})
        self.message = nn.ParameterDict({n: torch.empty(square) for n in names})
        self.prior = nn.ParameterDict({n: torch.ones(num_heads) for n in names})
        for matrix in (*self.attention.values(), *self.message.values()):
            nn.init.xavier_uniform_(matrix)

    def forward(
        self,
        rows: Mapping[str, SparseRows],
        x_src: Mapping[str, Any],
        x_dst: Mapping[str, Any],
    ) -> Tensors:
        """Return the new rows by type ``[D, num_out]``."""
        keys = {t: self._heads(self.key, t, x) for t, x in x_src.items()}
        values = {t: self._heads(self.value, t, x) for t, x in x_src.items()}
        result: Tensors = {}
        for node_type, x in x_dst.items():
            into = [
                (name, other)
                for name, own, other in self.relations
                if own == node_type and keys.get(other) is not None
            ]
            if not into:
                continue
            num_dst = rows[into[0][0]].num_dst
            joined = join_rows([rows[name] for name, _ in into])
            query = self._heads(self.query, node_type, x)
            assert query is not None  # the type has relations
            scores = sddmm(
                joined,
                torch.cat([self._turned(keys[other], n, True) for n, other in into]),
                query[:num_dst],
            )
            messages = torch.cat(
                [self._turned(values[other], n, False) for n, other in into]
            )
            summed = spmm(joined, messages, segment_softmax(joined, scores)).flatten(1)
            result[node_type] = self._combined(node_type, summed, x)
        return result

    def _heads(self, part: nn.ModuleDict, node_type: str, x: Any) -> torch.Tensor | None:
        key = key_of(node_type)
        if key not in part:
            return None
        found: torch.Tensor = part[key](x)
        return torch.unflatten(found, 1, (self.num_heads, -1))

    def _turned(self, x: torch.Tensor | None, name: str, is_key: bool) -> torch.Tensor:
        assert x is not None  # only relations whose sources are known get here
        key = key_of(name)
        if not is_key:
            return torch.einsum("shf,hfg->shg", x, self.message[key])
        scale = self.prior[key][:, None, None] / math.sqrt(x.shape[-1])
        return torch.einsum("shf,hfg->shg", x, self.attention[key] * scale)

    def _combined(self, node_type: str, summed: torch.Tensor, x: Any) -> torch.Tensor:
        key = key_of(node_type)
        found: torch.Tensor = self.out[key](functional.gelu(summed))
        if key not in self.skip:
            return found
        share = torch.sigmoid(self.skip[key])
        mixed: torch.Tensor = share * found + (1 - share) * x[: len(found)]
        return mixed


register(
    ModelSpec(
        name="rgcn",
        make_hop=lambda config, relations, num_in, num_out: RGCN(
            relations, num_in, num_out, config.bases
        ),
        reads_shares=lambda config: True,
        is_linear=lambda config: True,
    )
)
register(
    ModelSpec(
        name="hgt",
        make_hop=lambda config, relations, num_in, num_out: HGT(
            relations, num_in, num_out, config.heads
        ),
        exit_layers=1,
        has_activation=True,
        is_linear=lambda config: True,
        has_heads=True,
    )
)
