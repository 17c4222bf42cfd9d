"""Rows of one level of Leiden: those of the graph where they lie, or folded ones.

All weights are whole numbers: those of the graph times a power of two, rounded, so that
the sum of all is below 2**53. Sums in float64 are then exact in any order, and so the same
for any number of threads and partitions.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.cpu.rows.csr import WeightedCsr
from graphsys.kernels.jit import jit, lean_inline_jit, lean_jit

BLOCK = 256
"""Nodes that a thread claims at a time."""


Sides = tuple[WeightedCsr, WeightedCsr]
"""Out rows and in rows, in which loops stand again and are passed over; without in rows the
out rows are symmetric, and a loop stands once."""


@lean_inline_jit
def weight_at(weight: Any, place: Any, unit: Any) -> Any:
    """Return a weight as a whole number; 1 where there are none."""
    if len(weight) == 0:
        return 1.0
    return np.rint(np.float64(weight[place]) * unit)


@lean_inline_jit
def num_sides(rows: Any) -> Any:
    """Return how many rows a node has: one, or one of each direction."""
    return 1 + (len(rows[1].begins) > 0)


@lean_inline_jit
def side_of(rows: Any, side: Any, node: Any) -> Any:
    """Return one of a node's rows.

    Returns:
        Where it begins and ends in the neighbors; how much further in the weights; the
        neighbors; the weights.
    """
    if side == 0:
        return _row(rows[0], node)
    return _row(rows[1], node)


@lean_inline_jit
def _row(rows: Any, node: Any) -> Any:
    begin, end = np.int64(rows.begins[node]), np.int64(rows.ends[node])
    return begin, end, np.int64(rows.weight_begins[node]) - begin, rows.indices, rows.weight


@lean_inline_jit
def add_links(
    node: Any,
    rows: Any,
    unit: Any,
    group: Any,
    links: Any,
    touched: Any,
    num_touched: Any,
) -> Any:
    """Add up the weights from a node to each group next to it, its loops left out.

    Args:
        rows: The level's rows.
        unit: What turns weights into whole numbers.
        group: Group of every node ``[n]``.
        links: Zeros for the groups that are not in ``touched``, float64.
        touched: Receives the groups next to the node.
        num_touched: How many groups are in ``touched``.

    Returns:
        How many are in it now.
    """
    for side in range(num_sides(rows)):
        begin, end, shift, indices, weight = side_of(rows, side, node)
        for k in range(begin, end):
            other = indices[k]
            if other == node:
                continue
            share = weight_at(weight, k + shift, unit)
            if share > 0.0:
                target = group[other]
                if links[target] == 0.0:
                    touched[num_touched] = target
                    num_touched += 1
                links[target] += share
    return num_touched


@lean_inline_jit
def sum_inside(node: Any, rows: Any, unit: Any, group: Any) -> Any:
    """Return the weight from a node to others of its group."""
    total = 0.0
    own = group[node]
    for side in range(num_sides(rows)):
        begin, end, shift, indices, weight = side_of(rows, side, node)
        for k in range(begin, end):
            other = indices[k]
            if other != node and group[other] == own:
                total += weight_at(weight, k + shift, unit)
    return total


@lean_jit
def sum_strengths(
    thread: int,
    rows: Sides,
    unit: float,
    counter: npt.NDArray[np.int64],
    strength: npt.NDArray[np.float64],
) -> float:
    """Add up the weights of every node's edges, loops twice.

    Args:
        rows: The graph's rows.
        unit: What turns weights into whole numbers.
        counter: Zero, int64 ``[1]``.
        strength: Receives the sums ``[n]``.

    Returns:
        The weight of the loops that this thread saw.
    """
    all_loops = 0.0
    for node in claimed_range(0, len(strength), BLOCK, counter):
        loops, others = 0.0, 0.0
        for side in range(num_sides(rows)):
            begin, end, shift, indices, weight = side_of(rows, side, node)
            for k in range(begin, end):
                share = weight_at(weight, k + shift, unit)
                if indices[k] != node:
                    others += share
                elif side == 0:  # in rows repeat it
                    loops += share
        strength[node] = others + 2.0 * loops
        all_loops += loops
    return all_loops


@lean_jit
def weigh_inside(
    thread: int,
    rows: Sides,
    unit: float,
    group: npt.NDArray[Any],
    counter: npt.NDArray[np.int64],
) -> float:
    """Return the weight, from both ends, within groups of the nodes this thread claims."""
    total = 0.0
    for node in claimed_range(0, len(group), BLOCK, counter):
        total += sum_inside(node, rows, unit, group)
    return total


@jit
def sum_by_group(
    group: npt.NDArray[Any],
    strength: npt.NDArray[np.float64],
    totals: npt.NDArray[np.float64],
) -> None:
    """Add the strength of every node to its group's total."""
    for node in range(len(group)):
        totals[group[node]] += strength[node]
