"""LDG and Fennel, once or restreamed, balanced on degree.

A node weighs its degree plus one, so the edges of partitions are balanced and edgeless
nodes are too. The papers are cited in ``kernels/cpu/partition.py``.
"""

import math

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.partition import UNASSIGNED, stream_pass
from graphsys.partitioners.stream import STREAM_PARTITIONERS, NodeStream

_SLACK = 1.04
_GAMMA = 1.5
_RESTREAMS = 5


@STREAM_PARTITIONERS.register("ldg")
def ldg(stream: NodeStream, num_partitions: int, seed: int) -> npt.NDArray[np.uint32]:
    """Assign nodes by linear deterministic greedy, in one pass; the seed plays no part."""
    return _stream(stream, num_partitions, num_passes=1, is_fennel=False)


@STREAM_PARTITIONERS.register("fennel")
def fennel(stream: NodeStream, num_partitions: int, seed: int) -> npt.NDArray[np.uint32]:
    """Assign nodes by Fennel, in one pass; the seed plays no part."""
    return _stream(stream, num_partitions, num_passes=1, is_fennel=True)


@STREAM_PARTITIONERS.register("reldg")
def reldg(stream: NodeStream, num_partitions: int, seed: int) -> npt.NDArray[np.uint32]:
    """Assign nodes by LDG, then stream up to five times more with the last assignment."""
    return _stream(stream, num_partitions, num_passes=1 + _RESTREAMS, is_fennel=False)


@STREAM_PARTITIONERS.register("refennel")
def refennel(stream: NodeStream, num_partitions: int, seed: int) -> npt.NDArray[np.uint32]:
    """Assign nodes by Fennel, then up to five times more with the last assignment."""
    return _stream(stream, num_partitions, num_passes=1 + _RESTREAMS, is_fennel=True)


def _stream(
    stream: NodeStream, num_partitions: int, *, num_passes: int, is_fennel: bool
) -> npt.NDArray[np.uint32]:
    parts = np.full(stream.num_nodes, UNASSIGNED, dtype=np.uint32)
    weights = stream.degrees.astype(np.float64) + 1.0
    total = float(weights.sum())
    # never below what the heaviest node and an even share need
    capacity = max(_SLACK * total / num_partitions, float(weights.max(initial=0.0)))
    num_edges = float(stream.degrees.sum()) / 2
    alpha = math.sqrt(num_partitions) * num_edges / max(total, 1.0) ** _GAMMA
    for _ in range(num_passes):
        loads = np.zeros(num_partitions)
        moved = 0
        for first, indptr, indices in stream.blocks():
            block = slice(first, first + len(indptr) - 1)
            moved += stream_pass(
                first,
                indptr,
                indices,
                weights[block],
                parts,
                loads,
                capacity,
                alpha if is_fennel else 0.0,
                _GAMMA,
            )
        if moved < stream.num_nodes // 1000:
            break
    return parts
