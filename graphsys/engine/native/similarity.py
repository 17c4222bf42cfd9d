"""Similarity of nodes by their common neighbors: Jaccard and Adamic-Adar."""

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.core.threads import ThreadTeam
from graphsys.engine.native.arguments import require, require_count
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.algorithms.similarity import pair_scores, rows_within_two_hops

Pairs = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.float64]]
_UNIT_BITS, _SUM_BITS = 40, 62
"""Fractions of a score, and what a sum over a row may take of 64."""
_FEW_PAIRS = 2048
_SAMPLED = 64
"""Chunks of rows in which pairs are counted for a sample."""


def jaccard(
    topology: Topology,
    *,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    threshold: float = 0.0,
    top_k: int | None = None,
    num_threads: int | None = None,
) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.jaccard` tells of."""
    return jaccard_search(topology, num_threads).run(pairs, threshold, top_k)


def adamic_adar(
    topology: Topology,
    *,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    threshold: float = 0.0,
    top_k: int | None = None,
    num_threads: int | None = None,
) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.adamic_adar` tells of."""
    return adamic_adar_search(topology, num_threads).run(pairs, threshold, top_k)


class PairSearch:
    """What both scores share: the rows, and what each common neighbor adds."""

    def __init__(
        self,
        topology: Topology,
        name: str,
        gains: npt.NDArray[np.int64],
        *,
        unit: float = 0.0,
        num_threads: int | None,
    ) -> None:
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
                threshold,
                keep,
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
