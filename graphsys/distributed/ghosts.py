"""Copies of other workers' values: sent when first read, and then only when changed."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.distributed.ownership import Ownership
from graphsys.distributed.transport.exchange import Exchange
from graphsys.kernels.cpu.bits import fill_bits

Array = npt.NDArray[Any]
Nodes = npt.NDArray[np.int64]


class Ghosts:
    """Nodes of other workers that this one reads, and its own that others read; or entries.

    Args:
        exchange: With the other workers.
        told: Of every other worker the places of what it reads of this one's, int64.
        read: Of every other worker the places of what is read of its, int64; both workers
            have these in the same order.

    Attributes:
        count: ``G``: with every worker's added up, the values that a superstep must move
            at least if all nodes change, whatever the program.
    """

    def __init__(
        self, exchange: Exchange, told: Sequence[Nodes], read: Sequence[Nodes]
    ) -> None:
        self._exchange = exchange
        self._told, self._read = told, read
        self.count = sum(len(places) for places in read)
        self._last: dict[str, list[Array | None]] = {}
        self._values: dict[str, list[Array]] = {}

    @classmethod
    def of_nodes(cls, exchange: Exchange, ownership: Ownership, wanted: Nodes) -> "Ghosts":
        """Tell the others which of their nodes are read here.

        Args:
            exchange: With the other workers.
            ownership: Who owns which nodes.
            wanted: The nodes of others that are read here, ascending, int64 ``[G]``.
        """
        owners = ownership.owner_of(wanted)
        read = [wanted[owners == other] for other in exchange.others]
        asked = exchange.all_to_all([(nodes,) for nodes in read])
        return cls(exchange, [np.array(nodes) for (nodes,) in asked], read)

    def update(self, arrays: dict[str, Array]) -> None:
        """Bring the copies in arrays of all nodes up to date.

        Args:
            arrays: Of all nodes, or entries, by a name that stays theirs from call to call;
                every worker gives the same names. A row of a vector is one value.
        """
        outgoing: list[tuple[Any, ...]] = []
        for place, nodes in enumerate(self._told):
            changes = [self._changes(n, a[nodes], place) for n, a in arrays.items()]
            outgoing.append(tuple(changes))
        arrived = self._exchange.all_to_all(outgoing)
        for place, parts in enumerate(arrived):
            nodes = self._read[place]
            for (name, array), part in zip(arrays.items(), parts, strict=True):
                array[nodes] = self._received(name, array[:0], place, part)

    def put_back(self, arrays: dict[str, Array]) -> None:
        """Write the copies as they were last brought up to date, where there are any."""
        for name, array in arrays.items():
            for nodes, values in zip(self._read, self._values.get(name, ()), strict=False):
                array[nodes] = values

    def _changes(self, name: str, now: Array, place: int) -> tuple[Array, Array]:
        """Return where values differ from those sent last, and the values there.

        An empty list of places with values means all of them.
        """
        sent = self._last.setdefault(name, [None] * len(self._told))
        before = sent[place]
        sent[place] = now
        # The first time the other side has nothing.
        if before is None:
            return _NOWHERE, now
        # By bits: NaN stays NaN without being sent, and 0.0 that became -0.0 is.
        differs = _raw(before) != _raw(now)
        if now.ndim > 1:
            differs = differs.any(axis=1)
        changed = np.flatnonzero(differs).astype(np.uint32)
        # With so many changes the places cost more than the values that are the same.
        if len(changed) * (4 + now[:1].nbytes) >= now.nbytes:
            return _NOWHERE, now
        return changed, now[changed]

    def _received(
        self, name: str, like: Array, place: int, part: tuple[Array, Array]
    ) -> Array:
        shapes = [(len(read), *like.shape[1:]) for read in self._read]
        kept = self._values.setdefault(name, [np.zeros(s, like.dtype) for s in shapes])
        places, values = part
        # No places with values mean all; no places without values mean that nothing
        # changed.
        if len(places) or not len(values):
            kept[place][places] = values
        else:
            kept[place][:] = values
        return kept[place]


_NOWHERE = np.empty(0, np.uint32)


def _raw(values: Array) -> Array:
    """Return values as integers, so that NaN equals itself."""
    return values.view(f"u{values.itemsize}")


def set_bits(words: npt.NDArray[np.uint64], nodes: Nodes) -> None:
    """Put nodes into a set of bits."""
    fill_bits(words, nodes, 0, len(nodes))


def has_bits(words: npt.NDArray[np.uint64], nodes: Nodes) -> npt.NDArray[np.bool_]:
    """Return which nodes are in a set of bits."""
    found = (words[nodes >> 6] >> (nodes & 63).astype(np.uint64)) & np.uint64(1)
    is_in: npt.NDArray[np.bool_] = found.astype(bool)
    return is_in


def clear_bits(words: npt.NDArray[np.uint64], nodes: Nodes) -> None:
    """Take nodes out of a set of bits."""
    keep = ~(np.uint64(1) << (nodes & 63).astype(np.uint64))
    # Nodes share words: plain indexing would keep the last of each word alone.
    np.bitwise_and.at(words, nodes >> 6, keep)


def neighbors_of_others(
    indices: Sequence[tuple[Array, int]], spans: Sequence[tuple[int, int]], num_nodes: int
) -> Nodes:
    """Return the neighbors in some rows that lie in none of the spans, ascending.

    Args:
        indices: Neighbors of rows, each with what is added to get numbers of nodes.
        spans: Own nodes.
        num_nodes: Nodes of the graph.
    """
    # Marks instead of sorting: neighbors are many more than nodes.
    marked = np.zeros(num_nodes, dtype=bool)
    step = 1 << 22
    for neighbors, base in indices:
        for low in range(0, len(neighbors), step):
            marked[neighbors[low : low + step].astype(np.int64) + base] = True
    for low, high in spans:
        marked[low:high] = False
    return np.flatnonzero(marked)
