"""Buckets: for embeddings trained bucket by bucket, with two partitions in memory.

A bucket's edges join one pair of partitions; the trainer loads a partition for nearly
every pair that has edges (``sweep_loads``), holds the rows of two, and skips pairs without
edges. So partitions have equal numbers of nodes, to one in twenty, which is the memory;
about equal numbers of edges, which is the time; and few pairs with edges.

Two ways are tried, and the one with fewer loads, then with fewer edges between partitions,
is taken. Restreamed LDG finds communities, but a few stragglers give every pair an edge.
Equal ranges of the reverse Cuthill-McKee order, refined by passes of LDG, touch only the
next ones where the graph is long, as a road network is. Partitions are then numbered by
reverse Cuthill-McKee over the graph of pairs, so that those with common edges follow each
other in the sweep. ``graphsys partition --compare`` tells what it saves.
"""

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import BudgetError
from graphsys.kernels.cpu.algorithms.partition import measure_block
from graphsys.partitioners.base import PARTITIONERS, NodeStream
from graphsys.partitioners.greedy import stream_greedily
from graphsys.partitioners.rows import whole_rows

_SIZE_SLACK = 1.05
_MAX_ENDS = 2**31 - 1


class Buckets:
    """Partitions of equal sizes with edges in few pairs, the graph in memory."""

    def __call__(
        self, stream: NodeStream, num_partitions: int, seed: int
    ) -> npt.NDArray[np.uint32]:
        """Assign the nodes; the seed plays no part.

        Raises:
            BudgetError: the graph has more ends of edges than 32 bits count.
        """
        if num_partitions == 1 or not stream.num_nodes:
            return np.zeros(stream.num_nodes, dtype=np.uint32)
        even = -(-stream.num_nodes // num_partitions)
        max_size = max(int(_SIZE_SLACK * stream.num_nodes / num_partitions), even)
        found = []
        for start in (None, rcm_order(stream) // even):
            parts = stream_greedily(
                stream,
                num_partitions,
                max_size=max_size,
                start=None if start is None else start.astype(np.uint32),
            )
            parts = number_by_pairs(parts, bucket_ends(stream, parts, num_partitions))
            ends = bucket_ends(stream, parts, num_partitions)
            found.append((sweep_loads(ends), int(ends.sum() - np.trace(ends)), parts))
        return min(found, key=lambda one: one[:2])[2]

    def memory_bytes(self, num_nodes: int, num_ends: int) -> int:
        """Return about what the graph and the search over it take."""
        return 8 * num_ends + 100 * num_nodes


def rcm_order(stream: NodeStream) -> npt.NDArray[np.int64]:
    """Return the place of every node in reverse Cuthill-McKee order, int64 ``[N]``.

    Cuthill, McKee, "Reducing the bandwidth of sparse symmetric matrices", 1969; SciPy's
    ``reverse_cuthill_mckee``, on the whole graph in memory.

    Raises:
        BudgetError: the graph has more ends of edges than 32 bits count.
    """
    from scipy.sparse import csr_matrix  # half a second, which `graphsys info` has not
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    num_ends = int(stream.degrees.sum())
    if num_ends > _MAX_ENDS:
        raise BudgetError(
            f"the reverse Cuthill-McKee order takes fewer than 2^31 ends of edges, of "
            f"which there are {num_ends}; take another order or partitioner"
        )
    indptr, indices = whole_rows(stream)
    ones = np.ones(num_ends, dtype=np.int8)
    shape = (stream.num_nodes, stream.num_nodes)
    matrix = csr_matrix((ones, indices, indptr.astype(np.int32)), shape=shape)
    places = np.empty(stream.num_nodes, dtype=np.int64)
    places[reverse_cuthill_mckee(matrix, symmetric_mode=True)] = np.arange(len(places))
    return places


def number_by_pairs(
    parts: npt.NDArray[np.uint32], ends: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint32]:
    """Number partitions so that those with common edges have near numbers."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    order = reverse_cuthill_mckee(csr_matrix(ends), symmetric_mode=True)
    numbers = np.empty(len(ends), dtype=np.uint32)
    numbers[order] = np.arange(len(ends), dtype=np.uint32)
    return numbers[parts]


def bucket_ends(
    stream: NodeStream, parts: npt.NDArray[np.uint32], num_partitions: int
) -> npt.NDArray[np.int64]:
    """Count the ends of edges by the partitions of their node and of its neighbor.

    Returns:
        Ends, int64 ``[P, P]``, symmetric; an edge inside a partition counts twice.
    """
    ends = np.zeros((num_partitions, num_partitions), dtype=np.int64)
    ghosts = np.zeros(num_partitions, dtype=np.int64)
    for first, indptr, indices in stream.blocks():
        measure_block(first, indptr, indices, parts, ends, ghosts)
    return ends


def sweep_loads(ends: npt.NDArray[np.int64]) -> int:
    """Return how many partitions a trainer loads in one sweep over all buckets.

    Two partitions are in memory; pairs follow inside out (growing squares), as in
    ``embedding.schedule``, and those without edges are left out.

    Args:
        ends: What :func:`bucket_ends` returns, ``[P, P]``.

    Examples:
        >>> sweep_loads(np.ones((4, 4), dtype=np.int64))
        9
    """
    loads = 0
    resident: set[int] = set()
    for size in range(len(ends)):
        for other in range(size + 1):
            if ends[other, size] or ends[size, other]:
                needed = {other, size}
                loads += len(needed - resident)
                resident = needed
    return loads


PARTITIONERS.register("buckets")(Buckets())
