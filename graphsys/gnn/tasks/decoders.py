"""How two rows become the score of a pair; ours are symmetric in the two."""

from typing import ClassVar

import torch
from torch import nn

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.part_specs import DECODERS, DecoderSpec

_NUMBERS_AT_A_TIME = 1 << 24


class Decoder(nn.Module):
    """Scores pairs of rows; rows of a pair's first node are the queries.

    Attributes:
        is_symmetric: Whether a pair has the same score either way.
    """

    is_symmetric: ClassVar[bool] = True

    def forward(self, query: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """Return the scores of every query ``[n, F]`` with every other row ``[m, F]``."""
        raise NotImplementedError

    def own(self, query: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """Return the scores of queries ``[n, F]`` with their own rows ``[n, K, F]``."""
        raise NotImplementedError


class Dot(Decoder):
    """The inner product."""

    def forward(self, query: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """Return the scores of every query with every other row, ``[n, m]``."""
        return self.scaled(query) @ others.T

    def own(self, query: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """Return the scores of queries ``[n, F]`` with their own rows ``[n, K, F]``."""
        return (others @ self.scaled(query)[:, :, None])[:, :, 0]

    def scaled(self, query: torch.Tensor) -> torch.Tensor:
        """Return queries whose inner products are the scores."""
        return query


class DistMult(Dot):
    """The inner product with a learned weight per feature.

    References:
        Yang et al., "Embedding entities and relations for learning and inference in
        knowledge bases", ICLR 2015.
    """

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(num_features))

    def scaled(self, query: torch.Tensor) -> torch.Tensor:
        """Return queries times the weights."""
        return query * self.weight


class MLP(Decoder):
    """Two linear layers on the product of both rows, feature by feature."""

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(num_features, num_features), nn.ReLU(), nn.Linear(num_features, 1)
        )

    def forward(self, query: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """Return the scores of every query with every other row, ``[n, m]``."""
        step = max(1, _NUMBERS_AT_A_TIME // max(others.numel(), 1))
        return torch.cat(
            [
                self.own(some, others.expand(len(some), *others.shape))
                for some in torch.split(query, step)
            ]
        )

    def own(self, query: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """Return the scores of queries ``[n, F]`` with their own rows ``[n, K, F]``."""
        return self.layers(query[:, None] * others)[:, :, 0]  # type: ignore[no-any-return]


def make_decoder(config: GnnConfig, num_features: int) -> Decoder:
    """Return the decoder that a config names."""
    made: Decoder = DECODERS.get(config.decoder).make(config, num_features)
    return made


for _spec in (
    DecoderSpec(name="dot", make=lambda config, num_features: Dot()),
    DecoderSpec(name="distmult", make=lambda config, num_features: DistMult(num_features)),
    DecoderSpec(name="mlp", make=lambda config, num_features: MLP(num_features)),
):
    DECODERS.add(_spec)
