"""Ranks of held-out edges among all nodes of a type, or among samples of them.

The rank is 1 + better + equal / 2, and the filtered rank leaves out other answers that are
edges of any split. Scores are compared exactly (see ``kernels/cpu/embedding/rank.py``).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.core.progress import Progress
from graphsys.core.threads import run_parallel
from graphsys.embedding.data.filtered_queries import (
    BatchLimits,
    Queries,
    find,
    held_out_queries,
)
from graphsys.embedding.data.held_out import HeldOut
from graphsys.embedding.evaluation.counts import NEVER, Counted, Ranks
from graphsys.embedding.rows.batch_memory import candidate_block
from graphsys.embedding.rows.scorer import Scorer
from graphsys.embedding.rows.trained_rows import RowBlocks
from graphsys.graph.slices import WHOLE, Slice
from graphsys.kernels.cpu.embedding.rank import (
    PAIRWISE,
    count_better,
    count_better_scores,
    exact_scores,
)

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]
Table = Floats | RowBlocks
_QUERY_BLOCK = 256


def rank_edges(
    scorer: Scorer,
    edges: HeldOut,
    *,
    samples: Sequence[Ints] | None = None,
    negatives: Sequence[Ints] | None = None,
    threads: int,
    limits: BatchLimits | None = None,
    progress: Progress,
) -> Ranks:
    """Rank the true answer of every held-out edge.

    Args:
        scorer: Of the edge type and direction.
        edges: The edges.
        samples: Numbers of candidates, ascending; an edge is asked about sample
            ``key % len(samples)``. None for all nodes of the type.
        negatives: Numbers of nodes to draw a wrong answer from, likewise, in an order that
            no layout changes; None to leave out the scores.
        threads: Number of threads.
        limits: Of a batch of queries, where memory has one.
        progress: Told of every query.
    """
    return count_edges(
        scorer,
        edges,
        samples=samples,
        negatives=negatives,
        threads=threads,
        limits=limits,
        progress=progress,
    ).ranks()


def count_edges(
    scorer: Scorer,
    edges: HeldOut,
    *,
    samples: Sequence[Ints] | None = None,
    negatives: Sequence[Ints] | None = None,
    threads: int,
    limits: BatchLimits | None = None,
    share: Slice = WHOLE,
    progress: Progress,
) -> Counted:
    """Count candidates before the true answer of every held-out edge.

    Args:
        scorer: As in :func:`rank_edges`, as all that is not named here.
        edges: The edges.
        samples: Numbers of candidates.
        negatives: Numbers of nodes to draw a wrong answer from.
        threads: Number of threads.
        limits: Of a batch of queries.
        share: Which candidates are looked at; rows of other nodes are read for the two
            ends of the edges alone.
        progress: Told of every query.
    """
    counts = np.zeros((len(edges), 4), dtype=np.int64)
    scored = len(edges) if negatives is not None else 0
    positive, negative = np.full(scored, np.nan), np.full(scored, np.nan)
    tried = np.full(scored, NEVER)
    graph = scorer.run.graph
    low, high = share.span(graph.offsets(scorer.answer_type))
    for queries in held_out_queries(
        graph, edges, asks_for_dst=scorer.asks_for_dst, limits=limits, share=share
    ):
        batch = _Batch(
            scorer, queries, threads, share, keeps_rows=limits is None and share.is_all
        )
        if samples is None:
            batch.count_all(progress)
        else:
            which = edges.key[queries.index] % np.uint64(len(samples))
            for number in distinct(which).tolist():
                batch.count_sample(samples[number], np.flatnonzero(which == number))
            progress.advance(len(queries))
        counts[queries.index] = batch.counts
        if negatives is not None:
            own = (queries.target >= low) & (queries.target < high)
            positive[queries.index[own]] = batch.score_targets(np.flatnonzero(own))
            keys = edges.key[queries.index]
            drawn, tried[queries.index] = _draw_wrong(queries, keys, negatives, (low, high))
            negative[queries.index] = batch.score(drawn)
    return Counted(counts=counts, positive=positive, negative=negative, tried=tried)


class _Batch:
    """Queries prepared once, compared with candidates block by block."""

    def __init__(
        self,
        scorer: Scorer,
        queries: Queries,
        threads: int,
        share: Slice,
        *,
        keeps_rows: bool,
    ) -> None:
        self.scorer, self.queries, self.threads = scorer, queries, threads
        self.share = share
        self.rows_of = scorer.run.rows if keeps_rows else scorer.run.blocks
        self.rows = scorer.prepare_queries(queries.node, queries.relation)
        self.targets = self._prepared(queries.target, slice(None))
        self.positives = np.empty(len(queries), dtype=np.float64)
        if scorer.form == PAIRWISE:  # rounded as those of all candidates are
            found = scorer.scores(self.rows, self.targets, np.zeros(len(queries)))
            self.positives[:] = found.astype(np.float32)
        else:
            exact_scores(self.rows, self.targets, scorer.form, self.positives)
        self.counts = np.zeros((len(queries), 4), dtype=np.int64)

    def count_all(self, progress: Progress) -> None:
        """Compare with all own nodes, partition by partition, each read once."""
        run, answer_type = self.scorer.run, self.scorer.answer_type
        offsets = run.graph.offsets(answer_type)
        for part, begin, end in self.share.partitions(offsets):
            table, first = self.rows_of(answer_type, part), int(offsets[part])
            own = slice(begin, end)

            def count(
                some: Places, table: Table = table, first: int = first, own: slice = own
            ) -> None:
                self._count(some, self.queries.take(some), table, first, own)

            run_parallel(count, self._blocks(np.arange(len(self.queries))), self.threads)
        progress.advance(len(self.queries))

    def count_sample(self, numbers: Ints, chosen: Places) -> None:
        """Compare some of the queries with a few nodes."""
        run, answer_type = self.scorer.run, self.scorer.answer_type
        low, high = self.share.span(run.graph.offsets(answer_type))
        numbers = numbers[(numbers >= low) & (numbers < high)]
        table = run.take(answer_type, numbers)
        run_parallel(
            lambda some: self._count(
                some,
                self.queries.take(some).among(numbers),
                table,
                0,
                slice(0, len(numbers)),
            ),
            self._blocks(chosen),
            self.threads,
        )

    def score_targets(self, some: Places) -> Doubles:
        """Return the scores of the true answers to some queries, float64 ``[n]``."""
        return self.scorer.scores(
            self.rows[some], self.targets[some], self._constants(some)
        )

    def score(self, numbers: Ints) -> Doubles:
        """Return the scores of other answers, NaN for number -1, float64 ``[Q]``."""
        result = np.full(len(numbers), np.nan)
        some = np.flatnonzero(numbers >= 0)
        rows = self._prepared(numbers[some], some)
        result[some] = self.scorer.scores(self.rows[some], rows, self._constants(some))
        return result

    def _constants(self, some: Places | slice) -> Doubles:
        return self.scorer.constants(self.queries.node[some], self.queries.relation[some])

    def _prepared(self, numbers: Ints, some: Places | slice) -> Floats:
        rows = self.scorer.run.take(self.scorer.answer_type, numbers)
        return self.scorer.prepare_candidates(rows, self.queries.relation[some])

    def _blocks(self, chosen: Places) -> list[Places]:
        """Cut queries into blocks, of one relation if candidates are to move."""
        pieces = [chosen]
        if self.scorer.moves_candidates:
            changes = np.flatnonzero(np.diff(self.queries.relation[chosen])) + 1
            pieces = np.split(chosen, changes)
        return [
            piece[begin : begin + _QUERY_BLOCK]
            for piece in pieces
            for begin in range(0, len(piece), _QUERY_BLOCK)
        ]

    def _count(
        self, some: Places, queries: Queries, table: Table, first: int, own: slice
    ) -> None:
        """Count what of a table is better than or equal to the answers of a block."""
        rows, positives = self.rows[some], self.positives[some]
        counts = np.zeros((len(some), 4), dtype=np.int64)
        size = candidate_block(rows.shape[1])
        for begin in range(own.start, own.stop, size):
            block = np.array(table[begin : min(begin + size, own.stop)], dtype=np.float32)
            relation = np.full(len(block), queries.relation[0], dtype=np.int64)
            block = self.scorer.prepare_candidates(block, relation)
            if self.scorer.form == PAIRWISE:
                count_better_scores(
                    self.scorer.score_all(rows, block),
                    first + begin,
                    positives,
                    queries.target,
                    queries.known_begin,
                    queries.known_end,
                    queries.known,
                    counts,
                )
                continue
            squares = np.einsum("ij,ij->i", block, block)
            count_better(
                rows,
                block,
                self.scorer.shifts(block),
                first + begin,
                positives,
                queries.target,
                queries.known_begin,
                queries.known_end,
                queries.known,
                self.scorer.form,
                float(np.sqrt(squares.max())),
                np.empty((len(rows), len(block)), dtype=np.float32),
                counts,
            )
        self.counts[some] += counts


def _draw_wrong(
    queries: Queries,
    keys: npt.NDArray[np.uint64],
    samples: Sequence[Ints],
    span: tuple[int, int],
) -> tuple[Ints, Ints]:
    """Draw for every query a node of a span that is neither its answer nor a known one.

    Returns:
        Numbers, -1 where the query's sample has none, int64 ``[Q]``; and how many of the
        sample come before each.
    """
    result = np.full(len(queries), -1, dtype=np.int64)
    tries = np.full(len(queries), NEVER)
    which = (keys % np.uint64(len(samples))).astype(np.int64)
    for number in distinct(which).tolist():
        sample = samples[number]
        some = np.flatnonzero(which == number)
        start = (keys[some] >> np.uint64(32)) % np.uint64(max(len(sample), 1))
        for step in range(len(sample)):
            tried = sample[(start.astype(np.int64) + step) % len(sample)]
            is_wrong = (tried >= span[0]) & (tried < span[1])
            is_wrong &= tried != queries.target[some]
            is_wrong[is_wrong] = ~_is_known(queries, some[is_wrong], tried[is_wrong])
            result[some[is_wrong]], tries[some[is_wrong]] = tried[is_wrong], step
            some, start = some[~is_wrong], start[~is_wrong]
            if not len(some):
                break
    return result, tries


def _is_known(queries: Queries, some: Places, numbers: Ints) -> npt.NDArray[np.bool_]:
    """Return whether each number is a known answer of its query."""
    found = np.zeros(len(some), dtype=bool)
    for place, query in enumerate(some.tolist()):
        known = queries.known[queries.known_begin[query] : queries.known_end[query]]
        found[place] = find(known, numbers[place : place + 1])[1][0]
    return found
