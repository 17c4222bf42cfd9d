"""Spans of time as sets: how much of one lies inside others."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate


class Intervals:
    """A union of intervals.

    Args:
        spans: Beginnings and ends, in any order, which may overlap.

    Examples:
        >>> found = Intervals([(5, 9), (0, 3), (2, 4)])
        >>> found.length, found.inside(3, 6)
        (8, 2)
        >>> other = Intervals([(1, 6)])
        >>> found.shared(other), list(found.without(other))
        (4, [(0, 1), (6, 9)])
    """

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []
        for begin, end in sorted(spans):
            if self._ends and begin <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            elif end > begin:
                self._begins.append(begin)
                self._ends.append(end)
        self._sums: list[int] = []

    @property
    def length(self) -> int:
        """How long they are together."""
        return sum(self._ends) - sum(self._begins)

    def before(self, time: int) -> int:
        """Return how much of them lies before a time.

        Examples:
            >>> [Intervals([(2, 4), (6, 9)]).before(time) for time in (1, 3, 5, 20)]
            [0, 1, 2, 5]
        """
        if len(self._sums) != len(self._begins):  # summed once, asked of every event
            lengths = (
                end - begin for begin, end in zip(self._begins, self._ends, strict=True)
            )
            self._sums = list(accumulate(lengths))
        place = bisect_right(self._begins, time) - 1
        if place < 0:
            return 0
        return self._sums[place] - max(self._ends[place] - time, 0)

    def inside(self, begin: int, end: int) -> int:
        """Return how much of them lies between two times."""
        found = 0
        place = max(bisect_right(self._begins, begin) - 1, 0)
        while place < len(self._begins) and self._begins[place] < end:
            found += max(min(end, self._ends[place]) - max(begin, self._begins[place]), 0)
            place += 1
        return found

    def within(self, begin: int, end: int) -> "Intervals":
        """Return what of them lies between two times.

        Examples:
            >>> list(Intervals([(0, 4), (6, 9)]).within(2, 7))
            [(2, 4), (6, 7)]
        """
        return Intervals((max(first, begin), min(last, end)) for first, last in self)

    def shared(self, other: "Intervals") -> int:
        """Return how much of them lies in others: at most the length of either."""
        return sum(other.inside(begin, end) for begin, end in self)

    def without(self, other: "Intervals") -> "Intervals":
        """Return what of them lies outside others."""
        left = []
        for begin, end in self:
            place = max(bisect_right(other._begins, begin) - 1, 0)
            while place < len(other._begins) and other._begins[place] < end:
                left.append((begin, other._begins[place]))
                begin = max(begin, min(end, other._ends[place]))
                place += 1
            left.append((begin, end))
        return Intervals(left)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._begins, self._ends, strict=True)
