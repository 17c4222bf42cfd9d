"""Counting patterns on a cluster: workers share the outer loops, and add up.

Every worker maps the store and makes the simple graph, nodes by descending degree, as one
machine does; of every sum it visits its chunks of first nodes, dealt out in turn, as the
first ones have the hubs. Sums are kept in two words and exact, so counts are those of one
machine.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphsys import mining
from graphsys.core.compiling import CompileWatch
from graphsys.core.errors import BudgetError, ClusterError
from graphsys.core.memory import (
    available_bytes,
    format_bytes,
    resident_bytes,
    scratch_is_memory,
)
from graphsys.core.threads import num_cores
from graphsys.distributed.transport.exchange import Exchange
from graphsys.graph.slices import Slice
from graphsys.mining.census.shared_sums import Counts, SharedSums, sharing


@dataclass(frozen=True, slots=True, kw_only=True)
class MiningWork:
    """Patterns or motifs to count in a store, by path and text.

    Attributes:
        graph: Folder of the store, which every machine sees.
        patterns: Texts of patterns.
        motifs: Nodes of the motifs to count instead.
        induced: ``edge`` or ``vertex``.
        labels: Where labels of nodes are, as for :func:`graphsys.mining.count`.
        disconnected: Whether patterns may be in several parts.
        threads: Of a worker; all cores of its machine by default.
        neighbors: Workers on a machine, which share its memory; as many as it has cores
            by default.
        is_profiled: Whether the worker records itself.
    """

    graph: str
    patterns: tuple[str, ...] = ()
    motifs: int | None = None
    induced: str = "edge"
    labels: str | None = None
    disconnected: bool = False
    threads: int | None = None
    neighbors: int | None = None
    is_profiled: bool = False


def run_mining(exchange: Exchange, work: MiningWork) -> dict[str, Any]:
    """Count together with the other workers, which call this with the same work.

    Returns:
        ``counts``, ``seconds``, ``compile_seconds``, ``bytes`` sent and ``waited_s``.
    """
    begin, share = time.perf_counter(), Slice(exchange.rank, exchange.size)
    shared = SharedSums(share, lambda words, sums: _all(exchange, words, sums))
    with (
        share_of_memory("mining", work.neighbors) as memory,
        CompileWatch() as compiling,
        sharing(shared),
    ):
        counts = _count(work, None if scratch_is_memory() else memory)
    return {
        "counts": counts,
        "seconds": time.perf_counter() - begin - compiling.seconds,
        "compile_seconds": compiling.seconds,
        "bytes": exchange.sent_bytes,
        "waited_s": exchange.waited_s,
    }


def _count(work: MiningWork, memory: int | None) -> dict[str, int]:
    if work.motifs is not None:
        return mining.motif_census(
            work.graph,
            work.motifs,
            induced=work.induced,
            num_threads=work.threads,
            memory=memory,
        )
    return mining.count_all(
        work.graph,
        work.patterns,
        induced=work.induced,
        labels=work.labels,
        num_threads=work.threads,
        memory=memory,
        disconnected=work.disconnected,
    )


def _all(exchange: Exchange, words: str, sums: Counts) -> Counts:
    """Return the sums of all workers, one below the other.

    Raises:
        ClusterError: another worker is at another sum.
    """
    told = exchange.collect((words, sums))
    if any(theirs != words for theirs, _ in told):
        raise ClusterError(
            f"workers do not count the same: here {words!r}, elsewhere "
            f"{sorted({theirs for theirs, _ in told} - {words})}; see that all machines "
            "have the same version and the same store"
        )
    return np.concatenate([theirs for _, theirs in told])


@contextmanager
def share_of_memory(what: str, neighbors: int | None) -> Iterator[int]:
    """Give a worker's share of the memory of its machine, in bytes.

    Args:
        what: What the worker does, for the message.
        neighbors: Workers on the machine; as many as it has cores by default.

    Raises:
        ClusterError: what is done in the context does not fit.
    """
    memory = resident_bytes() + available_bytes() // (neighbors or num_cores())
    try:
        yield memory
    except BudgetError as err:
        raise ClusterError(
            f"{what} needs {format_bytes(err.smallest)} of memory in every worker, whose "
            f"share of its machine is {format_bytes(memory)}; take fewer workers to a "
            "machine, or machines with more memory"
        ) from err
