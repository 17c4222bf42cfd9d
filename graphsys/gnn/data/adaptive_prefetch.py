"""Whether batches are made ahead: as comes faster, which the first of them tell.

A thread that samples takes a core that products of matrices would use. With cores to spare
it is free; on two of them it may cost more than it saves.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final, TypeVar

from graphsys.core.threads import map_in_order

Made = TypeVar("Made")
ADAPTS: Final = -1
"""The value of ``prefetch`` that lets a :class:`AdaptivePrefetch` choose."""
_TRIALS: Final = (0, 1, 0, 1)
_PIECE: Final = 4  # batches of a trial; the first has to wait for the way to change
_GAIN: Final = 0.97


class AdaptivePrefetch:
    """Makes batches ahead or not.

    Args:
        prefetch: Batches made ahead in threads, one for two; 0: none; :data:`ADAPTS`: none
            and one in turn at first, then as took less time from batch to batch.
    """

    def __init__(self, prefetch: int) -> None:
        self.chosen = None if prefetch == ADAPTS else prefetch
        self._times: dict[int, list[float]] = {0: [], 1: []}
        self._trials = list(_TRIALS)

    def run(self, make: Callable[[int], Made], numbers: Sequence[int]) -> Iterator[Made]:
        """Yield what is made of numbers, in order."""
        while self.chosen is None and numbers:
            piece, numbers = numbers[:_PIECE], numbers[_PIECE:]
            ahead = self._trials.pop(0)
            yield from self._timed(ahead, _made(make, piece, ahead))
            if not self._trials:
                self._choose()
        yield from _made(make, numbers, self.chosen or 0)

    def _choose(self) -> None:
        alone, ahead = self._times[0], self._times[1]
        if alone and ahead:
            self.chosen = int(median(ahead) < _GAIN * median(alone))
        else:  # epochs of one batch tell nothing
            self._trials = list(_TRIALS)

    def _timed(self, ahead: int, made: Iterator[Made]) -> Iterator[Made]:
        """Note the time from one batch to the next, the work on it included."""
        began = None
        for each in made:
            now = time.perf_counter()
            if began is not None:
                self._times[ahead].append(now - began)
            began = now
            yield each


def _made(
    make: Callable[[int], Made], numbers: Sequence[int], prefetch: int
) -> Iterator[Made]:
    if not prefetch:
        yield from map(make, numbers)
        return
    threads = max(1, prefetch // 2)
    # one more than are made ahead: the one that the caller has
    ahead = prefetch + 1 - threads
    yield from map_in_order(make, numbers, num_threads=threads, ahead=ahead)
