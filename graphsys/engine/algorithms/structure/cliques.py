"""Sets of nodes each of which knows all others: the maximal cliques of a graph."""

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.threads import ThreadTeam, run_parallel
from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    NativeOptions,
    listed,
)
from graphsys.engine.algorithms.arguments import require_count
from graphsys.engine.algorithms.k_core import core_numbers
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import balanced_chunks
from graphsys.kernels.cpu.algorithms.structure.cliques import list_cliques, sort_cliques
from graphsys.kernels.cpu.mining.cliques import prefix_lengths
from graphsys.kernels.cpu.mining.simple import renumber_rows
from graphsys.storage.scratch import ScratchArrays

Found = tuple[int, npt.NDArray[Any], npt.NDArray[np.int64]]
_MEMBER_BYTES = 28
_SAMPLED = 64
"""Chunks of numbers in which cliques are counted for a sample."""


def _clique_needs(facts: Facts) -> Need:
    search = _CliqueSearch(facts.topology.placed(ScratchArrays().zeros), facts.threads)
    fewest = facts.options.get("min_size") or 1
    members = search.count(fewest, in_sample=not facts.is_stated)
    index = 8 if facts.nodes > np.iinfo(np.int32).max else 4
    per_node = 56 + 4 * facts.threads + facts.ranked
    searching = facts.threads * search.bytes_of_thread()
    found = members * (_MEMBER_BYTES + facts.id_bytes)
    return Need(
        simple=True,
        bytes=per_node * facts.nodes + searching + found,
        entries=index * facts.simple_entries,
    )


@listed(needs=_clique_needs, answers=True, example=Example(largest=12))
def maximal_cliques(
    graph: GraphLike, *, min_size: int = 1, **options: Unpack[NativeOptions]
) -> Result:
    """Sets of nodes that all know each other, which no other node can join.

    Direction, loops and repeated edges do not count. There may be many more of them than
    nodes: 3^(N/3) at worst.

    Args:
        graph: An open graph, its path, or edges in memory.
        min_size: Leave out cliques of fewer nodes.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        A row per node and clique: ``id``, and ``value``: the clique's number, int64, from 0
        on; clique after clique, the largest first, the nodes of each by id. ``result``:
        the number of cliques.

    Raises:
        ConfigError: ``min_size`` is no number from 1 on.

    Complexity:
        O(D N 3^(D/3)) time at worst, D the largest core number; in practice as long as
        there are cliques. 4 bytes an entry, 60 a node, and the rows.

    References:
        Bron, Kerbosch, "Algorithm 457: finding all cliques of an undirected graph", CACM
        16(9), 1973. Eppstein, Loeffler, Strash, "Listing all maximal cliques in sparse
        graphs in near-optimal time", ISAAC 2010.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2, 2], [1, 2, 0, 3], num_nodes=4)
        >>> found = gs.algorithms.maximal_cliques(graph).table
        >>> found["id"].to_pylist(), found["value"].to_pylist()
        ([0, 1, 2, 2, 3], [0, 0, 0, 1, 1])
    """
    began = time.perf_counter()
    require_count("min_size", min_size)
    topology = Topology.of(graph)
    search = _CliqueSearch(topology, options.get("num_threads"))
    members, sizes = search.run(min_size)
    numbers = np.repeat(np.arange(len(sizes)), sizes)
    return Result(
        source=lambda: pa.table({"id": topology.ids(members), "value": numbers}),
        algorithm="maximal_cliques",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=len(sizes),
    )


