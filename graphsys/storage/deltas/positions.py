"""Where in stored rows changes go, and rows cut out of larger ones."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.graph.csr import Csr, read_only
from graphsys.kernels.cpu.rows import splice as kernels
from graphsys.storage.views import EdgeBucket


class EdgePositions:
    """Positions in the sequence of buckets, before deltas and after them.

    Args:
        dropped: Positions before, of the edges removed, ascending.
        places: Position before, in front of which each added edge goes, ascending.
    """

    def __init__(
        self, dropped: npt.NDArray[np.int64], places: npt.NDArray[np.int64]
    ) -> None:
        self._dropped, self._places = dropped, places
        lost = np.searchsorted(dropped, places)
        self.of_added: npt.NDArray[np.int64] = places - lost + np.arange(len(places))

    def moved(self, positions: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return where edges given by their position before are now."""
        found: npt.NDArray[np.int64] = positions.astype(np.int64)
        lost = np.searchsorted(self._dropped, found)
        return found - lost + np.searchsorted(self._places, found, side="right")


def bucket_places(
    base: EdgeBucket,
    src: npt.NDArray[Any],
    dst: npt.NDArray[Any],
    relation: npt.NDArray[Any] | None,
) -> npt.NDArray[np.int64]:
    """Return the row of a bucket before which each new edge goes."""
    low = np.searchsorted(base.src, src, side="left")
    high = np.searchsorted(base.src, src, side="right")
    return _inserted(low, high, base.dst, base.relation, dst, relation)


def index_places(
    base: Csr,
    row: npt.NDArray[np.int64],
    neighbor: npt.NDArray[Any],
    relation: npt.NDArray[Any] | None,
) -> npt.NDArray[np.int64]:
    """Return the entry of an index before which each new entry goes."""
    low, high = base.indptr[row], base.indptr[row + 1]
    return _inserted(low, high, base.indices, base.relation, neighbor, relation)


def gone_places(
    base: Csr,
    row: npt.NDArray[np.int64],
    neighbor: npt.NDArray[np.int64],
    copy: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Return the entries of an index that hold removed edges."""
    low = base.indptr[row].astype(np.int64)
    high = base.indptr[row + 1].astype(np.int64)
    places = np.empty(len(row), dtype=np.int64)
    kernels.first_places(low, high, base.indices, neighbor, False, places)
    return places + copy


def with_rows(index: Csr, num_rows: int) -> Csr:
    """Return an index with more rows, which are empty."""
    indptr = np.empty(num_rows + 1, dtype=index.indptr.dtype)
    indptr[: len(index.indptr)] = index.indptr
    indptr[len(index.indptr) :] = index.indptr[-1]
    return index.with_indptr(indptr)


def rows_between(index: Csr, low: int, high: int) -> Csr:
    """Return some rows of an index, whose entries are views."""
    entries = slice(int(index.indptr[low]), int(index.indptr[high]))

    def cut(values: Any) -> Any:
        return None if values is None else values[entries]

    return Csr(
        indptr=index.indptr[low : high + 1] - index.indptr[low],
        indices=cut(index.indices),
        weight=cut(index.weight),
        relation=cut(index.relation),
        time=cut(index.time),
        edge=cut(index.edge),
    )


def _inserted(
    low: npt.NDArray[Any],
    high: npt.NDArray[Any],
    known: npt.NDArray[Any],
    relations: npt.NDArray[Any] | None,
    neighbor: npt.NDArray[Any],
    relation: npt.NDArray[Any] | None,
) -> npt.NDArray[np.int64]:
    places = np.empty(len(neighbor), dtype=np.int64)
    nothing = np.empty(0, dtype=np.uint16)
    kernels.insertion_places(
        low.astype(np.int64),
        high.astype(np.int64),
        read_only(known),
        read_only(nothing if relations is None or relation is None else relations),
        read_only(neighbor),
        read_only(nothing if relation is None else relation),
        places,
    )
    return places
