"""Which nodes of every type are one worker's own, where several share a run."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Share:
    """A worker's part of the nodes: whole partitions, where there are enough of them.

    Attributes:
        rank: Number of the worker, from 0.
        size: How many workers there are.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_all(self) -> bool:
        """Whether it is everything."""
        return self.size == 1

    def span(self, offsets: Ints) -> tuple[int, int]:
        """Return the first of the own nodes of a type, and the first behind them.

        Partitions are dealt out in their order, as evenly as their number allows; where
        there are fewer than workers, nodes are.

        Args:
            offsets: First number of every partition, and the number of nodes ``[P + 1]``.
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


ALL = Share()