class _CliqueSearch:
    """The simple graph with its dense parts first, and the cliques found in it.

    Core numbers, degrees and ids decide the order, and so which clique is found when.
    """

    def __init__(self, topology: Topology, num_threads: int | None) -> None:
        self._topology, self._num_threads = topology, num_threads
        rows, rank = topology.simple_in_place(), topology.rank
        degrees = rows.degrees()
        cores, _ = core_numbers(rows, num_threads)
        # np.lexsort is stable: without ranks numbers decide
        nodes = np.lexsort((*([] if rank is None else [rank]), -degrees, -cores))
        del cores
        label = np.empty(len(nodes), dtype=rows.indices.dtype)
        label[nodes] = np.arange(len(nodes))
        self._indptr = np.zeros(len(nodes) + 1, dtype=np.int64)
        np.cumsum(degrees[nodes], out=self._indptr[1:])
        self._indices = topology.allocate(int(self._indptr[-1]), label.dtype)
        run_parallel(
            lambda ends: renumber_rows(
                *ends,
                rows.begins,
                rows.indices,
                nodes,
                label,
                self._indptr,
                self._indices,
            ),
            self._chunks(),
            num_threads,
        )
        self._smaller = degrees
        prefix_lengths(self._indptr, self._indices, self._smaller)
        self._ranks = nodes if rank is None else rank[nodes]

    def run(self, fewest: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the nodes of clique after clique, and the size of each."""
        found: dict[int, Found] = {}
        self._visit(fewest, self._chunks(), found.__setitem__, is_kept=True)
        parts = [found.pop(low) for low in sorted(found)]
        none = self._indices[:0]
        members = np.concatenate([none, *(part[1] for part in parts)])
        sizes = np.concatenate([self._indptr[:0], *(part[2] for part in parts)])
        del parts
        order = np.argsort(-sizes, kind="stable")
        ordered = np.empty(len(members), dtype=self._ranks.dtype)
        sort_cliques(sizes, order, self._ranks, members, ordered)
        by_rank = self._topology.by_rank
        return ordered if by_rank is None else by_rank[ordered], sizes[order]

    def count(self, fewest: int, *, in_sample: bool) -> int:
        """Return how many members the cliques have in all; takes no memory.

        Args:
            fewest: Nodes that a clique has at least.
            in_sample: Whether to count in one of so many chunks only, in a sixteenth of
                the time where there are many, and to add a tenth to what that tells.
        """
        chunks = self._chunks()
        step = max(len(chunks) // _SAMPLED, 1) if in_sample else 1
        chosen, sums = chunks[step // 2 :: step], dict[int, int]()

        def add(low: int, found: Found) -> None:
            sums[low] = found[0]

        self._visit(fewest, chosen, add, is_kept=False)
        found = sum(sums.values())
        return found if step == 1 else found * len(chunks) * 11 // (len(chosen) * 10)

    def bytes_of_thread(self) -> int:
        """Return what a search holds besides cliques: bits of rows, and of each depth."""
        most, words = int(self._smaller.max(initial=0)), (self._smaller + 63) >> 6
        rows = int((words * np.diff(self._indptr)).max(initial=0))
        depths = 3 * (most + 1) * ((most + 63) >> 6)
        return 8 * (rows + depths) + 4 * len(self._smaller)

    def _chunks(self) -> list[tuple[int, int]]:
        """Cut the numbers into pieces of about as many entries each."""
        bounds = balanced_chunks(self._indptr, 1024, align=1)
        return list(itertools.pairwise(bounds.tolist()))

    def _visit(
        self,
        fewest: int,
        chosen: list[tuple[int, int]],
        take: Callable[[int, Found], None],
        *,
        is_kept: bool,
    ) -> None:
        """Search chunk by chunk; each is taken with its first number."""
        with ThreadTeam(self._num_threads) as team:
            team.run(partial(self._take_chunks, is_kept), iter(chosen), fewest, take)

    def _take_chunks(
        self,
        is_kept: bool,
        thread: int,
        chunks: Iterator[tuple[int, int]],
        fewest: int,
        take: Callable[[int, Found], None],
    ) -> None:
        place = np.zeros(len(self._smaller), dtype=np.int32)
        rows = self._indptr, self._indices, self._smaller
        for low, high in chunks:
            take(low, list_cliques(low, high, *rows, fewest, is_kept, place))
