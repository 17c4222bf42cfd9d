"""Sums over a graph that motif counts follow from, and the kernels that make them.

Kernels: kernels/cpu/mining/.
"""

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from graphsys.core.events import count, is_asked, observe
from graphsys.core.progress import SILENT, Progress
from graphsys.core.row_trace import RowVisit
from graphsys.core.threads import ThreadTeam, run_parallel
from graphsys.core.types import number_dtype
from graphsys.graph.csr import balanced_chunks
from graphsys.kernels.cpu.mining import cliques, four_cycles
from graphsys.kernels.cpu.mining.big_counts import wide_totals
from graphsys.mining.census.shared_sums import shared_with, words_for

Numbers = npt.NDArray[Any]
Counts = npt.NDArray[np.int64]
Kernel = Callable[..., Any]
_TELL_S = 0.2


class DegreeOrderedGraph(Protocol):
    """A simple undirected graph whose nodes are numbered by descending degree.

    Attributes:
        indptr: Row offsets, int64 ``[N + 1]``.
        indices: Neighbors, sorted in every row, both directions ``[2 M]``.
    """

    @property
    def indptr(self) -> Counts: ...  # noqa: D102
    @property
    def indices(self) -> Numbers: ...  # noqa: D102


class SmallCounts(DegreeOrderedGraph, Protocol):
    """A graph, and the sums that motifs of up to 4 nodes and cliques follow from."""

    def small_sums(self) -> list[int]:
        """Return the sums of ``graphsys.kernels.cpu.mining.four_cycles.count_small``."""
        ...

    def clique_counts(self, size: int) -> list[int]:
        """Return the numbers of triangles, 4-cliques and 5-cliques.

        Args:
            size: The largest cliques that are wanted, 3 to 5.
        """
        ...

    def num_squares(self) -> int:
        """Return the number of 4-cycles."""
        ...


class Kernels:
    """Runs kernels on one graph: threads, chunks of nodes and scratch arrays are shared."""

    def __init__(
        self, rows: DegreeOrderedGraph, team: ThreadTeam, progress: Progress = SILENT
    ) -> None:
        self.indptr, self.indices = rows.indptr, rows.indices
        self.num_nodes = len(rows.indptr) - 1
        self.num_edges = len(rows.indices) // 2
        self.allocate: Callable[[int, Any], Numbers] = getattr(rows, "allocate", np.empty)
        self.threads = team.num_threads
        self._team, self._progress = team, progress
        self._bounds = balanced_chunks(self.indptr, 1024, align=1)
        self._shared = shared_with()

    def small_sums(self) -> list[int]:
        """See :class:`SmallCounts`."""
        scratch = self.scratch(np.uint8), self.scratch(np.int32)
        return self.sums(four_cycles.count_small, 5, after=scratch)

    def clique_counts(self, size: int) -> list[int]:
        """See :class:`SmallCounts`."""
        longest = int(cliques.longest_prefix(self.indptr, self.indices))
        words = (longest + 63) // 64
        scratch = (
            self.scratch(np.int32),
            np.zeros((self.threads, longest, words), dtype=np.uint64),
            np.zeros((self.threads, words), dtype=np.uint64),
        )
        return self.sums(cliques.count_cliques, 3, size, after=scratch)

    def num_squares(self) -> int:
        """See :class:`SmallCounts`."""
        return self.sums(four_cycles.count_squares, 1, after=(self.scratch(np.int32),))[0]

    def scratch(self, dtype: Any) -> Numbers:
        """Return zeros, a row of ``N`` for every thread."""
        return np.zeros((self.threads, self.num_nodes), dtype=dtype)

    def run(self, kernel: Kernel, *arguments: Any, after: tuple[Any, ...] = ()) -> None:
        """Call a kernel once in every thread.

        Args:
            kernel: Takes thread, offsets, neighbors, ``arguments``, chunks, the number of
                the next chunk, ``after``.
            arguments: In front of the chunks.
            after: Behind them.
        """
        self._run(kernel, self._bounds, *arguments, after=after)
        tell_work(self._wedges, is_exact=False)

    def _run(
        self, kernel: Kernel, bounds: Counts, *arguments: Any, after: tuple[Any, ...]
    ) -> None:
        counter, num_chunks = np.zeros(1, dtype=np.int64), len(bounds) - 1
        self._progress.stage(kernel.__name__.replace("_", " "), num_chunks, "chunks")
        work = partial(
            self._team.run,
            kernel,
            self.indptr,
            self.indices,
            *arguments,
            bounds,
            counter,
            *after,
        )
        with ThreadPoolExecutor(1) as pool:  # so that this thread hears of Ctrl-C
            running = pool.submit(contextvars.copy_context().run, work)
            try:
                self._follow(running, counter, num_chunks)
            except BaseException:
                counter[0] = 1 << 62  # no chunk is left; loops of patterns end at once
                while not running.done():  # a second Ctrl-C does not leave them behind
                    with contextlib.suppress(KeyboardInterrupt):
                        wait([running])
                raise

    def _wedges(self) -> Counts:
        """Return the entries of the rows of each node's neighbors: about what is read."""
        degrees = np.diff(self.indptr)
        return row_sums(self, degrees[self.indices])

    def repeat(self, kernel: Kernel, *arguments: Any, after: tuple[Any, ...] = ()) -> None:
        """Call a kernel as :meth:`run` does, but for an observer: nobody is told of it."""
        counter = np.zeros(1, dtype=np.int64)

        def work(thread: int) -> None:
            kernel(
                thread, self.indptr, self.indices, *arguments, self._bounds, counter, *after
            )

        run_parallel(work, range(self.threads), self.threads)

    def _follow(self, running: "Future[Any]", counter: Counts, num_chunks: int) -> None:
        """Wait for a kernel, and say how many chunks were begun."""
        told = 0
        while not wait([running], timeout=_TELL_S).done:
            begun = min(int(counter[0]), num_chunks)
            self._progress.advance(begun - told)
            told = begun
        running.result()
        self._progress.advance(num_chunks - told)

    def sums(
        self,
        kernel: Kernel,
        num: int,
        *arguments: Any,
        after: tuple[Any, ...] = (),
        trips: Callable[[], Counts] | None = None,
    ) -> list[int]:
        """Call a kernel whose last argument receives ``num`` sums; return them.

        Args:
            kernel: See :meth:`run`.
            num: How many sums.
            arguments: In front of the chunks.
            after: Behind them.
            trips: Makes the entries that are looked at for each node ``[N]``, if it can be
                told exactly.
        """
        sums = np.zeros((self.threads, 2 * num), dtype=np.int64)
        shared = self._shared
        pieces = [self._bounds] if shared is None else shared.share.of(self._bounds)
        for bounds in pieces:
            self._run(kernel, bounds, *arguments, after=(*after, sums))
        tell_work(trips or self._wedges, is_exact=trips is not None)
        if shared is not None:
            sums = shared.gather(words_for(kernel, arguments), sums)
        return wide_totals(sums)


