"""Leiden's third step: parts become nodes of the next level. And what is connected."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.algorithms.components import link
from graphsys.kernels.cpu.algorithms.leiden.rows import (
    BLOCK,
    Sides,
    add_links,
    num_sides,
    side_of,
)
from graphsys.kernels.cpu.atomics import atomic_add
from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.jit import jit, lean_jit

_PARTS = 16


@jit
def list_members(
    part: npt.NDArray[Any], starts: npt.NDArray[Any], members: npt.NDArray[Any]
) -> None:
    """List the nodes of every part.

    Args:
        part: Part of every node ``[n]``.
        starts: Zeros ``[P + 1]``; receives where each part begins in ``members``.
        members: Receives the nodes, ascending in each part ``[n]``.
    """
    for node in range(len(part)):
        starts[part[node]] += 1
    total = np.int64(0)
    for p in range(len(starts)):
        total += np.int64(starts[p])
        starts[p] = total
    # Ends become begins as they are filled: backwards, so that nodes ascend in each part.
    for node in range(len(part) - 1, -1, -1):
        p = part[node]
        starts[p] -= 1
        members[starts[p]] = node


@lean_jit
def fold_rows(
    thread: int,
    rows: Sides,
    unit: float,
    part: npt.NDArray[Any],
    starts: npt.NDArray[Any],
    members: npt.NDArray[Any],
    links: npt.NDArray[np.float64],
    touched: npt.NDArray[Any],
    counters: npt.NDArray[np.int64],
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    weight: npt.NDArray[Any],
) -> float:
    """Write the rows of parts, weights added up, what lies within a part left out.

    Rows lie in the order in which threads came to them, one behind the other.

    Args:
        rows: The level's rows.
        unit: What turns weights into whole numbers.
        part: Part of every node ``[n]``.
        starts: Where each part begins in ``members`` ``[P + 1]``.
        members: The nodes of every part.
        links: Zeros, float64 ``[threads, P]``; zeros again afterwards.
        touched: Scratch ``[threads, P]``.
        counters: Zeros, int64 ``[2]``: parts that are claimed, entries that are written.
        begins: Receives where each part's row begins ``[P]``.
        ends: Receives where it ends ``[P]``.
        indices: Receives neighbors; has room for as many as the level has entries.
        weight: Receives weights.

    Returns:
        The weight, from both ends, that this thread left out.
    """
    own_links, own_touched = links[thread], touched[thread]
    inside = 0.0
    for p in claimed_range(0, len(begins), _PARTS, counters):
        num_touched = 0
        for m in range(np.int64(starts[p]), np.int64(starts[p + 1])):
            num_touched = add_links(
                members[m], rows, unit, part, own_links, own_touched, num_touched
            )
        inside += own_links[p]
        num_outer = num_touched - (own_links[p] > 0.0)
        own_links[p] = 0.0
        # Which row lies where depends on the threads; what it holds does not.
        place = atomic_add(counters, 1, np.int64(num_outer))
        begins[p] = place
        ends[p] = place + num_outer
        for k in range(num_touched):
            other = own_touched[k]
            if own_links[other] > 0.0:
                indices[place] = other
                weight[place] = own_links[other]
                own_links[other] = 0.0
                place += 1
    return inside


@lean_jit
def join_neighbors(
    thread: int,
    rows: Sides,
    community: npt.NDArray[Any],
    counter: npt.NDArray[np.int64],
    parent: npt.NDArray[Any],
) -> None:
    """Link all neighbors of one community: the forest of ``components.py``.

    Args:
        rows: The graph's rows.
        community: Community of every node ``[n]``.
        counter: Zero, int64 ``[1]``.
        parent: The forest ``[n]``; every node its own parent at first.
    """
    for node in claimed_range(0, len(community), BLOCK, counter):
        own = community[node]
        for side in range(num_sides(rows)):
            begin, end, _, indices, _ = side_of(rows, side, node)
            for k in range(begin, end):
                other = np.int64(indices[k])
                if other != node and community[other] == own:
                    link(parent, np.int64(node), other)
