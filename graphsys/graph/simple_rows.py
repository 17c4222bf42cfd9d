"""The simple undirected graph behind rows: no direction, no loops, no repetitions."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.threads import num_cores, run_parallel
from graphsys.graph.csr import Allocate, Csr, offset_dtype
from graphsys.kernels.cpu.rows.csr import merge_simple_rows

Array = npt.NDArray[Any]
Spans = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedCsr:
    """Rows that are merged, and rid of loops and repetitions, while they are read.

    Attributes:
        out: Sorted rows of out-neighbors, or of all neighbors.
        into: Those of in-neighbors; without rows where ``out`` has all neighbors.
    """

    out: Csr
    into: Csr

    @classmethod
    def of(cls, out: Csr, into: Csr | None = None) -> "MergedCsr":
        """Take rows of out-neighbors and of in-neighbors, or those of all neighbors."""
        nothing = Csr.with_gaps(
            begins=out.begins[:0],
            ends=out.ends[:0],
            indices=out.indices[:0],
            num_edges=0,
        )
        return cls(out=out, into=into or nothing)

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array, Array, Array]:
        """What kernels take: begins, ends and neighbors of both."""
        return (*self.out.arrays, *self.into.arrays)

    def degrees(self, num_threads: int | None = None) -> npt.NDArray[np.int64]:
        """Return the distinct neighbors of every node, int64 ``[N]``.

        Complexity:
            O(E + N).
        """
        return self._counts(num_threads)[1:]

    def csr(
        self,
        num_threads: int | None = None,
        *,
        allocate: Allocate = np.empty,
        spans: Spans | None = None,
    ) -> Csr:
        """Return symmetric sorted rows without columns.

        Args:
            num_threads: Threads; all cores by default.
            allocate: Where the array of all entries comes from.
            spans: Nodes ``(low, high)`` whose rows are made, others stay empty; all by
                default.

        Complexity:
            O(E + N).
        """
        offsets = self._counts(num_threads, spans)
        np.cumsum(offsets, out=offsets)
        indices = allocate(int(offsets[-1]), self.out.indices.dtype)
        self._merge(num_threads, offsets, indices, spans, is_counting=False)
        return Csr(indptr=offsets.astype(offset_dtype(len(indices))), indices=indices)

    def _counts(
        self, num_threads: int | None, spans: Spans | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the length of every row at ``row + 1``, int64 ``[N + 1]``."""
        counts = np.zeros(self.out.num_nodes + 1, dtype=np.int64)
        nothing = np.empty(0, dtype=self.out.indices.dtype)
        self._merge(num_threads, counts, nothing, spans, is_counting=True)
        return counts

    def _merge(
        self,
        num_threads: int | None,
        offsets: npt.NDArray[np.int64],
        target: npt.NDArray[Any],
        spans: Spans | None,
        *,
        is_counting: bool,
    ) -> None:
        def work(chunk: tuple[int, int]) -> None:
            merge_simple_rows(*self.arrays, *chunk, is_counting, offsets, target)

        bounds = self.out.chunks(16 * (num_threads or num_cores()))
        chunks = []
        for low, high in [(0, self.out.num_nodes)] if spans is None else spans:
            inner = bounds[(bounds > low) & (bounds < high)].tolist()
            chunks += list(pairwise([low, *inner, high]))
        run_parallel(work, chunks, num_threads)


def simple_undirected(
    csr: Csr, num_threads: int | None = None, *, allocate: Allocate = np.empty
) -> Csr:
    """Return the simple graph of symmetric rows: they themselves where they are simple.

    Args:
        csr: Sorted rows of all neighbors.
        num_threads: Threads; all cores by default.
        allocate: Where the array of all entries comes from.
    """
    rows = MergedCsr.of(csr)
    if rows.degrees(num_threads).sum() == csr.num_edges:
        return Csr(indptr=csr.indptr, indices=csr.indices)
    return rows.csr(num_threads, allocate=allocate)
