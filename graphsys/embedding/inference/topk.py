"""The best-scoring nodes for a batch of queries, over all partitions, in bounded memory."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from graphsys.core.threads import run_parallel
from graphsys.embedding.data.filtered_queries import BatchLimits, Queries
from graphsys.embedding.rows.batch_memory import candidate_block
from graphsys.embedding.rows.scorer import Scorer
from graphsys.embedding.rows.trained_rows import RowBlocks
from graphsys.kernels.cpu.embedding.rank import keep_best

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Table = Floats | RowBlocks
_QUERY_BLOCK = 256
SPARE = 32
"""How many more than asked for are scored again."""
_PAIRS = 1 << 16


def best_answers(
    scorer: Scorer,
    queries: Queries,
    k: int,
    *,
    leaves_out_known: bool,
    threads: int,
    limits: BatchLimits | None = None,
) -> tuple[Ints, Doubles]:
    """Search all nodes of the answers' type.

    The float32 scores of a block decide who is among the best k + 32; these are scored
    again in float64, so that their order does not depend on blocks or partitions.

    Args:
        scorer: Of the edge type and direction.
        queries: The queries, equal relations side by side.
        k: How many to find.
        leaves_out_known: Whether known answers are not to be found.
        threads: Number of threads.
        limits: Of a batch, where memory has one: rows that are not in the run's file as
            they are wanted are made anew for each block of queries, then.

    Returns:
        Numbers and scores, ``[Q, k]``, best first, ties by number; number -1 and score
        -inf where there are no more; fewer columns where the type has fewer nodes.
    """
    offsets = scorer.run.graph.offsets(scorer.answer_type)
    width = min(k + SPARE, int(offsets[-1]))
    asked = queries
    if not leaves_out_known:
        asked = replace(queries, known_end=queries.known_begin)
    rows = scorer.prepare_queries(queries.node, queries.relation)
    best = np.full((len(queries), width), -1, dtype=np.int64)
    scores = np.full((len(queries), width), -np.inf, dtype=np.float32)
    rows_of = scorer.run.rows if limits is None else scorer.run.blocks
    for part in range(len(offsets) - 1):
        table, first = rows_of(scorer.answer_type, part), int(offsets[part])

        def search(some: slice, table: Table = table, first: int = first) -> None:
            _search(
                scorer, asked.take(some), rows[some], table, first, scores[some], best[some]
            )

        run_parallel(search, _blocks(queries, scorer.moves_candidates), threads)
    pairs = exact_pairs(limits, scorer.run.dim_of(scorer.answer_type))
    return _exact(scorer, queries, rows, best, min(k, width), pairs)


def _blocks(queries: Queries, is_of_one_relation: bool) -> list[slice]:
    """Cut queries into blocks, of one relation each if candidates are to move."""
    ends = [len(queries)]
    if is_of_one_relation:
        ends = [*(np.flatnonzero(np.diff(queries.relation)) + 1).tolist(), *ends]
    return [
        slice(low, min(low + _QUERY_BLOCK, end))
        for begin, end in zip([0, *ends[:-1]], ends, strict=True)
        for low in range(begin, end, _QUERY_BLOCK)
    ]


def _search(
    scorer: Scorer,
    queries: Queries,
    rows: Floats,
    table: Table,
    first: int,
    best_scores: Floats,
    best: Ints,
) -> None:
    """Look through a table for the best answers to a block of queries."""
    size = candidate_block(rows.shape[1])
    for begin in range(0, len(table), size):
        block = np.array(table[begin : begin + size], dtype=np.float32)
        relation = np.full(len(block), queries.relation[0], dtype=np.int64)
        block = scorer.prepare_candidates(block, relation)
        keep_best(
            scorer.score_all(rows, block),
            first + begin,
            queries.known_begin,
            queries.known_end,
            queries.known,
            best_scores,
            best,
        )


def exact_pairs(limits: BatchLimits | None, dim: int) -> int:
    """Return how many answers are scored again together."""
    return _PAIRS if limits is None else min(_PAIRS, candidate_block(dim) // 4 + 1)


def _exact(
    scorer: Scorer, queries: Queries, rows: Floats, best: Ints, k: int, pairs: int
) -> tuple[Ints, Doubles]:
    """Score the best again in float64, and order them by that."""
    constants = scorer.constants(queries.node, queries.relation)
    numbers, scores = np.empty((len(best), k), np.int64), np.empty((len(best), k))
    width = max(best.shape[1], 1)
    for begin in range(0, len(best), max(pairs // width, 1)):
        some = slice(begin, begin + max(pairs // width, 1))
        found = best[some]
        each = np.repeat(np.arange(len(best))[some], width)
        taken = scorer.run.take(scorer.answer_type, np.maximum(found.reshape(-1), 0))
        candidates = scorer.prepare_candidates(taken, queries.relation[each])
        values = scorer.scores(rows[each], candidates, constants[each]).reshape(found.shape)
        values[found < 0] = -np.inf
        order = np.lexsort((found, -values), axis=-1)[:, :k]
        numbers[some] = np.take_along_axis(found, order, axis=1)
        scores[some] = np.take_along_axis(values, order, axis=1)
    return numbers, scores
