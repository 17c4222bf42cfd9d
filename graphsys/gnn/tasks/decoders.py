"""How two rows become the score of a pair; all are symmetric in the two."""

import torch
from torch import nn

from graphsys.gnn.config import GnnConfig

_NUMBERS_AT_A_TIME = 1 << 24


class Dot(nn.Module):
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


class MLP(nn.Module):
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


Decoder = Dot | MLP


def make_decoder(config: GnnConfig, num_features: int) -> Decoder:
    """Return the decoder that a config names."""
    if config.decoder == "dot":
        return Dot()
    return DistMult(num_features) if config.decoder == "distmult" else MLP(num_features)
