"""The parts of a training step that are called through addresses: see ``pointers.py``.

``train_batches`` knows their signatures only, so it compiles without them, and a run
compiles those that its settings need: one loss, one comparator, operators if there are any.
"""

from typing import Any, Final, NamedTuple, cast

import numba
import numpy as np
from numba.core import types

from graphsys.kernels.cpu.embedding.candidate_weights import plain_counting
from graphsys.kernels.cpu.embedding.known import Known
from graphsys.kernels.pointers import pointer_call


class KernelAddresses(NamedTuple):
    """Addresses of kernels; 0 where the settings have no use for one.

    Attributes:
        losses: Of one of the losses in ``losses.py``, or of ``custom_losses``.
        leave_out: Of ``embedding_counting.leave_out``, for masks and hard pools.
        rank: Of a comparator's queries one way, in ``scores.py`` or ``custom.py``.
        rank_pairs: Of the same both ways at once, in ``pairs.py``.
        operate, operate_back: Of ``apply_operators`` and its gradient.
        find_known: Of ``embedding_known.find_known``, for masks.
        score, score_gradient: Of a comparator of another package.
        query_loss: Of a loss of another package.
    """

    losses: int = 0
    leave_out: int = 0
    rank: int = 0
    rank_pairs: int = 0
    operate: int = 0
    operate_back: int = 0
    find_known: int = 0
    score: int = 0
    score_gradient: int = 0
    query_loss: int = 0


class Objective(NamedTuple):
    """What is optimized.

    Attributes:
        comparator: Code of the comparator.
        loss: Code of the loss.
        margin: Margin of the ranking loss; of labels of all nodes their smoothing.
        calls: The kernels that do it.
    """

    comparator: int
    loss: int
    margin: np.float32
    calls: KernelAddresses = KernelAddresses()


def _array(dtype: Any, ndim: int, *, is_read_only: bool = False) -> Any:
    return types.Array(dtype, ndim, "C", readonly=is_read_only)


_VECTOR: Final = _array(types.float32, 1)
_PARAMETERS: Final = _array(types.float32, 1, is_read_only=True)
_MATRIX: Final = _array(types.float32, 2)
_INTS: Final = _array(types.int64, 1)
_COUNTING: Final = numba.typeof(plain_counting.py_func())  # type: ignore[attr-defined]
_OBJECTIVE: Final = numba.typeof(Objective(0, 0, np.float32(0)))
_KNOWN: Final = cast("Any", types).NamedTuple(
    (
        _array(types.uint32, 1, is_read_only=True),
        _array(types.uint32, 1, is_read_only=True),
        _array(types.uint16, 1, is_read_only=True),
        types.intp,
        types.intp,
    ),
    Known,
)
_SCRATCH: Final = (_VECTOR, _VECTOR)

_LOSS_ARGUMENTS: Final = (
    _MATRIX,  # scores
    types.intp,  # skip
    _VECTOR,  # positives
    _INTS,  # own
    _INTS,  # nodes
    _VECTOR,  # weights
    _VECTOR,  # bias
    types.float32,  # margin
    _COUNTING,
    types.intp,  # num_easy
    _VECTOR,  # gradients
)

call_losses: Final = pointer_call(types.float64, *_LOSS_ARGUMENTS)
"""Calls a loss of ``losses.py``."""

call_custom_losses: Final = pointer_call(types.float64, types.intp, *_LOSS_ARGUMENTS)
"""Calls :func:`graphsys.kernels.cpu.embedding.custom.custom_losses`."""

call_leave_out: Final = pointer_call(
    types.intp, _MATRIX, _VECTOR, _INTS, _COUNTING, types.intp
)
"""Calls :func:`graphsys.kernels.cpu.embedding.candidate_weights.leave_out`."""

call_rank: Final = pointer_call(
    types.float64,
    _MATRIX,
    _MATRIX,
    _INTS,
    _VECTOR,
    types.boolean,
    _OBJECTIVE,
    _VECTOR,
    _COUNTING,
    *_SCRATCH,
    _MATRIX,
    _MATRIX,
)
"""Calls a comparator of ``scores.py`` or ``bias.py``."""

call_rank_pairs: Final = pointer_call(
    types.float64,
    _MATRIX,
    _MATRIX,
    _INTS,
    _INTS,
    _VECTOR,
    _OBJECTIVE,
    _VECTOR,
    _VECTOR,
    _COUNTING,
    _COUNTING,
    *_SCRATCH,
    _MATRIX,
    _MATRIX,
)
"""Calls a kernel of ``pairs.py``."""

call_find_known: Final = pointer_call(
    types.none, _KNOWN, _INTS, _INTS, types.intp, _INTS, types.intp, _COUNTING[0]
)
"""Calls :func:`graphsys.kernels.cpu.embedding.known.find_known`."""

call_operate: Final = pointer_call(
    types.none, _INTS, _INTS, _VECTOR, _INTS, _MATRIX, _MATRIX
)
"""Calls :func:`graphsys.kernels.cpu.embedding.operators.apply_operators`."""

call_operate_back: Final = pointer_call(
    types.none, _INTS, _INTS, _VECTOR, _INTS, _MATRIX, _MATRIX, _MATRIX, _VECTOR
)
"""Calls :func:`graphsys.kernels.cpu.embedding.operators.apply_operators_backward`."""

# What packages bring: functions of one query, or of one row.

call_score: Final = pointer_call(types.float64, _VECTOR, _VECTOR)
"""Calls ``score(query, candidate)``."""

call_score_gradient: Final = pointer_call(
    types.none, _VECTOR, _VECTOR, types.float32, _VECTOR, _VECTOR
)
"""Calls ``gradient(query, candidate, factor, dquery, dcandidate)`` of a comparator."""

call_query_loss: Final = pointer_call(types.float64, _VECTOR, types.float32, _VECTOR)
"""Calls ``loss(scores, margin, gradient)``."""

call_apply: Final = pointer_call(types.none, _PARAMETERS, _VECTOR, _VECTOR)
"""Calls ``apply(parameters, row, out)`` of an operator."""

call_apply_gradient: Final = pointer_call(
    types.none, _PARAMETERS, _VECTOR, _VECTOR, _VECTOR, _VECTOR
)
"""Calls ``gradient(parameters, row, dout, drow, dparameters)`` of an operator."""
