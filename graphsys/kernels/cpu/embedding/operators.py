"""Relation operators on groups of rows, forward and backward.

A group is a run of rows with one relation. Parameters of all relations lie in one flat
array; relation ``r`` owns ``parameters[offsets[r]:offsets[r + 1]]`` and has the operator
``codes[r]``. For rows ``x`` of length D and parameters ``p``:

    identity       y = x                      no parameters
    translation    y = x + p                  D
    diagonal       y = p * x                  D
    linear         y = P x                    D * D, row-major
    complex        y = p * x, complex         D: real parts, then imaginary parts
    affine         y = P x + t                D * D row-major, then D
    rotation       y = exp(i p) * x, complex  D / 2 angles (RotatE: Sun et al., ICLR 2019)

A negative code is an operator of another package: minus the place among the codes where the
addresses of its two functions stand, which are called row by row.

The backward pass adds to the gradient of the parameters and overwrites that of the rows.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.calls import call_apply, call_apply_gradient
from graphsys.kernels.cpu.embedding.vector_math import Floats, fused_jit

Ints = npt.NDArray[np.int64]

IDENTITY: Final = 0
TRANSLATION: Final = 1
DIAGONAL: Final = 2
LINEAR: Final = 3
COMPLEX: Final = 4
AFFINE: Final = 5
ROTATION: Final = 6


class Operators(NamedTuple):
    """Operators of all relations of an edge type, in one flat array per side.

    Attributes:
        codes: Operator of every relation, int64 ``[R]``; then addresses, if there are any.
        offsets: Where the parameters of a relation begin, int64 ``[R + 1]``.
        parameters: float32, flat: the one operator, or that of queries from the source.
        state: Adagrad state of every parameter.
        back_parameters, back_state: Of queries from the destination; empty unless
            reciprocal.
        is_reciprocal: Whether there are two operators.
        has_complex: Whether N3 takes moduli, for rows.
        lr_factors: Learning rate of each, by that of all, float32 ``[R]``.
    """

    codes: Ints
    offsets: Ints
    parameters: Floats
    state: Floats
    back_parameters: Floats
    back_state: Floats
    is_reciprocal: bool
    has_complex: bool
    lr_factors: Floats


@fused_jit
def _turns(angles: Floats) -> Floats:
    """Return the complex numbers of length one at some angles: real, then imaginary."""
    half = angles.size
    turns = np.empty(2 * half, np.float32)
    for k in range(half):
        turns[k], turns[half + k] = np.cos(angles[k]), np.sin(angles[k])
    return turns


@fused_jit
def _multiply(p: Floats, x: Floats, y: Floats) -> None:
    """Multiply rows by complex numbers."""
    half = x.shape[1] // 2
    for i in range(x.shape[0]):
        for k in range(half):
            re, im = x[i, k], x[i, half + k]
            y[i, k] = re * p[k] - im * p[half + k]
            y[i, half + k] = re * p[half + k] + im * p[k]


@fused_jit
def _multiply_back(p: Floats, dy: Floats, dx: Floats) -> None:
    """Multiply rows by conjugates."""
    half = dy.shape[1] // 2
    for i in range(dy.shape[0]):
        for k in range(half):
            re, im = dy[i, k], dy[i, half + k]
            dx[i, k] = re * p[k] + im * p[half + k]
            dx[i, half + k] = im * p[k] - re * p[half + k]


@fused_jit
def _operate(code: int, p: Floats, x: Floats, y: Floats) -> None:
    size = x.shape[1]
    if code in (LINEAR, AFFINE):
        np.dot(x, p[: size * size].reshape((size, size)).T, y)
        if code == AFFINE:
            for i in range(x.shape[0]):
                for k in range(size):
                    y[i, k] += p[size * size + k]
    elif code == ROTATION:
        _multiply(_turns(p), x, y)
    elif code == COMPLEX:
        _multiply(p, x, y)
    else:
        for i in range(x.shape[0]):
            if code == IDENTITY:
                for k in range(size):
                    y[i, k] = x[i, k]
            elif code == TRANSLATION:
                for k in range(size):
                    y[i, k] = x[i, k] + p[k]
            else:
                for k in range(size):
                    y[i, k] = x[i, k] * p[k]


@fused_jit
def _linear_backward(p: Floats, x: Floats, dy: Floats, dx: Floats, dp: Floats) -> None:
    size = x.shape[1]
    square = size * size
    np.dot(dy, p[:square].reshape((size, size)), dx)
    # One product for the group: summing row by row would read the matrix once a row.
    outer = np.dot(dy.T, x).reshape(square)
    for k in range(square):
        dp[k] += outer[k]
    if p.size > square:  # affine
        for i in range(x.shape[0]):
            for k in range(size):
                dp[square + k] += dy[i, k]


@fused_jit
def _complex_backward(p: Floats, x: Floats, dy: Floats, dx: Floats, dp: Floats) -> None:
    half = x.shape[1] // 2
    _multiply_back(p, dy, dx)
    for i in range(x.shape[0]):
        for k in range(half):
            re, im = dy[i, k], dy[i, half + k]
            dp[k] += re * x[i, k] + im * x[i, half + k]
            dp[half + k] += im * x[i, k] - re * x[i, half + k]


@fused_jit
def _rotation_backward(p: Floats, x: Floats, dy: Floats, dx: Floats, dp: Floats) -> None:
    """Carry back; with dx turned back already, dy / d angle turns x by a right angle."""
    half = x.shape[1] // 2
    _multiply_back(_turns(p), dy, dx)
    for i in range(x.shape[0]):
        for k in range(half):
            dp[k] += dx[i, half + k] * x[i, k] - dx[i, k] * x[i, half + k]


@fused_jit
def _operate_backward(
    code: int, p: Floats, x: Floats, dy: Floats, dx: Floats, dp: Floats
) -> None:
    size = x.shape[1]
    if code in (LINEAR, AFFINE):
        _linear_backward(p, x, dy, dx, dp)
    elif code == ROTATION:
        _rotation_backward(p, x, dy, dx, dp)
    elif code == COMPLEX:
        _complex_backward(p, x, dy, dx, dp)
    else:
        for i in range(x.shape[0]):
            if code == IDENTITY:
                for k in range(size):
                    dx[i, k] = dy[i, k]
            elif code == TRANSLATION:
                for k in range(size):
                    dx[i, k] = dy[i, k]
                    dp[k] += dy[i, k]
            else:
                for k in range(size):
                    dx[i, k] = dy[i, k] * p[k]
                    dp[k] += dy[i, k] * x[i, k]


@fused_jit
def apply_operators(
    codes: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    parameters: Floats,
    relations: npt.NDArray[np.int64],
    x: Floats,
    y: Floats,
) -> None:
    """Apply to every row the operator of its relation.

    Args:
        codes: Operator of every relation ``[R]``.
        offsets: Where each relation's parameters begin ``[R + 1]``.
        parameters: Parameters of all relations, flat.
        relations: Relation of every row ``[B]``, equal ones side by side.
        x: Rows ``[B, D]``.
        y: Receives the transformed rows ``[B, D]``.
    """
    begin = 0
    while begin < x.shape[0]:
        r = relations[begin]
        end = begin + 1
        while end < x.shape[0] and relations[end] == r:
            end += 1
        p = parameters[offsets[r] : offsets[r + 1]]
        if codes[r] < 0:
            for i in range(begin, end):
                call_apply(codes[-codes[r]], p, x[i], y[i])
        else:
            _operate(codes[r], p, x[begin:end], y[begin:end])
        begin = end


@fused_jit
def apply_operators_backward(
    codes: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    parameters: Floats,
    relations: npt.NDArray[np.int64],
    x: Floats,
    dy: Floats,
    dx: Floats,
    dparameters: Floats,
) -> None:
    """Carry the gradient at the transformed rows back to rows and parameters.

    Args:
        codes: Operator of every relation ``[R]``.
        offsets: Where each relation's parameters begin ``[R + 1]``.
        parameters: Parameters of all relations, flat.
        relations: Relation of every row ``[B]``, equal ones side by side.
        x: Rows ``[B, D]``.
        dy: Gradient at the transformed rows ``[B, D]``.
        dx: Receives the gradient at the rows ``[B, D]``.
        dparameters: The gradient of the parameters is added here, flat.
    """
    begin = 0
    while begin < x.shape[0]:
        r = relations[begin]
        end = begin + 1
        while end < x.shape[0] and relations[end] == r:
            end += 1
        low, high = offsets[r], offsets[r + 1]
        p, dp = parameters[low:high], dparameters[low:high]
        if codes[r] < 0:
            for i in range(begin, end):
                call_apply_gradient(codes[1 - codes[r]], p, x[i], dy[i], dx[i], dp)
        else:
            _operate_backward(codes[r], p, x[begin:end], dy[begin:end], dx[begin:end], dp)
        begin = end
