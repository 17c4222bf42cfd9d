"""The latest neighbors of nodes at a time: rows sorted by time (T-CSR), read backwards."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.kernels.cpu.sampling.timed_rows import find_before, take_latest

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class RecentRows:
    """What happened to each node, in order of time; see :func:`recent_rows`.

    Attributes:
        indptr: Row offsets, int64 ``[N + 1]``.
        others: The other node of each entry, int64 ``[E]``.
        events: The event of each entry, its place in the sequence given, int64 ``[E]``.
        times: When it happened, not falling within a row, int64 ``[E]``.

    References:
        Zhou et al., "TGL: A general framework for temporal GNN training on billion-scale
        graphs", PVLDB 15(8), 2022 (T-CSR).
    """

    indptr: Ints
    others: Ints
    events: Ints
    times: Ints

    def ends(self, nodes: Ints, before: Ints) -> Ints:
        """Return the place behind each row's last entry that is strictly older.

        Args:
            nodes: Numbers of nodes, int64 ``[n]``.
            before: A time for each, int64 ``[n]``.

        Returns:
            int64 ``[n]``; ``indptr[nodes]`` where nothing is older.

        Complexity:
            O(log d) for a row of d entries.
        """
        found = np.empty(len(nodes), dtype=np.int64)
        find_before(self.indptr, self.times, nodes, before, found)
        return found

    def latest(self, nodes: Ints, before: Ints, count: int) -> Ints:
        """Return the last entries of rows that are strictly older, the latest first.

        Args:
            nodes: Numbers of nodes, int64 ``[n]``.
            before: A time for each, int64 ``[n]``.
            count: Entries of a node at most.

        Returns:
            Places of entries, int64 ``[n, count]``; -1 where there are no more.
        """
        found = np.empty((len(nodes), count), dtype=np.int64)
        take_latest(self.indptr, nodes, self.ends(nodes, before), found)
        return found


def recent_rows(
    src: Ints, dst: Ints, time: Ints, num_nodes: int, *, is_both_ways: bool = True
) -> RecentRows:
    """Return the rows of events: sources' rows, and destinations' too if both ways.

    Args:
        src: Numbers of the first nodes, int64 ``[E]``.
        dst: Numbers of the second nodes, int64 ``[E]``.
        time: When each event happened, int64 ``[E]``, not falling.
        num_nodes: Rows.
        is_both_ways: Whether an event is an entry of its second node as well.

    Raises:
        ConfigError: Times fall.

    Complexity:
        O(E + N) time and memory, but for a stable sort of the rows' numbers.

    Examples:
        >>> import numpy as np
        >>> src, dst = np.array([0, 0, 1]), np.array([1, 2, 2])
        >>> rows = recent_rows(src, dst, np.array([10, 20, 30]), 3)
        >>> entries = rows.latest(np.array([0, 2]), np.array([20, 40]), 2)
        >>> np.where(entries < 0, -1, rows.others[entries])
        array([[ 1, -1],
               [ 1,  0]])
    """
    if len(time) and np.any(time[1:] < time[:-1]):
        place = int(np.argmax(time[1:] < time[:-1]))
        raise ConfigError(
            f"times: got {time[place + 1]} after {time[place]}, expected times in order"
        )
    owners, others, events = src, dst, np.arange(len(src), dtype=np.int64)
    if is_both_ways:
        owners = np.stack([src, dst], axis=1).ravel()
        others = np.stack([dst, src], axis=1).ravel()
        events = np.repeat(events, 2)
    order = np.argsort(owners, kind="stable")
    counts = np.bincount(owners, minlength=num_nodes)
    return RecentRows(
        indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        others=np.ascontiguousarray(others[order]),
        events=events[order],
        times=np.ascontiguousarray(time[events[order]]),
    )
