"""AliGraph's Evolving GNN: snapshots, normal and burst links, a variational next step."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.event_batches import EventSeeds
from graphsys.gnn.data.events import EventStream
from graphsys.gnn.data.proximity import Proximity
from graphsys.gnn.model_spec import ModelSpec, register
from graphsys.gnn.models.model import Tensors
from graphsys.gnn.models.stream import StreamModel

Ints = npt.NDArray[np.int64]
_ACTIVITY = 4  # features of a node: out and in, in the snapshot and so far
_BURST_SHARE = 0.1  # of the numbers of a burst row that are expected not to be zero


class SnapshotLayer(nn.Module):
    """GraphSAGE over a snapshot: own row, mean over normal links, mean over burst links."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.own = nn.Linear(dim, dim)
        self.of_kind = nn.ModuleList(nn.Linear(dim, dim, bias=False) for _ in range(2))

    def forward(self, x: torch.Tensor, links: list[torch.Tensor]) -> torch.Tensor:
        """Return new rows ``[N, dim]``; links are ends ``[2, n]``, normal and burst."""
        found = self.own(x)
        for linear, (here, there) in zip(self.of_kind, links, strict=True):
            total = torch.zeros_like(x).index_add(0, here, x.index_select(0, there))
            count = torch.bincount(here, minlength=len(x)).clamp(min=1)
            found = found + linear(total / count[:, None])
        return functional.relu(found) + x


