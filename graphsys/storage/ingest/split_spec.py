"""What a user says about a split of edges: shares or counts, and by what."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from graphsys.core.errors import ConfigError

BY: Final = ("random", "time", "relation")
INVERSE: Final = ("together", "apart")
Shares: TypeAlias = str | Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSpec:
    """How edges are parted into train, valid and test.

    Attributes:
        valid: Share of the edges, or their number.
        test: Share of the edges, or their number.
        is_count: Whether they are numbers of edges; of each relation where by relation.
        by: "random"; "time" (the last edges are held out); "relation" (of each relation
            its share, at random).
        seed: Seed of what is drawn.
        negatives: Pairs that are no edges, for each edge of valid and test.
        inverse: "together": an edge and its inverse, under a relation that is the inverse
            of its own, are held out together; "apart": as they come; "" to say so.
    """

    valid: float
    test: float
    is_count: bool = False
    by: str = "random"
    seed: int = 0
    negatives: int = 0
    inverse: str = ""

    def held_out(self, num_edges: int) -> tuple[int, int]:
        """Return how many of so many edges go to valid, and to test."""
        if self.is_count:
            return min(int(self.valid), num_edges), min(int(self.test), num_edges)
        valid, test = (int(share * num_edges + 1e-9) for share in (self.valid, self.test))
        return valid, test


def split_spec(
    shares: Shares,
    *,
    by: str = "random",
    seed: int = 0,
    negatives: int = 0,
    inverse: str | None = None,
) -> SplitSpec:
    """Check what the user says.

    Args:
        shares: Shares of train, valid and test that add up to 1 ("0.8,0.1,0.1"), or two
            numbers of edges, those of valid and of test ("1000,1000").
        by: "random", "time" or "relation".
        seed: Seed of what is drawn.
        negatives: Pairs that are no edges, for each edge of valid and test.
        inverse: "together" or "apart"; None: apart, with a warning where many leak.

    Raises:
        ConfigError: neither of these, or nothing would be held out.

    Examples:
        >>> split_spec("0.8,0.1,0.1").held_out(50)
        (5, 5)
        >>> split_spec([0, 3]).held_out(50)
        (0, 3)
    """
    if by not in BY:
        raise ConfigError(f"split by: got {by!r}, expected one of {', '.join(BY)}")
    if not isinstance(negatives, int) or not 0 <= negatives < 2**16:
        raise ConfigError(f"negatives: got {negatives!r}, expected an int >= 0")
    if inverse is not None and inverse not in INVERSE:
        raise ConfigError(f"inverse: got {inverse!r}, expected {' or '.join(INVERSE)}")
    if inverse == "together" and by == "time":
        raise ConfigError(
            "inverse: by time edges of one time are held out together, whatever their "
            "relation; leave inverse out, or split at random"
        )
    make = partial(SplitSpec, by=by, seed=seed, negatives=negatives, inverse=inverse or "")
    parts = shares.split(",") if isinstance(shares, str) else list(shares)
    expected = (
        "expected three shares that add up to 1, such as 0.8,0.1,0.1 (train, valid, test), "
        "or two numbers of edges, such as 1000,1000 (valid, test)"
    )
    try:
        numbers = [float(part) for part in parts]
    except (TypeError, ValueError):
        numbers = []
    is_fine = all(math.isfinite(number) and number >= 0 for number in numbers)
    if is_fine and len(numbers) == 3 and math.isclose(sum(numbers), 1.0, abs_tol=1e-6):
        if numbers[0] > 0 and numbers[0] < 1:
            return make(valid=numbers[1], test=numbers[2])
        expected += "; train needs edges, and valid or test"
    if is_fine and len(numbers) == 2 and all(it == int(it) for it in numbers):
        if sum(numbers):
            valid, test = numbers
            return make(valid=valid, test=test, is_count=True)
        expected += "; valid or test needs edges"
    shown = shares if isinstance(shares, str) else ",".join(map(str, parts))
    raise ConfigError(f"split: got {shown!r}, {expected}")
