import threading
import time
from typing import Any

import pytest

from graphsys.gnn.data.adaptive_prefetch import ADAPTS, AdaptivePrefetch


def went(
    pace: AdaptivePrefetch, count: int, make_s: float, use_s: float, lock: Any
) -> list[int]:
    """Make and use batches, which take so long each, while they hold a lock.

    With a lock that others wait for, a thread of its own makes them thrice as slowly.
    """
    own = threading.current_thread()

    def make(number: int) -> int:
        is_dear = threading.current_thread() is not own and not isinstance(lock, Free)
        with lock:
            time.sleep(3 * make_s if is_dear else make_s)
        return number

    found = []
    for number in pace.run(make, range(count)):
        with lock:
            time.sleep(use_s)
        found.append(number)
    return found


class Free:
    """A lock that nobody waits for: a core for everyone."""

    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def test_batches_are_made_ahead_where_that_is_faster() -> None:
    pace = AdaptivePrefetch(ADAPTS)
    assert went(pace, 30, 0.004, 0.004, Free()) == list(range(30))
    assert pace.chosen == 1


def test_none_is_made_ahead_where_one_core_does_all() -> None:
    pace = AdaptivePrefetch(ADAPTS)
    assert went(pace, 30, 0.004, 0.004, threading.Lock()) == list(range(30))
    assert pace.chosen == 0


def test_short_epochs_tell_together() -> None:
    pace = AdaptivePrefetch(ADAPTS)
    for _ in range(3):
        assert went(pace, 6, 0.002, 0.002, Free()) == list(range(6))
        assert pace.chosen is None or pace.chosen == 1
    assert went(pace, 6, 0.002, 0.002, Free()) == list(range(6))
    assert pace.chosen == 1


def test_epochs_of_one_batch_tell_nothing() -> None:
    pace = AdaptivePrefetch(ADAPTS)
    for _ in range(9):
        assert went(pace, 1, 0.0, 0.0, Free()) == [0]
    assert pace.chosen is None


@pytest.mark.parametrize("prefetch", [0, 1, 5])
def test_a_number_is_taken_as_it_is(prefetch: int) -> None:
    pace = AdaptivePrefetch(prefetch)
    assert went(pace, 9, 0.0, 0.0, Free()) == list(range(9))
    assert pace.chosen == prefetch
