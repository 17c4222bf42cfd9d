"""Rows of hot nodes in memory: which ones, and how often they were there."""

import threading
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.memory import format_bytes
from graphsys.core.threads import ThreadTeam
from graphsys.kernels.cpu.sampling.cached_rows import (
    FIXED,
    LRU,
    SIEVE,
    collect_counts,
    read_cached,
    spread_counts,
    take_missing,
)
from graphsys.sampling.adjacency import PartitionedCsr
from graphsys.sampling.features import DenseFeatures

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Policy = Literal["degree", "importance", "lru", "sieve"]
_KINDS = {"lru": LRU, "sieve": SIEVE}
_PLACE_BYTES = 17  # owner, links and mark of a place
_AT_A_TIME = 1 << 14


class CachedFeatures:
    """Features of nodes, some of them in memory; the others are gathered as ever.

    ``degree`` and ``importance`` choose once, by ``scores``, the nodes that are asked for
    most; ``lru`` and ``sieve`` keep what was asked for lately, one gathering at a time.

    Args:
        rows: Where the features are.
        policy: Who is kept.
        memory: Bytes for the cache; 4 bytes per node of the graph are among them.
        scores: For ``degree`` and ``importance``: the larger, the sooner kept; nodes of
            negative ones never are ``[N]``.

    Attributes:
        capacity: Rows that the cache holds at most.
        num_asked: Rows asked for so far.
        num_found: Rows that were in the cache.

    Raises:
        ConfigError: An unknown policy, too little memory, or scores that do not fit.
    """

    def __init__(
        self, rows: DenseFeatures, policy: Policy, memory: int, scores: Scores | None = None
    ) -> None:
        if policy not in get_args(Policy):
            known = ", ".join(get_args(Policy))
            raise ConfigError(f"cache: got {policy!r}, expected one of {known}")
        self.rows, self.policy = rows, policy
        self._kind = _KINDS.get(policy, FIXED)
        row_bytes = 4 * rows.dim + _PLACE_BYTES
        room = (memory - 4 * rows.num_nodes) // row_bytes
        if room < 1:
            least = format_bytes(4 * rows.num_nodes + row_bytes)
            raise ConfigError(
                f"cache_memory: got {format_bytes(memory)} for rows of type "
                f"{rows.node_type!r}, expected {least} or more: 4 bytes per node and a row"
            )
        self.capacity = min(room, rows.num_nodes)
        self.num_asked = self.num_found = 0
        self._slots = np.full(rows.num_nodes, -1, dtype=np.int32)
        self._owners = np.zeros(self.capacity, dtype=np.int64)
        self._cache = np.empty((self.capacity, rows.dim), dtype=np.float32)
        self._links = np.full((2, self.capacity), -1, dtype=np.int32)
        self._marks = np.zeros(self.capacity, dtype=np.uint8)
        self._state = np.array([-1, -1, -1, 0], dtype=np.int64)
        self._lock = threading.Lock()
        if self._kind == FIXED:
            self._fill(scores)

    @property
    def dim(self) -> int:
        """Columns of all features."""
        return self.rows.dim

    @property
    def nbytes(self) -> int:
        """Bytes that the cache takes."""
        arrays = (self._slots, self._owners, self._cache, self._links, self._marks)
        return sum(array.nbytes for array in arrays)

    @property
    def hit_rate(self) -> float:
        """Share of the rows asked for that were in the cache."""
        return self.num_found / self.num_asked if self.num_asked else 0.0

    def gather(
        self, nodes: Ints, out: Floats | None = None, team: ThreadTeam | None = None
    ) -> Floats:
        """Return the rows of nodes; see :meth:`FeatureTable.gather`."""
        nodes = np.ascontiguousarray(nodes, dtype=np.int64)
        self.rows.check(nodes, out)
        if out is None:
            out = np.empty((len(nodes), self.dim), dtype=np.float32)
        out = out[: len(nodes)]
        if self._kind == FIXED:
            count = self._gather(nodes, out, team)
        with self._lock:
            if self._kind != FIXED:
                count = self._gather(nodes, out, team)
            self.num_asked += len(nodes)
            self.num_found += len(nodes) - count
        return out

    def _gather(self, nodes: Ints, out: Floats, team: ThreadTeam | None) -> int:
        missing = np.empty(len(nodes), dtype=np.int64)
        count = read_cached(
            self._kind,
            nodes,
            self._slots,
            self._cache,
            self._links,
            self._marks,
            self._state,
            out,
            missing,
        )
        missing = missing[:count]
        found = self.rows.gather(nodes[missing], team=team)
        take_missing(
            self._kind,
            nodes,
            missing,
            found,
            self._slots,
            self._owners,
            self._cache,
            self._links,
            self._marks,
            self._state,
            out,
        )
        return count

    def _fill(self, scores: Scores | None) -> None:
        if scores is None or len(scores) != self.rows.num_nodes:
            got = "none" if scores is None else f"{len(scores)}"
            raise ConfigError(
                f"scores: got {got}, expected {self.rows.num_nodes}, one for each node of "
                f"type {self.rows.node_type!r}"
            )
        best = np.argsort(-scores, kind="stable")[: self.capacity]
        best = best[scores[best] >= 0]
        best.sort()  # read the file in order
        for begin in range(0, len(best), _AT_A_TIME):
            chosen = best[begin : begin + _AT_A_TIME]
            self.rows.gather(chosen, self._cache[begin : begin + len(chosen)])
        self._slots[best] = np.arange(len(best), dtype=np.int32)


def degree_scores(rows: Sequence[PartitionedCsr], node_type: str) -> Scores:
    """Return how many rows name each node of a type: how often samples reach it."""
    return _paths(rows, 1, is_inward=True)[node_type]


def importance_scores(
    rows: Sequence[PartitionedCsr], node_type: str, hops: int = 1
) -> Scores:
    """Return AliGraph's importance: who asks for a node, over whom it asks for.

    The paper counts nodes within k hops; here walks of k steps are counted, which needs no
    set per node. A node that asks for none counts as if it asked for one.

    Args:
        rows: The relations that messages travel along.
        node_type: The node type.
        hops: Steps, k.

    References:
        Zhu et al., "AliGraph: a comprehensive graph neural network platform", VLDB 2019.
    """
    inward = _paths(rows, hops, is_inward=True)[node_type]
    outward = _paths(rows, hops, is_inward=False)[node_type]
    return inward / np.maximum(outward, 1)


def _paths(
    rows: Sequence[PartitionedCsr], hops: int, *, is_inward: bool
) -> Mapping[str, Scores]:
    """Count the walks of so many steps that end, or begin, at each node."""
    sizes = {each.node_type: each.num_nodes for each in rows}
    sizes |= {each.neighbor_type: each.num_neighbors for each in rows}
    counts = {name: np.ones(size) for name, size in sizes.items()}
    for _ in range(hops):
        after = {name: np.zeros(size) for name, size in sizes.items()}
        for each in rows:
            for part, index in enumerate(each.indexes):
                own = slice(each.offsets[part], each.offsets[part + 1])
                if is_inward:
                    values = counts[each.node_type][own]
                    target = after[each.neighbor_type]
                    spread_counts(index.indptr, index.indices, values, target)
                else:
                    values = counts[each.neighbor_type]
                    target = after[each.node_type][own]
                    collect_counts(index.indptr, index.indices, values, target)
        counts = after
    return counts
