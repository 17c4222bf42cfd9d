"""Recency: who was written to last is written to next."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.events import EventStream
from graphsys.gnn.model_spec import ModelSpec, register
from graphsys.gnn.models.stream import StreamModel
from graphsys.sampling import recent_rows

Ints = npt.NDArray[np.int64]


class Recency(StreamModel):
    """Second ends by the time since the source's last event with them, then by any's.

    A pair that was there scores above all that were not, the later the higher (local
    recency); the others score by the last event of the second end with anybody (global
    recency), and those without one score 0. Nothing is learned. Edges without direction
    count both ways.

    References:
        Cornell et al., "On the power of heuristics in temporal graphs", arXiv 2502.04910,
        2025: local and global recency, the one before the other.
    """

    is_trained = False

    def __init__(self, config: GnnConfig, events: EventStream, decoder: Any) -> None:
        super().__init__(config, events)
        is_both = not events.is_directed and events.src_type == events.dst_type
        sizes = events.num_nodes
        self._pairs = recent_rows(
            events.src, events.dst, events.time, sizes, is_both_ways=is_both
        )
        self._ends = recent_rows(
            events.dst, events.src, events.time, sizes, is_both_ways=is_both
        )
        # places of times in their order: exact in float64, as times in ns are not
        self._ticks = np.unique(events.time, return_inverse=True)[1].ravel() + 1.0

    def scores(self, sources: Ints, times: Ints, before: int) -> torch.Tensor:
        """Return the scores of sources with all second ends, float64 ``[n, num_dst]``."""
        events, pairs, ticks = self.events, self._pairs, self._ticks
        known, places = np.unique(sources, return_inverse=True)
        nodes = np.arange(events.first_dst, events.first_dst + events.num_dst)
        last = self._ends.latest(nodes, np.full(len(nodes), before), 1)[:, 0]
        overall = np.where(last < 0, 0.0, ticks[self._ends.events[np.maximum(last, 0)]])
        found = np.tile(overall, (len(known), 1))
        ends = pairs.ends(known, np.full(len(known), before))
        for row, begin, end in zip(found, pairs.indptr[known], ends, strict=True):
            # of equal second ends the last, the latest one, is kept
            others = pairs.others[begin:end] - events.first_dst
            row[others] = len(ticks) + ticks[pairs.events[begin:end]]
        return torch.from_numpy(found[places])


register(
    ModelSpec(
        name="recency",
        make_stream=Recency,
        is_of_links=True,
        reads_fanouts=False,
        device_gap=lambda config: ("model", "all others"),
    )
)
