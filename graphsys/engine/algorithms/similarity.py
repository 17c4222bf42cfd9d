"""Similarity of nodes by common neighbors: Jaccard, Adamic-Adar, resource allocation."""

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.core.threads import ThreadTeam
from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    NativeOptions,
    listed,
)
from graphsys.engine.algorithms.arguments import require, require_count
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.algorithms.similarity import pair_scores, rows_within_two_hops
from graphsys.storage.scratch import ScratchArrays

Pairs = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.float64]]
_UNIT_BITS, _SUM_BITS = 40, 62
"""Fractions of a score, and what a sum over a row may take of 64."""
_FEW_PAIRS = 2048
_SURE_PAIRS = 1 << 16
"""Pairs up to which all that there may be are charged, uncounted."""
_PAIR_BYTES = 44
_SAMPLED = 64
"""Chunks of rows in which pairs are counted for a sample."""


@listed(
    needs=lambda facts: pair_needs(facts, jaccard_search),
    shown="largest",
    example=Example(largest=12),
)
def jaccard(
    graph: GraphLike,
    *,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    threshold: float = 0.0,
    top_k: int | None = None,
    **options: Unpack[NativeOptions],
) -> Result:
    """Pairs of nodes by the share of common ones among their neighbors.

    ``|A & B| / |A | B|`` in the simple undirected graph; 0 for two nodes without neighbors.
    Without ``pairs`` and ``top_k``, every unordered pair with a common neighbor and a score
    of at least ``threshold`` is listed once, the smaller id first.

    Args:
        graph: An open graph, its path, or edges in memory; direction, loops and
            repetitions do not count.
        pairs: Pairs of ids to score, in any number and order.
        threshold: Smallest score to list, where ``pairs`` is not given.
        top_k: List for each node (column ``id``) at most so many of the best others
            instead, best first, ties to the smaller id.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        One row per pair: ``id``, ``other``, ``value`` (float64); in the order of ``pairs``,
        else by the order of ``id``, then falling score or ``other``.

    Raises:
        ConfigError: ``pairs`` together with ``threshold`` or ``top_k``, or bad numbers.
        UnknownNameError: a node of ``pairs`` is not in the graph.

    Complexity:
        O(degrees) per pair; without pairs, the number of paths of two edges, and 8 bytes
        per node and thread besides the result.

    References:
        Liben-Nowell, Kleinberg, "The link prediction problem for social networks", 2007.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 1], [2, 2, 3], num_nodes=4)
        >>> gs.algorithms.jaccard(graph, pairs=[(0, 1)]).table["value"].to_pylist()
        [0.5]
    """
    topology = Topology.of(graph)
    return jaccard_search(topology, options.get("num_threads")).run(pairs, threshold, top_k)


@listed(
    needs=lambda facts: pair_needs(facts, adamic_adar_search),
    shown="largest",
    example=Example(largest=12),
)
def adamic_adar(
    graph: GraphLike,
    *,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    threshold: float = 0.0,
    top_k: int | None = None,
    **options: Unpack[NativeOptions],
) -> Result:
    """Pairs of nodes by common neighbors, those of low degree counting more.

    The sum of ``1 / log(degree)`` over the common neighbors in the simple undirected graph.
    Weights are rounded to 2**-40 (coarser from degrees of 2.9 million on), so that sums do
    not depend on their order.

    Args:
        graph: An open graph, its path, or edges in memory; direction, loops and
            repetitions do not count.
        pairs: Pairs of ids to score, in any number and order.
        threshold: Smallest score to list, where ``pairs`` is not given.
        top_k: List for each node (column ``id``) at most so many of the best others
            instead, best first, ties to the smaller id.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        One row per pair: ``id``, ``other``, ``value`` (float64); in the order of ``pairs``,
        else by the order of ``id``, then falling score or ``other``.

    Raises:
        ConfigError: ``pairs`` together with ``threshold`` or ``top_k``, or bad numbers; a
            pair of a node with itself that has a neighbor of degree 1: infinite.
        UnknownNameError: a node of ``pairs`` is not in the graph.

    Complexity:
        O(degrees) per pair; without pairs, the number of paths of two edges, and 8 bytes
        per node and thread besides the result.

    References:
        Adamic, Adar, "Friends and neighbors on the Web", Social Networks 25, 2003.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 1], [2, 2, 3], num_nodes=4)
        >>> done = gs.algorithms.adamic_adar(graph, pairs=[(0, 1)])
        >>> done.table["value"].to_numpy().round(3).tolist()
        [1.443]
    """
    topology = Topology.of(graph)
    return adamic_adar_search(topology, options.get("num_threads")).run(
        pairs, threshold, top_k
    )


