"""JODIE: memory of nodes, sent on by the time that has passed since."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.events import EventStream
from graphsys.gnn.model_spec import ModelSpec, register
from graphsys.gnn.models.node_memory import MemoryModel

Ints = npt.NDArray[np.int64]
_WIDTH = 128  # up to which a step of Adam moves all weights by the rate as it is


class Jodie(MemoryModel):
    """Rows ``(1 + t w) * memory + learned row``, with the time ``t`` since memory's event.

    What is compared with second ends is linear in the first end's row and in that of whom
    it met last. Here one RNN updates the memory of both ends, the decoder makes scores (the
    paper takes the nearest row), and events come in batches of time (its t-batches are a
    way to the same order).

    A step of Adam moves each weight by the learning rate, so a sum over ``dim`` inputs by
    ``dim`` times that, and memory feeds on itself: at 256 the preset's rate let it saturate
    and the loss rise from 6 to 27 within an epoch. Beyond 128 inputs are therefore
    multiplied by ``128 / dim`` and first weights divided by it: nothing changes at first,
    and a step moves sums as it does at 128.

    References:
        Kumar, Zhang, Leskovec, "Predicting dynamic embedding trajectory in temporal
        interaction networks", KDD 2019, equations 1 to 3. Steps by width: Yang and Hu,
        "Tensor programs IV", ICML 2021.
    """

    def __init__(self, config: GnnConfig, events: EventStream, decoder: Any) -> None:
        super().__init__(config, events, decoder)
        self.updater = nn.RNNCell(self.message_width + 1, config.dim)
        self.projection = nn.Parameter(torch.zeros(config.dim))
        self.last = nn.Linear(config.dim, config.dim, bias=False)
        nn.init.eye_(self.last.weight)
        self._part = min(1.0, _WIDTH / config.dim)
        with torch.no_grad():
            for weight in (
                self.updater.weight_ih,
                self.updater.weight_hh,
                self.asking.weight,
                self.last.weight,
            ):
                weight /= self._part

    def update(
        self, message: torch.Tensor, passed: torch.Tensor, memory: torch.Tensor
    ) -> torch.Tensor:
        """Return memory after messages and the time that passed."""
        found: torch.Tensor = self.updater(
            torch.cat([message, passed[:, None]], dim=1) * self._part, memory * self._part
        )
        return found

    def queries(self, sources: Ints, times: Ints, before: int) -> torch.Tensor:
        """Return what is compared with the rows of second ends, float32 ``[n, dim]``."""
        rows = self.events.rows
        last = rows.latest(sources, np.full(len(sources), before), 1)[:, 0]
        others = np.where(last < 0, sources, rows.others[np.maximum(last, 0)])
        met: torch.Tensor = self.last(self.rows_at(others, times, before) * self._part)
        own = self.rows_at(sources, times, before) * self._part
        asked: torch.Tensor = self.asking(own)
        return asked + met * torch.from_numpy(last >= 0)[:, None]

    def rows_at(self, nodes: Ints, times: Ints, before: int) -> torch.Tensor:
        """Return the rows of nodes at times."""
        unique, places = np.unique(nodes, return_inverse=True)
        chosen, back = torch.from_numpy(unique), torch.from_numpy(places)
        memory, updated = self.current(chosen)
        is_known = self.has_memory[chosen] | self.has_message[chosen]
        passed = self.since(updated[back], times) * is_known[back]
        memory = memory.index_select(0, back)
        found = memory * (1 + passed[:, None] * self.projection)
        found = found + self.own(chosen).index_select(0, back)
        return functional.dropout(found, self.config.dropout, self.training)


register(
    ModelSpec(
        name="jodie",
        make_stream=Jodie,
        is_of_links=True,
        reads_fanouts=False,
        device_gap=lambda config: ("model", "all others"),
    )
)
