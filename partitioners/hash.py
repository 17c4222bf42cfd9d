"""Hash: a node's partition follows from its id, whatever else is in the graph."""

import numpy as np
import numpy.typing as npt

from graphsys.partitioners.base import PARTITIONERS, pieces


@PARTITIONERS.register("hash")
def hash_partition(
    hashes: npt.NDArray[np.uint64],
    ranks: npt.NDArray[np.uint64],
    num_partitions: int,
    seed: int,
) -> npt.NDArray[np.uint32]:
    """Assign each node by the hash of its id; the seed plays no part.

    Returns:
        Partition of every node, uint32 ``[N]``.
    """
    parts = np.empty(len(hashes), dtype=np.uint32)
    for piece in pieces(len(hashes)):
        parts[piece] = hashes[piece] % np.uint64(num_partitions)
    return parts
