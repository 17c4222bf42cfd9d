"""TGN: memory of nodes, and attention over their latest neighbors."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.events import EventStream
from graphsys.gnn.model_spec import ModelSpec, register
from graphsys.gnn.models.node_memory import MemoryModel, TimeEncoding

Ints = npt.NDArray[np.int64]


class TemporalAttention(nn.Module):
    """Rows of nodes of their own and their latest neighbors', by heads of attention.

    Queries are ``[h, time 0]``, keys and values linear in ``[h of the neighbor, time since
    the event, its features]``; the output is an MLP's of what the heads found and the own
    row. Here the neighbor's row is added to its value, and the own row to the output, so
    that who was met lately need not be learned to be found; and each place in the order of
    recency has a learned addend of its scores, that falls at first.

    Args:
        dim: Length of all rows, and of times' features.
        num_features: Features of an event.
        heads: They share ``dim``.
        fanout: Neighbors of a node at most.
        dropout: Chance of a neighbor to be left out in training.
    """

    def __init__(
        self, dim: int, num_features: int, heads: int, fanout: int, dropout: float
    ) -> None:
        super().__init__()
        falling = -torch.arange(fanout, dtype=torch.float32)
        self.place = nn.Parameter(falling[:, None].repeat(1, heads))
        self._heads, self._dropout = heads, dropout
        self.query = nn.Linear(2 * dim, dim)
        self.key = nn.Linear(2 * dim + num_features, dim)
        self.value = nn.Linear(2 * dim + num_features, dim)
        self.merge = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(
        self,
        own: torch.Tensor,
        now: torch.Tensor,
        others: torch.Tensor,
        is_there: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rows ``[n, dim]``, and what the heads found ``[n, dim]``.

        Args:
            own: Rows of the nodes ``[n, dim]``.
            now: Features of no time ``[dim]``.
            others: Rows, times and features of neighbors ``[n, k, 2 * dim + F]``.
            is_there: Which of them there are, bool ``[n, k]``.
        """
        shape = (len(own), -1, self._heads, own.shape[1] // self._heads)
        query = self.query(torch.cat([own, now.expand_as(own)], dim=1)).view(shape)
        key, value = self.key(others).view(shape), self.value(others).view(shape)
        scores = (query * key).sum(dim=3) * shape[3] ** -0.5 + self.place  # [n, k, heads]
        scores = scores.masked_fill(~is_there[..., None], -1e9)
        shares = torch.softmax(scores, dim=1) * is_there[..., None]
        shares = functional.dropout(shares, self._dropout, self.training)
        value = value + others[..., : own.shape[1]].reshape(shape)
        found = (shares[..., None] * value).sum(dim=1).flatten(1)
        merged: torch.Tensor = self.merge(torch.cat([found, own], dim=1))
        return merged + own, found


class Tgn(MemoryModel):
    """Memory by a GRU, messages with encoded times, ``layers`` of temporal attention.

    A row begins as memory and learned row added; a layer attends to the latest
    ``fanouts`` neighbors, at either end of their events. What is compared with second ends
    is linear in the first end's row and in what the last layer's heads found.

    References:
        Rossi et al., "Temporal graph networks for deep learning on dynamic graphs", ICML
        2020 workshop: identity messages, the last of a batch, GRU, graph attention.
    """

    def __init__(self, config: GnnConfig, events: EventStream, decoder: Any) -> None:
        super().__init__(config, events, decoder)
        dim, num_features = config.dim, events.features.shape[1]
        self.time = TimeEncoding(dim)
        self.met = nn.Linear(dim, dim, bias=False)
        nn.init.eye_(self.met.weight)
        self.updater = nn.GRUCell(self.message_width + dim, dim)
        self.attention = nn.ModuleList(
            TemporalAttention(
                dim, num_features, config.heads, fanout, config.attention_dropout
            )
            for fanout in reversed(config.hop_fanouts)
        )

    def update(
        self, message: torch.Tensor, passed: torch.Tensor, memory: torch.Tensor
    ) -> torch.Tensor:
        """Return memory after messages, with the time that passed encoded."""
        found: torch.Tensor = self.updater(
            torch.cat([message, self.time(passed)], dim=1), memory
        )
        return found

    def rows_at(self, nodes: Ints, times: Ints, before: int) -> torch.Tensor:
        """Return the rows of nodes at times, from events before a time."""
        return self._layer(self.config.layers, nodes, times, before)[0]

    def queries(self, sources: Ints, times: Ints, before: int) -> torch.Tensor:
        """Return what is compared with the rows of second ends, float32 ``[n, dim]``."""
        rows, found = self._layer(self.config.layers, sources, times, before)
        asked: torch.Tensor = self.asking(rows) + self.met(found)
        return asked

    def _layer(
        self, depth: int, nodes: Ints, times: Ints, before: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rows after so many layers and what the last heads found, ``[n, dim]``."""
        if not depth:
            unique, places = np.unique(nodes, return_inverse=True)
            chosen = torch.from_numpy(unique)
            found = self.current(chosen)[0] + self.own(chosen)
            found = functional.dropout(found, self.config.dropout, self.training)
            found = found.index_select(0, torch.from_numpy(places))
            return found, found
        # the hop next to the seeds is the last layer's, and the first of the fanouts
        rows, fanout = self.events.rows, self.config.hop_fanouts[-depth]
        entries = rows.latest(nodes, np.full(len(nodes), before), fanout)
        is_there, entries = entries >= 0, np.maximum(entries, 0)
        others = np.where(is_there, rows.others[entries], nodes[:, None])
        wanted, places = np.unique(
            np.concatenate([nodes, others.ravel()]), return_inverse=True
        )
        below, _ = self._layer(depth - 1, wanted, np.full(len(wanted), before), before)
        found = below.index_select(0, torch.from_numpy(places))
        since = self._share(torch.from_numpy(times[:, None] - rows.times[entries]))
        features = self.events.features[rows.events[entries]]
        neighbors = torch.cat(
            [
                found[len(nodes) :].view(*entries.shape, -1),
                self.time(since),
                torch.from_numpy(features),
            ],
            dim=2,
        )
        attended: tuple[torch.Tensor, torch.Tensor] = self.attention[depth - 1](
            found[: len(nodes)],
            self.time(torch.zeros(())),
            neighbors,
            torch.from_numpy(is_there),
        )
        return attended


register(
    ModelSpec(
        name="tgn",
        make_stream=Tgn,
        has_heads=True,
        is_of_links=True,
        device_gap=lambda config: ("model", "all others"),
    )
)
