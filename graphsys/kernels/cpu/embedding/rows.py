"""Rows of the tables: gathered for a chunk, their gradients summed, then updated.

Rows of the two tables get one numbering: ``v`` is row ``v`` of the source table, and from
``num_src`` on row ``v - num_src`` of the destination table; when both sides are one
partition the numbering is that of the source table alone. Gradients are summed over a
batch in ``Sums``, one sum per distinct row, and applied by one pass of row-wise Adagrad:
the state of a row is the running sum of its mean squared gradients. Where states have a
number for each of a row, each has its own sum. States of ``1 + 2 D`` numbers are Adam's, of
the rows of a batch alone. Parameters of operators have one state each, of Adagrad.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numba.extending import overload

from graphsys.kernels.cpu.embedding.storage import (
    Table,
    add_row,
    load_row,
    move_row,
    row_size,
    store_row,
)
from graphsys.kernels.cpu.embedding.vector_math import (
    Floats,
    fused_jit,
    lean_fused_jit,
    uncounted_jit,
)
from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.prefetch import prefetch, prefetch_row

Ints = npt.NDArray[np.int64]
_AHEAD: Final = 8  # rows; they come from memory at random
_STABLE: Final = np.float32(1e-10)
_ZERO: Final = np.float32(0.0)
_ONE: Final = np.float32(1.0)
FIRST: Final = np.float32(0.1)
"""What a gradient adds to Adam's mean of gradients: 1 - beta 1."""
_SECOND: Final = np.float32(0.001)
_EPS: Final = np.float32(1e-8)
_WARM: Final = 20_000.0  # from here on no correction changes a float32
NO_RATES: Final = np.empty(0, dtype=np.float32)


class Tables(NamedTuple):
    """Rows and the optimizer's states of the two partitions; the same arrays twice if one.

    Attributes:
        src_rows, dst_rows: Embeddings ``[N, D]``, float32, or uint16 with the bits of
            bfloat16 or float16, or int8 ``[N, D + 2]`` with a scale behind each row.
        src_state, dst_state: Adagrad state, float32, row by row ``[N]``, or of every
            number ``[N, D]``; or Adam's, ``[N, 1 + 2 D]``: how often the row was moved,
            then the moving means of the gradient and of its square.
        is_shared: Whether both sides are the same partition.
        src_rates, dst_rates: Factor on the learning rate of every row, float32 ``[N]``, 0
            for rows that stay; empty for ones.
    """

    src_rows: Table
    src_state: Floats
    dst_rows: Table
    dst_state: Floats
    is_shared: bool
    src_rates: Floats = NO_RATES
    dst_rates: Floats = NO_RATES


class Optimizer(NamedTuple):
    """The numbers of an update of rows.

    Attributes:
        lr: Learning rate.
        max_norm: Longer rows are shortened to this length; infinite for none.
        is_half: Whether rows in 16 bits are float16, not bfloat16.
    """

    lr: np.float32
    max_norm: np.float32
    is_half: bool


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
        slot,
        np.empty(most, np.int64),
        np.zeros(1, np.int64),
        np.empty((most, size), np.float32),
    )


@lean_fused_jit
def gather(table: Table, nodes: Ints, is_half: bool, out: Floats) -> None:
    """Copy the rows of ``nodes`` to ``out``, float32 ``[len(nodes), D]``."""
    count = nodes.size
    for i in range(min(count, _AHEAD)):
        prefetch_row(table, nodes[i])
    for i in range(count):
        if i + _AHEAD < count:
            prefetch_row(table, nodes[i + _AHEAD])
        load_row(table, nodes[i], is_half, out, i)


@lean_fused_jit
def accumulate(nodes: Ints, first: int, rows: Floats, sums: Sums) -> None:
    """Add the gradients ``rows`` of ``nodes``, whose table begins at number ``first``."""
    slot, gradient, size = sums.slot, sums.gradient, rows.shape[1]
    num_used = sums.num_used[0]
    for i in range(nodes.size):
        if i + _AHEAD < nodes.size:
            prefetch(slot, nodes[i + _AHEAD] + first)
        v = nodes[i] + first
        at = slot[v]
        # The first gradient is copied, not added: sums need not be cleared between batches.
        if at < 0:
            slot[v] = num_used
            sums.used[num_used] = v
            for k in range(size):
                gradient[num_used, k] = rows[i, k]
            num_used += 1
        else:
            for k in range(size):
                gradient[at, k] += rows[i, k]
    sums.num_used[0] = num_used


def _take_step(
    state: Floats, v: int, square: np.float32, gradient: Floats, s: int, lr: np.float32
) -> np.float32:
    """Add to the state of row ``v``; return the factor on its gradient; for kernels."""
    raise NotImplementedError


def _ask_for_state(state: Floats, v: int) -> None:
    """Ask for the state of row ``v``; for kernels."""
    raise NotImplementedError


@lean_fused_jit
def _take_step_of_row(
    state: Floats, v: int, square: np.float32, gradient: Floats, s: int, lr: np.float32
) -> np.float32:
    state[v] += square
    return np.float32(-lr / (np.sqrt(state[v]) + _STABLE))


@lean_fused_jit
def _take_step_of_adam(
    state: Floats, v: int, gradient: Floats, s: int, lr: np.float32
) -> np.float32:
    """Put the direction of Adam in the gradient's place.

    It is torch's ``SparseAdam``, but that a row counts its own steps (as DGL's does), not
    those of all rows: a row may first be met when others were moved for an hour.
    """
    size = gradient.shape[1]
    # A float32 counts exactly to 2**24, far above _WARM, from where on it has no effect.
    state[v, 0] += _ONE
    count = np.float64(state[v, 0])
    rate = np.float64(lr)
    if count < _WARM:
        rate *= np.sqrt(1.0 - 0.999**count) / (1.0 - 0.9**count)
    for k in range(size):
        g = gradient[s, k]
        mean = state[v, 1 + k] + FIRST * (g - state[v, 1 + k])
        at = 1 + size + k
        square = state[v, at] + _SECOND * (g * g - state[v, at])
        state[v, 1 + k] = mean
        state[v, at] = square
        gradient[s, k] = mean / (np.sqrt(square) + _EPS)
    return np.float32(-rate)


