"""Rows made of other rows: pooled from the features of a node, or with one vector added.

A featurized node type trains the table of its features; the row of a node is the sum or
the mean of the rows of its features (Lerer et al., MLSys 2019: the mean), zeros without
any. A global vector of a type is added to all of its rows.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.rows import Sums, accumulate, gather, update_parameters
from graphsys.kernels.cpu.embedding.storage import Table, add_row
from graphsys.kernels.cpu.embedding.vector_math import (
    Floats,
    add_scaled,
    scale_row,
    uncounted_jit,
)

Ints = npt.NDArray[np.int64]
_ZERO: Final = np.float32(0.0)
_ONE: Final = np.float32(1.0)


class Bags(NamedTuple):
    """The features of every node of a partition, or nothing where rows are the nodes' own.

    Attributes:
        begins: Where the features of a node begin, int64 ``[N + 1]``, or empty.
        features: Numbers of features, uint32.
        is_mean: Whether rows are means, not sums.
    """

    begins: Ints
    features: npt.NDArray[np.uint32]
    is_mean: bool


def make_bags(
    begins: npt.NDArray[np.integer] | None,
    features: npt.NDArray[np.uint32] | None,
    *,
    is_mean: bool = True,
) -> Bags:
    """Return bags whose arrays are all of one type, or no bags: one compiled kernel."""
    starts = np.empty(0, np.int64) if begins is None else begins.astype(np.int64)
    values = np.empty(0, np.uint32) if features is None else features.view()
    starts.flags.writeable = values.flags.writeable = False
    return Bags(starts, values, is_mean)


NO_BAGS: Final = make_bags(None, None)
NO_VECTOR: Final = np.zeros((2, 0), dtype=np.float32)


class Extras(NamedTuple):
    """What makes rows of nodes from those of the two tables.

    Attributes:
        src_bags, dst_bags: Features of the nodes, or none.
        src_global, dst_global: Vectors added to all rows, and their Adagrad states,
            float32 ``[2, D]``, or ``[2, 0]``; one array twice if both ends have one type.
        is_one_type: Whether both ends have one type.
    """

    src_bags: Bags
    dst_bags: Bags
    src_global: Floats
    dst_global: Floats
    is_one_type: bool


PLAIN: Final = Extras(NO_BAGS, NO_BAGS, NO_VECTOR, NO_VECTOR, False)
"""The tables hold the rows of the nodes."""


@uncounted_jit
def _share(bags: Bags, node: int) -> np.float32:
    """Return the factor on every feature's row of a node."""
    count = bags.begins[node + 1] - bags.begins[node]
    return _ONE / np.float32(count) if bags.is_mean and count > 0 else _ONE


@uncounted_jit
def gather_bags(table: Table, bags: Bags, nodes: Ints, is_half: bool, out: Floats) -> None:
    """Pool the rows of nodes.

    Args:
        table: Rows of the features ``[F, D]``.
        bags: Features of the nodes.
        nodes: The nodes, int64 ``[n]``.
        is_half: Whether rows in 16 bits are float16.
        out: Receives their rows, float32 ``[n, D]``.
    """
    for i in range(nodes.size):
        node = nodes[i]
        share, target = _share(bags, node), out[i]
        for k in range(target.size):
            target[k] = _ZERO
        for e in range(bags.begins[node], bags.begins[node + 1]):
            add_row(table, np.int64(bags.features[e]), is_half, out, i, _ONE)
        scale_row(target, share)


@uncounted_jit
def _accumulate_bags(bags: Bags, nodes: Ints, first: int, rows: Floats, sums: Sums) -> None:
    """Add gradients at pooled rows to the sums of their features' rows."""
    slot, used, count, gradient = sums.slot, sums.used, sums.num_used, sums.gradient
    for i in range(nodes.size):
        node = nodes[i]
        share = _share(bags, node)
        for e in range(bags.begins[node], bags.begins[node + 1]):
            v = np.int64(bags.features[e]) + first
            if slot[v] < 0:
                slot[v] = count[0]
                used[count[0]] = v
                count[0] += 1
                gradient[slot[v]] = _ZERO
            add_scaled(gradient[slot[v]], rows[i], share)


@uncounted_jit
def has_bags(extras: Extras) -> bool:
    """Whether rows of either side are pooled."""
    return bool(extras.src_bags.begins.size > 0 or extras.dst_bags.begins.size > 0)


@uncounted_jit
def num_nodes(table: Table, bags: Bags) -> int:
    """Return the number of nodes of a partition."""
    return int(bags.begins.size - 1 if bags.begins.size > 0 else table.shape[0])


@uncounted_jit
def gather_rows(
    table: Table, bags: Bags, vector: Floats, nodes: Ints, is_half: bool, out: Floats
) -> None:
    """Bring the rows of nodes together.

    Args:
        table: The table of their partition.
        bags: Their features, or none.
        vector: Their type's global vector and its state, float32 ``[2, D]`` or ``[2, 0]``.
        nodes: The nodes, int64 ``[n]``.
        is_half: Whether rows in 16 bits are float16.
        out: Receives their rows, float32 ``[>= n, D]``.
    """
    if bags.begins.size > 0:
        gather_bags(table, bags, nodes, is_half, out)
    else:
        gather(table, nodes, is_half, out)
    if vector.shape[1] > 0:
        for i in range(nodes.size):
            add_scaled(out[i], vector[0], _ONE)


@uncounted_jit
def accumulate_rows(
    bags: Bags, nodes: Ints, first: int, rows: Floats, sums: Sums, vector: Floats
) -> None:
    """Add gradients at rows of nodes to the sums of what they are made of.

    Args:
        bags: Features of the nodes, or none.
        nodes: The nodes, int64 ``[n]``.
        first: Number of their table's first row.
        rows: Gradients, float32 ``[n, D]``.
        sums: Sums of the rows of the tables.
        vector: Sum of the global vector, float32 ``[D]`` or ``[0]``.
    """
    if bags.begins.size > 0:
        _accumulate_bags(bags, nodes, first, rows, sums)
    else:
        accumulate(nodes, first, rows, sums)
    if vector.size > 0:
        for i in range(nodes.size):
            add_scaled(vector, rows[i], _ONE)


@uncounted_jit
def update_globals(
    extras: Extras, src_sum: Floats, dst_sum: Floats, lr: np.float32
) -> bool:
    """Apply and clear the sums of the global vectors; say whether they were finite."""
    is_finite = True
    if src_sum.size > 0:
        if extras.is_one_type:
            add_scaled(src_sum, dst_sum, _ONE)
            dst_sum[:] = _ZERO
        vector = extras.src_global
        is_finite &= update_parameters(vector[0], vector[1], src_sum, lr)
    if dst_sum.size > 0 and not extras.is_one_type:
        vector = extras.dst_global
        is_finite &= update_parameters(vector[0], vector[1], dst_sum, lr)
    return is_finite
