"""Graphs that are the same, bit by bit, wherever they are made.

A generator of torch draws other numbers on a GPU than on the CPU. These numbers are mixed
from a counter (splitmix64, Steele et al., OOPSLA 2014) by integer operations alone, so that
results of the CPU, computed beforehand, are those of the graph that a card makes.
"""

from typing import Any

import numpy as np

_SHIFTS = ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15), (31, 1))
"""Of splitmix64: a shift, then a factor (as signed integers, which wrap)."""
_GOLDEN = -0x61C8864680B583EB
_DOWN, _RIGHT = 0.76, (0.75, 0.24)
"""Graph500's .57, .19, .19, .05: whether an edge lies below; right of the middle there."""


def kronecker(scale: int, edge_factor: int = 16) -> Any:
    """Return Graph500's Kronecker graph, undirected, random labels, uniform weights.

    Args:
        scale: Logarithm of the number of nodes.
        edge_factor: Edges drawn per node; loops and copies stay.
    """
    import torch

    from graphsys.engine.topology import Topology

    device = "cuda" if torch.cuda.is_available() else "cpu"
    num_edges = edge_factor << scale
    src = torch.zeros(num_edges, dtype=torch.int64, device=device)
    dst = torch.zeros_like(src)
    for bit in range(scale):
        down = uniform(num_edges, 2 * bit, device) > _DOWN
        bound = torch.where(down, _RIGHT[1], _RIGHT[0])
        right = uniform(num_edges, 2 * bit + 1, device) > bound
        src |= down.long() << bit
        dst |= right.long() << bit
    labels = torch.sort(mixed(1 << scale, 2 * scale, device), stable=True).indices
    weight = uniform(num_edges, 2 * scale + 1, device).float().cpu().numpy()
    ends = (labels[src].cpu().numpy(), labels[dst].cpu().numpy())
    return Topology.from_edges(*ends, 1 << scale, weight=weight, directed=False)


def grid(side: int) -> Any:
    """Return a square grid, undirected, of uniform weights: long paths, small frontiers."""
    from graphsys.engine.topology import Topology

    nodes = np.arange(side * side).reshape(side, side)
    src = np.concatenate([nodes[:, :-1].ravel(), nodes[:-1].ravel()])
    dst = np.concatenate([nodes[:, 1:].ravel(), nodes[1:].ravel()])
    weight = uniform(len(src), 0, "cpu").float().numpy()
    return Topology.from_edges(src, dst, side * side, weight=weight, directed=False)


def mixed(count: int, stream: int, device: str) -> Any:
    """Return int64 random bits of counters 0 to ``count - 1``, ``[count]``, of a stream.

    As ``kernels.cpu.hashing.mix64`` makes them, but by torch, where the graph is made.
    """
    import torch

    value = torch.arange(count, dtype=torch.int64, device=device) + (stream << 40)
    value *= _GOLDEN
    for shift, factor in _SHIFTS:
        value ^= (value >> shift) & ((1 << (64 - shift)) - 1)  # >> of torch keeps the sign
        value *= factor
    return value


def uniform(count: int, stream: int, device: str) -> Any:
    """Return float64 numbers of [0, 1), ``[count]``, each of 53 random bits."""
    bits = (mixed(count, stream, device) >> 11) & ((1 << 53) - 1)
    return bits.double() * 2.0**-53
