"""Matches found by several threads, handed on in one order and with bounded memory.

Nodes to begin with are cut into chunks, which threads take one after the other. Each chunk
has a short queue of batches; the reader empties the queue of the oldest chunk, so that the
order is that of one thread, and threads wait that are far ahead of it.
"""

import queue
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.core.threads import num_cores
from graphsys.graph.csr import balanced_chunks
from graphsys.kernels.cpu.mining.matches import END, STOP, fill_matches
from graphsys.mining.census.sums import degrees_of
from graphsys.mining.count_plan import CountPlan
from graphsys.mining.labeled_graph import LabeledGraph

Nodes = npt.NDArray[Any]
_CHUNKS: Final = 1024
_QUEUED: Final = 2
_AHEAD: Final = 2
_LOOK_S: Final = 0.1


class MatchStream:
    """Finds the matches of a plan.

    Args:
        graph: The graph, and what the pattern asks of it.
        plan: The steps.
        room: Most matches of a batch.
        num_threads: All cores by default.
    """

    def __init__(
        self, graph: LabeledGraph, plan: CountPlan, room: int, num_threads: int | None
    ) -> None:
        self._graph, self._plan, self._room = graph, plan, room
        self._threads = num_threads or num_cores()
        self._longest = int(degrees_of(graph.rows).max(initial=0))
        self._bounds = balanced_chunks(graph.rows.indptr, _CHUNKS, align=1)
        self._states: dict[int, Nodes] = {}
        self._is_stopped = False

    def batches(self) -> Generator[Nodes]:
        """Yield matches in the order of one thread: nodes of the steps ``[B, K]``."""
        chunks = self._chunks()
        waiting: deque[tuple[queue.Queue[Nodes | None], Future[None]]] = deque()
        with ThreadPoolExecutor(self._threads) as pool:
            try:
                while True:
                    for chunk in chunks:
                        found: queue.Queue[Nodes | None] = queue.Queue(_QUEUED)
                        waiting.append((found, pool.submit(self._search, chunk, found)))
                        if len(waiting) >= self._threads + _AHEAD:
                            break
                    if not waiting:
                        return
                    yield from self._taken(*waiting.popleft())
            finally:
                self._stop()

    def has_any(self) -> bool:
        """Tell whether there is a match: the first that a thread finds ends the search."""
        with ThreadPoolExecutor(self._threads) as pool:
            jobs = [pool.submit(self._finds_one, chunk) for chunk in self._chunks()]
            try:
                return any(job.result() for job in jobs)
            finally:
                self._stop()

    def _finds_one(self, chunk: tuple[int, int]) -> bool:
        if any(len(batch) for batch in self._found(chunk)):
            self._stop()
            return True
        return False

    def _chunks(self) -> Iterator[tuple[int, int]]:
        return zip(self._bounds[:-1].tolist(), self._bounds[1:].tolist(), strict=True)

    def _taken(
        self, found: "queue.Queue[Nodes | None]", job: "Future[None]"
    ) -> Iterator[Nodes]:
        """Yield the batches of a chunk, until its end or its failure."""
        while True:
            try:
                batch = found.get(timeout=_LOOK_S)
            except queue.Empty:
                if job.done():
                    job.result()
                continue
            if batch is None:
                return
            yield batch

    def _stop(self) -> None:
        self._is_stopped = True
        for state in list(self._states.values()):
            state[STOP] = 1

    def _search(self, chunk: tuple[int, int], found: "queue.Queue[Nodes | None]") -> None:
        for batch in self._found(chunk):
            self._put(found, batch)
        self._put(found, None)

    def _found(self, chunk: tuple[int, int]) -> Iterator[Nodes]:
        """Find the matches that begin with the nodes of a chunk, until it is stopped."""
        graph, plan, rows = self._graph, self._plan, self._graph.rows
        asked = (plan.steps, plan.tests, graph.kinds, plan.wanted, graph.labels)
        size, num = len(plan.order), self._room
        state = np.zeros(4, dtype=np.int64)
        state[0], state[END] = chunk
        self._states[chunk[0]] = state
        candidates = np.empty((size, self._longest), dtype=rows.indices.dtype)
        frames = np.zeros((3, size), dtype=np.int64)
        while num == self._room and not self._is_stopped:
            batch = np.empty((self._room, size), dtype=rows.indices.dtype)
            num = int(
                fill_matches(
                    rows.indptr, rows.indices, *asked, state, candidates, frames, batch
                )
            )
            if num:
                yield batch if num == self._room else batch[:num].copy()
        del self._states[chunk[0]]

    def _put(self, found: "queue.Queue[Nodes | None]", batch: Nodes | None) -> None:
        """Hand a batch on when there is room, or never if nobody wants it any more."""
        while not self._is_stopped:
            try:
                found.put(batch, timeout=_LOOK_S)
            except queue.Full:
                continue
            return
