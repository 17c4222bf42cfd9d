"""Sources and destinations that both count from the beginning: two types as one?"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.core.caller_warnings import note

_MAX_ID: Final = 1 << 24
_MAX_EDGES: Final = 1 << 25
_MIN_EDGES: Final = 1000
_MIN_NAMED: Final = 10
_FULL: Final = 0.98
_MOST: Final = 0.6
_APART: Final = 0.02


class TwoRanges:
    """Watches edges of one node type whose ids are integers.

    Users and items that are both numbered from 0 (or 1) become one node where their
    numbers meet. This is likely where the sources are a range without gaps, destinations
    fill most of another one from the same beginning, their lengths differ, and a source is
    its own destination no more often than by chance.

    Args:
        name: The files, for the message.
        command: What keeps the two apart.
        is_named: The columns have names that differ: fewer edges and destinations are
            enough.
    """

    def __init__(self, name: str, command: str, *, is_named: bool = False) -> None:
        self._name = name
        self._command = command
        self._min_edges = _MIN_NAMED if is_named else _MIN_EDGES
        self._least_share = 0.0 if is_named else _MOST
        self._is_open = True
        self._edges = self._loops = 0
        self._seen = [np.zeros(0, dtype=bool), np.zeros(0, dtype=bool)]

    def add(self, src: Any, dst: Any) -> None:
        """Take in edges, ids ``[n]`` each; names end the watch."""
        is_integer = isinstance(src, np.ndarray) and isinstance(dst, np.ndarray)
        if not self._is_open or not is_integer:
            self._is_open = False
            return
        if not len(src):
            return
        self._edges += len(src)
        self._loops += int((src == dst).sum())
        tops = int(src.max()), int(dst.max())
        is_large = max(tops) >= _MAX_ID or self._edges > _MAX_EDGES
        # most graphs are told from two types by their first edges: others cost no more
        is_first = self._edges == len(src) >= _MIN_EDGES
        if is_large or (is_first and abs(tops[0] - tops[1]) <= _APART * max(tops)):
            self._is_open = False
            return
        for k, (ids, top) in enumerate(zip((src, dst), tops, strict=True)):
            if len(self._seen[k]) <= top:
                grown = np.zeros(max(top + 1, 2 * len(self._seen[k])), dtype=bool)
                grown[: len(self._seen[k])] = self._seen[k]
                self._seen[k] = grown
            self._seen[k][ids] = True

    def check(self) -> None:
        """Warn where the ends look like two types."""
        if not self._is_open or self._edges < self._min_edges:
            return
        ranges = [np.flatnonzero(seen) for seen in self._seen]
        firsts, lasts = ([int(ids[k]) for ids in ranges] for k in (0, -1))
        if firsts[0] != firsts[1] or firsts[0] > 1 or self._are_alike(ranges):
            return
        note(
            f"{self._name}: sources are all of {firsts[0]} to {lasts[0]}, destinations are "
            f"of {firsts[1]} to {lasts[1]}: two types of nodes, such as users and items, "
            f"would be one here; keep them apart with {self._command}"
        )

    def _are_alike(self, ranges: list[npt.NDArray[np.int64]]) -> bool:
        """Tell whether both ends may well be of one type."""
        sizes = [int(ids[-1] - ids[0]) + 1 for ids in ranges]
        shares = [len(ids) / size for ids, size in zip(ranges, sizes, strict=True)]
        by_chance = self._edges / max(sizes)
        return (
            shares[0] < _FULL
            or shares[1] < self._least_share
            or abs(sizes[0] - sizes[1]) <= _APART * max(sizes)
            or self._loops > 3 * by_chance + 3
        )