@lean_fused_jit
def _take_step_of_numbers(
    state: Floats, v: int, square: np.float32, gradient: Floats, s: int, lr: np.float32
) -> np.float32:
    """Divide every number of the gradient by its own root; or take Adam's step."""
    if state.shape[1] > gradient.shape[1]:
        return _take_step_of_adam(state, v, gradient, s, lr)
    for k in range(state.shape[1]):
        g = gradient[s, k]
        state[v, k] += g * g
        gradient[s, k] = g / (np.sqrt(state[v, k]) + _STABLE)
    return np.float32(-lr)


# numba wants the very same parameters as in what is returned, which has no annotations
@overload(_take_step)
def _choose_step(state, v, square, gradient, s, lr):  # type: ignore[no-untyped-def]
    step: Any = _take_step_of_row if state.ndim == 1 else _take_step_of_numbers
    return lambda state, v, square, gradient, s, lr: step(state, v, square, gradient, s, lr)


@overload(_ask_for_state)
def _choose_ask(state, v):  # type: ignore[no-untyped-def]
    ask: Any = prefetch if state.ndim == 1 else prefetch_row
    return lambda state, v: ask(state, v)


@lean_fused_jit
def _update_row(
    rows: Table,
    state: Floats,
    v: int,
    gradient: Floats,
    s: int,
    lr: np.float32,
    optimizer: Optimizer,
    key: np.uint64,
) -> bool:
    """Update row ``v`` by the gradient ``s``, unless ``lr`` is 0.

    Returns:
        Whether the gradient was finite.
    """
    size = row_size(rows)
    square = _ZERO
    for k in range(size):
        square += gradient[s, k] * gradient[s, k]
    square /= np.float32(size)
    # Neither row nor state is touched: the checkpoint's rows stay what the user can go on
    # from.
    if not np.isfinite(square):
        return False
    if square > _ZERO and lr > _ZERO:
        factor = _take_step(state, v, square, gradient, s, lr)
        if optimizer.max_norm == np.inf:
            move_row(rows, v, optimizer.is_half, gradient, s, factor, key)
            return True
        # The new row stands in the gradient's place, in float32, until its length is known:
        # so it is rounded once.
        add_row(rows, v, optimizer.is_half, gradient, s, factor)
        length = _ZERO
        for k in range(size):
            length += gradient[s, k] * gradient[s, k]
        length = np.sqrt(length)
        scale = optimizer.max_norm / length if length > optimizer.max_norm else _ONE
        store_row(gradient, s, scale, rows, v, optimizer.is_half, key)
    return True


@lean_fused_jit
def _rate(rates: Floats, v: int, optimizer: Optimizer) -> np.float32:
    return np.float32(optimizer.lr * rates[v]) if rates.size > 0 else optimizer.lr


@lean_fused_jit
def _prefetch(tables: Tables, v: int) -> None:
    num_src = tables.src_rows.shape[0]
    if v < num_src:
        prefetch_row(tables.src_rows, v)
        _ask_for_state(tables.src_state, v)
    else:
        prefetch_row(tables.dst_rows, v - num_src)
        _ask_for_state(tables.dst_state, v - num_src)


@lean_fused_jit
def update_rows(tables: Tables, sums: Sums, optimizer: Optimizer, key: np.uint64) -> bool:
    """Apply the summed gradients and clear them; say whether all were finite.

    Args:
        tables: Rows and states, updated in place.
        sums: The gradients; left empty.
        optimizer: The numbers of the update.
        key: Key of the draws of the batch, where rows are rounded.
    """
    num_src, count = tables.src_rows.shape[0], sums.num_used[0]
    is_finite = True
    for s in range(min(count, _AHEAD)):
        _prefetch(tables, sums.used[s])
    for s in range(count):
        if s + _AHEAD < count:
            _prefetch(tables, sums.used[s + _AHEAD])
        v = sums.used[s]
        # Cleared row by row, as -1 everywhere is what the next batch begins with.
        sums.slot[v] = -1
        # By row, not by place in the batch: a rerun rounds alike, whatever came before.
        draws = mix64(key + np.uint64(v))
        if v < num_src:
            is_finite &= _update_row(
                tables.src_rows,
                tables.src_state,
                v,
                sums.gradient,
                s,
                _rate(tables.src_rates, v, optimizer),
                optimizer,
                draws,
            )
        else:
            v -= num_src
            is_finite &= _update_row(
                tables.dst_rows,
                tables.dst_state,
                v,
                sums.gradient,
                s,
                _rate(tables.dst_rates, v, optimizer),
                optimizer,
                draws,
            )
    sums.num_used[0] = 0
    return is_finite


@uncounted_jit
def update_parameters(
    parameters: Floats, state: Floats, gradient: Floats, lr: np.float32
) -> bool:
    """Update operator parameters, unless ``lr`` is 0, and clear their gradient."""
    is_finite = True
    for k in range(parameters.size):
        g = gradient[k]
        gradient[k] = _ZERO
        if not np.isfinite(g):
            is_finite = False
        elif g != _ZERO and lr > _ZERO:
            state[k] += g * g
            parameters[k] -= lr * g / (np.sqrt(state[k]) + _STABLE)
    return is_finite
