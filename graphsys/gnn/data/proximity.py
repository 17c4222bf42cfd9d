"""Which pairs are near at a time: they met, or have partners in common."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from graphsys.gnn.data.events import EventStream

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Proximity:
    """Pairs of nodes that met before an event, or are few hops apart by those that did.

    Hops are 2 where both ends are of one type (they share a partner), else 3 (what somebody
    has who shares something). Directions do not count.
    """

    def __init__(self, events: EventStream) -> None:
        self._events = events
        self._hops = 2 if events.src_type == events.dst_type else 3
        self._position, self._met = -1, sp.csr_matrix((0, 0))
        self._counts = self._met

    def __deepcopy__(self, memo: Any) -> "Proximity":
        """Return another of the same events."""
        return Proximity(self._events)

    def among_all(self, sources: Ints, position: int) -> Bools:
        """Tell which second ends are near to nodes, bool ``[n, num_dst]``.

        Args:
            sources: Numbers of nodes, int64 ``[n]``.
            position: How many events count, the first ones.
        """
        events, met = self._events, self._upto(position)
        there = met[sources]
        far = self._reached(there, self._hops - 1)
        near = np.asarray((there + far).todense()) > 0
        return near[:, events.first_dst : events.first_dst + events.num_dst]

    def meetings(self, sources: Ints, position: int) -> npt.NDArray[np.float32]:
        """Return how often nodes met all second ends, at either end, ``[n, num_dst]``."""
        events = self._events
        self._upto(position)
        found: npt.NDArray[np.float32] = self._counts[sources].toarray()
        return found[:, events.first_dst : events.first_dst + events.num_dst]

    def of_pairs(self, src: Ints, dst: Ints, position: int) -> Bools:
        """Tell which pairs are near, bool ``[n]``; as :meth:`among_all`."""
        if not len(src):
            return np.zeros(0, dtype=bool)
        met = self._upto(position)
        unique, places = np.unique(src, return_inverse=True)
        last = met[dst]  # the last hop is looked at from the other end
        there = met[unique]
        common = self._reached(there, self._hops - 2)[places].multiply(last).sum(axis=1)
        direct = np.asarray(met[src, dst]).ravel()
        return (np.asarray(common).ravel() > 0) | (direct > 0)

    def _reached(self, rows: Any, hops: int) -> Any:
        for _ in range(hops):
            rows = rows @ self._met
            rows.data[:] = 1
        return rows

    def _upto(self, position: int) -> Any:
        """Return who met whom in the first events, float32 ``[N, N]``, both ways."""
        if position != self._position:
            events = self._events
            src, dst = events.src[:position], events.dst[:position]
            row, column = np.concatenate([src, dst]), np.concatenate([dst, src])
            shape = (events.num_nodes, events.num_nodes)
            ones = np.ones(len(row), dtype=np.float32)
            self._counts = sp.csr_matrix((ones, (row, column)), shape=shape)
            self._met = self._counts.copy()
            self._met.data[:] = 1
            self._position = position
        return self._met
