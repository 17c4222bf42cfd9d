"""How far two kinds of work run side by side, measured while they run.

N is the time in which something is prepared (read, written, sampled, gathered), C that in
which the work itself goes on, T that in which either does, each counted once however many
threads take part. So max(N, C) <= T <= N + C, and (N + C - T) / min(N, C) lies in [0, 1].
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

OVERLAP_BY_EPOCH: Final = "overlap_by_epoch"
"""Name of the figure of a training that has a row of :meth:`Overlap.lap` for each epoch."""


class Overlap:
    """Times two kinds of work as sets of moments; safe for threads.

    Args:
        clock: Tells the time in ns.

    Examples:
        >>> now = iter([0, 4, 7, 9])
        >>> measured = Overlap(lambda: next(now))
        >>> with measured.preparing():  # from 0 to 9
        ...     with measured.working():  # from 4 to 7
        ...         pass
        >>> 1e9 * measured.prepare_s, 1e9 * measured.work_s, 1e9 * measured.both_s
        (9.0, 3.0, 3.0)
    """

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._preparing = self._working = 0  # threads
        self._prepare_ns = self._work_ns = self._both_ns = self._since_ns = 0
        self._lap_ns = (0, 0, 0)

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Count what happens inside as preparing."""
        self._change(1, 0)
        try:
            yield
        finally:
            self._change(-1, 0)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count what happens inside as work."""
        self._change(0, 1)
        try:
            yield
        finally:
            self._change(0, -1)

    @property
    def prepare_s(self) -> float:
        """N: in which some thread prepared, in seconds."""
        return self._prepare_ns / 1e9

    @property
    def work_s(self) -> float:
        """C: in which some thread worked, in seconds."""
        return self._work_ns / 1e9

    @property
    def both_s(self) -> float:
        """N + C - T: in which both went on, in seconds."""
        return self._both_ns / 1e9

    def lap(self) -> dict[str, float | None]:
        """Return the times since the last call, and what they say; as of now.

        Returns:
            ``prepare_seconds`` N, ``compute_seconds`` C, ``overlap_seconds`` N + C - T, and
            ``alpha``, ``rho`` and ``utilization``, None where N or C is 0.
        """
        self._change(0, 0)
        with self._lock:
            total = self._prepare_ns, self._work_ns, self._both_ns
            prepare, work, both = (
                (end - begin) / 1e9 for begin, end in zip(self._lap_ns, total, strict=True)
            )
            self._lap_ns = total
        return overlap_facts(prepare, work, both)

    def _change(self, preparing: int, working: int) -> None:
        with self._lock:
            now = self._clock()
            took = now - self._since_ns
            self._prepare_ns += took * (self._preparing > 0)
            self._work_ns += took * (self._working > 0)
            self._both_ns += took * (self._preparing > 0 and self._working > 0)
            self._since_ns = now
            self._preparing += preparing
            self._working += working


def overlap_facts(
    prepare_s: float, work_s: float, both_s: float
) -> dict[str, float | None]:
    """Return three times and what they say, by name; see :meth:`Overlap.lap`.

    Examples:
        >>> overlap_facts(0.0, 2.0, 0.0)["alpha"] is None
        True
    """
    rho, utilization = overlap_shares(prepare_s, work_s, both_s)
    return {
        "prepare_seconds": prepare_s,
        "compute_seconds": work_s,
        "overlap_seconds": both_s,
        "alpha": overlap_alpha(prepare_s, work_s, both_s),
        "rho": rho,
        "utilization": utilization,
    }


def overlap_shares(
    prepare_s: float, work_s: float, both_s: float
) -> tuple[float | None, float | None]:
    """Return rho = N / C, how much there is to hide, and U = C / T, how busy the work is.

    Source: Hashemi, Jyothi, Campbell, "TicTac: Accelerating distributed deep learning with
    communication scheduling", MLSys 2019, in our words.

    Args:
        prepare_s: N.
        work_s: C.
        both_s: N + C - T, the time in which both went on.

    Returns:
        Both None where N or C is 0. U is C / (N + C) in turn, and 1 where all of N is
        hidden.

    Examples:
        >>> overlap_shares(3.0, 6.0, 0.0), overlap_shares(3.0, 6.0, 3.0)
        ((0.5, 0.6666666666666666), (0.5, 1.0))
    """
    if min(prepare_s, work_s) <= 0:
        return None, None
    return prepare_s / work_s, work_s / (prepare_s + work_s - both_s)


def overlap_alpha(prepare_s: float, work_s: float, both_s: float) -> float | None:
    """Return (N + C - T) / min(N, C): 0 one after the other, 1 fully side by side.

    Args:
        prepare_s: N.
        work_s: C.
        both_s: N + C - T, the time in which both went on.

    Returns:
        From 0 to 1; None without either.

    Examples:
        >>> overlap_alpha(3.0, 4.0, 0.0), overlap_alpha(3.0, 4.0, 3.0)
        (0.0, 1.0)
    """
    shorter = min(prepare_s, work_s)
    return both_s / shorter if shorter > 0 else None
