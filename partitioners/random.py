"""Random: a fresh draw for every node."""

import numpy as np
import numpy.typing as npt

from graphsys.core.rng import generator
from graphsys.partitioners.base import PARTITIONERS, pieces


@PARTITIONERS.register("random")
def random_partition(
    hashes: npt.NDArray[np.uint64],
    ranks: npt.NDArray[np.uint64],
    num_partitions: int,
    seed: int,
) -> npt.NDArray[np.uint32]:
    """Assign each node by a draw keyed by the seed and its id.

    The draw is the seed's position in the node's own sequence, so it depends on neither
    the order nor the number of nodes; sizes differ by the luck of the draw.

    Returns:
        Partition of every node, uint32 ``[N]``.
    """
    mask = np.uint64(
        generator(seed, "random-partition").integers(2**64 - 1, dtype=np.uint64)
    )
    parts = np.empty(len(hashes), dtype=np.uint32)
    for piece in pieces(len(hashes)):
        words = (hashes[piece] ^ mask) * np.uint64(0x9E3779B97F4A7C15)
        words ^= words >> np.uint64(29)
        words *= np.uint64(0xBF58476D1CE4E5B9)
        words ^= words >> np.uint64(32)
        parts[piece] = words % np.uint64(num_partitions)
    return parts
