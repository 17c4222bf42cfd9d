"""Sparse training: most weights of linear layers are zero, and which ones is learned too.

RigL: every few steps the active weights of the smallest magnitude are dropped, and as many
others grow where the gradient is the largest. All else trains as ever, for a weight that is
not active gets no gradient: it stays zero, in memory and in files. Matrices stay arrays of
all weights, so that time and memory of a step are those of dense layers.

References:
    Evci et al., "Rigging the lottery: making all tickets winners", ICML 2020: the schedule
    (a share that falls as a cosine, until three quarters of the training), and densities by
    layer as Erdos-Renyi (Mocanu et al., 2018).
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import nn

from graphsys.core.errors import CorruptStoreError
from graphsys.core.rng import generator
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.training.optimizer import Optimizer, moments_of

_FIRST_SHARE = 0.3
_END = 0.75


class SparseWeights:
    """Keeps most weights of a network's linear layers at zero.

    Args:
        config: ``sparsity``, ``sparsity_every``, ``epochs`` and the seed.
        network: The network; weights that are not active become zero.
        optimizer: Its optimizer, whose moments of dropped weights become zero.
    """

    def __init__(self, config: GnnConfig, network: nn.Module, optimizer: Optimizer) -> None:
        self._every, self._epochs = config.sparsity_every, config.epochs
        self._optimizer = optimizer
        self._weights = dict(_linear_weights(network))
        shapes = [tuple(weight.shape) for weight in self._weights.values()]
        shares = densities(shapes, 1 - config.sparsity)
        self._masks: dict[str, torch.Tensor] = {}
        for (name, weight), share in zip(self._weights.items(), shares, strict=True):
            rng = generator(config.seed, "active weights", name)
            order = torch.from_numpy(rng.permutation(weight.numel()))
            mask = torch.zeros(weight.numel(), dtype=torch.bool)
            mask[order[: round(share * weight.numel())]] = True
            self._masks[name] = mask.reshape(weight.shape).to(weight.device)
        self._clear()

    def before_step(self, step: int, num_steps: int) -> None:
        """Take the gradients of what is not active away; where it is due, drop and grow.

        Args:
            step: Steps of the training so far.
            num_steps: Of an epoch.
        """
        end = _END * self._epochs * num_steps
        if 0 < step < end and step % self._every == 0:
            share = _FIRST_SHARE / 2 * (1 + math.cos(math.pi * step / end))
            for name, weight in self._weights.items():
                if weight.grad is not None:
                    self._masks[name] = _moved(
                        weight.detach(), weight.grad, self._masks[name], share
                    )
            self._clear()
        for name, weight in self._weights.items():
            if weight.grad is not None:
                weight.grad.mul_(self._masks[name])

    def dump(self) -> dict[str, torch.Tensor]:
        """Return which weights are active, bool by name."""
        return {name: mask.to("cpu", copy=True) for name, mask in self._masks.items()}

    def load(self, masks: dict[str, torch.Tensor], path: Path) -> None:
        """Put back what :meth:`dump` returned.

        Raises:
            CorruptStoreError: It is that of other weights.
        """
        own = {name: tuple(mask.shape) for name, mask in self._masks.items()}
        found = {name: tuple(mask.shape) for name, mask in masks.items()}
        if own != found:
            raise CorruptStoreError(
                f"the active weights of the run {path} do not fit its config.toml and the "
                "graph; restore its files, or train it again"
            )
        for name, mask in masks.items():
            self._masks[name] = mask.to(self._weights[name].device, torch.bool)

    @torch.no_grad()
    def _clear(self) -> None:
        """Make weights and moments zero where nothing is active."""
        for name, weight in self._weights.items():
            weight.mul_(self._masks[name])
            for rows, moment in moments_of(self._optimizer, weight):
                moment.mul_(self._masks[name][rows])


def densities(shapes: Sequence[tuple[int, ...]], share: float) -> list[float]:
    """Return the shares of matrices that are active, of all together as asked for.

    A matrix has them in proportion to ``(rows + columns) / (rows * columns)``, at most 1.

    Examples:
        >>> [round(it, 4) for it in densities([(100, 100), (10, 10)], 0.1)]
        [0.0918, 0.9182]
        >>> [round(it, 4) for it in densities([(100, 100), (10, 10)], 0.2)]
        [0.192, 1.0]
        >>> densities([(8, 4)], 0.25)
        [0.25]
    """
    sizes = [math.prod(shape) for shape in shapes]
    raw = [sum(shape) / size for shape, size in zip(shapes, sizes, strict=True)]
    dense: set[int] = set()
    while True:
        others = [k for k in range(len(shapes)) if k not in dense]
        left = share * sum(sizes) - sum(sizes[k] for k in dense)
        scale = left / max(sum(raw[k] * sizes[k] for k in others), 1e-9)
        full = {k for k in others if scale * raw[k] > 1}
        if not full:
            return [
                1.0 if k in dense else max(scale * raw[k], 0.0) for k in range(len(raw))
            ]
        dense |= full


def _moved(
    weight: torch.Tensor, grad: torch.Tensor, mask: torch.Tensor, share: float
) -> torch.Tensor:
    """Return the new active weights: a share is dropped, and as many grow."""
    count = min(int(share * int(mask.sum())), int((~mask).sum()))
    if not count:
        return mask
    size = weight.abs().masked_fill(~mask, torch.inf).flatten()
    found = mask.flatten().clone()
    found[size.topk(count, largest=False).indices] = False
    slope = grad.abs().flatten().masked_fill(found, -1.0)
    found[slope.topk(count).indices] = True
    return found.reshape(mask.shape)


def _linear_weights(network: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for name, module in network.named_modules():
        if isinstance(module, nn.Linear) and module.weight.requires_grad:
            yield f"{name}.weight", module.weight
