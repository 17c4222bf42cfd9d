"""Link prediction by ranking: filtered and raw, whatever the number of partitions.

Every edge of the split asks two questions, for its destination and for its source; all
nodes of the type are candidates; the rank is 1 + better + equal / 2, and the filtered rank
leaves out other answers that are edges of any split.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.events import span
from graphsys.core.progress import SILENT, Progress
from graphsys.core.threads import num_cores, run_parallel
from graphsys.embedding.blas import single_threaded_blas
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.model import RelationSet
from graphsys.embedding.queries import Queries, make_queries
from graphsys.kernels.cpu import embedding_operators as operators
from graphsys.kernels.cpu.embedding_math import normalise_rows
from graphsys.kernels.cpu.embedding_operators import (
    apply_operators,
    apply_operators_backward,
)
from graphsys.kernels.cpu.embedding_rank import count_better, exact_scores
from graphsys.storage.reader import Graph

Floats = npt.NDArray[np.float32]
Ranks = npt.NDArray[np.float64]
_QUERY_BLOCK = 256
_CANDIDATE_BLOCK = 4096


def evaluate(
    run: str | Path | Embeddings,
    *,
    split: str = "test",
    graph: Graph | None = None,
    threads: int = 0,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Rank the edges of a split.

    Args:
        run: A run or its folder.
        split: The split of the edges.
        graph: The graph trained on, if it is not where it was.
        threads: Number of threads, 0: one per core.
        progress: Receives one stage.

    Returns:
        ``{"split": ..., "metrics": {"mrr", "mr", "hits@1", "hits@3", "hits@10",
        "unfiltered": {the same}}}``, means over both queries of every edge.

    Raises:
        ConfigError: No edge type of the run has edges in the split.
    """
    opened = run if isinstance(run, Embeddings) else Embeddings(run, graph=graph)
    chosen = with_split(opened.graph, opened.model, split)
    total = sum(opened.graph.num_edges_of(m.edge_type, split) for m in chosen)
    progress.stage(f"evaluate {split}", 2 * total, "queries")
    filtered, raw = [], []
    with single_threaded_blas(), span("evaluate", split=split):
        for relations in chosen:
            for asks_for_dst in (True, False):
                queries = make_queries(
                    opened.graph, relations.edge_type, split, asks_for_dst=asks_for_dst
                )
                ranker = _Ranker(opened, relations, asks_for_dst)
                ranks = ranker.rank(queries, threads or num_cores(), progress)
                filtered.append(ranks[0])
                raw.append(ranks[1])
    progress.close()
    return {"split": split, "metrics": ranking_metrics(filtered, raw)}


def with_split(graph: Graph, model: Iterable[RelationSet], split: str) -> list[RelationSet]:
    """Return the edge types that have edges in a split.

    Raises:
        ConfigError: None has.
    """
    model = list(model)
    chosen = [m for m in model if graph.num_edges_of(m.edge_type, split)]
    if not chosen:
        known = sorted({name for m in model for name in graph.splits(m.edge_type)})
        raise ConfigError(
            f"split {split!r} has no edges; the graph has {', '.join(known) or 'none'}"
        )
    return chosen


def ranking_metrics(filtered: Iterable[Ranks], raw: Iterable[Ranks]) -> dict[str, Any]:
    """Average ranks into the metrics of the command line's contract."""
    metrics: dict[str, Any] = dict(_means(np.concatenate(list(filtered))))
    metrics["unfiltered"] = _means(np.concatenate(list(raw)))
    return metrics


def _means(ranks: Ranks) -> Mapping[str, float]:
    ranks = np.sort(ranks)  # so that the order of the buckets does not change a sum
    means = {"mrr": float(np.mean(1.0 / ranks)), "mr": float(np.mean(ranks))}
    return means | {f"hits@{k}": float(np.mean(ranks <= k)) for k in (1, 3, 10)}