class Latent(nn.Module):
    """A row of a node as a draw of what its state says, and how that differs from a prior.

    Args:
        dim: Length of states and rows.
        is_sparse: Whether most numbers are expected to be zero: spike and slab, where each
            is multiplied by its chance to be there.
    """

    def __init__(self, dim: int, *, is_sparse: bool) -> None:
        super().__init__()
        self.mean, self.log_variance = nn.Linear(dim, dim), nn.Linear(dim, dim)
        nn.init.zeros_(self.log_variance.weight)
        nn.init.constant_(self.log_variance.bias, -4.0)  # quiet draws at first
        self.gate = nn.Linear(dim, dim) if is_sparse else None

    def forward(self, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rows ``[N, dim]``, means when not training, and divergences ``[N]``."""
        mean, log_variance = self.mean(state), self.log_variance(state).clamp(-10, 4)
        row = mean
        if self.training:
            row = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        apart = (mean.square() + log_variance.exp() - log_variance - 1) / 2
        if self.gate is None:
            return row, apart.sum(dim=1)
        logit = self.gate(state)
        there = torch.sigmoid(logit)
        spike = there * (functional.logsigmoid(logit) - np.log(_BURST_SHARE)) + (
            1 - there
        ) * (functional.logsigmoid(-logit) - np.log(1 - _BURST_SHARE))
        return there * row, (there * apart + spike).sum(dim=1)


class Evolving(StreamModel):
    """States of nodes that each snapshot moves; rows of the next one's links.

    A snapshot is a batch of events. Its links are normal where their ends had met before it
    or had a partner in common, else burst (:class:`Proximity`; the paper does not say what
    a burst is). ``layers`` of GraphSAGE over both kinds make a row of each node from a
    learned row and its activity, a GRU puts that into the node's state, and from the state
    come two rows: normal (a Gaussian) and burst (spike and slab), as draws in training.
    Pairs are scored by the rows of their kind; the loss is that of the next snapshot's
    links and ``kl_weight`` times the divergence per node from N(0, 1). Gradients go back
    one snapshot.

    References:
        Zhu et al., "AliGraph", VLDB 2019, section 4.2, Evolving GNN; the distributions are
        those of Zhao et al., "Large scale evolving graphs with burst detection", IJCAI
        2019, by the same group. Beyond them: activity as features, learned rows (also
        straight into the latent rows), and a learned multiple of ``log(1 + meetings)`` in
        a score.
    """

    state: torch.Tensor
    snapshot: torch.Tensor

    def __init__(self, config: GnnConfig, events: EventStream, decoder: Any) -> None:
        super().__init__(config, events)
        dim, size = config.dim, events.num_nodes
        self.decoder = decoder
        self.learned = nn.Embedding(size, dim)
        nn.init.normal_(self.learned.weight, std=dim**-0.5)
        self.activity = nn.Linear(_ACTIVITY, dim)
        self.convolutions = nn.ModuleList(SnapshotLayer(dim) for _ in range(config.layers))
        self.updater = nn.GRUCell(dim, dim)
        self.latents = nn.ModuleList(Latent(dim, is_sparse=k == 1) for k in range(2))
        self.asking = nn.ModuleList(nn.Linear(dim, dim) for _ in range(2))
        self.level = nn.Parameter(torch.zeros(2))
        self.again = nn.Parameter(torch.zeros(()))
        self.register_buffer("state", torch.zeros(size, dim))
        self.register_buffer("snapshot", torch.zeros(2, dtype=torch.int64))
        self._proximity = Proximity(events)

    def scores(self, sources: Ints, times: Ints, before: int) -> torch.Tensor:
        """Return the scores of sources with all second ends, float32 ``[n, num_dst]``."""
        events = self.events
        others = np.arange(events.first_dst, events.first_dst + events.num_dst)
        return self._scores(self._rows()[0], sources, others)

    def compare(self, seeds: EventSeeds, before: int) -> Tensors:
        """Return scores of a snapshot's links and of the negatives that they share.

        A negative that is the link's own second end, or any of the source's in the
        snapshot, has the score -inf. ``penalty``: the weighted divergence.
        """
        events, own = self.events, slice(seeds.begin, seeds.end)
        src, dst = events.src[own], events.dst[own]
        unique, places = np.unique(src, return_inverse=True)
        rows, apart = self._rows()
        others, back = np.unique(
            np.concatenate([dst, seeds.negatives]), return_inverse=True
        )
        scores = self._scores(rows, unique, others)
        linked = np.zeros(scores.shape, dtype=bool)
        linked[places, back[: len(dst)]] = True
        row = torch.from_numpy(places)
        positive = scores[row, torch.from_numpy(back[: len(dst)])]
        negative = scores.masked_fill(torch.from_numpy(linked), -torch.inf)
        negative = negative[:, torch.from_numpy(back[len(dst) :])]
        return {
            "positive": positive[:, None],
            "negative": negative.index_select(0, row),
            "penalty": self.config.kl_weight * apart.mean(),
        }

    def see(self, begin: int, end: int) -> None:
        """Put the last snapshot into the states, and keep the new one for the next time."""
        self.state.copy_(self._states())
        self.snapshot[0], self.snapshot[1] = begin, end

    def rows(self, nodes: Ints) -> torch.Tensor:
        """Return normal rows and burst rows of nodes, float32 ``[n, 2 * dim]``."""
        normal, burst = self._rows()[0]
        return torch.cat([normal, burst], dim=1)[torch.from_numpy(nodes)]

    def _states(self) -> torch.Tensor:
        """Return the states after the last snapshot, float32 ``[N, dim]``."""
        begin, end = (int(place) for place in self.snapshot)
        x = self.learned.weight + self.activity(self._active(begin, end))
        links = self._links(begin, end)
        for layer in self.convolutions:
            x = layer(x, links)
        moved: torch.Tensor = self.updater(x, self.state.clone())
        return moved

    def _active(self, begin: int, end: int) -> torch.Tensor:
        events, size = self.events, self.events.num_nodes
        counts = [
            np.bincount(ends[first:end], minlength=size)
            for ends in (events.src, events.dst)
            for first in (begin, 0)
        ]
        return torch.from_numpy(np.log1p(np.stack(counts, axis=1)).astype(np.float32))

    def _links(self, begin: int, end: int) -> list[torch.Tensor]:
        """Return the ends of a snapshot's normal and burst links, both ways, ``[2, n]``."""
        src, dst = self.events.src[begin:end], self.events.dst[begin:end]
        near = self._proximity.of_pairs(src, dst, begin)
        both = np.stack([np.concatenate([src, dst]), np.concatenate([dst, src])])
        near = np.tile(near, 2)
        return [torch.from_numpy(both[:, chosen]) for chosen in (near, ~near)]

    def _rows(self) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Return normal and burst rows of all nodes, and their divergences ``[N]``."""
        state = self._states() + self.learned.weight
        found = [latent(state) for latent in self.latents]
        dropout = self.config.dropout
        rows = [functional.dropout(own, dropout, self.training) for own, _ in found]
        return rows, found[0][1] + found[1][1]

    def _scores(
        self, rows: list[torch.Tensor], sources: Ints, others: Ints
    ) -> torch.Tensor:
        """Return scores ``[n, m]``, of each pair by the rows of its kind."""
        others_here = others - self.events.first_dst
        position, proximity = int(self.position), self._proximity
        near = proximity.among_all(sources, position)[:, others_here]
        met = np.log1p(proximity.meetings(sources, position)[:, others_here])
        asked, found = torch.from_numpy(sources), torch.from_numpy(others)
        normal, burst = (
            self.decoder(asking(own.index_select(0, asked)), own.index_select(0, found))
            + level
            for asking, own, level in zip(self.asking, rows, self.level, strict=True)
        )
        chosen = torch.where(torch.from_numpy(near), normal, burst)
        return chosen + self.again * torch.from_numpy(met)


register(
    ModelSpec(
        name="evolving",
        make_stream=Evolving,
        is_of_links=True,
        reads_fanouts=False,
        device_gap=lambda config: ("model", "all others"),
    )
)
