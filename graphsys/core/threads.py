"""Threads that run nogil kernels side by side."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def num_cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def run_parallel(
    work: Callable[[Item], Result], items: Iterable[Item], num_threads: int | None = None
) -> list[Result]:
    """Run ``work`` on every item, in threads, and return the results in order.

    The first error is raised after the items under way have ended; those not begun are
    dropped.
    """
    items = list(items)
    threads = min(num_threads or num_cores(), len(items))
    if threads <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
