"""Layer-wise importance sampling: all nodes of a hop read the same few sources."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.rng import draw_key
from graphsys.kernels.cpu.sampling.layer_entries import keep_sources
from graphsys.sampling.adjacency import PartitionedCsr
from graphsys.sampling.blocks import Buffers
from graphsys.sampling.multi_hop import Draw, Frontier, HopSampler
from graphsys.sampling.neighbors import ALL
from graphsys.sampling.sample_builder import Growth

Floats = npt.NDArray[np.float64]


class LayerSampler(HopSampler):
    """Samples so many sources of each hop and relation, whatever its rows are.

    A source u is kept with chance ``p_u = min(1, c s_u)``, ``s_u`` the root of the sum
    over rows v that name it of ``1 / d_v**2``; c makes ``sum_u p_u`` the wanted number.
    An entry has the weight ``1 / (d_v p_u)``, so that a row's sum of weights times rows of
    sources is the mean over its neighbors, on average over draws. Among all chances with
    that sum these have the least variance, summed over the rows of a hop, as long as
    nothing is known of the sources' rows.

    So a sample grows with the number of hops, not with its power. Sources are drawn
    independently: their number varies around the wanted one. All rows of a hop are read.

    Args:
        rows: The relations.
        counts: Sources per hop and relation, the hop next to the seeds first; -1: all.
        frontier: ``all`` or ``new``; see :class:`HopSampler`.
        seed: Of all draws.

    Raises:
        ConfigError: Counts out of range.

    References:
        Zhu et al., "AliGraph: a comprehensive graph neural network platform", VLDB 2019,
        section 4.2. Chen et al., "FastGCN", ICLR 2018, and Zou et al., "LADIES", NeurIPS
        2019, for chances by the columns of the adjacency matrix; they draw with
        replacement, here it is Poisson sampling.
    """

    def __init__(
        self,
        rows: Sequence[PartitionedCsr],
        counts: Sequence[int],
        *,
        frontier: Frontier = "all",
        seed: int = 0,
    ) -> None:
        for count in counts:
            if count < 1 and count != ALL:
                raise ConfigError(f"counts: got {count}, expected an int >= 1, or -1")
        super().__init__(rows, len(counts), frontier=frontier, seed=seed)
        self.counts = tuple(counts)
        self._draws_places = False

    def _pick(self, growth: Growth, rows: PartitionedCsr, at: Draw) -> int:
        hop, key, (low, high), name, row = at
        whole = self._read_whole(growth, rows, at)
        found, end = whole.num_sources, int(whole.indptr[row + high - low])
        kept: int = keep_sources(
            draw_key(self.seed, "layers", *key, hop, rows.neighbor_type),
            found,
            chances_of(whole.weights[:found], self.counts[hop]),
            whole.indptr,
            row,
            high - low,
            whole.slots,
            whole.entries,
            whole.neighbors,
            whole.sources,
            growth.buffers.room(("weight", name), end, np.float32),
        )
        return kept

    def _extras(self, buffers: Buffers, name: Any, end: int) -> dict[str, Any]:
        return {
            "edge": buffers.room(("edge", name), 0, np.int64)[:end],
            "weight": buffers.room(("weight", name), 0, np.float32)[:end],
        }


def chances_of(weights: Floats, count: int) -> Floats:
    """Return ``min(1, c sqrt(w))`` with the sum ``count``; all 1 where fewer are there.

    Examples:
        >>> chances_of(np.array([100.0, 1.0, 1.0]), 2)
        array([1. , 0.5, 0.5])
    """
    chances = np.ones(len(weights))
    if count < 0 or count >= len(weights):
        return chances
    roots = np.sqrt(weights)
    is_open = np.ones(len(weights), dtype=bool)
    while True:  # those that would be above 1 are certain, and the others share the rest
        rest = count - np.count_nonzero(~is_open)
        chances[is_open] = roots[is_open] * (rest / roots[is_open].sum())
        above = is_open & (chances >= 1)
        if not above.any():
            return chances
        chances[above], is_open[above] = 1.0, False
