"""Partitions in memory: a buffer that swaps ahead of the training, in a thread of its own.

What comes and what leaves is planned (:mod:`graphsys.embedding.training.eviction`), so the
thread can load the next partition while the ones before are trained, and write back what
left. For that there is one place more than the buffer's capacity: the next partition
is loaded into the spare place, what it replaces is stored as soon as it is trained for the
last time, and its place is the next spare one. Without ``prefetch`` the same swaps happen
between two units, and nothing is spare. What is trained does not depend on any of this.
"""

import threading
import time
from collections import deque
from collections.abc import Iterable
from types import TracebackType

from graphsys.core.events import count, span
from graphsys.embedding.data.schedule import Part
from graphsys.embedding.rows.table_files import Table, TableFiles
from graphsys.embedding.training.eviction import Swap, SwapPlan
from graphsys.metrics.overlap import Overlap


class PartitionBuffer:
    """Holds the partitions of a unit while it is trained.

    Args:
        files: Where partitions come from and go to.
        capacity: How many partitions it holds, types with one partition apart.
        prefetch: Whether to swap in a thread, with one spare place.

    Attributes:
        resident: The partitions in memory, for the unit begun last at least its own.
        num_swaps: Partitions replaced so far.
        num_held: The most partitions in memory at once, types with one partition apart.
        overlap: How far loading and storing, in whichever thread, runs beside the training.
        waiting_s: Time that the training waited for a partition, in seconds.
    """

    def __init__(self, files: TableFiles, capacity: int, *, prefetch: bool) -> None:
        self.resident: dict[Part, Table] = {}
        self.num_swaps = self.num_held = 0
        self.overlap = Overlap()
        self.waiting_s = 0.0
        self._files = files
        self._places = capacity + prefetch
        self._plan: SwapPlan[Part] = SwapPlan(capacity)
        self._always: set[Part] = set()
        self._dirty: set[Part] = set()
        self._loads: deque[Swap[Part]] = deque()  # to come, in order
        self._leaving: deque[Swap[Part]] = deque()  # loads done, whose victim is still here
        self._begun = self._ended = -1  # units
        self._changed = threading.Condition()
        self._files_lock = threading.Lock()  # taken before _changed where both are
        self._error: BaseException | None = None
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, daemon=True) if prefetch else None

    def expect(self, needs: Iterable[frozenset[Part]]) -> None:
        """Say which partitions the next units need, as far as known."""
        with self._changed:
            self._plan.extend(needs)
            while not self._plan.is_done:
                self._loads.extend(self._plan.advance())
            self._changed.notify_all()

    def begin_unit(self, always: Iterable[Part]) -> None:
        """Return when the partitions of the next unit are in memory.

        Args:
            always: Partitions it needs besides, which stay from then on.

        Raises:
            CorruptStoreError: A partition cannot be read.
            StorageFullError: A partition that left cannot be written.
        """
        began = time.monotonic()
        with span("wait"):
            for part in sorted(set(always) - self._always):
                with self._files_lock:
                    table = self._timed_load(part)
                with self._changed:  # the thread counts those that may leave
                    self.resident[part] = table
                    self._always.add(part)
                    self._changed.notify_all()
            self._begun += 1
            if self._thread is None:
                self._work_until(self._begun)
            else:
                self._wait_until(self._begun)
        self.waiting_s += time.monotonic() - began

    def end_unit(self, trained: Iterable[Part]) -> None:
        """Let partitions go that no unit needs before others.

        Args:
            trained: The partitions of the unit that were changed.
        """
        with self._changed:
            self._dirty.update(trained)
            self._ended = self._begun
            self._changed.notify_all()

    def store_dirty(self) -> None:
        """Store all that was trained since it was stored last; call it in :meth:`still`."""
        with self.overlap.preparing():
            for part in sorted(self._dirty):
                self._files.store(part, self.resident[part])
            self._dirty.clear()

    def clear(self) -> None:
        """Store what was trained and drop it: the next units are of other partitions.

        Call it between two units, when all that was expected has been trained.
        """
        with self._changed:
            # The thread may be about to drop or load what would be cleared under its feet.
            while self._error is None and (self._loads or self._leaving):
                self._changed.wait()
        with self._files_lock:
            self.store_dirty()
            with self._changed:
                for part in self.resident.keys() - self._always:
                    del self.resident[part]
                self._plan = SwapPlan(self._plan.capacity)
                self._begun = self._ended = -1

    def still(self) -> threading.Lock:
        """Return what keeps the thread from the files while it is held."""
        return self._files_lock

    def __enter__(self) -> "PartitionBuffer":
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            with self._changed:
                self._is_closing = True
                self._changed.notify_all()
            self._thread.join()
        self.resident.clear()

    def _wait_until(self, unit: int) -> None:
        """Wait for the thread to have loaded what a unit needs."""
        with self._changed:
            while self._error is None and self._loads and self._loads[0].unit <= unit:
                self._changed.wait()
            if self._error is not None:
                raise self._error

    def _work_until(self, unit: int) -> None:
        """Swap here and now: first what leaves, then what comes."""
        while self._loads and self._loads[0].unit <= unit:
            swap = self._loads[0]
            if swap.evict is not None:
                with self._files_lock:
                    self._evict(swap.evict)
            self._load()

    def _run(self) -> None:
        try:
            while self._swap_one():
                pass
        except BaseException as err:  # raised again where the training waits
            with self._changed:
                self._error = err
                self._changed.notify_all()

    def _swap_one(self) -> bool:
        """Let one partition go or load one, when it can be; return False at the end."""
        with self._changed:
            while not self._is_closing:
                # What leaves goes first: it makes the spare place that the next load waits
                # for.
                if self._leaving and self._leaving[0].after <= self._ended:
                    leaves = self._leaving[0].evict
                    break
                held = len(self.resident) - len(self._always)
                if self._loads and held < self._places:
                    leaves = None
                    break
                self._changed.wait()
            else:
                return False
        # Files are read and written without `_changed`: the training goes on meanwhile.
        if leaves is None:
            self._load()
            return True
        with self._files_lock:
            self._evict(leaves)
        with self._changed:
            self._leaving.popleft()
            self._changed.notify_all()
        return True

    def _load(self) -> None:
        swap = self._loads[0]
        with self._files_lock:
            table = self._timed_load(swap.load)
        count("partitions_loaded", 1)
        with self._changed:
            self.resident[swap.load] = table
            self.num_held = max(self.num_held, len(self.resident) - len(self._always))
            # Only now that the table is resident: who waits looks at the queue's front.
            self._loads.popleft()
            if swap.evict is not None:
                self.num_swaps += 1
                count("swaps", 1)
                if self._thread is not None:
                    self._leaving.append(swap)
            self._changed.notify_all()

    def _evict(self, part: Part) -> None:
        """Store a partition, if it changed, and drop it."""
        with self.overlap.preparing():
            if part in self._dirty:
                self._files.store(part, self.resident[part])
        with self._changed:
            # Behind the store: if that fails the partition is still here, and still dirty.
            self._dirty.discard(part)
            del self.resident[part]

    def _timed_load(self, part: Part) -> Table:
        with self.overlap.preparing():
            return self._files.load(part)
