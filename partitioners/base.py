"""What a one-pass partitioner is, and the registry of all of them."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from graphsys.core.registry import Registry


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


PARTITIONERS: Registry[Partitioner] = Registry("partitioner", "graphsys.partitioners")


def get_partitioner(name: str) -> Partitioner:
    """Return a partitioner by name.

    Raises:
        UnknownNameError: there is none; the message lists the known names.
    """
    return PARTITIONERS.get(name)