@contextlib.contextmanager
def kernels_of(
    rows: DegreeOrderedGraph, num_threads: int | None, progress: Progress = SILENT
) -> Iterator[Kernels]:
    """Return what runs kernels on a graph, with threads of its own."""
    with ThreadTeam(num_threads) as team:
        yield Kernels(rows, team, progress)
    progress.close()


def degrees_of(rows: DegreeOrderedGraph) -> Counts:
    """Return the degree of every node ``[N]``."""
    return np.diff(rows.indptr)


def sum_over_degrees(rows: DegreeOrderedGraph, term: Callable[[int], int]) -> int:
    """Sum a term of the degree over all nodes, exactly.

    Args:
        rows: The graph.
        term: Of a degree.
    """
    values, nums = np.unique(degrees_of(rows), return_counts=True)
    return sum(
        num * term(degree)
        for degree, num in zip(values.tolist(), nums.tolist(), strict=True)
    )


def exact_dot(left: Counts, right: Counts) -> int:
    """Sum the products of int64 values that are not negative, without overflow."""
    total = 0
    for k in (0, 32):
        for m in (0, 32):
            parts = (
                (values >> bits) & 0xFFFFFFFF for values, bits in ((left, k), (right, m))
            )
            one, other = (part.astype(np.uint64) for part in parts)
            total += exact_sum(one * other) << (k + m)
    return total


def row_sums(rows: DegreeOrderedGraph, values: Counts) -> Counts:
    """Sum a value of the neighbors of every node ``[N]``.

    Args:
        rows: The graph.
        values: Of every entry ``[2 M]``.
    """
    totals = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=totals[1:])
    of_rows: Counts = totals[rows.indptr[1:]] - totals[rows.indptr[:-1]]
    return of_rows


def exact_sum(values: npt.NDArray[np.int64] | npt.NDArray[np.uint64]) -> int:
    """Sum values that are not negative, without overflow."""
    low = int(np.sum(values & 0xFFFFFFFF))
    return low + (int(np.sum(values >> 32)) << 32)


def number_edges(kernels: Kernels) -> Numbers:
    """Return the number of the edge of every entry ``[2 M]``."""
    pairs = np.empty(len(kernels.indices), dtype=number_dtype(kernels.num_edges))
    cursor = kernels.indptr[:-1].copy()
    four_cycles.number_edges(kernels.indptr, kernels.indices, cursor, pairs)
    return pairs


def edge_triangles(kernels: Kernels, pairs: Numbers) -> Numbers:
    """Return the triangles of every edge, int32 ``[M]``."""
    triangles = np.zeros(kernels.num_edges, dtype=np.int32)
    after = kernels.scratch(np.uint8), triangles
    kernels.run(four_cycles.count_edge_triangles, pairs, after=after)
    return triangles


_SETS = "entries are of sets made on the way, whose sectors are not modeled"


def tell_work(trips: Callable[[], npt.NDArray[np.int64]], *, is_exact: bool = True) -> None:
    """Offer the work of one kernel to the SIMT model: a row for each first node.

    Args:
        trips: Makes the entries looked at for each node ``[N]``, if somebody asks.
        is_exact: Whether they are, and not at most so many.
    """
    if not is_asked("rows"):
        return
    made: list[Any] = []

    def visits() -> list[RowVisit]:
        made.append(trips())
        return [
            RowVisit(
                superstep=0, kind="pull", lengths=made[0], is_exact=is_exact, reason=_SETS
            )
        ]

    observe("rows", visits)
    count("edges", int(made[0].sum()), at_most=not is_exact)
