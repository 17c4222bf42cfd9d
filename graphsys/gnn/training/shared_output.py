"""The network's output for an evaluation within a training of several processes.

The first process evaluates. What it asks the network for, all may compute together, layer
by layer: the others answer until it says that it has enough. That is faster where
processes have processors of their own and slower where rows take longer to send than to
compute; so it is tried both ways at first.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsys.gnn.context import GnnContext
from graphsys.gnn.layerwise_inference import entries_within, is_by_layers, scratch_of
from graphsys.gnn.layerwise_passes import LayerByLayer

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
_BATCHES = 8  # of each process, where they are large enough
_LEAST_ENTRIES = 1 << 12
_TRIALS = 2


class SharedOutput:
    """Output that processes compute together.

    As that of :func:`~graphsys.gnn.layerwise_inference.infer`.

    Args:
        context: The training of this process; its weights are those of all.
    """

    def __init__(self, context: GnnContext) -> None:
        self._context, self._group = context, context.task.process_group

    @staticmethod
    def is_for(context: GnnContext) -> bool:
        """Return whether there are several processes, and layers that they can share."""
        return context.task.process_group.world_size > 1 and is_by_layers(context)

    def begin(self) -> None:
        """Have all networks alike: means of batches, say, are each process's own."""
        for buffer in self._context.network.buffers():
            self._group.give(buffer.reshape(-1).numpy())

    def ask(self, node_type: str, nodes: Ints) -> Floats:
        """Return the output for nodes, with the help of who answers; the first's call.

        Args:
            node_type: Of the nodes.
            nodes: Their numbers ``[n]``.
        """
        entries = entries_shared(self._context)
        asked = {"node_type": node_type, "size": len(nodes), "entries": entries}
        self._group.broadcast(asked)
        return self._computed(asked, np.ascontiguousarray(nodes, dtype=np.int64))

    def end(self) -> None:
        """Let the others go on."""
        self._group.broadcast(None)

    def answer(self) -> None:
        """Help until the first process says that it has enough; the others' call."""
        while (asked := self._group.broadcast(None)) is not None:
            self._computed(asked, np.empty(asked["size"], dtype=np.int64))

    def _computed(self, asked: dict[str, Any], nodes: Ints) -> Floats:
        context = self._context
        self._group.give(nodes)
        if not len(nodes):
            return np.empty((0, context.network.num_out), dtype=np.float32)
        context.network.eval()
        layers = LayerByLayer(
            context,
            scratch_of(context, _folder(context.path)),
            asked["entries"],
            group=self._group,
        )
        with torch.no_grad():
            return layers.run(asked["node_type"], nodes)


class SharingPolicy:
    """Whether the next evaluation is shared: as took less time before."""

    def __init__(self) -> None:
        self._times: dict[bool, list[float]] = {False: [], True: []}

    def next(self) -> bool:
        """Return whether to share it."""
        alone, shared = self._times[False], self._times[True]
        if min(len(alone), len(shared)) < _TRIALS:
            return len(shared) < len(alone)
        return min(shared) < min(alone)

    def tell(self, seconds: float, *, is_shared: bool) -> None:
        """Say how long one took."""
        self._times[is_shared].append(seconds)


def entries_shared(context: GnnContext) -> int:
    """Return how many entries batches of layers have: few enough that all get some.

    So they are whether one process computes all of them or each some: rows are the same.
    """
    every = sum(int(rows.degrees().sum()) for rows in context.message_graph.rows)
    shared = every // (_BATCHES * context.task.process_group.world_size)
    return max(min(entries_within(context), shared), _LEAST_ENTRIES)


def _folder(path: Path | None) -> Path | None:
    return path if path is not None and path.is_dir() else None
