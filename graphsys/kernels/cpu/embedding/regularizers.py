"""Gradients of the regularizers, N3 (cubed moduli), L2 (squares) and DURA; dropout.

DURA has the squares of both ends and, in place of the operator's, those of what it makes of
a question's row (Zhang, Cai, Wang, "Duality-induced regularizer for tensor factorization
based knowledge graph completion", NeurIPS 2020). Both questions of an edge (h, r, t), with
the operators R and S, add up to its sum |h|^2 + |h R|^2 + |t|^2 + |t S|^2.

Dropout leaves numbers of questions' rows out at random and scales up those that stay
(Srivastava, Hinton, Krizhevsky, Sutskever, Salakhutdinov, "Dropout", JMLR 2014), so that
nothing is to be done where a model is used.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.chunk import ASKS_BOTH, ASKS_DST, ASKS_SRC, Chunk
from graphsys.kernels.cpu.embedding.operators import COMPLEX, ROTATION, Operators
from graphsys.kernels.cpu.embedding.storage import noise
from graphsys.kernels.cpu.embedding.vector_math import (
    Floats,
    add_cubic_gradient,
    add_scaled,
    lean_fused_jit,
    uncounted_jit,
)
from graphsys.kernels.cpu.hashing import mix64

Ints = npt.NDArray[np.int64]
N3: Final = 0
SQUARES: Final = 1
DURA: Final = 2

_DRAWS: Final = np.float32(1 << 16)
_ZERO: Final = np.float32(0.0)
_HALF: Final = np.float32(0.5)
_ONE: Final = np.float32(1.0)
_TWO: Final = np.float32(2.0)


@uncounted_jit
def _add_gradient(
    kind: int, x: Floats, gradient: Floats, coefficient: np.float32, is_complex: bool
) -> None:
    if kind == N3:
        add_cubic_gradient(x, gradient, coefficient, is_complex)
    else:
        add_scaled(gradient, x, _TWO * coefficient)


@uncounted_jit
def _regularize_rows(
    kind: int,
    rows: Floats,
    weights: Floats,
    n: int,
    coefficient: np.float32,
    is_complex: bool,
    out: Floats,
) -> None:
    for i in range(n):
        _add_gradient(kind, rows[i], out[i], coefficient * weights[i], is_complex)


@uncounted_jit
def _regularize_operators(
    kind: int,
    operators: Operators,
    parameters: Floats,
    relations: Ints,
    weights: Floats,
    n: int,
    coefficient: np.float32,
    out: Floats,
) -> None:
    """Add the gradients at operators, once per run of one relation; angles have none."""
    begin = 0
    while begin < n:
        r, total, end = relations[begin], _ZERO, begin
        while end < n and relations[end] == r:
            total += weights[end]
            end += 1
        low, high = operators.offsets[r], operators.offsets[r + 1]
        code = operators.codes[r]
        if code != ROTATION:
            _add_gradient(
                kind,
                parameters[low:high],
                out[low:high],
                coefficient * total,
                code == COMPLEX,
            )
        begin = end


@uncounted_jit
def regularize(
    kind: int,
    coefficient: np.float32,
    chunk: Chunk,
    operators: Operators,
    n: int,
    asked: int,
    forward: Floats,
    backward: Floats,
) -> None:
    """Add the gradients for both ends and, but for DURA, the operator, for every query.

    Args:
        kind: Which regularizer.
        coefficient: Of it.
        chunk: A chunk whose gradients of the loss are there.
        operators: Its operators.
        n: Number of its positives.
        asked: Which ends they ask for.
        forward: Receives gradients of the parameters.
        backward: The same for queries from the destination, if relations are reciprocal.
    """
    relations, weights = chunk.relations, chunk.weights
    of_rows = _TWO * coefficient if asked == ASKS_BOTH else coefficient
    if kind == DURA:
        of_rows *= _HALF
    is_complex = operators.has_complex
    _regularize_rows(kind, chunk.src_x, weights, n, of_rows, is_complex, chunk.src_g)
    _regularize_rows(kind, chunk.dst_x, weights, n, of_rows, is_complex, chunk.dst_g)
    if kind == DURA:
        return
    share = coefficient if operators.is_reciprocal else of_rows
    if not operators.is_reciprocal or asked & ASKS_DST:
        _regularize_operators(
            kind, operators, operators.parameters, relations, weights, n, share, forward
        )
    if operators.is_reciprocal and asked & ASKS_SRC:
        _regularize_operators(
            kind,
            operators,
            operators.back_parameters,
            relations,
            weights,
            n,
            coefficient,
            backward,
        )


@uncounted_jit
def regularize_queries(
    kind: int, coefficient: np.float32, moved: Floats, weights: Floats, gradients: Floats
) -> None:
    """Add the gradients at questions' rows as they are compared: DURA's other half.

    Args:
        kind: Which regularizer; of others nothing is added.
        coefficient: Of it.
        moved: The rows, behind their operators and dropout.
        weights: Weights of the questions.
        gradients: Receive the gradients.
    """
    if kind == DURA and coefficient > _ZERO:
        for i in range(moved.shape[0]):
            add_scaled(gradients[i], moved[i], _TWO * coefficient * weights[i])


@lean_fused_jit
def drop(rows: Floats, rate: np.float32, key: np.uint64) -> None:
    """Set numbers to 0 with the probability ``rate``; divide the others by 1 - ``rate``.

    A draw is a function of a key, the row and the column: called again with the key, it
    carries the gradient back.

    Args:
        rows: float32 ``[n, D]``, changed in place.
        rate: Below 1, in steps of 2**-16.
        key: Key of the draws.
    """
    scale, limit = _ONE / (_ONE - rate), np.uint32(rate * _DRAWS)
    for i in range(rows.shape[0]):
        draws = mix64(key + np.uint64(i))
        for k in range(rows.shape[1]):
            rows[i, k] = rows[i, k] * scale if noise(draws, k) >= limit else _ZERO
