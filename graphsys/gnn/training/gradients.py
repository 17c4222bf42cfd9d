"""Gradients between processes in 8 bits; what rounding left out is added to the next."""

from collections.abc import Callable

import torch

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.process_group import ProcessGroup

BLOCK = 256
"""Numbers that share a scale."""
_LARGEST = 127


class Int8Sum:
    """Sums vectors over processes, each sent as bytes and a scale per block.

    Every process rounds ``gradient + error`` to 255 levels of the largest of its block, and
    keeps what that left out as the next ``error``. All add the same numbers in the same
    order, so networks stay equal. The errors are not in a checkpoint: a resumed run begins
    with none.

    References:
        Seide et al., "1-bit stochastic gradient descent and its application to
        data-parallel distributed training of speech DNNs", Interspeech 2014; Karimireddy
        et al., "Error feedback fixes SignSGD", ICML 2019.
    """

    def __init__(self, group: ProcessGroup) -> None:
        self._group = group
        self._error: torch.Tensor | None = None

    def __call__(self, flat: torch.Tensor) -> torch.Tensor:
        """Return the sum of a float32 vector over all processes."""
        if self._error is not None:
            flat = flat + self._error
        data, scales = quantized(flat)
        self._error = flat - dequantized(data, scales, len(flat))
        sent = self._group.all_gather(data)
        of_blocks = self._group.all_gather(scales)
        total = torch.zeros_like(flat)
        for each, scale in zip(sent, of_blocks, strict=True):
            total += dequantized(each, scale, len(flat))
        return total


def quantized(flat: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Round a float32 vector to int8 ``[blocks, 256]``, a float32 scale for each block."""
    padded = torch.nn.functional.pad(flat, (0, -len(flat) % BLOCK)).view(-1, BLOCK)
    scales = padded.abs().amax(1) / _LARGEST
    steps = padded / torch.where(scales > 0, scales, 1.0)[:, None]
    return steps.round_().to(torch.int8), scales


def dequantized(data: torch.Tensor, scales: torch.Tensor, length: int) -> torch.Tensor:
    """Return the float32 vector of so many numbers that :func:`quantized` rounded."""
    return (data.float() * scales[:, None]).view(-1)[:length]


def make_compression(
    config: GnnConfig, group: ProcessGroup
) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """Return what sums gradients over processes; None for plain float32 sums."""
    return Int8Sum(group) if config.gradient_compression == "int8" else None
