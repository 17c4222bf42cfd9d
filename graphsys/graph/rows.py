"""Rows of neighbors that need not lie one behind the other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.rows.row_blocks import cut_rows

_AT_A_TIME = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The neighbors of every node, each row sorted by neighbor, with gaps where they fall.

    The compressed sparse rows of four arrays (begins, ends, entries, values) that sparse
    libraries take beside those of three. Rows of one file are all arrays of that file;
    those of several files lie page by page beside each other, with a gap at each border.

    Attributes:
        begins: Where each row begins in ``indices``, uint32 or int64 ``[N]``, ascending.
        ends: Where it ends ``[N]``.
        indices: Numbers of the neighbors, uint32 or int64; means nothing between rows.
        num_edges: Number of entries of all rows.
        columns: ``weight``, ``relation`` and ``time`` of the entries, those asked for.
        column_begins: Where each row begins in a column ``[N]``, by the column's name; in
            those that are left out rows begin where they do in ``indices``.
    """

    begins: npt.NDArray[Any]
    ends: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    num_edges: int
    columns: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    column_begins: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    @property
    def num_nodes(self) -> int:
        """Number of rows."""
        return len(self.begins)

    def begins_of(self, column: str) -> npt.NDArray[Any]:
        """Return where each row begins in a column ``[N]``."""
        return self.column_begins.get(column, self.begins)

    def runs(self, column: str = "") -> npt.NDArray[np.int64]:
        """Return bounds of rows between which no gap lies, int64 ``[R + 1]``.

        Args:
            column: In a column, whose gaps are elsewhere; by default in ``indices``.
        """
        begins, last = self.begins_of(column), max(self.num_nodes - 1, 0)
        found = [np.zeros(1, dtype=np.int64)]
        for low in range(0, last, _AT_A_TIME):
            high = min(low + _AT_A_TIME, last)
            lengths = self.ends[low:high] - self.begins[low:high]
            far = begins[low + 1 : high + 1] - begins[low:high] != lengths
            found.append(np.flatnonzero(far) + low + 1)
        if self.num_nodes:
            found.append(np.array([self.num_nodes]))
        return np.concatenate(found)

    def pieces(self, column: str) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield a column without its gaps: where each piece begins, and the piece."""
        values, begins = self.columns[column], self.begins_of(column)
        for low, high in pairwise(self.runs(column).tolist()):
            first, last = int(begins[low]), int(begins[high - 1])
            yield first, values[first : last + self.degree(high - 1)]

    def degrees(self) -> npt.NDArray[np.int64]:
        """Return the length of every row, int64 ``[N]``."""
        lengths: npt.NDArray[np.int64] = np.subtract(self.ends, self.begins, dtype=np.int64)
        return lengths

    def degree(self, node: int) -> int:
        """Return the length of a row."""
        return int(self.ends[node]) - int(self.begins[node])

    def chunks(self, num_chunks: int = 256, align: int = 64) -> npt.NDArray[np.int64]:
        """Cut the rows into chunks of equal work: see :func:`cut_rows`."""
        end = int(self.ends[-1]) if self.num_nodes else 0
        return cut_rows(self.begins, end, num_chunks, align)
