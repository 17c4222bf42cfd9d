"""Relation prediction, a term beside the ranking of nodes: which relation joins two nodes?

Every edge asks for its relation as well: its score is compared with those of all relations
of the edge type between the same two rows, by a softmax whose loss is added with a weight
(Chen, Minervini, Riedel, Stenetorp, "Relation prediction as an auxiliary training objective
for improving multi-relational graph representations", AKBC 2021). Reciprocal relations are
2 R relations, as in a graph with every edge both ways.

The score of a product-like operator is linear in its parameters: with ``q`` the product of
the two rows, the scores of all relations are one matrix product. Other operators are
applied one after the other. The comparator is the dot product.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.calls import (
    KernelAddresses,
    call_operate,
    call_operate_back,
)
from graphsys.kernels.cpu.embedding.chunk import ASKS_BOTH, ASKS_DST, ASKS_SRC, Chunk
from graphsys.kernels.cpu.embedding.operators import COMPLEX, DIAGONAL, Operators
from graphsys.kernels.cpu.embedding.products import multiply, multiply_by_rows
from graphsys.kernels.cpu.embedding.softmax import exp_shifted, scale
from graphsys.kernels.cpu.embedding.vector_math import (
    Floats,
    add_scaled,
    fused_jit,
    row_dot,
    uncounted_jit,
)

Ints = npt.NDArray[np.int64]

_ZERO: Final = np.float32(0.0)
_ONE: Final = np.float32(1.0)
_TWO: Final = np.float32(2.0)


class RelationScratch(NamedTuple):
    """Scratch for the relations of one chunk of ``n`` positives.

    Attributes:
        scores: Of every relation of either operator, float32 ``[n, sides * R]``.
        packed: Parameters of all relations, transposed, float32, flat.
        relations: One relation, for every row, int64 ``[n]``.
    """

    scores: Floats
    packed: Floats
    relations: Ints


@fused_jit
def allocate_relations(longest: int, operators: Operators) -> RelationScratch:
    """Make room for chunks of ``longest`` positives; 0: for nothing."""
    sides = 2 if operators.is_reciprocal else 1
    return RelationScratch(
        np.empty((longest, sides * (operators.offsets.size - 1)), np.float32),
        np.empty(operators.parameters.size if longest > 0 else 0, np.float32),
        np.empty(longest, np.int64),
    )


@uncounted_jit
def _is_linear(operators: Operators) -> bool:
    """Whether all scores are inner products of parameters and products of rows."""
    code = operators.codes[0]
    for r in range(1, operators.offsets.size - 1):
        if operators.codes[r] != code:
            return False
    return code in (DIAGONAL, COMPLEX)


@uncounted_jit
def _multiply_ends(is_complex: bool, x: Floats, y: Floats, out: Floats) -> None:
    """Write the product of the answers ``y`` and the (conjugate) rows ``x``."""
    half = x.shape[1] // 2
    for i in range(x.shape[0]):
        if is_complex:
            for k in range(half):
                re, im = x[i, k], x[i, half + k]
                out[i, k] = re * y[i, k] + im * y[i, half + k]
                out[i, half + k] = re * y[i, half + k] - im * y[i, k]
        else:
            for k in range(x.shape[1]):
                out[i, k] = x[i, k] * y[i, k]


@uncounted_jit
def _multiply_ends_back(
    is_complex: bool, x: Floats, y: Floats, gradient: Floats, x_g: Floats, y_g: Floats
) -> None:
    """Add the gradients at both rows of a product."""
    half = x.shape[1] // 2
    for i in range(x.shape[0]):
        if is_complex:
            for k in range(half):
                re, im = gradient[i, k], gradient[i, half + k]
                x_g[i, k] += re * y[i, k] + im * y[i, half + k]
                x_g[i, half + k] += re * y[i, half + k] - im * y[i, k]
                y_g[i, k] += re * x[i, k] - im * x[i, half + k]
                y_g[i, half + k] += re * x[i, half + k] + im * x[i, k]
        else:
            for k in range(x.shape[1]):
                x_g[i, k] += gradient[i, k] * y[i, k]
                y_g[i, k] += gradient[i, k] * x[i, k]


@uncounted_jit
def _compare(chunk: Chunk, n: int, first: int, weight: np.float32, scores: Floats) -> float:
    """Turn the scores of relations into their gradients; return the loss."""
    total = 0.0
    for i in range(n):
        row, own = scores[i], first + chunk.relations[i]
        shift = row[0]
        for r in range(1, row.size):
            shift = max(shift, row[r])
        positive = row[own]
        part = exp_shifted(row, shift)
        factor = weight * chunk.weights[i]
        total += factor * (np.log(part) + shift - positive)
        scale(row, factor / part)
        row[own] -= factor
    return total


@uncounted_jit
def _predict_by_products(
    chunk: Chunk,
    operators: Operators,
    scratch: RelationScratch,
    n: int,
    is_back: bool,
    weight: np.float32,
    forward: Floats,
    backward: Floats,
) -> float:
    """Ask one way; all scores are products of matrices.

    Without reciprocal relations the operator acts on destinations, either way.
    """
    size = chunk.src_x.shape[1]
    num_relations = operators.parameters.size // size
    is_complex = operators.codes[0] == COMPLEX
    x, y = chunk.src_x[:n], chunk.dst_x[:n]
    x_g, y_g = chunk.src_g[:n], chunk.dst_g[:n]
    if is_back or not operators.is_reciprocal:
        x, y, x_g, y_g = y, x, y_g, x_g
    products, gradient = chunk.moved[:n], chunk.moved_g[:n]
    _multiply_ends(is_complex, x, y, products)
    scores = scratch.scores[:n]
    parameters = operators.parameters.reshape((num_relations, size))
    multiply_by_rows(products, parameters, scratch.packed, scores[:, :num_relations])
    first = 0
    if operators.is_reciprocal:
        back = operators.back_parameters.reshape((num_relations, size))
        multiply_by_rows(products, back, scratch.packed, scores[:, num_relations:])
        first = num_relations if is_back else 0
    total = _compare(chunk, n, first, weight, scores)
    own = scores[:, :num_relations]
    multiply(own.T, products, forward.reshape((num_relations, size)), True)
    multiply(own, parameters, gradient, False)
    if operators.is_reciprocal:
        own = scores[:, num_relations:]
        back = operators.back_parameters.reshape((num_relations, size))
        multiply(own.T, products, backward.reshape((num_relations, size)), True)
        multiply(own, back, gradient, True)
    _multiply_ends_back(is_complex, x, y, gradient, x_g, y_g)
    return total


@uncounted_jit
def _score_one_by_one(
    chunk: Chunk,
    operators: Operators,
    parameters: Floats,
    x: Floats,
    y: Floats,
    relations: Ints,
    operate: int,
    scores: Floats,
) -> None:
    """Apply every relation's operator to all rows ``x``, and compare with ``y``."""
    moved = chunk.moved[: x.shape[0]]
    for r in range(scores.shape[1]):
        relations[:] = r
        call_operate(
            operate, operators.codes, operators.offsets, parameters, relations, x, moved
        )
        for i in range(x.shape[0]):
            scores[i, r] = row_dot(moved[i], y[i])


