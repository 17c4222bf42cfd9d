"""Rows of the tables: gathered for a chunk, their gradients summed, then updated.

Rows of the two tables get one numbering: ``v`` is row ``v`` of the source table, and from
``num_src`` on row ``v - num_src`` of the destination table; when both sides are one
partition the numbering is that of the source table alone. Gradients are summed over a
batch in ``Sums``, one sum per distinct row, and applied by one pass of row-wise Adagrad:
the state of a row is the running sum of its mean squared gradients. Parameters of
operators have one state each.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding_math import Floats, add_scaled, fused_jit, row_dot

Ints = npt.NDArray[np.int64]
_STABLE: Final = np.float32(1e-10)
_ZERO: Final = np.float32(0.0)


class Tables(NamedTuple):
    """Rows and Adagrad states of the two partitions; the same arrays twice if one.

    Attributes:
        src_rows, dst_rows: Embeddings, float32 ``[N, D]``.
        src_state, dst_state: Row-wise Adagrad state, float32 ``[N]``.
        is_shared: Whether both sides are the same partition.
    """

    src_rows: Floats
    src_state: Floats
    dst_rows: Floats
    dst_state: Floats
    is_shared: bool


class Sums(NamedTuple):
    """Scratch of one worker: the gradients of a batch, summed per distinct row.

    Attributes:
        slot: Where the sum of every row is, int32 ``[num_src + num_dst]``; -1 between
            batches.
        used: Rows that have a sum, int64; ``num_used[0]`` of them.
        num_used: int64 ``[1]``.
        gradient: The sums, float32 ``[most, D]``.
    """

    slot: npt.NDArray[np.int32]
    used: Ints
    num_used: Ints
    gradient: Floats


@fused_jit
def allocate_sums(slot: npt.NDArray[np.int32], most: int, size: int) -> Sums:
    """Make room for the gradients of ``most`` distinct rows of length ``size``."""
    return Sums(
        slot, np.empty(most, np.int64), np.zeros(1, np.int64),
        np.empty((most, size), np.float32),
    )  # fmt: skip


@fused_jit
def gather(table: Floats, nodes: Ints, out: Floats) -> None:
    """Copy the rows of ``nodes`` to ``out``, float32 ``[len(nodes), D]``."""
    for i in range(nodes.size):
        row, target = table[nodes[i]], out[i]
        for k in range(row.size):
            target[k] = row[k]


@fused_jit
def accumulate(nodes: Ints, first: int, rows: Floats, sums: Sums) -> None:
    """Add the gradients ``rows`` of ``nodes``, whose table begins at number ``first``."""
    slot, count = sums.slot, sums.num_used[0]
    for i in range(nodes.size):
        v = nodes[i] + first
        row = rows[i]
        if slot[v] < 0:
            slot[v] = count
            sums.used[count] = v
            target = sums.gradient[count]
            count += 1
            for k in range(row.size):
                target[k] = row[k]
        else:
            target = sums.gradient[slot[v]]
            for k in range(row.size):
                target[k] += row[k]
    sums.num_used[0] = count


@fused_jit
def update_rows(tables: Tables, sums: Sums, lr: np.float32) -> bool:
    """Apply the summed gradients and clear them; say whether all were finite."""
    num_src = tables.src_rows.shape[0]
    is_finite = True
    for s in range(sums.num_used[0]):
        v = sums.used[s]
        sums.slot[v] = -1
        if v < num_src:
            rows, state = tables.src_rows, tables.src_state
        else:
            rows, state = tables.dst_rows, tables.dst_state
            v -= num_src
        is_finite &= _adagrad_row(rows[v], state, v, sums.gradient[s], lr)
    sums.num_used[0] = 0
    return is_finite


@fused_jit
def _adagrad_row(
    row: Floats, state: Floats, at: int, gradient: Floats, lr: np.float32
) -> bool:
    """Update one row; say whether the gradient was finite."""
    square = row_dot(gradient, gradient) / np.float32(gradient.size)
    if not np.isfinite(square):
        return False
    if square > _ZERO:
        state[at] += square
        add_scaled(row, gradient, -lr / (np.sqrt(state[at]) + _STABLE))
    return True


@fused_jit
def update_parameters(
    parameters: Floats, state: Floats, gradient: Floats, lr: np.float32
) -> bool:
    """Update operator parameters, one state each, and clear their gradient."""
    is_finite = True
    for k in range(parameters.size):
        g = gradient[k]
        gradient[k] = _ZERO
        if not np.isfinite(g):
            is_finite = False
        elif g != _ZERO:
            state[k] += g * g
            parameters[k] -= lr * g / (np.sqrt(state[k]) + _STABLE)
    return is_finite
