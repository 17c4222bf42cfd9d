"""Distributions of a training's numbers, and what of them 16 bits would not hold.

Numbers are counted by powers of two: all that matters for a format of 16 bits is how large
a number is. What of them such a format does not hold is found by converting them: a finite
number that becomes infinite, or one that becomes 0 though it was none.

Method: Micikevicius et al., "Mixed precision training", ICLR 2018, look at gradients in the
same way, by exponent.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import torch

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

    def merge(self, other: "Tally") -> None:
        """Count what another tally has counted, too."""
        for name in ("count", "zeros", "odd", "total", "squares"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.largest = max(self.largest, other.largest)
        for own, theirs in ((self.over, other.over), (self.under, other.under)):
            for name in FORMATS:
                own[name] += theirs[name]
        self.bins += other.bins

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
