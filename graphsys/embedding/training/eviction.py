"""Which partition leaves the buffer for which: decided ahead, since the order is known."""

from bisect import bisect_left
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

Part = TypeVar("Part", bound=Hashable)


@dataclass(frozen=True)
class Swap(Generic[Part]):
    """One partition comes into the buffer.

    Attributes:
        unit: Position of the unit that needs it.
        load: The partition.
        evict: What leaves for it; None while there is room.
        after: Position of the last unit before this one that needs ``evict``: only when
            that is trained may it leave. -1 for none.
    """

    unit: int
    load: Part
    evict: Part | None = None
    after: int = -1


class SwapPlan(Generic[Part]):
    """Belady's replacement over a sequence of units that may grow at its end.

    Args:
        capacity: Partitions that the buffer holds, at least those of any one unit.

    Attributes:
        resident: The partitions held when the units planned so far are trained.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.resident: set[Part] = set()
        self._needs: list[frozenset[Part]] = []
        self._uses: dict[Part, list[int]] = {}
        self._planned = 0

    def extend(self, needs: Iterable[frozenset[Part]]) -> None:
        """Append units, given the partitions of each."""
        for need in needs:
            for part in need:
                self._uses.setdefault(part, []).append(len(self._needs))
            self._needs.append(need)

    @property
    def is_done(self) -> bool:
        """Whether all units are planned."""
        return self._planned == len(self._needs)

    def advance(self) -> list[Swap[Part]]:
        """Plan the next unit; return what it needs to be loaded, in order."""
        unit, need = self._planned, self._needs[self._planned]
        swaps = []
        for part in sorted(need - self.resident):  # type: ignore[type-var]  # tuples
            evict, after = None, -1
            if len(self.resident) >= self.capacity:
                # Never what this unit needs too, even if that is needed last of all.
                evict = self._last_needed(self.resident - need, unit)
                uses = self._uses[evict]
                # It may leave before this unit begins, as soon as its last use is over.
                before = bisect_left(uses, unit) - 1
                after = uses[before] if before >= 0 else -1
                self.resident.discard(evict)
            self.resident.add(part)
            swaps.append(Swap(unit, part, evict, after))
        self._planned += 1
        return swaps

    def _last_needed(self, parts: set[Part], unit: int) -> Part:
        def next_use(part: Part) -> tuple[float, Part]:
            uses = self._uses[part]
            at = bisect_left(uses, unit)
            return (uses[at] if at < len(uses) else float("inf")), part

        # Ties go by the partition itself: the plan must not hang on the order of a set.
        return max(parts, key=next_use)
