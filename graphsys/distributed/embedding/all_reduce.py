"""Parameters of which most change between exchanges: summed over all workers, by gloo.

The dense half of the hybrid of Kim et al., "Parallax: Sparsity-aware Data Parallel Training
of Deep Neural Networks", EuroSys 2019: there is no server that all bytes pass through.
Every round is joined by every worker, as with ``torch.distributed.algorithms.Join``: by
those that train when their batches are done, by those that wait, read or write with zeros,
from a thread. So nobody waits for who waits for a bucket, and rounds end when all are over.
"""

import threading
import time
from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ClusterError
from graphsys.distributed.embedding.slice_trainer import SYNC_S

Floats = npt.NDArray[np.float32]

_NUM_FLAGS = 2
"""Whether a worker is over, and whether it adds anything."""


class ReduceGroup(Protocol):
    """Workers that sum arrays together."""

    size: int

    def add(self, values: Floats) -> None:
        """Replace an array by the sum of all workers' arrays, the same bits for all.

        Raises:
            ClusterError: Another worker is lost, or silent.
        """

    def close(self) -> None:
        """Leave; others notice."""


class SummedTables:
    """A worker's copies of the tables, to which rounds add what all workers changed.

    Every worker adds the same sums in the same order, so that all have the same bits.

    Args:
        tables: The arrays that are trained in place, float32, by name; may be none.
        group: Who sums; None where there is no table.

    Attributes:
        is_training: Whether rounds wait for this worker's :meth:`exchange`.
        sent_bytes: Bytes that left this worker so far, by the algorithm on a ring.
        rounds: Rounds so far.
        pushes: Rounds to which this worker added something.
        missed: Over those, what others had added that this worker had not seen.
        most_missed: The most at one of them, at most :func:`staleness_bound`.
    """

    def __init__(self, tables: Mapping[str, Floats], group: ReduceGroup | None) -> None:
        self._tables = {name: table for name, table in tables.items() if table.size}
        self._group = group if self._tables else None
        self._base = self._flat()
        self._common = self._base.copy()
        self._handed = np.zeros_like(self._base)
        self._flying = np.zeros_like(self._base)
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self.is_training = self._is_waited_for = self._is_over = self._is_handed = False
        self._is_finite, self._last = True, -1
        self._others = self._base_others = self._handed_others = self._begun = 0
        self._ended_s = 0.0
        self._error: BaseException | None = None
        self.sent_bytes = self.rounds = self.pushes = self.missed = self.most_missed = 0

    def begin(self) -> None:
        """Join rounds from now on, until :meth:`finish`, as all workers do."""
        if self._group is None:
            return
        self._is_over = False
        self._thread = threading.Thread(target=self._run, args=(self._group,), daemon=True)
        self._thread.start()

    def take(self, *, is_training: bool) -> None:
        """Hand over what was trained, and see what rounds brought, without waiting.

        Args:
            is_training: Whether from now on rounds wait for this worker's :meth:`exchange`.
        """
        if self._group is None:
            return
        with self._condition:
            self._hand_over()
            self.is_training = is_training
            self._see()
            self._condition.notify_all()

    def exchange(self) -> None:
        """Hand over what was trained, wait for the round that adds it, and see its sums.

        Raises:
            ClusterError: Another worker is lost, or silent.
        """
        if self._group is None:
            return
        with self._condition:
            self._hand_over()
            self._is_waited_for, wanted = True, self._begun + 1
            self._condition.notify_all()
            self._condition.wait_for(lambda: self.rounds >= wanted or self._error)
            self._raise()
            self._see()

    def finish(self, epoch: int) -> None:
        """Join rounds until all workers are over.

        Args:
            epoch: What is over.

        Raises:
            ClusterError: Another worker is lost, or silent.
        """
        if self._thread is None:
            return
        with self._condition:
            self._hand_over()
            self.is_training, self._is_over = False, True
            self._condition.notify_all()
        self._thread.join()
        self._thread = None
        with self._condition:
            self._raise()
            self._see()
            self._last = epoch
            self._condition.notify_all()

    def close(self) -> None:
        """Leave, whatever the others do: they end too."""
        if self._group is None:
            return
        with self._condition:
            self._error = self._error or ClusterError("this worker has left")
            self._condition.notify_all()
        self._group.close()

    def tables(self, epoch: int) -> dict[str, Floats]:
        """Return the tables with all that any worker handed over before; by any thread.

        Another worker may have begun the next round before it handed something over, not
        the one after that.

        Args:
            epoch: What is trained, or was trained last.

        Raises:
            ClusterError: Another worker is lost, or silent.
        """
        if self._group is None:
            return {}
        with self._condition:
            wanted = self._begun + 2
            self._condition.wait_for(
                lambda: self._error or self.rounds >= wanted or self._last >= epoch
            )
            self._raise()
            flat, found, begin = self._common.copy(), {}, 0
        for name, table in self._tables.items():
            found[name] = flat[begin : begin + table.size].reshape(table.shape)
            begin += table.size
        return found

    def _run(self, group: ReduceGroup) -> None:
        try:
            while not self._round(group):
                pass
        except BaseException as err:  # whoever trains raises it
            with self._condition:
                self._error = self._error or err
        with self._condition:
            self._condition.notify_all()

    def _round(self, group: ReduceGroup) -> bool:
        """Join a round; return whether it was the last one."""
        values = np.zeros(self._base.size + _NUM_FLAGS, dtype=np.float32)
        with self._condition:
            while not self._error and (wait_s := self._early_s()) != 0.0:
                self._condition.wait(wait_s)
            self._raise()
            self._begun, self._is_waited_for = self._begun + 1, False
            is_own, since = self._is_handed, self._handed_others
            self._flying, self._handed = self._handed, self._flying
            self._is_handed = False
            values[:-_NUM_FLAGS] = self._flying
            values[-_NUM_FLAGS:] = self._is_over, is_own
        group.add(values)
        with self._condition:
            self._common += values[:-_NUM_FLAGS]
            self._flying[...] = 0.0
            self._others += int(values[-1]) - is_own
            if is_own:
                missed = self._others - since
                self.pushes, self.missed = self.pushes + 1, self.missed + missed
                self.most_missed = max(self.most_missed, missed)
            self.sent_bytes += 2 * (group.size - 1) * values.nbytes // group.size
            self.rounds, self._ended_s = self.rounds + 1, time.monotonic()
            self._condition.notify_all()
        return int(values[-2]) == group.size

    def _early_s(self) -> float | None:
        """Return how long the next round is to be waited for; None: until told."""
        if self._is_waited_for or self._is_over:
            return 0.0
        if self.is_training:
            return None
        return max(self._ended_s + SYNC_S - time.monotonic(), 0.0)

    def _hand_over(self) -> None:
        """Put aside what was trained; not what is not finite, which ends the training."""
        differences = self._flat() - self._base
        self._is_finite = bool(np.isfinite(differences).all())
        if not self._is_finite or not differences.any():
            return
        self._handed += differences
        if not self._is_handed:
            self._is_handed, self._handed_others = True, self._base_others

    def _see(self) -> None:
        """Have in the tables what all trained, and the own part that is on its way."""
        if not self._is_finite:
            return
        self._base = self._common + self._flying + self._handed
        self._base_others, begin = self._others, 0
        for table in self._tables.values():
            table.reshape(-1)[...] = self._base[begin : begin + table.size]
            begin += table.size

    def _flat(self) -> Floats:
        parts = [np.zeros(0, np.float32), *(t.reshape(-1) for t in self._tables.values())]
        return np.concatenate(parts)

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error


def staleness_bound(workers: int) -> int:
    """Return what others added that a worker had not seen when it added, at most.

    Of two rounds: the own one, and one that had begun before the worker trained.

    Examples:
        >>> staleness_bound(2)
        2
    """
    return 2 * (workers - 1)
