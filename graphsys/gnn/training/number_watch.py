"""Which numbers a training has: distributions by layer, and what 16 bits would not hold.

Hooks look at the output of every module, at every gradient of a parameter and, once an
epoch, at the parameters. They are there only if the config asks for them (``numbers``).
Numbers are counted by powers of two: all that matters for a format of 16 bits is how large
a number is. What of them such a format does not hold is found by converting them: a finite
number that becomes infinite, or one that becomes 0 though it was none.

Method: Micikevicius et al., "Mixed precision training", ICLR 2018, look at gradients in the
same way, by exponent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import nn

FORMATS: Final = {"float16": torch.float16, "bfloat16": torch.bfloat16}
LOWEST: Final = -150
"""Exponent of the first bin: below all of float32, so that nothing lies further down."""
NUM_BINS: Final = 280
NUMBERS: Final = "numbers"
"""Name of the figure of a training, and of the event for a profile."""


@dataclass(slots=True)
class Tally:
    """Numbers of one kind, of one layer.

    Attributes:
        count: All of them.
        zeros: Zeros.
        odd: Infinite, or no numbers.
        total: Sum of the finite ones.
        squares: Sum of their squares.
        largest: Largest absolute value.
        over: Finite numbers that a format makes infinite.
        under: Others than 0 that it makes 0.
        bins: By exponent: bin ``k`` has absolute values from ``2^(LOWEST + k)`` on, below
            the double of it, int64 ``[NUM_BINS]``.
    """

    count: int = 0
    zeros: int = 0
    odd: int = 0
    total: float = 0.0
    squares: float = 0.0
    largest: float = 0.0
    over: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FORMATS, 0))
    under: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FORMATS, 0))
    bins: torch.Tensor = field(
        default_factory=lambda: torch.zeros(NUM_BINS, dtype=torch.int64)
    )

    def add(self, values: torch.Tensor) -> None:
        """Count numbers, of any float type and shape."""
        values = values.detach().float().flatten()
        is_finite = values.isfinite()
        own = values[is_finite]
        self.count += values.numel()
        self.odd += values.numel() - own.numel()
        if not own.numel():
            return
        wide = own.double()
        self.total += float(wide.sum())
        self.squares += float(wide.square().sum())
        self.largest = max(self.largest, float(own.abs().max()))
        is_zero = own == 0
        self.zeros += int(is_zero.sum())
        for name, dtype in FORMATS.items():
            held = own.to(dtype)
            self.over[name] += int(held.isinf().sum())
            self.under[name] += int(((held == 0) & ~is_zero).sum())
        # a number is its mantissa, from 1/2 to below 1, times a power of two
        exponents = torch.frexp(wide[~is_zero])[1].long() - 1 - LOWEST
        self.bins += torch.bincount(exponents, minlength=NUM_BINS).cpu()

    def facts(self) -> dict[str, Any]:
        """Return what there is to say; shares are of all numbers, means of finite ones."""
        finite = self.count - self.odd
        mean = self.total / finite if finite else None
        variance = None
        if mean is not None:
            variance = max(self.squares / finite - mean * mean, 0.0)
        used = self.bins.nonzero().flatten().tolist()
        return {
            "count": self.count,
            "mean": mean,
            "deviation": None if variance is None else variance**0.5,
            "largest": self.largest,
            "zero_share": self.zeros / self.count if self.count else 0.0,
            "odd_share": self.odd / self.count if self.count else 0.0,
            **{
                f"{side}_{name}_share": own[name] / self.count if self.count else 0.0
                for side, own in (("over", self.over), ("under", self.under))
                for name in FORMATS
            },
            "exponents": [[LOWEST + k, int(self.bins[k])] for k in used],
        }


class NumberWatch:
    """Counts a network's numbers by hooks, from its making until it is closed.

    Args:
        network: Its modules, with outputs that are tensors or hold some.
    """

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self._tallies: dict[tuple[str, str], Tally] = {}
        self._handles: list[Any] = []
        for name, module in network.named_modules():
            if name:  # the network itself gives what its last module gives
                self._handles.append(module.register_forward_hook(self._output_of(name)))
        for name, parameter in network.named_parameters():
            if parameter.requires_grad:
                hook: Any = parameter.register_hook
                self._handles.append(hook(self._gradient_of(name)))

    def end_epoch(self) -> list[dict[str, Any]]:
        """Return what was counted since the last call, and count anew.

        Returns:
            A row for each layer and kind: ``output``, ``gradient`` (of a parameter, one
            backward pass after the other), ``parameter`` (as it is now).
        """
        for name, parameter in self._network.named_parameters():
            self._tally("parameter", name).add(parameter)
        rows = [
            {"kind": kind, "layer": layer, **tally.facts()}
            for (kind, layer), tally in sorted(self._tallies.items())
        ]
        self._tallies = {}
        return rows

    def close(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _tally(self, kind: str, name: str) -> Tally:
        return self._tallies.setdefault((kind, name), Tally())

    def _output_of(self, name: str) -> Any:
        def hook(module: nn.Module, _: Any, output: Any) -> None:
            if module.training:  # not what is evaluated
                for values in _tensors(output):
                    self._tally("output", name).add(values)

        return hook

    def _gradient_of(self, name: str) -> Any:
        def hook(gradient: torch.Tensor) -> None:
            if gradient.is_sparse:
                gradient = gradient.coalesce().values()
            self._tally("gradient", name).add(gradient)

        return hook


def _tensors(output: Any) -> list[torch.Tensor]:
    """Return the tensors of float types that an output is, or holds."""
    if isinstance(output, torch.Tensor):
        return [output] if output.is_floating_point() else []
    if isinstance(output, Mapping):
        return [it for value in output.values() for it in _tensors(value)]
    if isinstance(output, Sequence) and not isinstance(output, str):
        return [it for value in output for it in _tensors(value)]
    return []
