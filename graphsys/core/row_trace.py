"""What a kernel walks: rows and how far into each, as the SIMT model takes it."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.events import count

Array = npt.NDArray[Any]

DEVICE_ARRAYS = "device_arrays"
"""Name of the event that says what a device would get for a batch, and give back."""


def tell_arrays(
    arrays: Sequence[int], *, packed: Sequence[int] = (), results: Sequence[int] = ()
) -> None:
    """Say what a device would get for the batch that is trained next.

    Args:
        arrays: Bytes of each array.
        packed: Bytes of each copy where small arrays share one; as ``arrays`` if empty.
        results: Bytes of each array that the host reads afterwards.
    """
    count(
        DEVICE_ARRAYS,
        sum(arrays),
        arrays=tuple(arrays),
        results=tuple(results),
        packed=tuple(packed or arrays),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowVisit:
    """The rows of one launch, in the order of its list.

    Attributes:
        superstep: Number of the superstep, from 0.
        kind: ``pull`` (rows gather from neighbors) or ``push`` (rows scatter to them).
        lengths: Entries visited of each row; 0 where a row is looked at but not entered,
            and fewer than it has where the loop ends early ``[n]``.
        starts: Place of each row's first entry in ``indices`` ``[n]``, or None.
        indices: Neighbors, or None where they are not at hand.
        value_bytes: Size of what is read (or added to) at each neighbor; of one of
            ``width``.
        width: Values of a neighbor that lie side by side: a row of features. Lanes then
            take entries times columns, one after the other; pulled only.
        by_entry: Whether a warp takes the values of one entry at a time instead, so that
            lanes beyond them are idle: a program's vectors.
        part: Which part of a training it is: ``sampling``, ``gather``, ``messages``,
            ``scores`` or ``update``; empty where a run is all of one kind.
        is_exact: Whether ``lengths`` are what the run really visits.
        key: Equal for visits of the same rows to the same lengths, or None.
        reason: Why ``indices`` are not at hand.
        mapping: Who walked the rows, where a GPU did, or alone could; else empty.
        loads: Loads from memory of each row ``[n]``, their places from ``starts`` on, where
            not every entry visited is one; else None.
        has_index_loads: Whether ``indices`` are themselves read from memory; a program that
            computes its addresses has none.
    """

    superstep: int
    kind: str
    lengths: Array
    starts: Array | None = None
    indices: Array | None = None
    value_bytes: int = 8
    is_exact: bool = True
    key: Hashable = None
    reason: str = ""
    mapping: str = ""
    loads: Array | None = None
    has_index_loads: bool = True
    width: int = 1
    by_entry: bool = False
    part: str = ""

    @property
    def steps(self) -> Array:
        """What one lane would step through in each row, int64 ``[n]``."""
        lengths = np.ascontiguousarray(self.lengths, dtype=np.int64)
        return lengths * self.width if self.width > 1 else lengths
