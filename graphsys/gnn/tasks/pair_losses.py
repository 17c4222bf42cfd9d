"""Losses of pairs against their negatives, by the scores of both."""

from typing import Any

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
    found: torch.Tensor = _LogSumExp.apply(positive, negative)  # type: ignore[no-untyped-call] # torch's
    return (found - positive[:, 0]).mean()


class _LogSumExp(torch.autograd.Function):
    """``log(exp(positive) + sum(exp(negative)))`` of each row, ``[n]``.

    Scores of thousands of pairs and negatives are the largest array of a step. torch's
    logsumexp writes it anew four times, and takes the exponents twice; here it is written
    once, and what was written becomes the gradient.
    """

    @staticmethod
    def forward(ctx: Any, positive: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
        most = positive
        if negative.shape[1]:
            most = torch.maximum(positive, negative.amax(1, keepdim=True))
        # two infinite scores differ by no number
        most = most.masked_fill(most.abs() == torch.inf, 0.0)
        of_negatives = (negative - most).exp_()
        of_positive = (positive - most).exp_()
        total = of_positive + of_negatives.sum(1, keepdim=True)
        ctx.save_for_backward(of_positive, of_negatives, total)
        return (total.log() + most)[:, 0]

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        of_positive, of_negatives, total = ctx.saved_tensors
        share = grads[0][:, None] / total
        return of_positive.mul_(share), of_negatives.mul_(share)


for _spec in (
    PairLossSpec(name="margin", measure=_margin),
    PairLossSpec(name="logistic", measure=_logistic),
    PairLossSpec(name="bpr", measure=_bpr),
    PairLossSpec(name="softmax", measure=_softmax),
):
    PAIR_LOSSES.add(_spec)
