"""Batches ready for compute: sampled and gathered in threads while others are trained."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.events import span
from graphsys.core.rng import generator
from graphsys.gnn.data.adaptive_prefetch import AdaptivePrefetch
from graphsys.gnn.data.disk_embedding import StoredEmbedding
from graphsys.gnn.data.features import InputFeatures
from graphsys.gnn.data.message_graph import Layer, MessageGraph
from graphsys.metrics.overlap import Overlap
from graphsys.sampling import Block, Sample
from graphsys.sampling.blocks import Buffers

Ints = npt.NDArray[np.int64]
SeedsByType = Mapping[str, Ints]
Layers = Sequence[Mapping[str, Block]]
Trim = Callable[[Sample, int], Layers]


@dataclass(kw_only=True)
class Batch:
    """Seeds and all that a network needs to compute their rows.

    Attributes:
        number: Its place in the epoch.
        seeds: Numbers of the seeds, as given, by type.
        places: Where the network's output has each of them, by type.
        hops: Where messages go, the farthest hop first.
        x: Input of the farthest nodes by type.
        num_edges: Entries of all hops.
        sample_s: Time that sampling took, in seconds.
        gather_s: Time that gathering took, in seconds.
        sent: Event of its copy to a device, if it is there.
        on_device: The blocks of memory that it is in there.
    """

    number: int
    seeds: Mapping[str, Ints]
    places: Mapping[str, torch.Tensor]
    hops: list[Layer]
    x: Mapping[str, Any]
    num_edges: int
    sample_s: float = 0.0
    gather_s: float = 0.0
    sample: Sample | None = None
    buffers: Buffers | None = None
    sent: Any = None
    on_device: Sequence[torch.Tensor] = ()


class Loader:
    """Makes batches of seeds.

    Args:
        message_graph: Where messages come from.
        features: What the network reads.
        prefetch: Batches made ahead in threads, see
            :class:`~graphsys.gnn.data.adaptive_prefetch.AdaptivePrefetch`.
        trim: Takes entries out of the blocks of a batch, given its number.
        stored: Rows on disk, whose pages are read ahead; the rows are not.
        send: Begins to copy a batch to where it is trained.
        new_buffers: Makes what batches are gathered into.
        overlap: Is told when batches are sampled and gathered.
    """

    def __init__(
        self,
        message_graph: MessageGraph,
        features: InputFeatures,
        prefetch: int,
        trim: Trim | None = None,
        stored: StoredEmbedding | None = None,
        send: Callable[[Batch], None] | None = None,
        new_buffers: Callable[[], Buffers] = Buffers,
        overlap: Overlap | None = None,
    ) -> None:
        self.message_graph, self.features = message_graph, features
        self.pace = AdaptivePrefetch(prefetch)
        self.trim, self.stored = trim, stored
        self._send, self._new_buffers = send, new_buffers
        self._overlap = Overlap() if overlap is None else overlap
        self._free: list[Buffers] = []
        self._lock = threading.Lock()

    def batches(
        self, seeds: Sequence[SeedsByType], *, epoch: int, first: int = 0
    ) -> Iterator[Batch]:
        """Yield the batches of an epoch in order; each is to be released.

        Args:
            seeds: Of every batch, by type.
            epoch: Part of the key of the draws.
            first: The batch to begin with.
        """

        def make(number: int) -> Batch:
            return self.make(seeds[number], epoch=epoch, number=number)

        yield from self.pace.run(make, range(first, len(seeds)))

    def make(self, seeds: Mapping[str, Ints], *, epoch: int, number: int) -> Batch:
        """Sample the surroundings of seeds and gather their input.

        Raises:
            UnknownNameError: A seed is not in the graph.
        """
        with self._lock:
            buffers = self._free.pop() if self._free else self._new_buffers()
        buffers.wait()
        with self._overlap.preparing():
            began = time.perf_counter()
            with span("sample", batch=number):
                sample = self.message_graph.sample(seeds, epoch=epoch, batch=number)
                layers = sample.layers if self.trim is None else self.trim(sample, number)
                hops = self.message_graph.wrap(layers)
            sampled = time.perf_counter()
            with span("gather", batch=number):
                x = self.features.gather(sample.nodes, buffers)
                if self.stored is not None:
                    self.stored.touch(x)
            gathered = time.perf_counter()
        places = {name: torch.from_numpy(p) for name, p in sample.seed_places.items()}
        batch = Batch(
            number=number,
            seeds=seeds,
            places=places,
            hops=hops,
            x=x,
            num_edges=sample.num_edges,
            sample_s=sampled - began,
            gather_s=gathered - sampled,
            sample=sample,
            buffers=buffers,
        )
        if self._send is not None:
            self._send(batch)
        return batch

    def release(self, batch: Batch) -> None:
        """Let a batch's buffers be used again; its tensors lose their content."""
        if batch.sample is not None and batch.buffers is not None:
            batch.sample.release()
            with self._lock:
                self._free.append(batch.buffers)
            batch.sample = batch.buffers = None


def shuffled_batches(seeds: Ints, size: int, *keys: Any) -> list[Ints]:
    """Return seeds in random order, cut into batches.

    Args:
        seeds: Numbers ``[n]``.
        size: Seeds of a batch.
        keys: Seed and further keys of the order (see ``core.rng``).
    """
    order = generator(*keys).permutation(seeds)
    return [order[begin : begin + size] for begin in range(0, len(order), size)]
