"""A memory per node, which messages of events update; and how times become features."""

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.events import EventStream
from graphsys.gnn.data.features import FeatureBags, InputShape
from graphsys.gnn.models.stream import NodeStateModel

Ints = npt.NDArray[np.int64]


class TimeEncoding(nn.Module):
    """Features ``cos(w t + b)`` of time that has passed, as a share of the training's.

    Frequencies are learned from a geometric sequence on, whose slowest turns in six times
    the span of the training and whose fastest in a millionth of that.

    References:
        Xu et al., "Inductive representation learning on temporal graphs", ICLR 2020.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(10 ** torch.linspace(0, 6, dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, passed: torch.Tensor) -> torch.Tensor:
        """Return features ``[..., dim]`` of shares ``[...]``."""
        return torch.cos(passed[..., None] * self.weight + self.bias)


class MemoryModel(NodeStateModel):
    """Memory of nodes, of which each event changes those of its two ends.

    An event leaves a message ``[own memory, the other's, its features]`` at both ends; of
    the messages of a batch the last counts. It is put into the memory when the node is
    next needed, in a batch after, so that the updater learns from that batch's loss. Beside
    its memory a node has a learned row, to which what its features say is added.

    Args:
        config: ``dim`` is the length of memory, of learned rows and of the output.
        events: The stream.
        decoder: Makes scores of rows.

    Attributes:
        memory: float32 ``[N, dim]``.
        updated: Time of the event that memory is of, int64 ``[N]``.
        message: The message that waits, float32 ``[N, 2 * dim + F]``.
        message_time: Its event's time, int64 ``[N]``.
        has_message: Whether there is one, bool ``[N]``.
        has_memory: Whether ``updated`` is of an event, bool ``[N]``.
    """

    memory: torch.Tensor
    updated: torch.Tensor
    message: torch.Tensor
    message_time: torch.Tensor
    has_message: torch.Tensor
    has_memory: torch.Tensor

    def __init__(self, config: GnnConfig, events: EventStream, decoder: Any) -> None:
        super().__init__(config, events, decoder)
        size, dim = events.num_nodes, config.dim
        width = 2 * dim + events.features.shape[1]
        self.learned = nn.Embedding(size, dim)
        nn.init.normal_(self.learned.weight, std=dim**-0.5)
        self.inputs = NodeInputs(events, dim)
        for name, buffer in (
            ("memory", torch.zeros(size, dim)),
            ("updated", torch.zeros(size).long()),
            ("message", torch.zeros(size, width)),
            ("message_time", torch.zeros(size).long()),
            ("has_message", torch.zeros(size, dtype=torch.bool)),
            ("has_memory", torch.zeros(size, dtype=torch.bool)),
        ):
            self.register_buffer(name, buffer)
        self.message_width = width

    def own(self, nodes: torch.Tensor) -> torch.Tensor:
        """Return learned rows with what features add, float32 ``[n, dim]``."""
        rows: torch.Tensor = self.learned(nodes)
        return self.inputs.add_to(rows, nodes)

    @abstractmethod
    def update(
        self, message: torch.Tensor, passed: torch.Tensor, memory: torch.Tensor
    ) -> torch.Tensor:
        """Return memory after messages.

        Args:
            message: float32 ``[n, 2 * dim + F]``.
            passed: Time since the memory's event, as a share, float32 ``[n]``.
            memory: float32 ``[n, dim]``.
        """

    def current(self, nodes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the memory of nodes with the messages that wait, and of what time it is.

        Args:
            nodes: Numbers, each once, int64 ``[n]``.

        Returns:
            float32 ``[n, dim]`` and int64 ``[n]``.
        """
        memory, updated = self.memory[nodes], self.updated[nodes]
        waiting = self.has_message[nodes].nonzero()[:, 0]
        if not len(waiting):
            return memory, updated
        chosen = nodes[waiting]
        when = self.message_time[chosen]
        passed = self._share(when - updated[waiting]) * self.has_memory[chosen]
        found = self.update(self.message[chosen], passed, memory[waiting])
        memory = memory.index_copy(0, waiting, found.to(memory.dtype))
        return memory, updated.index_copy(0, waiting, when)

    def since(self, updated: torch.Tensor, times: Ints) -> torch.Tensor:
        """Return the time since memory was updated, as a share, float32 ``[n]``."""
        return self._share(torch.from_numpy(times) - updated)

    def see(self, begin: int, end: int) -> None:
        """Put waiting messages of the events' ends into memory, and leave new ones."""
        events = self.events
        src, dst = events.src[begin:end], events.dst[begin:end]
        own = np.stack([src, dst], axis=1).ravel()
        others = np.stack([dst, src], axis=1).ravel()
        # of equal numbers the first of the reversed sequence is the last event's
        unique, first = np.unique(own[::-1], return_index=True)
        last = len(own) - 1 - first
        nodes = torch.from_numpy(unique)
        memory, updated = self.current(nodes)
        is_known = self.has_message[nodes] | self.has_memory[nodes]
        self.memory[nodes], self.updated[nodes] = memory.detach(), updated
        self.has_memory[nodes] = is_known
        chosen = last // 2 + begin
        self.message[nodes] = torch.cat(
            [
                self.memory[nodes],
                self.memory[torch.from_numpy(others[last])],
                torch.from_numpy(events.features[chosen]),
            ],
            dim=1,
        )
        self.message_time[nodes] = torch.from_numpy(events.time[chosen])
        self.has_message[nodes] = True

    def _share(self, passed: torch.Tensor) -> torch.Tensor:
        return (passed.double() / self.events.train_span).float()


class NodeInputs(nn.Module):
    """Addends of rows, linear in the features of nodes; nothing for types without any.

    Dense features pass a linear layer; of a bag the mean of a learned row per word counts,
    as in networks that stand still.

    Args:
        events: The stream.
        dim: Length of the rows.
    """

    def __init__(self, events: EventStream, dim: int) -> None:
        super().__init__()
        self._events = events
        shapes = {} if events.inputs is None else events.inputs.shapes
        self._types = [n for n, it in shapes.items() if it.dim or it.is_bag]
        self.layers = nn.ModuleList(_layer(shapes[name], dim) for name in self._types)

    def add_to(self, rows: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        """Return rows with what features add.

        Args:
            rows: float32 ``[n, dim]``.
            nodes: Their nodes' numbers in the stream, int64 ``[n]``.
        """
        events = self._events
        for name, layer in zip(self._types, self.layers, strict=True):
            is_src = name == events.src_type and events.first_dst > 0
            is_own = (nodes < events.first_dst) == is_src
            places = is_own.nonzero()[:, 0]
            if not len(places):
                continue
            assert events.inputs is not None  # there are types with features
            local = nodes[places] - (0 if is_src else events.first_dst)
            found = events.inputs.gather({name: local.numpy()})[name]
            if isinstance(found, FeatureBags):
                assert isinstance(layer, nn.Embedding)  # as :func:`_layer` makes it
                added = functional.embedding_bag(
                    found.values, layer.weight, found.begins, mode="mean"
                )
            else:
                added = layer(found)
            rows = rows.index_add(0, places, added)
        return rows


def _layer(shape: InputShape, dim: int) -> nn.Module:
    if shape.is_bag:
        return nn.Embedding(shape.num_learned, dim)
    return nn.Linear(shape.dim, dim)
