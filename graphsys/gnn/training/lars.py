"""LARS: momentum, scaled layer by layer, for large batches."""

from collections.abc import Iterable
from typing import Any

import torch


class Lars(torch.optim.Optimizer):
    """Gradient descent with momentum, each tensor at a rate by its own length.

    For every tensor ``r = trust * |w| / (|g| + weight_decay * |w|)``, then ``v = momentum *
    v + lr * r * (g + weight_decay * w)`` and ``w -= v``; r is 1 where a norm is 0, and for
    vectors (biases, norms), which have no weight decay either.

    Args:
        parameters: Tensors, or groups of them.
        lr: Learning rate.
        momentum: Share of the last move that goes on.
        trust: The paper's eta: how far a layer may move, of its length.
        weight_decay: Decay, within the scaled gradient.

    References:
        You, Gitman and Ginsburg, "Large batch training of convolutional networks",
        arXiv:1708.03888, 2017, algorithm 1.
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 1.0,
        momentum: float = 0.9,
        trust: float = 0.01,
        weight_decay: float = 0.0,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "trust": trust,
            "weight_decay": weight_decay,
        }
        super().__init__(parameters, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Move every tensor that has a gradient; ``closure`` is not used."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._move(weight, group)

    def _move(self, weight: torch.Tensor, group: dict[str, Any]) -> None:
        assert weight.grad is not None  # the caller looked
        state: Any = self.state[weight]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(weight)
        rate, move = 1.0, weight.grad
        if weight.dim() > 1:
            decay = group["weight_decay"]
            length, slope = float(weight.norm()), float(weight.grad.norm())
            if length and slope:
                rate = group["trust"] * length / (slope + decay * length)
            move = move.add(weight, alpha=decay)
        velocity = state["momentum_buffer"].mul_(group["momentum"])
        weight.sub_(velocity.add_(move, alpha=group["lr"] * rate))
