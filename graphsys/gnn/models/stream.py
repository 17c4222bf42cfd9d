"""Models that follow edges in order of time: what they keep, how they score what is next.

The protocol of state is that of batches: what a model says about the events of a batch
rests on events that are strictly older than the first of them, and the batch is taken in
when all of it was scored. ``batch_size = 1`` is state by event.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from graphsys.core.errors import ConfigError
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.event_batches import EVENTS, EventSeeds
from graphsys.gnn.data.events import EventStream
from graphsys.gnn.models.model import Rows, Tensors, UnlayeredModel

Ints = npt.NDArray[np.int64]


class StreamModel(nn.Module, ABC):
    """Scores of pairs of nodes at a time, by the events before it.

    Args:
        config: The settings.
        events: All events; of them a model may use those that it took in, and any that are
            strictly older than the time it is asked about.

    Attributes:
        is_trained: Whether it has weights; a heuristic has none.
        position: Events taken in so far, int64; saved with the weights, as all buffers are.
    """

    is_trained: ClassVar[bool] = True
    position: torch.Tensor

    def __init__(self, config: GnnConfig, events: EventStream) -> None:
        super().__init__()
        self.config, self.events = config, events
        self.register_buffer("position", torch.zeros((), dtype=torch.int64))

    @abstractmethod
    def scores(self, sources: Ints, times: Ints, before: int) -> torch.Tensor:
        """Return the scores of sources with all nodes that may be second ends.

        Args:
            sources: Numbers of nodes, int64 ``[n]``.
            times: When they are asked about, int64 ``[n]``.
            before: The time before which events count.

        Returns:
            float ``[n, num_dst]``; a higher one is likelier.
        """

    def compare(self, seeds: EventSeeds, before: int) -> Tensors:
        """Return scores ``positive [n, 1]`` and ``negative [n, K]`` of a training batch."""
        raise NotImplementedError  # of models without weights

    def see(self, begin: int, end: int) -> None:
        """Take in events, those of one batch."""

    def rows(self, nodes: Ints) -> torch.Tensor:
        """Return a row of each node as things stand, float32 ``[n, F]``.

        Raises:
            ConfigError: The model has none.
        """
        raise ConfigError(
            f"model {self.config.model} has no rows of nodes, only scores of pairs at a "
            "time; use graphsys evaluate, or train model tgn"
        )

    def reset(self) -> None:
        """Forget all events."""
        for buffer in self.buffers():
            buffer.zero_()

    def advance(self, end: int) -> None:
        """Take in events up to ``end``, from the first on where more were taken in."""
        if int(self.position) > end:
            self.reset()
        size = self.config.batch_size
        for low, high in self.events.batches(int(self.position), end, size):
            with torch.no_grad():
                self.see(low, high)
            self.position.fill_(high)


class NodeStateModel(StreamModel):
    """A model whose scores are a decoder's of rows that nodes have at a time.

    A first end's row passes a linear layer: who writes and who is written to differ, and a
    node is not its own best second end.

    Args:
        config: The settings.
        events: The stream.
        decoder: Makes the scores, a :class:`graphsys.gnn.tasks.decoders.Decoder`.
    """

    def __init__(self, config: GnnConfig, events: EventStream, decoder: Any) -> None:
        super().__init__(config, events)
        self.decoder = decoder
        self.asking = nn.Linear(config.dim, config.dim)

    @abstractmethod
    def rows_at(self, nodes: Ints, times: Ints, before: int) -> torch.Tensor:
        """Return the rows of nodes at times, float32 ``[n, dim]``; as :meth:`scores`."""

    def queries(self, sources: Ints, times: Ints, before: int) -> torch.Tensor:
        """Return what is compared with the rows of second ends, float32 ``[n, dim]``."""
        found: torch.Tensor = self.asking(self.rows_at(sources, times, before))
        return found

    def ends(
        self, sources: Ints, times: Ints, others: Ints, before: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what asks and what is asked for: :meth:`queries`, and rows of others.

        Args:
            sources: Numbers of nodes, int64 ``[n]``.
            times: When they are asked about, int64 ``[n]``.
            others: Second ends, whose rows are those at the time ``before``, int64 ``[k]``.
            before: The time before which events count.

        Returns:
            float32 ``[n, dim]`` and ``[k, dim]``.
        """
        asked = self.queries(sources, times, before)
        return asked, self.rows_at(others, np.full(len(others), before), before)

    def scores(self, sources: Ints, times: Ints, before: int) -> torch.Tensor:
        """Return the scores of sources with all second ends, float32 ``[n, num_dst]``.

        Rows of second ends are those at the time ``before``.
        """
        events = self.events
        others = np.arange(events.first_dst, events.first_dst + events.num_dst)
        asked, found = self.ends(sources, times, others, before)
        scored: torch.Tensor = self.decoder(asked, found)
        return scored

    def compare(self, seeds: EventSeeds, before: int) -> Tensors:
        """Return scores of a batch's pairs and of the negatives that they share.

        A negative that is the pair's own second end has the score -inf.
        """
        events, own = self.events, slice(seeds.begin, seeds.end)
        dst = events.dst[own]
        others, places = np.unique(
            np.concatenate([dst, seeds.negatives]), return_inverse=True
        )
        asked, found = self.ends(events.src[own], events.time[own], others, before)
        found = found.index_select(0, torch.from_numpy(places))
        is_own = torch.from_numpy(dst[:, None] == seeds.negatives[None])
        negative = self.decoder(asked, found[len(dst) :])
        return {
            "positive": self.decoder.own(asked, found[: len(dst), None]),
            "negative": negative.masked_fill(is_own, -torch.inf),
        }

    def rows(self, nodes: Ints) -> torch.Tensor:
        """Return the rows of nodes just after the events taken in, float32 ``[n, dim]``."""
        position = int(self.position)
        now = int(self.events.time[position - 1]) + 1 if position else 0
        return self.rows_at(nodes, np.full(len(nodes), now), now)


class StreamNetwork(UnlayeredModel):
    """A stream model as the trainer and runs know networks.

    Args:
        config: The settings.
        stream: The model, whose weights are the run's.
    """

    def __init__(self, config: GnnConfig, stream: StreamModel) -> None:
        super().__init__(config, config.dim, stream)

    @property
    def stream(self) -> StreamModel:
        """The model."""
        assert isinstance(self.decoder, StreamModel)  # it was given as such
        return self.decoder

    def forward(self, hops: Sequence[Rows], x: Mapping[str, Any]) -> Tensors:
        """Return the scores of a batch of events, and take them in.

        Args:
            hops: None.
            x: The batch, as ``events``; the first of an epoch makes the model forget all.
        """
        seeds: EventSeeds = x[EVENTS]
        if seeds.begin == 0:
            self.stream.reset()
        before = int(self.stream.events.time[seeds.begin])
        found = self.stream.compare(seeds, before)
        self.stream.advance(seeds.end)
        return found

    def node_rows(self, node_type: str, nodes: Ints) -> torch.Tensor:
        """Return the rows of nodes of a type after the training events.

        Raises:
            ConfigError: The model has none.
        """
        events = self.stream.events
        return self.stream.rows(events.numbers(node_type, nodes))
