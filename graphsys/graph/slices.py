"""The part of one process of several: of the nodes of a graph, or of a loop over chunks."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_TURNS: Final = 16
"""Pieces of a process: the first chunks have hubs, and everyone gets some of them."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The part of one process.

    Attributes:
        rank: Number of the process, from 0.
        size: How many there are.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_all(self) -> bool:
        """Whether it is everything."""
        return self.size == 1

    def of(self, bounds: Ints) -> list[Ints]:
        """Return the own pieces of chunks; those of all processes are all of them, once.

        They are dealt out in turn, so that heavy chunks go to all.

        Args:
            bounds: Where chunks begin and end, ascending, int64 ``[C + 1]``.

        Examples:
            >>> Slice(1, 2).of(np.arange(5))
            [array([1, 2]), array([3, 4])]
        """
        if self.is_all:
            return [bounds]
        last = len(bounds) - 1
        num_pieces = max(min(self.size * _TURNS, last), 1)
        cuts = [k * last // num_pieces for k in range(num_pieces + 1)]
        return [
            bounds[cuts[k] : cuts[k + 1] + 1]
            for k in range(self.rank, num_pieces, self.size)
        ]

    def span(self, offsets: Ints) -> tuple[int, int]:
        """Return the first of the own nodes of a type, and the first behind them.

        Partitions are dealt out in their order, as evenly as their number allows; where
        there are fewer than processes, nodes are.

        Args:
            offsets: First number of every partition, and the number of nodes, int64
                ``[P + 1]``.
        """
        parts = len(offsets) - 1
        cuts = [self.rank, self.rank + 1]
        if parts >= self.size:
            low, high = (int(offsets[k * parts // self.size]) for k in cuts)
        else:
            low, high = (int(offsets[-1]) * k // self.size for k in cuts)
        return low, high

    def partitions(self, offsets: Ints) -> list[tuple[int, int, int]]:
        """Return the own partitions of a type, or parts of them.

        Args:
            offsets: As in :meth:`span`.

        Returns:
            Partition, and its first own row and the first behind, in ascending order.
        """
        low, high = self.span(offsets)
        found = []
        for part in range(len(offsets) - 1):
            first, last = int(offsets[part]), int(offsets[part + 1])
            begin, end = max(low, first), min(high, last)
            if begin < end:
                found.append((part, begin - first, end - first))
        return found


def even_cuts(weights: npt.NDArray[np.int64], num_pieces: int) -> tuple[int, ...]:
    """Cut a sequence into runs of about the same weight, none empty if there are enough.

    Args:
        weights: Of the members, not negative, int64 ``[M]``.
        num_pieces: How many runs, ``P``.

    Returns:
        Where each run begins, and ``M``: ``P + 1`` numbers, ascending.
    """
    before = np.concatenate([[0], np.cumsum(weights)])
    cuts = [0]
    for piece in range(1, num_pieces):
        wanted = before[-1] * piece / num_pieces
        after = int(np.searchsorted(before, wanted))
        nearest = after - (
            after > 0 and wanted - before[after - 1] < before[after] - wanted
        )
        least = min(cuts[-1] + 1, len(weights))
        most = max(len(weights) - (num_pieces - piece), cuts[-1])
        cuts.append(min(max(nearest, least), most))
    return (*cuts, len(weights))


WHOLE: Final = Slice()
