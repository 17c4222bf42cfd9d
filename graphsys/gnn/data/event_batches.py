"""Batches of events in order of time; nothing is sampled ahead of them."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.rng import generator
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.events import EventStream
from graphsys.gnn.data.loader import Batch

Ints = npt.NDArray[np.int64]
EVENTS = "events"
"""The name under which a batch's input has its events."""


class EventSeeds(dict[str, Ints]):
    """The nodes of a batch's events by type, each once, and the events.

    Attributes:
        begin: Place of the first event in the stream.
        end: Behind the last.
        negatives: Second ends that all events are compared with, int64 ``[K]``.
    """

    begin: int
    end: int
    negatives: Ints


class EventBatches(Sequence[EventSeeds]):
    """The batches of an epoch over the training events, in order of time.

    Args:
        events: The stream.
        config: Size of a batch, negatives, seed.
        epoch: Part of the key of the negatives.
    """

    def __init__(self, events: EventStream, config: GnnConfig, epoch: int) -> None:
        self._events, self._config, self._epoch = events, config, epoch
        self._cuts = list(events.batches(*events.spans["train"], config.batch_size))

    def __len__(self) -> int:
        return len(self._cuts)

    @overload
    def __getitem__(self, number: int) -> EventSeeds: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[EventSeeds]: ...
    def __getitem__(self, number: int | slice) -> Any:
        if isinstance(number, slice):
            return [self[k] for k in range(*number.indices(len(self)))]
        events, config = self._events, self._config
        seeds = EventSeeds()
        seeds.begin, seeds.end = self._cuts[number]
        count = config.num_negatives
        if count < events.num_dst:
            rng = generator(config.seed, "event negatives", self._epoch, number)
            drawn = rng.choice(events.num_dst, count, replace=False)
        else:
            drawn = np.arange(events.num_dst)
        seeds.negatives = drawn.astype(np.int64) + events.first_dst
        own = slice(seeds.begin, seeds.end)
        src, dst = events.src[own], events.dst[own] - events.first_dst
        if events.src_type == events.dst_type:
            seeds[events.src_type] = np.unique(np.concatenate([src, dst]))
        else:
            seeds |= {events.src_type: np.unique(src), events.dst_type: np.unique(dst)}
        return seeds


class EventLoader:
    """Hands out batches of events as :class:`graphsys.gnn.data.loader.Loader` does."""

    def batches(
        self, seeds: Sequence[Any], *, epoch: int, first: int = 0
    ) -> Iterator[Batch]:
        """Yield the batches of an epoch in order.

        Args:
            seeds: Of every batch.
            epoch: Ignored: negatives are of the seeds.
            first: The batch to begin with.
        """
        for number in range(first, len(seeds)):
            yield self.make(seeds[number], epoch=epoch, number=number)

    def make(self, seeds: EventSeeds, *, epoch: int, number: int) -> Batch:
        """Return the batch of some seeds."""
        return Batch(
            number=number,
            seeds=seeds,
            x={EVENTS: seeds},
            hops=[],
            places={name: torch.arange(len(nodes)) for name, nodes in seeds.items()},
            num_edges=seeds.end - seeds.begin,
        )

    def release(self, batch: Batch) -> None:
        """Do nothing: a batch has no buffers."""
