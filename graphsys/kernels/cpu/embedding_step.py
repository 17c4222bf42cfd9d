"""One worker's share of a bucket: batches of shared-negative chunks, row-wise Adagrad.

Method: positives are cut into chunks; the positives of a chunk and ``num_uniform`` nodes
drawn from the resident partition form one pool of candidates for each side, shared by all
queries of the chunk (Lerer et al., "PyTorch-BigGraph", MLSys 2019), so that scores and
gradients are matrix products. Gradients are summed per row over a batch and applied by one
pass of row-wise Adagrad (embedding_rows); what is in a chunk is embedding_chunk's.

Reciprocal relations have two operators: the one asks for the destination, from the
source, the other for the source, from the destination. Otherwise the one operator acts on
destination rows, positives and negatives alike; then all edges of a chunk have one
relation.

Several workers run on the same tables without locks (HOGWILD: Niu et al., NIPS 2011);
draws depend on seed, batch and chunk only, never on the worker.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding_chunk import (
    Chunk,
    Edges,
    allocate_chunk,
    draw_negatives,
    load_positives,
)
from graphsys.kernels.cpu.embedding_math import (
    Floats,
    add_cubic_gradient,
    add_scaled,
    fused_jit,
)
from graphsys.kernels.cpu.embedding_operators import (
    apply_operators,
    apply_operators_backward,
)
from graphsys.kernels.cpu.embedding_rows import (
    Tables,
    accumulate,
    allocate_sums,
    gather,
    update_parameters,
    update_rows,
)
from graphsys.kernels.cpu.embedding_scores import (
    L2,
    SQUARED_L2,
    Objective,
    rank_candidates,
)
from graphsys.kernels.cpu.hashing import mix64

Ints = npt.NDArray[np.int64]
_ZERO: Final = np.float32(0.0)
_ONE: Final = np.float32(1.0)


class Operators(NamedTuple):
    """Operators of all relations of an edge type, in one flat array per side.

    Attributes:
        codes: Operator of every relation, int64 ``[R]``.
        offsets: Where the parameters of a relation begin, int64 ``[R + 1]``.
        parameters: float32, flat: the one operator, or that of queries from the source.
        state: Adagrad state of every parameter.
        back_parameters, back_state: Of queries from the destination; empty unless
            reciprocal.
        is_reciprocal: Whether there are two operators.
        has_complex: Whether N3 takes moduli, for rows.
    """

    codes: Ints
    offsets: Ints
    parameters: Floats
    state: Floats
    back_parameters: Floats
    back_state: Floats
    is_reciprocal: bool
    has_complex: bool


class Settings(NamedTuple):
    """The numbers of the objective and the optimiser.

    Attributes:
        num_uniform: Uniform negatives per chunk and side.
        use_batch: Whether the other positives of a chunk are negatives.
        objective: Comparator, loss and margin.
        src_bias, dst_bias: Added to the scores of uniform negatives of either side: the
            logarithm of how many nodes each stands for makes the sampled softmax an
            estimate of the one over all nodes, of other partitions too; or 0.
        lr, relation_lr: Learning rates of rows and of operator parameters.
        n3: Coefficient of the N3 regulariser.
        key: Key of the uniform draws of this bucket.
    """

    num_uniform: int
    use_batch: bool
    objective: Objective
    src_bias: np.float32
    dst_bias: np.float32
    lr: np.float32
    relation_lr: np.float32
    n3: np.float32
    key: np.uint64


@fused_jit
def _add_cubic(
    rows: Floats, count: int, weights: Floats, n3: np.float32, is_complex: bool, out: Floats
) -> None:
    for i in range(count):
        add_cubic_gradient(rows[i], out[i], n3 * weights[i], is_complex)


@fused_jit
def _add_cubic_operators(
    operators: Operators, parameters: Floats, relations: Ints, count: int,
    weights: Floats, n3: np.float32, out: Floats,
) -> None:  # fmt: skip
    begin = 0
    while begin < count:
        r, total, end = relations[begin], _ZERO, begin
        while end < count and relations[end] == r:
            total += weights[end]
            end += 1
        low, high = operators.offsets[r], operators.offsets[r + 1]
        is_complex = operators.codes[r] == 4
        add_cubic_gradient(parameters[low:high], out[low:high], n3 * total, is_complex)
        begin = end


@fused_jit
def _update_relations(
    operators: Operators, touched: npt.NDArray[np.uint8], forward: Floats,
    backward: Floats, lr: np.float32,
) -> bool:  # fmt: skip
    is_finite = True
    for r in range(touched.size):
        if touched[r]:
            touched[r] = 0
            low, high = operators.offsets[r], operators.offsets[r + 1]
            is_finite &= update_parameters(
                operators.parameters[low:high], operators.state[low:high],
                forward[low:high], lr,
            )  # fmt: skip
            if operators.is_reciprocal:
                is_finite &= update_parameters(
                    operators.back_parameters[low:high], operators.back_state[low:high],
                    backward[low:high], lr,
                )  # fmt: skip
    return is_finite


@fused_jit
def _train_reciprocal(
    chunk: Chunk, operators: Operators, settings: Settings, n: int, k: int,
    forward: Floats, backward: Floats,
) -> float:  # fmt: skip
    """Ask both ways, each with its operator on the query; return the loss."""
    relations, weights, query_g = chunk.relations[:n], chunk.weights[:n], chunk.query_g[:n]
    moved, moved_g = chunk.moved[:n], chunk.moved_g[:n]
    codes, offsets = operators.codes, operators.offsets
    apply_operators(codes, offsets, operators.parameters, relations, chunk.src_x[:n], moved)
    total = rank_candidates(
        moved, chunk.dst_x[:k], chunk.dst[:k], weights, settings.use_batch,
        settings.objective, chunk.dst_bias[:k], chunk.scores, chunk.distances, query_g,
        chunk.dst_g[:k],
    )  # fmt: skip
    apply_operators_backward(
        codes, offsets, operators.parameters, relations, chunk.src_x[:n], query_g,
        moved_g, forward,
    )  # fmt: skip
    parameters = operators.back_parameters
    apply_operators(codes, offsets, parameters, relations, chunk.dst_x[:n], moved)
    total += rank_candidates(
        moved, chunk.src_x[:k], chunk.src[:k], weights, settings.use_batch,
        settings.objective, chunk.src_bias[:k], chunk.scores, chunk.distances, query_g,
        chunk.src_g[:k],
    )  # fmt: skip
    for i in range(n):
        add_scaled(chunk.src_g[i], moved_g[i], _ONE)
    apply_operators_backward(
        codes, offsets, parameters, relations, chunk.dst_x[:n], query_g, moved_g, backward
    )
    for i in range(n):
        add_scaled(chunk.dst_g[i], moved_g[i], _ONE)
    return total


@fused_jit
def _train_single(
    chunk: Chunk, operators: Operators, settings: Settings, n: int, k: int,
    forward: Floats,
) -> float:  # fmt: skip
    """Ask both ways with the one operator on all destinations; return the loss."""
    relations, weights = chunk.relations[:k], chunk.weights[:n]
    moved, moved_g = chunk.moved[:k], chunk.moved_g[:k]
    relations[n:] = relations[0]
    apply_operators(
        operators.codes, operators.offsets, operators.parameters, relations,
        chunk.dst_x[:k], moved,
    )  # fmt: skip
    total = rank_candidates(
        chunk.src_x[:n], moved, chunk.dst[:k], weights, settings.use_batch,
        settings.objective, chunk.dst_bias[:k], chunk.scores, chunk.distances,
        chunk.query_g[:n], moved_g,
    )  # fmt: skip
    total += rank_candidates(
        moved[:n], chunk.src_x[:k], chunk.src[:k], weights, settings.use_batch,
        settings.objective, chunk.src_bias[:k], chunk.scores, chunk.distances,
        chunk.dst_g[:n], chunk.src_g[:k],
    )  # fmt: skip
    for i in range(n):
        add_scaled(chunk.src_g[i], chunk.query_g[i], _ONE)
        add_scaled(moved_g[i], chunk.dst_g[i], _ONE)
    apply_operators_backward(
        operators.codes, operators.offsets, operators.parameters, relations,
        chunk.dst_x[:k], moved_g, chunk.dst_g[:k], forward,
    )  # fmt: skip
    return total


@fused_jit
def _regularise(
    chunk: Chunk, operators: Operators, n3: np.float32, n: int, forward: Floats,
    backward: Floats,
) -> None:  # fmt: skip
    """Add the gradients of N3: of both ends and the operator, for either query."""
    twice, is_complex = np.float32(2.0) * n3, operators.has_complex
    _add_cubic(chunk.src_x, n, chunk.weights, twice, is_complex, chunk.src_g)
    _add_cubic(chunk.dst_x, n, chunk.weights, twice, is_complex, chunk.dst_g)
    share = n3 if operators.is_reciprocal else twice
    _add_cubic_operators(
        operators, operators.parameters, chunk.relations, n, chunk.weights, share, forward
    )
    if operators.is_reciprocal:
        _add_cubic_operators(
            operators, operators.back_parameters, chunk.relations, n, chunk.weights, n3,
            backward,
        )  # fmt: skip


@fused_jit
def train_batches(
    tables: Tables,
    operators: Operators,
    edges: Edges,
    settings: Settings,
    first: int,
    last: int,
    stride: int,
    slot: npt.NDArray[np.int32],
    losses: npt.NDArray[np.float64],
) -> None:
    """Train batches ``first``, ``first + stride``, ... below ``last`` of a bucket.

    Stops at the first batch whose loss or gradient is not finite, with the loss NaN.

    Args:
        tables: Rows and their state, updated in place.
        operators: Operators and their state, updated in place.
        edges: The bucket and its cut into chunks and batches.
        settings: Objective and optimiser.
        first: First batch of this worker.
        last: Where this slice of the bucket ends.
        stride: Number of workers.
        slot: This worker's scratch, int32 ``[num_src + num_dst]``, all -1.
        losses: Receives the summed loss of every batch trained, float64 ``[M]``.
    """
    num_src, size = tables.src_rows.shape
    num_dst, num_uniform = tables.dst_rows.shape[0], settings.num_uniform
    first_dst = 0 if tables.is_shared else num_src
    longest, most = 0, 0
    for c in range(edges.chunks.shape[0]):
        longest = max(longest, edges.chunks[c, 1] - edges.chunks[c, 0])
    for b in range(edges.batches.size - 1):
        most = max(most, edges.batches[b + 1] - edges.batches[b])
    most = min(2 * most * (longest + num_uniform), slot.size)
    has_distances = settings.objective.comparator in (L2, SQUARED_L2)
    chunk = allocate_chunk(longest, longest + num_uniform, size, has_distances)
    sums = allocate_sums(slot, most, size)
    forward = np.zeros(operators.parameters.size, np.float32)
    backward = np.zeros(operators.back_parameters.size, np.float32)
    touched = np.zeros(operators.codes.size, np.uint8)

    for b in range(first, last, stride):
        total = 0.0
        for c in range(edges.batches[b], edges.batches[b + 1]):
            n = load_positives(edges, c, chunk)
            k = draw_negatives(
                n, num_uniform, mix64(settings.key + np.uint64(c)), num_src, num_dst,
                settings.src_bias, settings.dst_bias, chunk,
            )  # fmt: skip
            gather(tables.src_rows, chunk.src[:k], chunk.src_x)
            gather(tables.dst_rows, chunk.dst[:k], chunk.dst_x)
            for i in range(n):
                touched[chunk.relations[i]] = 1
            if operators.is_reciprocal:
                total += _train_reciprocal(
                    chunk, operators, settings, n, k, forward, backward
                )
            else:
                total += _train_single(chunk, operators, settings, n, k, forward)
            if settings.n3 > _ZERO:
                _regularise(chunk, operators, settings.n3, n, forward, backward)
            accumulate(chunk.src[:k], 0, chunk.src_g, sums)
            accumulate(chunk.dst[:k], first_dst, chunk.dst_g, sums)
        is_finite = update_rows(tables, sums, settings.lr)
        is_finite &= _update_relations(
            operators, touched, forward, backward, settings.relation_lr
        )
        losses[b] = total if is_finite else np.nan
        if not np.isfinite(losses[b]):
            return
