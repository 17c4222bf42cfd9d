"""Losses of pairs against their negatives, by the scores of both."""

import torch
from torch.nn import functional

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.part_specs import PAIR_LOSSES, PairLossSpec


def pair_loss(
    config: GnnConfig, positive: torch.Tensor, negative: torch.Tensor
) -> torch.Tensor:
    """Return the mean loss of pairs' scores ``[n, 1]`` and their negatives' ``[n, K]``."""
    found: torch.Tensor = PAIR_LOSSES.get(config.loss).measure(config, positive, negative)
    return found


def _margin(
    config: GnnConfig, positive: torch.Tensor, negative: torch.Tensor
) -> torch.Tensor:
    """PinSage's: how far a negative is from being less by a margin."""
    return torch.relu(negative - positive + config.margin).mean()


def _logistic(
    config: GnnConfig, positive: torch.Tensor, negative: torch.Tensor
) -> torch.Tensor:
    log_chance = functional.logsigmoid(positive).mean()
    return -(log_chance + functional.logsigmoid(-negative).mean())


def _bpr(config: GnnConfig, positive: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
    """Rendle et al. (UAI 2009): the log of the chance that a pair beats a negative."""
    return functional.softplus(negative - positive).mean()


def _softmax(
    config: GnnConfig, positive: torch.Tensor, negative: torch.Tensor
) -> torch.Tensor:
    """The log of the chance that a pair beats all of its negatives."""
    return (torch.cat([positive, negative], dim=1).logsumexp(1) - positive[:, 0]).mean()


for _spec in (
    PairLossSpec(name="margin", measure=_margin),
    PairLossSpec(name="logistic", measure=_logistic),
    PairLossSpec(name="bpr", measure=_bpr),
    PairLossSpec(name="softmax", measure=_softmax),
):
    PAIR_LOSSES.add(_spec)