@uncounted_jit
def _carry_back_one_by_one(
    chunk: Chunk,
    operators: Operators,
    parameters: Floats,
    x: Floats,
    y: Floats,
    relations: Ints,
    calls: KernelAddresses,
    scores: Floats,
    x_g: Floats,
    y_g: Floats,
    gradient: Floats,
) -> None:
    """Carry the gradients at the scores of every relation back to rows and operators."""
    n = x.shape[0]
    moved, moved_g, rows_g = chunk.moved[:n], chunk.moved_g[:n], chunk.query_g[:n]
    for r in range(scores.shape[1]):
        relations[:] = r
        call_operate(
            calls.operate,
            operators.codes,
            operators.offsets,
            parameters,
            relations,
            x,
            moved,
        )
        for i in range(n):
            add_scaled(y_g[i], moved[i], scores[i, r])
            moved_g[i] = _ZERO
            add_scaled(moved_g[i], y[i], scores[i, r])
        call_operate_back(
            calls.operate_back,
            operators.codes,
            operators.offsets,
            parameters,
            relations,
            x,
            moved_g,
            rows_g,
            gradient,
        )
        for i in range(n):
            add_scaled(x_g[i], rows_g[i], _ONE)


@uncounted_jit
def _predict_one_by_one(
    chunk: Chunk,
    operators: Operators,
    scratch: RelationScratch,
    calls: KernelAddresses,
    n: int,
    is_back: bool,
    weight: np.float32,
    forward: Floats,
    backward: Floats,
) -> float:
    """Ask one way; relations are applied one after the other.

    Without reciprocal relations the operator acts on destinations, either way.
    """
    x, y = chunk.src_x[:n], chunk.dst_x[:n]
    x_g, y_g = chunk.src_g[:n], chunk.dst_g[:n]
    if is_back or not operators.is_reciprocal:
        x, y, x_g, y_g = y, x, y_g, x_g
    num_relations = operators.offsets.size - 1
    scores, relations = scratch.scores[:n], scratch.relations[:n]
    own, parameters, back = (
        scores[:, :num_relations],
        operators.parameters,
        operators.back_parameters,
    )
    _score_one_by_one(chunk, operators, parameters, x, y, relations, calls.operate, own)
    first = 0
    if operators.is_reciprocal:
        others = scores[:, num_relations:]
        _score_one_by_one(chunk, operators, back, x, y, relations, calls.operate, others)
        first = num_relations if is_back else 0
    total = _compare(chunk, n, first, weight, scores)
    _carry_back_one_by_one(
        chunk, operators, parameters, x, y, relations, calls, own, x_g, y_g, forward
    )
    if operators.is_reciprocal:
        _carry_back_one_by_one(
            chunk, operators, back, x, y, relations, calls, others, x_g, y_g, backward
        )
    return total


@uncounted_jit
def predict_relations(
    weight: np.float32,
    chunk: Chunk,
    operators: Operators,
    scratch: RelationScratch,
    calls: KernelAddresses,
    n: int,
    asked: int,
    forward: Floats,
    backward: Floats,
) -> float:
    """Add the loss of relations, once for every question, to gradients that are there.

    Args:
        weight: Of the term.
        chunk: A chunk whose gradients of the ranking are there.
        operators: Its operators.
        scratch: For the scores of relations.
        calls: The kernels of operators.
        n: Number of its positives.
        asked: Which ends they ask for.
        forward: Receives gradients of the parameters.
        backward: The same for queries from the destination, if relations are reciprocal.

    Returns:
        The weighted loss.
    """
    is_linear = _is_linear(operators)
    if not operators.is_reciprocal:  # both ways ask the same
        ways, factor = 1, _TWO * weight if asked == ASKS_BOTH else weight
    else:
        ways, factor = 2, weight
    total = 0.0
    for way in range(ways):
        is_back = way == 1
        if ways == 2 and not asked & (ASKS_SRC if is_back else ASKS_DST):
            continue
        if is_linear:
            total += _predict_by_products(
                chunk, operators, scratch, n, is_back, factor, forward, backward
            )
        else:
            total += _predict_one_by_one(
                chunk, operators, scratch, calls, n, is_back, factor, forward, backward
            )
    return total
