"""Distinct ids that tasks found, where one machine has a stream of ids."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.storage.ids.integer_ids import IntegerIds
from graphsys.storage.ids.string_ids import StringIds, string_buffers
from graphsys.storage.scratch import Scratch

Ints = npt.NDArray[np.int64]


class FoundIntegers(IntegerIds):
    """Distinct ids that shards found.

    Args:
        known: Shard after shard ``[N]``.
        degrees: Of each ``[N]``.
    """

    # not the base's: there is no stream
    def __init__(self, known: Ints, degrees: npt.NDArray[np.uint32]) -> None:
        self.known, self.degrees, self.is_sorted = known, degrees, False

    def build(self) -> None:
        """Do nothing."""


class FoundStrings(StringIds):
    """Distinct strings that shards found, likewise; with where each is first."""

    # not the base's: there is no stream
    def __init__(
        self,
        known: Sequence[Any],
        degrees: npt.NDArray[np.uint32],
        first: npt.NDArray[np.uint64],
        scratch: Scratch,
    ) -> None:
        self.degrees, self.first = degrees, first
        buffers = [string_buffers(strings) for strings in known]
        sizes = [int(offsets[-1] - offsets[0]) for offsets, _ in buffers]
        self.data = scratch.array(sum(sizes), np.uint8)
        self.offsets = scratch.zeros(len(degrees) + 1, np.int64)
        at = end = 0
        for (offsets, data), size in zip(buffers, sizes, strict=True):
            self.data[end : end + size] = data[offsets[0] : offsets[-1]]
            self.offsets[at + 1 : at + len(offsets)] = offsets[1:] - offsets[0] + end
            at, end = at + len(offsets) - 1, end + size

    def build(self) -> None:
        """Do nothing."""
