"""How two rows become the score of a pair; ours are symmetric in the two."""

from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.model_spec import spec_of
from graphsys.gnn.part_specs import DECODERS, DecoderSpec

_NUMBERS_AT_A_TIME = 1 << 24
_LEAST = 1e-12


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

    def of_pairs(self, query: torch.Tensor, positive: torch.Tensor) -> torch.Tensor:
        """Return what stands for queries ``[n, F]`` in training, given their positives."""
        del positive  # for decoders that draw by both
        return query


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


class Cosine(Decoder):
    """The cosine of the two rows over a temperature, so that lengths of rows say nothing.

    A low temperature makes the softmax heed the hardest negatives (Wu et al., "On the
    effectiveness of sampled softmax loss for item recommendation", TOIS 2024).

    Args:
        temperature: What cosines are divided by.
    """

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self._temperature = temperature

    def forward(self, query: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """Return the scores of every query with every other row, ``[n, m]``."""
        return self._scaled(query) @ functional.normalize(others, dim=1).T

    def own(self, query: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """Return the scores of queries ``[n, F]`` with their own rows ``[n, K, F]``."""
        unit = functional.normalize(others, dim=2)
        return (unit @ self._scaled(query)[:, :, None])[:, :, 0]

    def _scaled(self, query: torch.Tensor) -> torch.Tensor:
        return functional.normalize(query, dim=1) / self._temperature


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


class Senses(Dot):
    """The inner product of rows of senses; in training that of a sense which is drawn.

    Rows in training end with the node's shares in its senses; a pair has one of those, with
    a chance in proportion to the product of both ends' shares. Other rows are as they are.

    Args:
        num_features: Of all senses together.
    """

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self._num_features = num_features

    def of_pairs(self, query: torch.Tensor, positive: torch.Tensor) -> torch.Tensor:
        """Return queries that are 0 but for the sense that each pair has."""
        num = self._num_features
        rows, shares = query[:, :num], query[:, num:]
        if not shares.shape[1]:
            return query
        chances = shares * positive[:, num:] + _LEAST
        chosen = torch.zeros_like(shares)
        chosen = chosen.scatter(1, torch.multinomial(chances, 1), 1.0)
        by_sense = torch.unflatten(rows, 1, (shares.shape[1], -1))
        masked = (by_sense * chosen[:, :, None]).flatten(1)
        return torch.cat([masked, torch.zeros_like(shares)], dim=1)


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
    name = spec_of(config.model).decoder or config.decoder
    made: Decoder = DECODERS.get(name).make(config, num_features)
    return made


for _spec in (
    DecoderSpec(name="dot", make=lambda config, num_features: Dot()),
    DecoderSpec(
        name="cosine", make=lambda config, num_features: Cosine(config.temperature)
    ),
    DecoderSpec(name="distmult", make=lambda config, num_features: DistMult(num_features)),
    DecoderSpec(name="senses", make=lambda config, num_features: Senses(num_features)),
    DecoderSpec(name="mlp", make=lambda config, num_features: MLP(num_features)),
):
    DECODERS.add(_spec)
