"""What a partitioner is, of either kind, and the one registry of all of them.

A partitioner looks at ids alone, and then runs while a graph is read
(:class:`Partitioner`), or it sees each node with its neighbors on a graph that is stored
(:class:`StreamPartitioner`). The names of its arguments tell which.
"""

import inspect
from collections.abc import Iterator
from typing import Any, Final, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.registry import Registry

BY_ID: Final = ("hashes", "ranks", "num_partitions", "seed")
BY_STREAM: Final = ("stream", "num_partitions", "seed")


_PIECE: Final = 1 << 20


def pieces(length: int) -> Iterator[slice]:
    """Cut nodes into pieces: what is made of one takes no memory to speak of."""
    for begin in range(0, length, _PIECE):
        yield slice(begin, min(begin + _PIECE, length))


class Partitioner(Protocol):
    """Assigns each node of a type to a partition, from its id alone."""

    def __call__(
        self,
        hashes: npt.NDArray[np.uint64],
        ranks: npt.NDArray[np.uint64],
        num_partitions: int,
        seed: int,
    ) -> npt.NDArray[np.uint32]:
        """Return the partition of every node, uint32 ``[N]``.

        Args:
            hashes: Hash of the user's id, uint64 ``[N]``.
            ranks: What sorts the nodes in their original order, uint64 ``[N]``: the id
                itself for integers, the first appearance for strings.
            num_partitions: Partitions of the type.
            seed: The user's seed.
        """
        ...


class NodeStream(Protocol):
    """The nodes of a graph with all their neighbors, in both directions, block by block.

    Attributes:
        num_nodes: Number of nodes, N below; they are numbered 0 to N - 1.
        degrees: Neighbors of every node, int64 ``[N]``.
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


@runtime_checkable
class NeedsMemory(Protocol):
    """A stream partitioner that holds the graph in memory says how much that takes."""

    def memory_bytes(self, num_nodes: int, num_ends: int) -> int:
        """Return the bytes for a graph of so many nodes and ends of edges."""
        ...


def adapt(found: Any) -> Partitioner | StreamPartitioner:
    """Turn what a plug-in offers into a partitioner: a class is called without arguments.

    Raises:
        ConfigError: it cannot be called as a partitioner.
    """
    made = found() if isinstance(found, type) else found
    names = tuple(inspect.signature(made).parameters) if callable(made) else ()
    if names not in (BY_ID, BY_STREAM):
        raise ConfigError(
            f"a partitioner takes ({', '.join(BY_ID)}) or ({', '.join(BY_STREAM)}), "
            f"this takes ({', '.join(names)})"
        )
    return cast("Partitioner | StreamPartitioner", made)


PARTITIONERS: Registry[Partitioner | StreamPartitioner] = Registry(
    "partitioner", "graphsys.partitioners", adapt=adapt
)


def sees_neighbors(partitioner: Partitioner | StreamPartitioner) -> bool:
    """Return whether a partitioner needs to see each node with its neighbors."""
    return tuple(inspect.signature(partitioner).parameters) == BY_STREAM


def get_partitioner(name: str) -> Partitioner:
    """Return a partitioner that looks at ids alone.

    Raises:
        UnknownNameError: there is none; the message lists the known names.
        ConfigError: this one needs to see neighbors.
    """
    found = PARTITIONERS.get(name)
    if sees_neighbors(found):
        raise ConfigError(
            f"partitioner {name!r} needs the neighbors of every node, and so a graph that "
            "is stored; take hash, random or range here"
        )
    return cast("Partitioner", found)


def get_stream_partitioner(name: str) -> StreamPartitioner:
    """Return a partitioner that sees each node with its neighbors.

    Raises:
        UnknownNameError: there is none; the message lists the known names.
        ConfigError: this one looks at ids alone.
    """
    found = PARTITIONERS.get(name)
    if not sees_neighbors(found):
        raise ConfigError(
            f"partitioner {name!r} looks at ids alone; call it with (hashes, ranks, "
            "num_partitions, seed)"
        )
    return cast("StreamPartitioner", found)


def is_stream_partitioner(name: str) -> bool:
    """Return whether a partitioner of this name needs to see neighbors."""
    return name in PARTITIONERS.names() and sees_neighbors(PARTITIONERS.get(name))


def partitioner_names() -> list[str]:
    """Return the names of all partitioners, sorted."""
    return PARTITIONERS.names()


def check_partitioner(name: str) -> None:
    """Check that a partitioner is known.

    Raises:
        UnknownNameError: it is not; the message lists the known names.
    """
    PARTITIONERS.get(name)
