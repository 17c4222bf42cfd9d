"""Threads that run nogil kernels side by side."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from graphsys.core.compiling import compile_ahead
from graphsys.core.errors import ConfigError
from graphsys.core.events import is_recording, launched

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


def require_threads(num_threads: Any) -> None:
    """Refuse what is no number of threads; None is all cores.

    Raises:
        ConfigError: It is no whole number >= 1.
    """
    if num_threads is not None and (
        not hasattr(num_threads, "__index__") or num_threads < 1
    ):
        raise ConfigError(f"num_threads: got {num_threads!r:.60}, expected an int >= 1")


class ThreadTeam:
    """Threads that wait for the next kernel: a few microseconds a call, not a pool's 100.

    Meant for loops that call short kernels thousands of times. The caller is thread 0 and
    works too; kernels share their work through an atomic counter or by thread index.

    Args:
        num_threads: Size of the team; all cores by default.

    Raises:
        ConfigError: it is no whole number >= 1.

    Examples:
        >>> with ThreadTeam(2) as team:
        ...     team.run(lambda index, base: base + index, 10)
        [10, 11]
    """

    def __init__(self, num_threads: int | None = None) -> None:
        require_threads(num_threads)
        self.num_threads = num_threads or num_cores()
        self._task: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
        self._results: list[Any] = [None] * self.num_threads
        self._errors: list[BaseException | None] = [None] * self.num_threads
        # plain locks, held from the start, hand over faster than semaphores
        self._begin = [_held_lock() for _ in range(self.num_threads)]
        self._ended = [_held_lock() for _ in range(self.num_threads)]
        self._threads: list[threading.Thread] = []

    def run(self, kernel: Callable[..., Result], *args: Any) -> list[Result]:
        """Call ``kernel(thread_index, *args)`` once in each thread and wait for all.

        Returns:
            The results in the order of the threads.

        Raises:
            BaseException: the first error of any thread, after all have ended.
        """
        if is_recording():
            return self._run_seen(kernel, *args)
        return self._run(kernel, *args)

    def prepare(self, kernel: Callable[..., Result], *args: Any) -> list[Result]:
        """Call like :meth:`run` what only fills arrays beforehand: no launch is told."""
        return self._run(kernel, *args)

    def _run_seen(self, kernel: Callable[..., Result], *args: Any) -> list[Result]:
        """Run a kernel and emit the launch, with how long each thread was busy."""
        compile_ahead(kernel, 0, *args)
        busy = [0] * self.num_threads

        def timed(index: int, *args: Any) -> Result:
            began = time.perf_counter_ns()
            try:
                return kernel(index, *args)
            finally:
                busy[index] = time.perf_counter_ns() - began

        began = time.perf_counter_ns()
        results = self._run(timed, *args)
        wall = time.perf_counter_ns() - began
        name = getattr(kernel, "__name__", "kernel")
        launched(name, began, tuple(busy), wall_ns=wall)
        return results

    def _run(self, kernel: Callable[..., Result], *args: Any) -> list[Result]:
        if self.num_threads == 1:
            return [kernel(0, *args)]
        if not self._threads:
            self._start()
        self._task = (kernel, args)
        for begin in self._begin[1:]:
            begin.release()
        try:
            self._work(0)
        finally:
            try:
                for ended in self._ended[1:]:
                    ended.acquire()
            finally:  # Ctrl-C ends waiting, too: nobody may begin this again
                self._task = None
        error = next((error for error in self._errors if error is not None), None)
        if error is not None:
            self._errors = [None] * self.num_threads
            raise error
        return list(self._results)

    def close(self) -> None:
        """End the threads; the next run starts new ones."""
        for thread, begin in zip(self._threads, self._begin[1:], strict=False):
            if begin.locked():  # else it was woken by a run that was interrupted
                begin.release()
            thread.join()
        self._threads = []

    def __enter__(self) -> "ThreadTeam":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self) -> None:
        for index in range(1, self.num_threads):
            thread = threading.Thread(target=self._serve, args=(index,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _serve(self, index: int) -> None:
        while True:
            self._begin[index].acquire()
            if self._task is None:
                return
            self._work(index)
            self._ended[index].release()

    def _work(self, index: int) -> None:
        task = self._task
        assert task is not None  # run() and close() set it before they wake a thread
        try:
            self._results[index] = task[0](index, *task[1])
        except BaseException as error:
            self._errors[index] = error


def _held_lock() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


def rest_where_others_work() -> None:
    """Have torch's OpenMP threads sleep between two works on a busy machine.

    By OpenMP's default they spin. On two quiet cores that is up to 1.5 times as fast; where
    other processes want the same cores, a training that took a second took ten to twenty.
    The load average decides, once, before torch is loaded; what the environment says in
    ``OMP_WAIT_POLICY`` stays.
    """
    try:
        load = os.getloadavg()[0]
    except OSError:  # as in a sandbox without /proc
        return
    if load > (os.cpu_count() or 1) / 2:
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
