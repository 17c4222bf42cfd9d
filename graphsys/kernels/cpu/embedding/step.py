"""One worker's share of a bucket: batches of shared-negative chunks, row-wise Adagrad.

Method: positives are cut into chunks; the positives of a chunk and nodes drawn from the
resident partition form one pool of candidates for each side, shared by all queries of the
chunk (Lerer et al., "PyTorch-BigGraph", MLSys 2019), so that scores and
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

from graphsys.kernels.cpu.embedding.bags import (
    Extras,
    accumulate_rows,
    gather_rows,
    has_bags,
    num_nodes,
    update_globals,
)
from graphsys.kernels.cpu.embedding.bias import has_distances
from graphsys.kernels.cpu.embedding.calls import (
    Objective,
    call_operate,
    call_operate_back,
    call_rank,
    call_rank_pairs,
)
from graphsys.kernels.cpu.embedding.candidate_weights import counting_of
from graphsys.kernels.cpu.embedding.chunk import (
    ASKS_DST,
    ASKS_SRC,
    Chunk,
    Edges,
    allocate_chunk,
    beside,
    mask_known,
)
from graphsys.kernels.cpu.embedding.negatives import Candidates
from graphsys.kernels.cpu.embedding.operators import IDENTITY, Operators
from graphsys.kernels.cpu.embedding.prefetch import (
    ask_for_edges,
    ask_for_rows,
    chunks_of,
    load_chunk,
)
from graphsys.kernels.cpu.embedding.regularizers import (
    drop,
    regularize,
    regularize_queries,
)
from graphsys.kernels.cpu.embedding.relation_prediction import (
    allocate_relations,
    predict_relations,
)
from graphsys.kernels.cpu.embedding.rows import (
    Optimizer,
    Tables,
    allocate_sums,
    update_parameters,
    update_rows,
)
from graphsys.kernels.cpu.embedding.storage import row_size
from graphsys.kernels.cpu.embedding.vector_math import (
    Floats,
    add_scaled,
    fused_jit,
    uncounted_jit,
)
from graphsys.kernels.cpu.hashing import mix64

Ints = npt.NDArray[np.int64]
_ZERO: Final = np.float32(0.0)
_ONE: Final = np.float32(1.0)


class Settings(NamedTuple):
    """The numbers of the objective and the optimizer.

    Attributes:
        candidates: What queries are compared with besides the batch.
        use_batch: Whether the other positives of a chunk are negatives.
        objective: Comparator, loss and margin.
        lr, relation_lr: Learning rates of rows and of operator parameters.
        regularizer: Coefficient of the regularizer.
        regularizer_kind: Its code.
        key: Key of the draws of this bucket.
        max_norm: Longer rows are shortened to this length; infinite for none.
        is_half: Whether rows in 16 bits are float16, not bfloat16.
        dropout: Share of the numbers of a question's row that is left out.
        relation_prediction: Weight of the loss of an edge's relation among all relations.
    """

    candidates: Candidates
    use_batch: bool
    objective: Objective
    lr: np.float32
    relation_lr: np.float32
    regularizer: np.float32
    regularizer_kind: int
    key: np.uint64
    max_norm: np.float32 = np.float32(np.inf)
    is_half: bool = False
    dropout: np.float32 = np.float32(0.0)
    relation_prediction: np.float32 = np.float32(0.0)


@uncounted_jit
def _update_relations(
    operators: Operators,
    touched: npt.NDArray[np.uint8],
    forward: Floats,
    backward: Floats,
    lr: np.float32,
) -> bool:
    is_finite = True
    for r in range(touched.size):
        if touched[r]:
            # Cleared in passing, as the next batch expects zeros and few relations were
            # touched.
            touched[r] = 0
            rate = lr * operators.lr_factors[r]
            low, high = operators.offsets[r], operators.offsets[r + 1]
            is_finite &= update_parameters(
                operators.parameters[low:high],
                operators.state[low:high],
                forward[low:high],
                rate,
            )
            if operators.is_reciprocal:
                is_finite &= update_parameters(
                    operators.back_parameters[low:high],
                    operators.back_state[low:high],
                    backward[low:high],
                    rate,
                )
    return is_finite


# long: both directions in one kernel, whose arrays they share
@uncounted_jit
def _train_reciprocal(
    chunk: Chunk,
    operators: Operators,
    settings: Settings,
    has_all: bool,
    n: int,
    num_src: int,
    num_dst: int,
    asked: int,
    key: np.uint64,
    forward: Floats,
    backward: Floats,
) -> float:
    """Ask both ways, each with its operator on the query; return the loss."""
    use_batch = settings.use_batch and not has_all
    relations, weights, query_g = chunk.relations[:n], chunk.weights[:n], chunk.query_g[:n]
    moved, moved_g = chunk.moved[:n], chunk.moved_g[:n]
    kind, strength = settings.regularizer_kind, settings.regularizer
    codes, offsets, calls = operators.codes, operators.offsets, settings.objective.calls
    call_operate(
        calls.operate,
        codes,
        offsets,
        operators.parameters,
        relations,
        chunk.src_x[:n],
        moved,
    )
    # The same key draws the same mask for the gradients below: what was dropped gets none.
    if settings.dropout > _ZERO:
        drop(moved, settings.dropout, key)
    total = call_rank(
        calls.rank,
        moved,
        chunk.dst_x[:num_dst],
        chunk.dst[:num_dst],
        weights,
        use_batch,
        settings.objective,
        chunk.dst_bias[:num_dst],
        counting_of(chunk.dst_counting, has_all),
        chunk.scores,
        chunk.distances,
        query_g,
        chunk.dst_g[:num_dst],
    )
    if asked & ASKS_DST:
        regularize_queries(kind, strength, moved, weights, query_g)
    if settings.dropout > _ZERO:
        drop(query_g, settings.dropout, key)
    call_operate_back(
        calls.operate_back,
        codes,
        offsets,
        operators.parameters,
        relations,
        chunk.src_x[:n],
        query_g,
        moved_g,
        forward,
    )
    # Both directions share `moved` and `query_g`: the first is through with them here.
    parameters = operators.back_parameters
    call_operate(
        calls.operate, codes, offsets, parameters, relations, chunk.dst_x[:n], moved
    )
    # The inverted key is a stream of its own, so that both ways drop different components.
    if settings.dropout > _ZERO:
        drop(moved, settings.dropout, ~key)
    total += call_rank(
        calls.rank,
        moved,
        chunk.src_x[:num_src],
        chunk.src[:num_src],
        weights,
        use_batch,
        settings.objective,
        chunk.src_bias[:num_src],
        counting_of(chunk.src_counting, has_all),
        chunk.scores,
        chunk.distances,
        query_g,
        chunk.src_g[:num_src],
    )
    # Only now, as ranking overwrites `src_g` and has just put the candidates' share there.
    for i in range(n):
        add_scaled(chunk.src_g[i], moved_g[i], _ONE)
    if asked & ASKS_SRC:
        regularize_queries(kind, strength, moved, weights, query_g)
    if settings.dropout > _ZERO:
        drop(query_g, settings.dropout, ~key)
    call_operate_back(
        calls.operate_back,
        codes,
        offsets,
        parameters,
        relations,
        chunk.dst_x[:n],
        query_g,
        moved_g,
        backward,
    )
    for i in range(n):
        add_scaled(chunk.dst_g[i], moved_g[i], _ONE)
    return float(total)


# long: both directions in one kernel, whose arrays they share
@uncounted_jit
def _rank_both_ways(
    chunk: Chunk,
    settings: Settings,
    has_all: bool,
    dst_x: Floats,
    n: int,
    src_g: Floats,
    dst_g: Floats,
) -> float:
    """Ask both ways with the destinations ``dst_x``; return the loss."""
    use_batch = settings.use_batch and not has_all
    num_src, num_dst = src_g.shape[0], dst_g.shape[0]
    src_x, weights, objective = chunk.src_x[:num_src], chunk.weights[:n], settings.objective
    src, dst = chunk.src[:num_src], chunk.dst[:num_dst]
    src_bias, dst_bias = chunk.src_bias[:num_src], chunk.dst_bias[:num_dst]
    src_counting = counting_of(chunk.src_counting, has_all)
    dst_counting = counting_of(chunk.dst_counting, has_all)
    calls = objective.calls
    # The fused kernel scores each pair of the batch once, for both directions.
    if use_batch and calls.rank_pairs != 0:
        total = call_rank_pairs(
            calls.rank_pairs,
            src_x,
            dst_x,
            src,
            dst,
            weights,
            objective,
            src_bias,
            dst_bias,
            src_counting,
            dst_counting,
            chunk.scores,
            chunk.packed,
            src_g,
            dst_g,
        )
        return float(total)
    # Gradients of queries are held apart: ranking writes over those of all candidates,
    # among which the queries are.
    query_g, back_g = chunk.query_g[:n], chunk.back_g[:n]
    total = call_rank(
        calls.rank,
        src_x[:n],
        dst_x,
        dst,
        weights,
        use_batch,
        objective,
        dst_bias,
        dst_counting,
        chunk.scores,
        chunk.distances,
        query_g,
        dst_g,
    )
    total += call_rank(
        calls.rank,
        dst_x[:n],
        src_x,
        src,
        weights,
        use_batch,
        objective,
        src_bias,
        src_counting,
        chunk.scores,
        chunk.distances,
        back_g,
        src_g,
    )
    for i in range(n):
        add_scaled(src_g[i], query_g[i], _ONE)
        add_scaled(dst_g[i], back_g[i], _ONE)
    return float(total)


@uncounted_jit
def _train_single(
    chunk: Chunk,
    operators: Operators,
    settings: Settings,
    has_all: bool,
    n: int,
    num_src: int,
    num_dst: int,
    forward: Floats,
) -> float:
    """Ask both ways with the one operator on all destinations; return the loss."""
    # A chunk has edges of one relation here, so that the first speaks for all.
    if operators.codes[chunk.relations[0]] == IDENTITY:
        return _rank_both_ways(
            chunk,
            settings,
            has_all,
            chunk.dst_x[:num_dst],
            n,
            chunk.src_g[:num_src],
            chunk.dst_g[:num_dst],
        )
    relations = chunk.relations[:num_dst]
    moved, moved_g = chunk.moved[:num_dst], chunk.moved_g[:num_dst]
    # Negatives have no relation: all candidates are moved by that of the chunk's edges.
    relations[n:] = relations[0]
    calls = settings.objective.calls
    call_operate(
        calls.operate,
        operators.codes,
        operators.offsets,
        operators.parameters,
        relations,
        chunk.dst_x[:num_dst],
        moved,
    )
    total = _rank_both_ways(
        chunk, settings, has_all, moved, n, chunk.src_g[:num_src], moved_g
    )
    call_operate_back(
        calls.operate_back,
        operators.codes,
        operators.offsets,
        operators.parameters,
        relations,
        chunk.dst_x[:num_dst],
        moved_g,
        chunk.dst_g[:num_dst],
        forward,
    )
    return float(total)


# long: a whole training step in one kernel, so that its scratch stays in the cache
@fused_jit
def train_batches(
    tables: Tables,
    extras: Extras,
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
        extras: What makes the rows of the nodes from these.
        operators: Operators and their state, updated in place.
        edges: The bucket and its cut into chunks and batches.
        settings: Objective and optimizer.
        first: First batch of this worker.
        last: Where this slice of the bucket ends.
        stride: Number of workers.
        slot: This worker's scratch, int32 ``[num_src + num_dst]``, all -1.
        losses: Receives the summed loss of every batch trained, float64 ``[M]``.
    """
    candidates, size = settings.candidates, row_size(tables.src_rows)
    num_src = num_nodes(tables.src_rows, extras.src_bags)
    num_dst = num_nodes(tables.dst_rows, extras.dst_bags)
    first_dst = 0 if tables.is_shared else tables.src_rows.shape[0]
    pool = int(candidates.pools.begins[-1])
    if edges.all_negatives.any():
        pool = max(pool, num_src, num_dst)
    longest, most = 0, 0
    for c in range(edges.chunks.shape[0]):
        longest = max(longest, edges.chunks[c, 1] - edges.chunks[c, 0])
    for b in range(edges.batches.size - 1):
        most = max(most, edges.batches[b + 1] - edges.batches[b])
    # A row is summed once, so that sums are never more than the rows that there are.
    most = min(2 * most * (longest + pool), slot.size)
    # A node with features adds to the rows of all of them: only the tables bound that.
    if has_bags(extras):
        most = slot.size
    chunk = allocate_chunk(
        longest, longest + pool, candidates, size, has_distances(settings.objective)
    )
    operates = settings.objective.calls.operate != 0  # else all relations are alike
    predicts = settings.relation_prediction > _ZERO and operates
    of_relations = allocate_relations(longest if predicts else 0, operators)
    sums = allocate_sums(slot, most, size)
    forward = np.zeros(operators.parameters.size, np.float32)
    backward = np.zeros(operators.back_parameters.size, np.float32)
    touched = np.zeros(operators.codes.size, np.uint8)
    src_sum = np.zeros(extras.src_global.shape[1], np.float32)
    dst_sum = np.zeros(extras.dst_global.shape[1], np.float32)

    optimizer = Optimizer(settings.lr, settings.max_norm, settings.is_half)
    # Two sets of scratch take turns: while one chunk is trained, the rows of the next are
    # on their way from memory into the cache.
    mine, turn = chunks_of(edges, first, last, stride), 0
    ahead = beside(chunk)
    for b in range(first, last, stride):
        total = 0.0
        for _ in range(edges.batches[b], edges.batches[b + 1]):
            if turn == 0:
                sizes = load_chunk(
                    edges, mine[0], candidates, settings.key, num_src, num_dst, chunk
                )
            # Later chunks were loaded in the turn before; rows are read only now, behind
            # the update of the batch before, or a step would see stale values.
            n, ks, kd, has_all, asked = sizes
            mask_known(settings.objective.calls, candidates, n, ks, kd, chunk)
            gather_rows(
                tables.src_rows,
                extras.src_bags,
                extras.src_global,
                chunk.src[:ks],
                optimizer.is_half,
                chunk.src_x,
            )
            gather_rows(
                tables.dst_rows,
                extras.dst_bags,
                extras.dst_global,
                chunk.dst[:kd],
                optimizer.is_half,
                chunk.dst_x,
            )
            if turn + 2 < mine.size:
                ask_for_edges(edges, mine[turn + 2])
            if turn + 1 < mine.size:
                sizes = load_chunk(
                    edges, mine[turn + 1], candidates, settings.key, num_src, num_dst, ahead
                )
                ask_for_rows(tables, extras, ahead, sizes)
            for i in range(n):
                touched[chunk.relations[i]] = 1
            if operators.is_reciprocal:
                total += _train_reciprocal(
                    chunk,
                    operators,
                    settings,
                    has_all,
                    n,
                    ks,
                    kd,
                    asked,
                    mix64(settings.key ^ mix64(np.uint64(mine[turn]))),
                    forward,
                    backward,
                )
            else:
                total += _train_single(
                    chunk, operators, settings, has_all, n, ks, kd, forward
                )
            if predicts:
                # Each relation was a candidate, so each has a gradient.
                touched[: operators.offsets.size - 1] = 1
                total += predict_relations(
                    settings.relation_prediction,
                    chunk,
                    operators,
                    of_relations,
                    settings.objective.calls,
                    n,
                    asked,
                    forward,
                    backward,
                )
            if settings.regularizer > _ZERO:
                regularize(
                    settings.regularizer_kind,
                    settings.regularizer,
                    chunk,
                    operators,
                    n,
                    asked,
                    forward,
                    backward,
                )
            accumulate_rows(
                extras.src_bags, chunk.src[:ks], 0, chunk.src_g[:ks], sums, src_sum
            )
            accumulate_rows(
                extras.dst_bags, chunk.dst[:kd], first_dst, chunk.dst_g[:kd], sums, dst_sum
            )
            chunk, ahead, turn = ahead, chunk, turn + 1
        rounding = mix64(~settings.key + np.uint64(b))  # apart from the chunks' draws
        # Rows move once a batch by summed gradients: a node in several chunks is one step.
        is_finite = update_rows(tables, sums, optimizer, rounding)
        is_finite &= update_globals(extras, src_sum, dst_sum, settings.relation_lr)
        is_finite &= _update_relations(
            operators, touched, forward, backward, settings.relation_lr
        )
        losses[b] = total if is_finite else np.nan
        if not np.isfinite(losses[b]):
            return
