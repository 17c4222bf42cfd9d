"""LDG and Fennel, once or restreamed, balanced on degree.

A node weighs its degree plus one, so the edges of partitions are balanced and edgeless
nodes are too. The papers are cited in ``kernels/cpu/algorithms/partition.py``.

Restreaming does three passes as in the paper, each from empty partitions; Fennel's penalty
doubles with each (the paper tempers it so). Then up to seven passes refine: a node is
taken out and placed anew while all others stay where they are. That cuts less than as many
passes from empty partitions on clustered graphs of many nodes; started earlier, it leaves
hubs where the first pass put them. It ends when one node in a thousand moves, or fewer.
"""

import math

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.algorithms.partition import UNASSIGNED, stream_pass
from graphsys.partitioners.base import PARTITIONERS, NodeStream

_SLACK = 1.04
_GAMMA = 1.5
_PASSES = 3
_REFINEMENTS = 7


@PARTITIONERS.register("ldg")
def ldg(stream: NodeStream, num_partitions: int, seed: int) -> npt.NDArray[np.uint32]:
    """Assign nodes by linear deterministic greedy, in one pass; the seed plays no part."""
    return stream_greedily(stream, num_partitions, is_restreamed=False)


@PARTITIONERS.register("fennel")
def fennel(stream: NodeStream, num_partitions: int, seed: int) -> npt.NDArray[np.uint32]:
    """Assign nodes by Fennel, in one pass; the seed plays no part."""
    return stream_greedily(stream, num_partitions, is_fennel=True, is_restreamed=False)


@PARTITIONERS.register("reldg")
def reldg(stream: NodeStream, num_partitions: int, seed: int) -> npt.NDArray[np.uint32]:
    """Assign nodes by LDG, then stream up to nine times more with the last assignment."""
    return stream_greedily(stream, num_partitions)


@PARTITIONERS.register("refennel")
def refennel(stream: NodeStream, num_partitions: int, seed: int) -> npt.NDArray[np.uint32]:
    """Assign nodes by Fennel, then up to nine times more with the last assignment."""
    return stream_greedily(stream, num_partitions, is_fennel=True)


def stream_greedily(
    stream: NodeStream,
    num_partitions: int,
    *,
    max_size: int | None = None,
    start: npt.NDArray[np.uint32] | None = None,
    is_fennel: bool = False,
    is_restreamed: bool = True,
) -> npt.NDArray[np.uint32]:
    """Assign the nodes of a stream greedily.

    Args:
        stream: The graph.
        num_partitions: Partitions.
        max_size: Most nodes of a partition, if that is limited besides its edges.
        start: Partition of every node to refine, uint32 ``[N]``, if there is one.
        is_fennel: By Fennel rather than LDG.
        is_restreamed: In several passes rather than one.

    Returns:
        Partition of every node, uint32 ``[N]``.
    """
    parts = np.full(stream.num_nodes, UNASSIGNED, dtype=np.uint32)
    if start is not None:
        parts[:] = start
    # Plus one, as a node without edges takes room too.
    weights = stream.degrees.astype(np.float64) + 1.0
    total = float(weights.sum())
    # never below what the heaviest node and an even share need
    capacity = max(_SLACK * total / num_partitions, float(weights.max(initial=0.0)))
    alpha = 0.0
    if is_fennel:
        num_edges = float(stream.degrees.sum()) / 2
        alpha = math.sqrt(num_partitions) * num_edges / max(total, 1.0) ** _GAMMA
    loads = np.zeros(num_partitions)
    sizes = np.zeros(num_partitions, dtype=np.int64)
    if start is not None:
        loads += np.bincount(parts, weights=weights, minlength=num_partitions)
        sizes += np.bincount(parts, minlength=num_partitions)
    end = _PASSES + _REFINEMENTS if is_restreamed else 1
    for number in range(0 if start is None else _PASSES, end):
        keeps_loads = number >= _PASSES
        if not keeps_loads:
            # Restreaming: every pass deals anew, and sees where neighbors were the last
            # time.
            loads[:], sizes[:] = 0.0, 0
        moved = 0
        for first, indptr, indices in stream.blocks():
            moved += stream_pass(
                first,
                indptr,
                indices,
                weights[first : first + len(indptr) - 1],
                parts,
                loads,
                capacity,
                sizes,
                stream.num_nodes if max_size is None else max_size,
                alpha * 2 ** min(number, _PASSES - 1),
                _GAMMA,
                keeps_loads,
            )
        if moved <= stream.num_nodes // 1000:
            break
    return parts
