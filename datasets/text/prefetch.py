"""Work ahead of the consumer: one thread, a bounded queue."""

import queue
import threading
from collections.abc import Generator, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


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
