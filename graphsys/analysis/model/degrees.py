"""Lanes at work by the lengths of rows: which degrees leave a warp's lanes idle."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.analysis.model.devices import WARP

Steps = npt.NDArray[np.int64]

SHOWN: Final = ("auto", "thread", "warp")
"""Mappings whose lanes are told by degree: the one chosen for each launch, and two."""
_CLASSES: Final = 64


def held_lanes(steps: Steps, mapping: str) -> Steps | None:
    """Return the lane-steps that each row holds: at work for it, and idle for it.

    A lane of ``thread`` is held until the longest row of its warp is done; a warp's 32
    lanes are for all steps of its row.

    Args:
        steps: What one lane would step through in each row ``[n]``.
        mapping: Who walks a row.

    Returns:
        Per row ``[n]``; None where rows have no lanes of their own.

    Examples:
        >>> held_lanes(np.array([1, 40, 3]), "thread").tolist()
        [40, 40, 40]
        >>> held_lanes(np.array([1, 40, 3]), "warp").tolist()
        [32, 64, 32]
    """
    if mapping == "thread":
        return _of_threads(steps)
    if mapping not in ("warp", "block", "twc"):
        return None
    held = -(-steps // WARP) * WARP  # a CTA's warps take as many steps together
    if mapping == "twc":
        is_short = steps < WARP
        held[is_short] = _of_threads(steps[is_short])
    return held


def _of_threads(steps: Steps) -> Steps:
    """Return the longest row of each row's warp."""
    if not len(steps):
        return steps
    longest = np.maximum.reduceat(steps, np.arange(0, len(steps), WARP))
    return np.repeat(longest, WARP)[: len(steps)]


class DegreeTotals:
    """What rows of each class of lengths do: 0 entries, 1, 2 to 3, 4 to 7 and so on.

    Attributes:
        rows: Rows ``[64]``.
        entries: Their entries ``[64]``.
        active: Lane-steps at work, by the mapping ``[3, 64]``; see :data:`SHOWN`.
        held: Lane-steps at work and idle for these rows ``[3, 64]``.
    """

    def __init__(self) -> None:
        self.rows = np.zeros(_CLASSES, dtype=np.int64)
        self.entries = np.zeros(_CLASSES, dtype=np.int64)
        self.active = np.zeros((len(SHOWN), _CLASSES), dtype=np.int64)
        self.held = np.zeros((len(SHOWN), _CLASSES), dtype=np.int64)

    def add(self, other: "DegreeTotals") -> None:
        """Add those of another launch."""
        for name in ("rows", "entries", "active", "held"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def as_rows(self) -> list[dict[str, Any]]:
        """Return the classes that have rows, as the report's JSON has them."""
        return [
            {
                "at_least": (1 << k) >> 1,
                "at_most": (1 << k) - 1,
                "rows": int(self.rows[k]),
                "entries": int(self.entries[k]),
                "lane_utilization": {
                    name: int(self.active[m, k]) / held if held else None
                    for m, name in enumerate(SHOWN)
                    for held in [int(self.held[m, k])]
                },
            }
            for k in np.flatnonzero(self.rows).tolist()
        ]


def degrees_of(
    lengths: Steps, steps: Steps, chosen: str, entry_width: int = 0
) -> DegreeTotals:
    """Group the rows of a launch by their lengths.

    Args:
        lengths: Entries visited of each row ``[n]``.
        steps: What one lane would step through in each row ``[n]``.
        chosen: The mapping that is called ``auto``.
        entry_width: Values of an entry, where a warp takes one entry at a time.

    Complexity:
        A few passes over the rows.
    """
    found = DegreeTotals()
    if not len(lengths):
        return found
    # the exponent of frexp is the number of binary digits: 0 of 0, 1 of 1, 2 of 2 and 3
    classes = np.frexp(lengths.astype(np.float64))[1]
    found.rows = np.bincount(classes, minlength=_CLASSES)
    found.entries = _sums(classes, lengths)
    for k, mapping in enumerate((chosen, *SHOWN[1:])):
        held = held_lanes(steps, mapping)
        if entry_width and mapping == "warp":
            held = lengths * (-(-entry_width // WARP) * WARP)
        if held is not None:
            found.held[k] = _sums(classes, held)
            found.active[k] = _sums(classes, steps)
    return found


def _sums(classes: npt.NDArray[np.int32], amounts: Steps) -> Steps:
    """Add up integers by class, exactly below 2**53 in each."""
    sums = np.bincount(classes, weights=amounts, minlength=_CLASSES)
    return sums.astype(np.int64)
