"""Mixture: a row for each of a node's senses, of which a pair of nodes has one."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from graphsys.core.errors import ConfigError
from graphsys.core.rng import draw_key
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.features import InputShape
from graphsys.gnn.model_spec import ModelSpec, register
from graphsys.gnn.models.model import Relation, Rows, Tensors, UnlayeredModel, key_of
from graphsys.gnn.ops.functional import spmm

_ITERATIONS = 200
_LEAST = 1e-12


class Mixture(UnlayeredModel):
    """Rows ``u_ik`` of a node's senses k, with shares ``p_ik`` that the graph tells.

    A pair (i, j) that walks or edges give is one of sense k with a chance in proportion to
    ``p_ik p_jk``; a training step draws it, and learns ``u_ik . u_jk`` against the
    negatives in that sense: the lower bound of AliGraph's mixture, by sampling as in
    PolyDeepwalk. What ranks afterwards is the mean over senses,
    ``sum_k p_ik p_jk u_ik . u_jk``, so that a node's row is ``p_ik u_ik`` side by side.
    PolyDeepwalk has rows of their own for the second of a pair, and draws the senses of
    both ends; with ``senses = 1`` this is DeepWalk's skip-gram without such rows.

    Shares are a symmetric nonnegative factorization of the adjacency matrix, scaled by
    degrees, made once when training begins, and part of the run's weights. The output in
    training has rows and shares side by side, for
    :class:`graphsys.gnn.tasks.decoders.Senses`. Rows of all nodes are in memory, and so
    is the whole graph while shares are made.

    Args:
        config: ``dim`` of all senses together, ``senses``.
        relations: Name, node type and neighbors' type of each.
        shapes: Input of every node type, of which none has features.
        decoder: What makes scores of the output.

    Raises:
        ConfigError: ``dim`` is no multiple of ``senses``, or nodes have features.

    References:
        Liu et al., "Is a single vector enough? Exploring node polysemy for network
        embedding", KDD 2019 (PolyDeepwalk). Zhu et al., "AliGraph: a comprehensive graph
        neural network platform", VLDB 2019, section 4.2 (Mixture GNN). Ding, He, Simon,
        "On the equivalence of nonnegative matrix factorization and spectral clustering",
        SDM 2005, for the shares.
    """

    def __init__(
        self,
        config: GnnConfig,
        relations: Sequence[Relation],
        shapes: Mapping[str, InputShape],
        decoder: nn.Module | None = None,
    ) -> None:
        super().__init__(config, config.dim, decoder)
        if config.dim % config.senses:
            raise ConfigError(
                f"dim: got {config.dim}, expected a multiple of senses, {config.senses}"
            )
        self._relations = list(relations)
        for name, shape in shapes.items():
            if shape.dim or shape.is_bag:
                raise ConfigError(
                    f"model mixture learns the rows of nodes, and nodes of type {name!r} "
                    "have features; take model sage, which learns of those"
                )
            table = nn.Embedding(shape.num_learned, config.dim)
            nn.init.normal_(table.weight, std=1 / math.sqrt(config.dim))
            self.learned[key_of(name)] = table
            zeros = torch.zeros(shape.num_learned, config.senses)
            self.register_buffer(_buffer_of(name), zeros)

    def forward(self, hops: Sequence[Rows], x: Mapping[str, Any]) -> Tensors:
        """Return rows of all nodes by type; in training with their shares behind them."""
        shares = {name: self.get_buffer(_buffer_of(name)) for name in x}
        if not any(bool(values.any()) for values in shares.values()):
            made = soft_clusters(hops[0], self._relations, shares, self.config.seed)
            for name, values in made.items():
                shares[name].copy_(values)
        found: Tensors = {}
        for name, own in shares.items():
            table: Any = self.learned[key_of(name)]
            if self.config.row_decay:
                self._read[name] = table.weight
            if self.training:
                found[name] = torch.cat([table.weight, own], dim=1)
                continue
            senses = torch.unflatten(table.weight, 1, (self.config.senses, -1))
            found[name] = (own[:, :, None] * senses).flatten(1)
        return found


def soft_clusters(
    rows: Rows, relations: Sequence[Relation], like: Mapping[str, torch.Tensor], seed: int
) -> Tensors:
    """Return the shares of nodes in clusters, which sum to 1, by type ``[N, K]``.

    ``H H^T`` is made near ``D^-1/2 A D^-1/2`` by ``H <- H (1 + A H / H H^T H) / 2``, over
    all node types as one graph; shares are the rows of H. Nodes without edges have equal
    shares.

    Args:
        rows: The whole graph, by relation.
        relations: Name, node type and neighbors' type of each.
        like: Tensors of the result's shapes.
        seed: Of the first H.
    """
    scale = {name: values.new_zeros(len(values)) for name, values in like.items()}
    for name, own, _ in relations:
        scale[own] = scale[own] + rows[name].degrees
    scale = {
        name: d.clamp(min=1).rsqrt()[:, None] * (d > 0)[:, None]
        for name, d in scale.items()
    }
    draws = torch.Generator().manual_seed(int(draw_key(seed, "senses")) >> 1)
    h = {name: torch.rand(values.shape, generator=draws) for name, values in like.items()}
    for _ in range(_ITERATIONS):
        near = {name: torch.zeros_like(values) for name, values in h.items()}
        for name, own, other in relations:
            near[own] += spmm(rows[name], scale[other] * h[other])
        gram = torch.stack([values.T @ values for values in h.values()]).sum(dim=0)
        for name, values in h.items():
            grown = scale[name] * near[name] / (values @ gram).clamp(min=_LEAST)
            h[name] = values * (1 + grown) / 2
    found = {}
    for name, values in h.items():
        values = torch.where(scale[name] > 0, values, 1.0) + _LEAST
        found[name] = values / values.sum(dim=1, keepdim=True)
    return found


def _buffer_of(node_type: str) -> str:
    return f"shares:{key_of(node_type)}"


register(
    ModelSpec(
        name="mixture",
        make_model=Mixture,
        decoder="senses",
        is_of_links=True,
        is_whole_graph=True,
        device_gap=lambda config: ("model", "all others"),
    )
)
