"""EdgeBank: pairs that were there come again."""

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


class EdgeBank(StreamModel):
    """Score 1 for a pair that was there before, else 0; nothing is learned.

    With ``time_window`` a pair counts that was there in that time before the batch
    (EdgeBank-tw), as a share of the time that the training events span; with 0 any.
    Edges without direction count both ways.

    References:
        Poursafaei et al., "Towards better evaluation for dynamic link prediction",
        NeurIPS 2022 Datasets and Benchmarks, section 4.
    """

    is_trained = False

    def __init__(self, config: GnnConfig, events: EventStream, decoder: Any) -> None:
        super().__init__(config, events)
        self._pairs = recent_rows(
            events.src,
            events.dst,
            events.time,
            events.num_nodes,
            is_both_ways=not events.is_directed and events.src_type == events.dst_type,
        )

    def scores(self, sources: Ints, times: Ints, before: int) -> torch.Tensor:
        """Return the scores of sources with all second ends, float64 ``[n, num_dst]``."""
        pairs, window = self._pairs, self.config.time_window
        known, places = np.unique(sources, return_inverse=True)
        ends = pairs.ends(known, np.full(len(known), before))
        begins = pairs.indptr[known]
        if window:
            first = before - int(window * self.events.train_span)
            begins = pairs.ends(known, np.full(len(known), first))
        found = np.zeros((len(known), self.events.num_dst))
        for row, begin, end in zip(found, begins, ends, strict=True):
            row[pairs.others[begin:end] - self.events.first_dst] = 1
        return torch.from_numpy(found[places])


register(
    ModelSpec(
        name="edgebank",
        make_stream=EdgeBank,
        is_of_links=True,
        reads_fanouts=False,
        device_gap=lambda config: ("model", "all others"),
    )
)