@listed(
    needs=lambda facts: pair_needs(facts, resource_allocation_search),
    shown="largest",
    example=Example(largest=12),
)
def resource_allocation(
    graph: GraphLike,
    *,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    threshold: float = 0.0,
    top_k: int | None = None,
    **options: Unpack[NativeOptions],
) -> Result:
    """Pairs of nodes by what one can send the other through common neighbors.

    The sum of ``1 / degree`` over the common neighbors in the simple undirected graph.
    Weights are rounded to 2**-40 (coarser from degrees of 4.1 million on), so that sums do
    not depend on their order.

    Args:
        graph: An open graph, its path, or edges in memory; direction, loops and
            repetitions do not count.
        pairs: Pairs of ids to score, in any number and order.
        threshold: Smallest score to list, where ``pairs`` is not given.
        top_k: List for each node (column ``id``) at most so many of the best others
            instead, best first, ties to the smaller id.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        One row per pair: ``id``, ``other``, ``value`` (float64); in the order of ``pairs``,
        else by the order of ``id``, then falling score or ``other``.

    Raises:
        ConfigError: ``pairs`` together with ``threshold`` or ``top_k``, or bad numbers.
        UnknownNameError: a node of ``pairs`` is not in the graph.

    Complexity:
        O(degrees) per pair; without pairs, the number of paths of two edges, and 8 bytes
        per node and thread besides the result.

    References:
        Zhou, Lu, Zhang, "Predicting missing links via local information", European Physical
        Journal B 71, 2009.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 1], [2, 2, 3], num_nodes=4)
        >>> done = gs.algorithms.resource_allocation(graph, pairs=[(0, 1)])
        >>> done.table["value"].to_pylist()
        [0.5]
    """
    topology = Topology.of(graph)
    return resource_allocation_search(topology, options.get("num_threads")).run(
        pairs, threshold, top_k
    )


