"""Partitioners that see each node with its neighbours, on a graph that is stored."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from graphsys.core.registry import Registry


class NodeStream(Protocol):
    """The nodes of a graph with all their neighbours, in both directions, block by block.

    Attributes:
        num_nodes: Number of nodes, N below; they are numbered 0 to N - 1.
        degrees: Neighbours of every node, int64 ``[N]``.
    """

    num_nodes: int
    degrees: npt.NDArray[np.int64]

    def blocks(self) -> Iterator[tuple[int, npt.NDArray[Any], npt.NDArray[Any]]]:
        """Yield (first node, indptr ``[n + 1]``, indices) for consecutive blocks."""
        ...


class StreamPartitioner(Protocol):
    """Assigns every node of a stream to a partition."""

    def __call__(
        self, stream: NodeStream, num_partitions: int, seed: int
    ) -> npt.NDArray[np.uint32]:
        """Return the partition of every node, uint32 ``[N]``."""
        ...


STREAM_PARTITIONERS: Registry[StreamPartitioner] = Registry(
    "partitioner", "graphsys.stream_partitioners"
)


def get_stream_partitioner(name: str) -> StreamPartitioner:
    """Return a stream partitioner by name.

    Raises:
        UnknownNameError: there is none; the message lists the known names.
    """
    return STREAM_PARTITIONERS.get(name)
