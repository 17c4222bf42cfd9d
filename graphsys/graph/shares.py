"""A part of a loop over chunks that several processes share."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Bounds = npt.NDArray[np.int64]
_TURNS: Final = 16
"""Pieces of a process: the first chunks have hubs, and everyone gets some of them."""


@dataclass(frozen=True, slots=True)
class Share:
    """The part of one process, dealt out in turn, so that heavy chunks go to all.

    Attributes:
        rank: Number of the process.
        size: How many there are.
    """

    rank: int = 0
    size: int = 1

    def of(self, bounds: Bounds) -> list[Bounds]:
        """Return the own pieces of chunks; those of all processes are all of them, once.

        Args:
            bounds: Where chunks begin and end, ascending, int64 ``[C + 1]``.

        Examples:
            >>> Share(1, 2).of(np.arange(5))
            [array([1, 2]), array([3, 4])]
        """
        if self.size == 1:
            return [bounds]
        last = len(bounds) - 1
        num_pieces = max(min(self.size * _TURNS, last), 1)
        cuts = [k * last // num_pieces for k in range(num_pieces + 1)]
        return [
            bounds[cuts[k] : cuts[k + 1] + 1]
            for k in range(self.rank, num_pieces, self.size)
        ]


WHOLE: Final = Share()
