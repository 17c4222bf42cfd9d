"""Threads that run nogil kernels side by side."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
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


def map_in_order(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    num_threads: int | None = None,
    ahead: int = 1,
) -> Iterator[Result]:
    """Run ``work`` on items in threads and yield the results in the items' order.

    At most ``num_threads + ahead`` results exist at a time, so memory stays bounded
    however long ``items`` is.
    """
    threads = num_threads or num_cores()
    pending: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        for item in items:
            pending.append(pool.submit(work, item))
            if len(pending) >= threads + ahead:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
