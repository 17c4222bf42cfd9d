"""What is counted of candidates, part by part, and the ranks that follow from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
NEVER: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """What was found for every held-out edge, asked in one direction.

    Attributes:
        filtered: Filtered ranks, float64 ``[M]``.
        raw: Ranks among all candidates ``[M]``.
        positive: Scores of the edges ``[M]``, empty if not asked for.
        negative: Score of a random wrong answer for each ``[M]``; NaN where none was
            drawn; empty if not asked for.
    """

    filtered: Doubles
    raw: Doubles
    positive: Doubles
    negative: Doubles


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What was counted for every held-out edge among some of the candidates.

    Counts of parts that have no candidate in common add up to those of all, and every
    score is that of one part: whatever the parts are, the ranks are the same.

    Attributes:
        counts: Better, equal, known and better, known and equal, int64 ``[M, 4]``.
        positive: Scores of the edges whose answer is one of these candidates ``[M]``, NaN
            of others; empty if not asked for.
        negative: Score of the first wrong answer among these candidates ``[M]``, or NaN.
        tried: How many of the sample come before it, int64 ``[M]``; the largest there is
            where there is none.
    """

    counts: Ints
    positive: Doubles
    negative: Doubles
    tried: Ints

    def ranks(self) -> Ranks:
        """Return the ranks, if these are counts of all candidates."""
        better, equal, known, known_equal = self.counts.T
        raw = 1.0 + better + 0.5 * equal
        return Ranks(
            filtered=raw - known - 0.5 * known_equal,
            raw=raw,
            positive=self.positive,
            negative=self.negative,
        )


def merged(parts: Sequence[Counted]) -> Counted:
    """Return what was counted among the candidates of all parts."""
    counts = parts[0].counts.copy()
    positive, negative = parts[0].positive.copy(), parts[0].negative.copy()
    tried = parts[0].tried.copy()
    for part in parts[1:]:
        counts += part.counts
        positive = np.where(np.isnan(positive), part.positive, positive)
        is_first = part.tried < tried
        negative[is_first] = part.negative[is_first]
        tried[is_first] = part.tried[is_first]
    return Counted(counts=counts, positive=positive, negative=negative, tried=tried)


def joined(parts: Sequence[Counted]) -> Counted:
    """Return what was counted for edges that were asked about one part after the other."""
    names = ("counts", "positive", "negative", "tried")
    return Counted(
        **{name: np.concatenate([getattr(p, name) for p in parts]) for name in names}
    )
