"""Work ahead of the consumer: parallel, in order, bounded."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from graphsys.core.threads import num_cores

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_THREADS = 8
"""More parsing threads than this only wait for the consumer."""


def default_threads() -> int:
    """Return how many threads read ahead when the user does not say."""
    return min(num_cores(), MAX_THREADS)


def ordered_map(
    work: Callable[[Item], Result], items: Iterable[Item], *, num_threads: int | None = None
) -> Generator[Result, None, None]:
    """Apply ``work`` to items in threads and yield the results in order.

    At most ``num_threads + 1`` items are under way or waiting for the consumer, so
    memory is bounded however slow the consumer is. Errors of ``work`` and of ``items``
    are raised at their place in the order; closing the generator drops what is left.
    """
    threads = num_threads or default_threads()
    pending: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="graphsys-read") as pool:
        try:
            iterator = iter(items)
            failure: BaseException | None = None
            while True:
                try:
                    item = next(iterator)
                except StopIteration:
                    break
                except Exception as err:  # raised below, behind the results before it
                    failure = err
                    break
                pending.append(pool.submit(work, item))
                if len(pending) > threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
            if failure is not None:
                raise failure
        finally:
            for future in pending:
                future.cancel()


class _End:
    """What a producer puts behind its last item: an error, or nothing."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def prefetch(items: Iterable[Item], *, depth: int = 2) -> Generator[Item, None, None]:
    """Run an iterator in a thread of its own, at most ``depth`` items ahead."""
    slots: queue.Queue[Item | _End] = queue.Queue(maxsize=depth)
    stop = threading.Event()

    def offer(item: Item | _End) -> bool:
        while not stop.is_set():
            try:
                slots.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def produce() -> None:
        error: BaseException | None = None
        try:
            for item in items:
                if not offer(item):
                    break
        except BaseException as err:  # handed to the consumer, which raises it
            error = err
        finally:
            _close(items)
        offer(_End(error))

    thread = threading.Thread(target=produce, name="graphsys-prefetch", daemon=True)
    thread.start()
    try:
        while True:
            item = slots.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        stop.set()
        thread.join()


def _close(items: Iterable[object] | Iterator[object]) -> None:
    if isinstance(items, Generator):
        items.close()
