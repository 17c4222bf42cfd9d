"""TGN: memory of nodes, and attention over their latest neighbors."""

from typing import Any, NamedTuple

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
        rows: torch.Tensor,
        met: "NeighborEvents",
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rows ``[n, dim]``, and what the heads found ``[n, dim]``.

        Args:
            own: Rows of the nodes ``[n, dim]``.
            now: Features of no time ``[dim]``.
            rows: Rows of all their neighbors, each once ``[neighbors, dim]``.
            met: Who met whom, and when.
        """
        dim = own.shape[1]
        shape = (-1, self._heads, dim // self._heads)
        query = functional.linear(
            own,
            self.query.weight[:, :dim],
            self.query.bias + self.query.weight[:, dim:] @ now,
        ).view(shape)
        # what is linear in a neighbor's row is computed once for it, not for each event
        of_row = torch.cat(
            [self.key.weight[:, :dim], self.value.weight[:, :dim] + torch.eye(dim)]
        )
        of_event = torch.cat([self.key.weight[:, dim:], self.value.weight[:, dim:]])
        bias = torch.cat([self.key.bias, self.value.bias])
        both = functional.linear(met.features, of_event, bias)
        both = both + functional.linear(rows, of_row).index_select(0, met.neighbor)
        key, value = both[:, :dim].view(shape), both[:, dim:].view(shape)
        scores = (query.index_select(0, met.node) * key).sum(dim=2) * shape[2] ** -0.5
        scores = scores + self.place.index_select(0, met.place)  # [events, heads]
        places = (met.node, met.place)
        # not -inf: a node without events would have NaN shares, and NaN gradients of them
        nothing = torch.finfo(scores.dtype).min
        table = scores.new_full((len(own), len(self.place), self._heads), nothing)
        shares = torch.softmax(table.index_put(places, scores), dim=1)[places]
        shares = functional.dropout(shares, self._dropout, self.training)
        parts = (shares[..., None] * value).flatten(1)
        found = torch.zeros_like(own).index_add(0, met.node, parts)
        merged: torch.Tensor = self.merge(torch.cat([found, own], dim=1))
        return merged + own, found


class NeighborEvents(NamedTuple):
    """The latest events of nodes, in the order of the nodes.

    Attributes:
        node: Which of the nodes, int64 ``[events]``.
        place: 0 for its latest event, 1 for the one before, int64 ``[events]``.
        neighbor: Which of the neighbors' rows, int64 ``[events]``.
        features: Of the time since and of the event, float32 ``[events, dim + F]``.
    """

    node: torch.Tensor
    place: torch.Tensor
    neighbor: torch.Tensor
    features: torch.Tensor


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

    def ends(
        self, sources: Ints, times: Ints, others: Ints, before: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what asks and what is asked for, by one pass over both ends' nodes."""
        nodes = np.concatenate([sources, others])
        when = np.concatenate([times, np.full(len(others), before)])
        rows, found = self._layer(self.config.layers, nodes, when, before)
        size = len(sources)
        asked: torch.Tensor = self.asking(rows[:size]) + self.met(found[:size])
        return asked, rows[size:]

    def _layer(
        self, depth: int, nodes: Ints, times: Ints, before: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rows after so many layers and what the last heads found, ``[n, dim]``."""
        if not depth:
            unique, back = np.unique(nodes, return_inverse=True)
            chosen = torch.from_numpy(unique)
            found = self.current(chosen)[0] + self.own(chosen)
            found = functional.dropout(found, self.config.dropout, self.training)
            found = found.index_select(0, torch.from_numpy(back))
            return found, found
        # the hop next to the seeds is the last layer's, and the first of the fanouts
        rows, fanout = self.events.rows, self.config.hop_fanouts[-depth]
        entries = rows.latest(nodes, np.full(len(nodes), before), fanout)
        node, place = np.nonzero(entries >= 0)
        entries = entries[node, place]
        wanted, back = np.unique(
            np.concatenate([nodes, rows.others[entries]]), return_inverse=True
        )
        below, _ = self._layer(depth - 1, wanted, np.full(len(wanted), before), before)
        places = torch.from_numpy(back)
        since = self._share(torch.from_numpy(times[node] - rows.times[entries]))
        features = torch.from_numpy(self.events.features[rows.events[entries]])
        attended: tuple[torch.Tensor, torch.Tensor] = self.attention[depth - 1](
            below.index_select(0, places[: len(nodes)]),
            self.time(torch.zeros(())),
            below,
            NeighborEvents(
                node=torch.from_numpy(node),
                place=torch.from_numpy(place),
                neighbor=places[len(nodes) :],
                features=torch.cat([self.time(since), features], dim=1),
            ),
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
