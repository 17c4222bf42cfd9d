"""LAMB: Adam's step, scaled layer by layer, for large batches."""

from collections.abc import Iterable
from typing import Any

import torch


class Lamb(torch.optim.Optimizer):
    """Adam's direction, as long as the weights it moves times the rate.

    For every tensor ``r = m / (sqrt(v) + eps) + weight_decay * w`` with Adam's corrected
    moments, then ``w -= lr * |w| / |r| * r``; the factor is 1 where a norm is 0.

    Args:
        parameters: Tensors, or groups of them.
        lr: Learning rate.
        betas: Decay of the moments.
        eps: Added to the root.
        weight_decay: Decoupled decay.

    References:
        You et al., "Large batch optimization for deep learning: training BERT in 76
        minutes", ICLR 2020, algorithm 2 (phi the identity).
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(parameters, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Move every tensor that has a gradient; ``closure`` is not used."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._move(weight, group)

    def _move(self, weight: torch.Tensor, group: dict[str, Any]) -> None:
        state: Any = self.state[weight]
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"] = torch.zeros_like(weight)
            state["exp_avg_sq"] = torch.zeros_like(weight)
        assert weight.grad is not None  # the caller looked
        first, second = group["betas"]
        state["step"] += 1
        count = float(state["step"])
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(weight.grad, 1 - first)
        square.mul_(second).addcmul_(weight.grad, weight.grad, value=1 - second)
        root = (square / (1 - second**count)).sqrt_().add_(group["eps"])
        move = (mean / (1 - first**count)).div_(root)
        move.add_(weight, alpha=group["weight_decay"])
        length, wanted = float(move.norm()), float(weight.norm())
        factor = wanted / length if length and wanted else 1.0
        weight.add_(move, alpha=-group["lr"] * factor)