class _Ranker:
    """Ranks the queries of one edge type in one direction.

    Where it can, the operator moves to the query: queries of reciprocal relations and for
    sources have theirs there anyway; under the inner product the adjoint does it, and under
    distances a translation is undone. Only the rest transforms the candidates, relation
    by relation.
    """

    def __init__(self, run: Embeddings, relations: RelationSet, asks_for_dst: bool) -> None:
        self.run, self.relations, self.asks_for_dst = run, relations, asks_for_dst
        self.is_reciprocal = relations.num_sides == 2
        table = run.operators(relations)
        self.parameters = table[2 if self.is_reciprocal and not asks_for_dst else 0]
        self.comparator = run.config.comparator
        self.is_distance = self.comparator in ("l2", "squared_l2")
        codes = set(relations.codes.tolist())
        moves = {operators.IDENTITY} | (
            {operators.TRANSLATION} if self.is_distance else set()
        )
        self.moves_candidates = (
            not self.is_reciprocal
            and asks_for_dst
            and self.comparator != "dot"
            and not codes <= moves
        )
        kind = relations.edge_type
        self.given_type = kind.src_type if asks_for_dst else kind.dst_type

    def rank(
        self, queries: Queries, threads: int, progress: Progress
    ) -> tuple[Ranks, Ranks]:
        """Return the filtered and the raw ranks, in any order."""
        order = np.argsort(queries.relation, kind="stable")
        blocks = self._cut(queries.relation[order])
        counts = run_parallel(
            lambda block: self._count(queries.take(order[block[0] : block[1]]), progress),
            blocks,
            threads,
        )
        better, equal, known, known_equal = np.concatenate(counts).T
        raw = 1.0 + better + 0.5 * equal
        return raw - known - 0.5 * known_equal, raw

    def _cut(self, relation: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
        """Cut sorted queries into blocks, of one relation if candidates are to move."""
        ends = [len(relation)]
        if self.moves_candidates:
            ends = [*(np.flatnonzero(np.diff(relation)) + 1).tolist(), len(relation)]
        blocks, begin = [], 0
        for end in ends:
            blocks += [
                (k, min(k + _QUERY_BLOCK, end)) for k in range(begin, end, _QUERY_BLOCK)
            ]
            begin = end
        return blocks

    def _count(self, queries: Queries, progress: Progress) -> npt.NDArray[np.int64]:
        rows = self._prepare_queries(queries)
        targets = self.run.take(queries.answer_type, queries.target)
        targets = self._prepare_candidates(targets, queries)
        positives = np.empty(len(rows), dtype=np.float64)
        exact_scores(rows, targets, self.is_distance, positives)
        counts = np.zeros((len(rows), 4), dtype=np.int64)
        offsets = self.run.graph.offsets(queries.answer_type)
        scratch = np.empty(len(rows) * _CANDIDATE_BLOCK, dtype=np.float32)
        for part in range(len(offsets) - 1):
            table = self.run.rows(queries.answer_type, part)
            for begin in range(0, len(table), _CANDIDATE_BLOCK):
                block = np.array(table[begin : begin + _CANDIDATE_BLOCK])
                block = self._prepare_candidates(block, queries)
                squares = np.einsum("ij,ij->i", block, block)
                count_better(
                    rows,
                    block,
                    0.5 * squares if self.is_distance else np.zeros_like(squares),
                    int(offsets[part]) + begin,
                    positives,
                    queries.target,
                    queries.known_begin,
                    queries.known_end,
                    queries.known,
                    self.is_distance,
                    float(np.sqrt(squares.max())),
                    scratch[: len(rows) * len(block)].reshape(len(rows), len(block)),
                    counts,
                )
        progress.advance(len(rows))
        return counts

    def _prepare_queries(self, queries: Queries) -> Floats:
        rows = self.run.take(self.given_type, queries.node)
        if self.is_reciprocal or not self.asks_for_dst:
            rows = self._operate(rows, queries.relation)
        elif self.comparator == "dot":
            rows = self._adjoint(rows, queries.relation)
        elif not self.moves_candidates:
            for r in np.unique(queries.relation):  # identity or translation
                low, high = self.relations.offsets[r : r + 2]
                if high > low:
                    rows[queries.relation == r] -= self.parameters[low:high]
        return self._normalise(rows)

    def _prepare_candidates(self, rows: Floats, queries: Queries) -> Floats:
        if self.moves_candidates:
            relation = np.full(len(rows), queries.relation[0], dtype=np.int64)
            rows = self._operate(rows, relation)
        return self._normalise(rows)

    def _operate(self, rows: Floats, relation: npt.NDArray[np.int64]) -> Floats:
        result, model = np.empty_like(rows), self.relations
        apply_operators(model.codes, model.offsets, self.parameters, relation, rows, result)
        return result

    def _adjoint(self, rows: Floats, relation: npt.NDArray[np.int64]) -> Floats:
        result, model = np.empty_like(rows), self.relations
        apply_operators_backward(
            model.codes, model.offsets, self.parameters, relation, rows, rows, result,
            np.zeros_like(self.parameters),
        )  # fmt: skip
        return result

    def _normalise(self, rows: Floats) -> Floats:
        if self.comparator != "cos":
            return rows
        unit = np.empty_like(rows)
        normalise_rows(rows, unit, np.empty(len(rows), dtype=np.float32))
        return unit