class PairSearch:
    """What all scores share: the rows, and what each common neighbor adds.

    Args:
        topology: The graph.
        name: The algorithm's.
        gains: What each common neighbor adds, above 0 ``[N]``.
        unit: Divide sums by this; 0: by the size of the union of both rows.
        is_chosen: Whether pairs that are found may have a node ``[N]``; None: all.
        num_threads: Threads; all cores by default.
    """

    def __init__(
        self,
        topology: Topology,
        name: str,
        gains: npt.NDArray[np.int64],
        *,
        unit: float = 0.0,
        is_chosen: npt.NDArray[np.bool_] | None = None,
        num_threads: int | None,
    ) -> None:
        self._is_chosen = np.empty(0, dtype=np.bool_) if is_chosen is None else is_chosen
        self.began = time.perf_counter()
        self.topology, self.name = topology, name
        self.gains, self.unit, self.num_threads = gains, unit, num_threads
        self.rows = topology.simple_in_place()

    def run(
        self,
        pairs: Iterable[tuple[Any, Any]] | None,
        threshold: float,
        top_k: int | None,
    ) -> Result:
        """Score pairs: those given, or all, or the best of each node."""
        require(threshold >= 0.0, "threshold", threshold, "a number >= 0")
        if top_k is not None:
            require_count("top_k", top_k)
        if pairs is not None:
            is_alone = threshold == 0.0 and top_k is None
            require(is_alone, "threshold or top_k", (threshold, top_k), "none with pairs")
            left, right, scores = self._given(pairs)
        else:
            left, right, scores = self._found(threshold, top_k)
        table = pa.table(
            {
                "id": self.topology.ids(left),
                "other": self.topology.ids(right),
                "value": scores,
            }
        )
        return Result(
            source=table,
            algorithm=self.name,
            supersteps=1,
            seconds=time.perf_counter() - self.began,
        )

    def _given(self, pairs: Iterable[tuple[Any, Any]]) -> Pairs:
        known: dict[Any, int] = {}
        numbers = []
        for pair in pairs:
            for node in pair:
                if node not in known:
                    known[node] = self.topology.number(node)
                numbers.append(known[node])
        left, right = np.array(numbers, dtype=np.int64).reshape(-1, 2).T.copy()
        self._refuse_infinite(left, right)
        return left, right, self.scores_of(left, right)

    def _refuse_infinite(self, left: npt.NDArray[Any], right: npt.NDArray[Any]) -> None:
        """Refuse Adamic-Adar scores of nodes with themselves that are infinite.

        Raises:
            ConfigError: a neighbor of such a node has degree 1, whose logarithm is 0.
        """
        if self.name != "adamic_adar":
            return
        begins, ends, indices = self.rows.begins, self.rows.ends, self.rows.indices
        for node in np.unique(left[left == right]).tolist():
            row = indices[begins[node] : ends[node]]
            alone = row[ends[row] - begins[row] == 1]
            if len(alone):
                own, other = self.topology.ids(np.array([node, alone[0]])).to_pylist()
                raise ConfigError(
                    f"the score of {own} with itself is infinite: its neighbor {other} has "
                    f"degree 1, and adds 1 / log(1); leave the pair {own}={own} out"
                )

    def scores_of(
        self, left: npt.NDArray[Any], right: npt.NDArray[Any]
    ) -> npt.NDArray[np.float64]:
        """Score pairs given by number."""
        scores = np.zeros(len(left), dtype=np.float64)
        # waking threads takes longer than a few pairs
        num_threads = 1 if len(left) < _FEW_PAIRS else self.num_threads
        with ThreadTeam(num_threads) as team:
            team.run(
                pair_scores,
                self.rows.begins,
                self.rows.ends,
                self.rows.indices,
                self.gains,
                self.unit,
                left,
                right,
                np.zeros(1, dtype=np.int64),
                scores,
            )
        return scores

    def _found(self, threshold: float, top_k: int | None) -> Pairs:
        found: dict[int, Pairs] = {}
        self._visit(threshold, top_k or 0, found.__setitem__, self._chunks())
        # the rows of chunk after chunk, then those of ids in order
        parts = [found[low] for low in sorted(found)]
        none = np.empty(0, dtype=self.rows.indices.dtype)
        left = np.concatenate([none, *(part[0] for part in parts)])
        right = np.concatenate([none, *(part[1] for part in parts)])
        scores = np.concatenate([np.empty(0), *(part[2] for part in parts)])
        rank = self.topology.rank
        rows = left if rank is None else rank[left]
        if top_k is None:
            order = np.lexsort((right if rank is None else rank[right], rows))
        else:
            order = np.argsort(rows, kind="stable")
        return left[order], right[order], scores[order]

    def count(self, threshold: float, top_k: int | None, *, in_sample: bool = False) -> int:
        """Return how many pairs :meth:`run` would list; takes as long, and no memory.

        Args:
            threshold: As for :meth:`run`.
            top_k: As for :meth:`run`.
            in_sample: Whether to count in one of so many rows only, in a sixteenth of the
                time where there are many, and to add a tenth to what that tells.
        """
        sizes: dict[int, int] = {}

        def keep(low: int, pairs: Pairs) -> None:
            sizes[low] = len(pairs[0])

        chunks = self._chunks()
        step = max(len(chunks) // _SAMPLED, 1) if in_sample else 1
        chosen = chunks[step // 2 :: step]
        self._visit(threshold, top_k or 0, keep, chosen)
        found = sum(sizes.values())
        return found if step == 1 else found * len(chunks) * 11 // (len(chosen) * 10)

    def _chunks(self) -> list[tuple[int, int]]:
        """Cut the rows into pieces of about as many entries each."""
        bounds = self.rows.chunks(1024, align=1)
        return list(itertools.pairwise(bounds.tolist()))

    def _visit(
        self,
        threshold: float,
        keep: int,
        take: Callable[[int, Pairs], None],
        chosen: list[tuple[int, int]],
    ) -> None:
        """Find pairs chunk by chunk; each is taken with the number of its first row."""
        chunks = iter(chosen)
        with ThreadTeam(self.num_threads) as team:
            team.run(self._take_chunks, chunks, threshold, keep, take)

    def _take_chunks(
        self,
        thread: int,
        chunks: Iterator[tuple[int, int]],
        threshold: float,
        keep: int,
        take: Callable[[int, Pairs], None],
    ) -> None:
        rank = self.topology.rank
        sums = np.zeros(self.rows.num_nodes, dtype=np.int64)
        touched = np.empty(self.rows.num_nodes, dtype=self.rows.indices.dtype)
        for low, high in chunks:
            pairs = rows_within_two_hops(
                self.rows.begins,
                self.rows.ends,
                self.rows.indices,
                self.gains,
                self.unit,
                self.rows.indices[:0] if rank is None else rank,
                low,
                high,
                float(threshold),
                keep,
                self._is_chosen,
                sums,
                touched,
            )
            take(low, pairs)


def jaccard_search(topology: Topology, num_threads: int | None = None) -> PairSearch:
    """Prepare Jaccard's scores."""
    gains = np.ones(topology.num_nodes, dtype=np.int64)
    return PairSearch(topology, "jaccard", gains, num_threads=num_threads)


def _unit_of(degree: npt.NDArray[np.float64], most: float) -> float:
    """Return how many parts a score of 1 has, so that no sum over a row overflows.

    Args:
        degree: Of every node ``[N]``.
        most: The most that one common neighbor adds.
    """
    largest = float(degree.max(initial=1.0)) * most
    return 2.0 ** min(_UNIT_BITS, _SUM_BITS - math.ceil(math.log2(max(largest, 1.0))))


def adamic_adar_search(topology: Topology, num_threads: int | None = None) -> PairSearch:
    """Prepare Adamic and Adar's scores."""
    degree = topology.simple_in_place().degrees().astype(np.float64)
    # a node of degree 1 is nobody's common neighbor but its neighbor's with itself, which
    # is refused
    unit = _unit_of(degree, 1.0 / math.log(2.0))
    gains = np.rint(unit / np.log(np.maximum(degree, 2.0))).astype(np.int64)
    return PairSearch(topology, "adamic_adar", gains, unit=unit, num_threads=num_threads)


def resource_allocation_search(
    topology: Topology, num_threads: int | None = None
) -> PairSearch:
    """Prepare resource allocation: each common neighbor adds one over its degree.

    Zhou, Lu, Zhang, "Predicting missing links via local information", European Physical
    Journal B 71, 2009.
    """
    degree = topology.simple_in_place().degrees().astype(np.float64)
    unit = _unit_of(degree, 1.0)
    gains = np.rint(unit / np.maximum(degree, 1.0)).astype(np.int64)
    return PairSearch(
        topology, "resource_allocation", gains, unit=unit, num_threads=num_threads
    )


def pair_needs(facts: Facts, search: Callable[..., PairSearch]) -> Need:
    """Tell what a search of pairs takes, which are counted.

    Args:
        facts: The graph, and the options ``pairs``, ``threshold`` and ``top_k``.
        search: Prepares it, of a topology and threads.
    """
    threads = (24 + 12 * facts.threads) * facts.nodes + 16 * facts.nodes
    each = _PAIR_BYTES + 3 * facts.id_bytes
    return Need(simple=True, bytes=threads + each * _num_pairs(facts, search))


def _num_pairs(facts: Facts, search: Callable[..., PairSearch]) -> int:
    """Return how many pairs are listed: counted, where no budget is stated in a sample."""
    options, nodes = facts.options, facts.nodes
    if options.get("pairs") is not None:
        return len(list(options["pairs"]))
    top_k = options.get("top_k")
    degree = facts.topology.out_degree + facts.topology.in_degree
    paths = int((degree.astype(float) ** 2).sum() / 2)
    most = min(paths, nodes * (nodes - 1) // 2, nodes * (top_k or nodes))
    if most <= _SURE_PAIRS or facts.topology.graph is None:
        return most
    topology = facts.topology.placed(ScratchArrays().zeros)
    found = search(topology, facts.threads)
    threshold = options.get("threshold") or 0.0
    return min(found.count(threshold, top_k, in_sample=not facts.is_stated), most)
