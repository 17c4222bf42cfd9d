"""The loop of a training step with the processor's cycles read between its phases.

It is ``embedding_step.train_batches`` for one relation without an operator, and
``embedding_pairs.rank_product_pairs``; a case compares the losses of both.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from graphsys.kernels.cpu.embedding.bags import PLAIN
from graphsys.kernels.cpu.embedding.chunk import allocate_chunk, beside
from graphsys.kernels.cpu.embedding.prefetch import (
    ask_for_edges,
    ask_for_rows,
    chunks_of,
    load_chunk,
)
from graphsys.kernels.cpu.embedding.products import multiply, multiply_by_rows, transpose
from graphsys.kernels.cpu.embedding.rows import (
    Optimizer,
    accumulate,
    allocate_sums,
    gather,
    update_rows,
)
from graphsys.kernels.cpu.embedding.scores import losses_and_gradients
from graphsys.kernels.cpu.embedding.vector_math import fused_jit
from graphsys.kernels.cpu.hashing import mix64


@intrinsic
def _now(_: Any) -> Any:
    """Return a count of cycles."""

    def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(64), [])
        name = "llvm.readcyclecounter"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [])

    return types.int64(), generate


@fused_jit
def _rank(chunk: Any, n: int, k: int, objective: Any, ticks: Any) -> float:
    src, dst = chunk.src_x[:k], chunk.dst_x[:k]
    src_g, dst_g, weights = chunk.src_g[:k], chunk.dst_g[:k], chunk.weights[:n]
    tails = chunk.scores[: n * k].reshape((n, k))
    heads = chunk.scores[n * k : 2 * n * k].reshape((n, k))
    began = _now()
    multiply_by_rows(src[:n], dst, chunk.packed, tails)
    transpose(tails[:, :n], heads[:, :n])
    multiply_by_rows(dst[:n], src[n:], chunk.packed, heads[:, n:])
    scored = _now()
    total = losses_and_gradients(
        tails,
        chunk.dst[:k],
        weights,
        True,
        objective,
        chunk.dst_bias[:k],
        chunk.dst_counting,
    )
    total += losses_and_gradients(
        heads,
        chunk.src[:k],
        weights,
        True,
        objective,
        chunk.src_bias[:k],
        chunk.src_counting,
    )
    lost = _now()
    shared = chunk.packed[: n * n].reshape((n, n))
    transpose(heads[:, :n], shared)
    for i in range(n):
        for j in range(n):
            tails[i, j] += shared[i, j]
    multiply(tails, dst, src_g[:n], False)
    multiply(tails.T, src[:n], dst_g, False)
    multiply(heads[:, n:], src[n:], dst_g[:n], True)
    multiply(heads[:, n:].T, dst[:n], src_g[n:], False)
    ticks[3] += scored - began
    ticks[4] += lost - scored
    ticks[5] += _now() - lost
    return total


@fused_jit
def train_timed(
    tables: Any, edges: Any, settings: Any, last: int, slot: Any, losses: Any, ticks: Any
) -> None:
    """Train the batches below ``last``.

    Args:
        tables: Of one partition.
        edges: The bucket.
        settings: Objective and optimizer.
        last: How many batches.
        slot: Scratch, as for the step.
        losses: Receives the loss of every batch.
        ticks: Receives the cycles of every phase, int64 ``[last, 8]``.
    """
    candidates, key = settings.candidates, settings.key
    longest, size = edges.chunks[0, 1] - edges.chunks[0, 0], tables.src_rows.shape[0]
    pool = int(longest + candidates.pools.begins[-1])
    most = min(2 * int(edges.batches[1]) * pool, slot.size)
    chunk = allocate_chunk(longest, pool, candidates, tables.src_rows.shape[1], False)
    ahead = beside(chunk)
    sums = allocate_sums(slot, most, tables.src_rows.shape[1])
    optimizer = Optimizer(settings.lr, settings.max_norm, settings.is_half)
    mine, turn = chunks_of(edges, 0, last, 1), 0
    sizes = load_chunk(edges, mine[0], candidates, key, size, size, chunk)
    for b in range(last):
        total, taken = 0.0, ticks[b]
        taken[:] = 0
        for _ in range(edges.batches[b], edges.batches[b + 1]):
            n, k = sizes.n, sizes.src
            began = _now()
            gather(tables.src_rows, chunk.src[:k], False, chunk.src_x)
            gather(tables.dst_rows, chunk.dst[:k], False, chunk.dst_x)
            gathered = _now()
            if turn + 2 < mine.size:
                ask_for_edges(edges, mine[turn + 2])
            if turn + 1 < mine.size:
                sizes = load_chunk(
                    edges, mine[turn + 1], candidates, key, size, size, ahead
                )
            loaded = _now()
            if turn + 1 < mine.size:
                ask_for_rows(tables, PLAIN, ahead, sizes)
            asked = _now()
            total += _rank(chunk, n, k, settings.objective, taken)
            ranked = _now()
            accumulate(chunk.src[:k], 0, chunk.src_g[:k], sums)
            accumulate(chunk.dst[:k], 0, chunk.dst_g[:k], sums)
            taken[6] += _now() - ranked
            taken[0] += loaded - gathered
            taken[1] += asked - loaded
            taken[2] += gathered - began
            chunk, ahead, turn = ahead, chunk, turn + 1
        began = _now()
        update_rows(tables, sums, optimizer, mix64(~key + np.uint64(b)))
        taken[7] = _now() - began
        losses[b] = total
