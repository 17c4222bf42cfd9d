"""LDG and Fennel, once or restreamed, balanced on degree.

A node weighs its degree plus one, so the edges of partitions are balanced and edgeless
nodes are too. The papers are cited in ``kernels/cpu/partition.py``.

Restreaming does three passes as in the paper, each from empty partitions; Fennel's penalty
doubles with each (the paper tempers it so). Then up to seven passes refine: a node is
taken out and placed anew while all others stay where they are. On clustered graphs that
is worth 1 to 10 % of the cut over as many passes from empty partitions, and starting it
earlier leaves hubs where the first pass put them. It ends when fewer than one node in a
thousand moves.
"""

import math

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.partition import UNASSIGNED, stream_pass
from graphsys.partitioners.stream import STREAM_PARTITIONERS, NodeStream

_SLACK = 1.04
_GAMMA = 1.5
_PASSES = 3
_REFINEMENTS = 7


@STREAM_PARTITIONERS.register("ldg")
def ldg(stream: NodeStream, num_partitions: int, seed: int) -> npt.NDArray[np.uint32]:
    """Assign nodes by linear deterministic greedy, in one pass; the seed plays no part."""
    return _stream(stream, num_partitions, is_fennel=False, is_restreamed=False)


@STREAM_PARTITIONERS.register("fennel")
def fennel(stream: NodeStream, num_partitions: int, seed: int) -> npt.NDArray[np.uint32]:
    """Assign nodes by Fennel, in one pass; the seed plays no part."""
    return _stream(stream, num_partitions, is_fennel=True, is_restreamed=False)


@STREAM_PARTITIONERS.register("reldg")
def reldg(stream: NodeStream, num_partitions: int, seed: int) -> npt.NDArray[np.uint32]:
    """Assign nodes by LDG, then stream up to nine times more with the last assignment."""
    return _stream(stream, num_partitions, is_fennel=False, is_restreamed=True)


@STREAM_PARTITIONERS.register("refennel")
def refennel(stream: NodeStream, num_partitions: int, seed: int) -> npt.NDArray[np.uint32]:
    """Assign nodes by Fennel, then up to nine times more with the last assignment."""
    return _stream(stream, num_partitions, is_fennel=True, is_restreamed=True)


def _stream(
    stream: NodeStream, num_partitions: int, *, is_fennel: bool, is_restreamed: bool
) -> npt.NDArray[np.uint32]:
    parts = np.full(stream.num_nodes, UNASSIGNED, dtype=np.uint32)
    weights = stream.degrees.astype(np.float64) + 1.0
    total = float(weights.sum())
    # never below what the heaviest node and an even share need
    capacity = max(_SLACK * total / num_partitions, float(weights.max(initial=0.0)))
    num_edges = float(stream.degrees.sum()) / 2
    alpha = 0.0
    if is_fennel:
        alpha = math.sqrt(num_partitions) * num_edges / max(total, 1.0) ** _GAMMA
    loads = np.zeros(num_partitions)
    for number in range(_PASSES + _REFINEMENTS if is_restreamed else 1):
        if number < _PASSES:
            loads[:] = 0.0
        tempered = alpha * 2 ** min(number, _PASSES - 1)
        moved = _pass(stream, weights, parts, loads, capacity, tempered, number >= _PASSES)
        if moved <= stream.num_nodes // 1000:
            break
    return parts


def _pass(
    stream: NodeStream,
    weights: npt.NDArray[np.float64],
    parts: npt.NDArray[np.uint32],
    loads: npt.NDArray[np.float64],
    capacity: float,
    alpha: float,
    keeps_loads: bool,
) -> int:
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
            alpha,
            _GAMMA,
            keeps_loads,
        )
    return moved
