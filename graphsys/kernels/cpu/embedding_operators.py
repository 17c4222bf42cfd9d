"""Relation operators on groups of rows, forward and backward.

A group is a run of rows with one relation. Parameters of all relations lie in one flat
array; relation ``r`` owns ``parameters[offsets[r]:offsets[r + 1]]`` and has the operator
``codes[r]``. For rows ``x`` of length D and parameters ``p``:

    identity       y = x                      no parameters
    translation    y = x + p                  D
    diagonal       y = p * x                  D
    linear         y = P x                    D * D, row-major
    complex        y = p * x, complex         D: real parts, then imaginary parts

The backward pass adds to the gradient of the parameters and overwrites that of the rows.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding_math import Floats, fused_jit

IDENTITY: Final = 0
TRANSLATION: Final = 1
DIAGONAL: Final = 2
LINEAR: Final = 3
COMPLEX: Final = 4


@fused_jit
def _operate(code: int, p: Floats, x: Floats, y: Floats) -> None:
    size = x.shape[1]
    half = size // 2
    if code == LINEAR:
        np.dot(x, p.reshape((size, size)).T, y)
        return
    for i in range(x.shape[0]):
        if code == IDENTITY:
            for k in range(size):
                y[i, k] = x[i, k]
        elif code == TRANSLATION:
            for k in range(size):
                y[i, k] = x[i, k] + p[k]
        elif code == DIAGONAL:
            for k in range(size):
                y[i, k] = x[i, k] * p[k]
        else:
            for k in range(half):
                re, im = x[i, k], x[i, half + k]
                y[i, k] = re * p[k] - im * p[half + k]
                y[i, half + k] = re * p[half + k] + im * p[k]


@fused_jit
def _operate_backward(
    code: int, p: Floats, x: Floats, dy: Floats, dx: Floats, dp: Floats
) -> None:
    size = x.shape[1]
    half = size // 2
    if code == LINEAR:
        np.dot(dy, p.reshape((size, size)), dx)
        outer = np.dot(dy.T, x).reshape(size * size)
        for k in range(size * size):
            dp[k] += outer[k]
        return
    for i in range(x.shape[0]):
        if code == IDENTITY:
            for k in range(size):
                dx[i, k] = dy[i, k]
        elif code == TRANSLATION:
            for k in range(size):
                dx[i, k] = dy[i, k]
                dp[k] += dy[i, k]
        elif code == DIAGONAL:
            for k in range(size):
                dx[i, k] = dy[i, k] * p[k]
                dp[k] += dy[i, k] * x[i, k]
        else:
            for k in range(half):
                re, im = dy[i, k], dy[i, half + k]
                dx[i, k] = re * p[k] + im * p[half + k]
                dx[i, half + k] = im * p[k] - re * p[half + k]
                dp[k] += re * x[i, k] + im * x[i, half + k]
                dp[half + k] += im * x[i, k] - re * x[i, half + k]


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
        _operate_backward(codes[r], p, x[begin:end], dy[begin:end], dx[begin:end], dp)
        begin = end
