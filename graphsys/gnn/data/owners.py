"""Nodes that belong to processes: whose they are, and rows that their owners give."""

import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from graphsys.core.threads import ThreadTeam
from graphsys.sampling.features import DenseFeatures, FeatureTable
from graphsys.sampling.multi_hop import HopSampler
from graphsys.sampling.row_cache import CachedFeatures

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


class Owners(Protocol):
    """Which process has which nodes, and how the others get their rows.

    Attributes:
        rank: Number of this process.
    """

    rank: int

    def owner_of(self, node_type: str, nodes: Ints) -> Ints:
        """Return the process that each node belongs to."""

    def parts(self, node_type: str) -> Sequence[int]:
        """Return the partitions of this process."""

    def sampler(self, sampler: HopSampler) -> HopSampler:
        """Return a sampler that draws the same, each row where its node belongs."""

    def features(self, rows: FeatureTable) -> DenseFeatures:
        """Return rows that are read where their nodes belong."""

    def figures(self) -> Mapping[str, int]:
        """Return what was read here, and what others sent."""


class PartitionedFeatures:
    """Features of nodes: own ones from the store, those of others from a cache.

    Args:
        rows: Of the store.
        far: Of the owners, or a cache before them.
        owners: Whose nodes are whose.

    Attributes:
        num_asked: Rows asked for so far.
        num_far: Rows of nodes of others among them.
    """

    def __init__(
        self, rows: FeatureTable, far: DenseFeatures | CachedFeatures, owners: Owners
    ) -> None:
        self._rows, self._far, self._owners = rows, far, owners
        self.num_asked = self.num_far = 0
        self._lock = threading.Lock()

    def gather(
        self, nodes: Ints, out: Floats | None = None, team: ThreadTeam | None = None
    ) -> Floats:
        """Return the rows of nodes; see :meth:`FeatureTable.gather`."""
        self._rows.check(nodes, out)
        if out is None:
            out = np.empty((len(nodes), self._rows.dim), np.float32)
        is_own = self._owners.owner_of(self._rows.node_type, nodes) == self._owners.rank
        out = out[: len(nodes)]
        far = nodes[~is_own]
        if len(far):
            out[~is_own] = self._far.gather(far, team=team)
        out[is_own] = self._rows.gather(nodes[is_own], team=team)
        with self._lock:
            self.num_asked += len(nodes)
            self.num_far += len(far)
        return out
