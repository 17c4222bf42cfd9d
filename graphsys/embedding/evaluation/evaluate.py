"""Link prediction by ranking: filtered and raw, whatever the number of partitions.

Every edge of the split asks two questions, for its destination and for its source. See
``ranking.py`` for how one is ranked, ``graphsys/metrics`` for what is made of the ranks.
"""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys import metrics
from graphsys.core.errors import ConfigError
from graphsys.core.events import span
from graphsys.core.memory import metered, stated_budget
from graphsys.core.progress import IN_NOTEBOOKS, SILENT, Progress
from graphsys.core.threads import num_cores
from graphsys.datasets.temporary import GraphLike
from graphsys.embedding.blas import single_threaded_blas
from graphsys.embedding.data.candidates import Draw, draw_candidates, require_draw
from graphsys.embedding.data.filtered_queries import BatchLimits
from graphsys.embedding.data.held_out import HeldOut, held_out_edges, with_split
from graphsys.embedding.data.held_out_split import GraphWithHeldOut
from graphsys.embedding.data.relation_stats import (
    degrees_of,
    relation_categories,
    training_counts,
)
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.evaluation.counts import Ranks
from graphsys.embedding.evaluation.ranking import rank_edges
from graphsys.embedding.model import RelationSet
from graphsys.embedding.rows.batch_memory import FEW, batch_bytes, fitting_limits
from graphsys.embedding.rows.scorer import Scorer
from graphsys.storage.grouped.merged_view import stored_graph

Ints = npt.NDArray[np.int64]
CATEGORIES = ("1-1", "1-n", "n-1", "n-n")
_SAMPLES = 32
_WRONG = 64
_RANKED_BYTES = 128  # of an edge: as read, and in order; ranks, scores of both questions
_MEASURED_BYTES = 320  # the same, and ranks of groups of both questions


def evaluate(
    run: str | Path | Embeddings,
    *,
    split: str = "test",
    candidates: int | None = None,
    draw: Draw = "uniform",
    queries: int | None = None,
    seed: int = 0,
    breakdown: bool = True,
    graph: GraphLike | None = None,
    threads: int = 0,
    memory: int | str | None = None,
    progress: Progress = IN_NOTEBOOKS,
) -> dict[str, Any]:
    """Rank the edges of a split.

    All draws are by the users' ids, so that partitions and orders do not change them.

    Args:
        run: A run or its folder.
        split: The split of the edges; ``held_out``: those that ``eval_fraction`` kept out
            of the training.
        candidates: Rank among a sample of so many nodes instead of all; every edge meets
            one of 32 samples. Such metrics are higher than those among all nodes, and
            comparable only with those of an equal sample.
        draw: How candidates are sampled: ``uniform``, or ``degree``: in proportion to
            the number of training edges at a node.
        queries: Ask only so many questions (two per edge), about edges drawn uniformly.
        seed: Of the samples.
        breakdown: Whether to give more than the means.
        graph: The graph trained on, if it is not where it was.
        threads: Number of threads, 0: one per core.
        memory: Budget of anonymous memory of the process, as ``"4GB"`` or in bytes: so
            many questions are asked at a time as fit in it; None: no limit.
        progress: Receives one stage.

    Returns:
        ``{"split": ..., "metrics": ...}`` with ``mrr``, ``mr``, ``hits@1``, ``hits@3``,
        ``hits@10``, filtered, means over both queries of every edge; ``unfiltered``: the
        same, raw. With ``breakdown`` also

        - ``head``, ``tail``: of the questions for sources and for destinations;
        - ``confidence``: 95 % intervals for another draw of edges, which the two
          questions of an edge enter as one, or all that share a sample of candidates;
        - ``by_relation``, ``by_degree`` (the true answer's training edges, of all edge
          types, both ends), ``by_category`` (1-1, 1-n, n-1, n-n, each with ``head`` and
          ``tail``): each with ``num_queries``;
        - ``untrained``: how many ``nodes`` and ``relations`` of these edges no training
          edge has, and how many ``edges`` have one;
        - ``roc_auc``: of the edges against one random wrong answer to each question;
        - ``num_queries`` and ``candidates`` (``"all"``, or ``num``, ``draw``, ``seed``).

    Raises:
        ConfigError: No edge type of the run has edges in the split, or a count is wrong.
        BudgetError: The budget is too small; the message names one that works.
    """
    budget = stated_budget(memory)
    require_sampling(candidates, queries, draw)
    opened = run if isinstance(run, Embeddings) else Embeddings(run, graph=graph)
    opened = with_held_out(opened, split)
    chosen = with_split(opened.graph, opened.model, split)
    most = None if queries is None else queries // 2
    asked = Asked(opened, candidates, draw, seed, breakdown, threads or num_cores())
    if budget is not None:
        asked.fit(chosen, split, most, budget)
    held = held_out_edges(opened.graph, chosen, split, most=most, seed=seed)
    progress.stage(f"evaluate {split}", 2 * sum(map(len, held)), "queries")
    with single_threaded_blas(), span("evaluate", split=split):
        result = asked.measure(asked.rank_all(held, progress))
    progress.close()
    return {"split": split, "metrics": result}


def require_sampling(candidates: int | None, queries: int | None, draw: str) -> None:
    """Refuse what no evaluation is about.

    Raises:
        ConfigError: A count is too small, or there is no such way to draw.
    """
    for name, value, least in (("candidates", candidates, 1), ("queries", queries, 2)):
        if value is not None and value < least:
            raise ConfigError(f"{name}: got {value}, expected an int >= {least}")
    require_draw(draw)


def with_held_out(run: Embeddings, split: str) -> Embeddings:
    """Return the run with what it held out itself, where no edges are in the split."""
    is_stored = any(split in run.graph.splits(m.edge_type) for m in run.model)
    if is_stored or not run.config.eval_fraction:
        return run
    found = copy.copy(run)
    found.graph = GraphWithHeldOut(stored_graph(run.graph), run.config)
    return found


@dataclass(frozen=True, kw_only=True)
class DirectionRanks:
    """The ranks of one edge type in one direction."""

    edges: HeldOut
    asks_for_dst: bool
    ranks: Ranks


class Asked:
    """What a question is asked about: samples of every node type, drawn once."""

    def __init__(
        self,
        run: Embeddings,
        num: int | None,
        draw: Draw,
        seed: int,
        breakdown: bool,
        threads: int,
    ) -> None:
        self.run, self.num, self.draw, self.seed = run, num, draw, seed
        self.breakdown, self.threads = breakdown, threads
        self.limits: BatchLimits | None = None
        self._drawn: dict[tuple[str, int, Draw], list[Ints]] = {}

    def fit(
        self, model: list[RelationSet], split: str, most: int | None, budget: int
    ) -> None:
        """Rank a few edges, and choose how many fit a budget at a time.

        Raises:
            BudgetError: Not even a few do.
        """
        graph, self.limits = self.run.graph, BatchLimits().smaller()[-1]
        num_edges = sum(graph.num_edges_of(m.edge_type, split) for m in model)
        num_edges = num_edges if most is None else min(most, num_edges)
        with single_threaded_blas():
            with metered() as ranking:
                few = held_out_edges(graph, model, split, most=FEW, seed=self.seed)
                found = self.rank_all(few, SILENT)
            with metered() as measuring:
                self.measure(found)
        del few, found

        def needed(limits: BatchLimits) -> int:
            batch = batch_bytes(self.run, model, limits, num_edges, self.threads)
            return max(
                ranking.peak_bytes + batch + _RANKED_BYTES * num_edges,
                measuring.peak_bytes + _MEASURED_BYTES * num_edges,
            )

        self.limits = fitting_limits(f"evaluating {num_edges} edges", needed, budget)

    def rank_all(self, held: list[HeldOut], progress: Progress) -> list[DirectionRanks]:
        """Rank the edges of all types, in both directions."""
        return [
            self.rank(edges, asks_for_dst, progress)
            for edges in held
            if len(edges)
            for asks_for_dst in (True, False)
        ]

    def measure(self, found: list[DirectionRanks]) -> dict[str, Any]:
        """Return the metrics of what was ranked."""
        result = metrics.ranking_metrics(
            [part.ranks.filtered for part in found], [part.ranks.raw for part in found]
        )
        if self.breakdown:
            num = {"num": self.num, "draw": self.draw, "seed": self.seed}
            result["candidates"] = "all" if self.num is None else num
            result |= _break_down(self.run, found, is_sampled=self.num is not None)
        return result

    def rank(
        self, edges: HeldOut, asks_for_dst: bool, progress: Progress
    ) -> DirectionRanks:
        """Rank the edges of one type."""
        scorer = Scorer(self.run, edges.relations, asks_for_dst)
        samples, negatives = self.samples(scorer.answer_type)
        ranks = rank_edges(
            scorer,
            edges,
            samples=samples,
            negatives=negatives,
            threads=self.threads,
            limits=self.limits,
            progress=progress,
        )
        return DirectionRanks(edges=edges, asks_for_dst=asks_for_dst, ranks=ranks)

    def samples(self, node_type: str) -> tuple[list[Ints] | None, list[Ints] | None]:
        """Return the candidates of a type, and what wrong answers are drawn from.

        Numbers, ascending, in 32 samples, or None for all; and likewise in the order
        drawn, or None where no scores are wanted.
        """
        samples = negatives = None
        if self.num is not None:
            samples = list(map(np.sort, self._samples(node_type, self.num, self.draw)))
        if self.breakdown:
            negatives = self._samples(node_type, _WRONG, "uniform")
        return samples, negatives

    def _samples(self, node_type: str, num: int, draw: Draw) -> list[Ints]:
        key = node_type, num, draw
        if key not in self._drawn:
            self._drawn[key] = draw_candidates(
                self.run.graph,
                self.run.model,
                node_type,
                num,
                _SAMPLES,
                draw=draw,
                seed=self.seed,
            )
        return self._drawn[key]


def _break_down(
    run: Embeddings, found: list[DirectionRanks], *, is_sampled: bool
) -> dict[str, Any]:
    ranks = np.concatenate([part.ranks.filtered for part in found])
    is_tail = np.repeat([p.asks_for_dst for p in found], [len(p.edges) for p in found])
    names, relation = _relations(found)
    category = _categories(run, found)[relation]
    by_category = metrics.by_group(CATEGORIES, category, ranks)
    for number, name in enumerate(CATEGORIES):
        for side, is_side in (("head", ~is_tail), ("tail", is_tail)):
            if name in by_category:
                by_category[name][side] = metrics.means(
                    ranks[(category == number) & is_side]
                )
    by_part = [_target_degrees(run, part) for part in found]
    degrees = np.concatenate(by_part)
    return {
        "untrained": _untrained(run, found, by_part),
        "num_queries": len(ranks),
        "confidence": metrics.intervals(ranks, _clusters(found, is_sampled)),
        "head": metrics.means(ranks[~is_tail]),
        "tail": metrics.means(ranks[is_tail]),
        "by_category": by_category,
        "by_degree": metrics.by_group(*metrics.degree_bins(degrees), ranks),
        "by_relation": metrics.by_group(names, relation, ranks),
        "roc_auc": metrics.roc_auc(
            np.concatenate([part.ranks.positive for part in found]),
            np.concatenate([part.ranks.negative for part in found]),
        ),
    }


def _untrained(
    run: Embeddings, found: list[DirectionRanks], degrees: list[Ints]
) -> dict[str, int]:
    """Count nodes and relations without a training edge, and the edges that have one."""
    nodes: dict[str, list[Ints]] = {}
    is_odd: dict[str, npt.NDArray[np.bool_]] = {}
    num_relations = 0
    for part, counts in zip(found, degrees, strict=True):
        kind, edges = part.edges.relations.edge_type, part.edges
        name = edges.relations.name
        ends = (
            (kind.dst_type, edges.dst) if part.asks_for_dst else (kind.src_type, edges.src)
        )
        nodes.setdefault(ends[0], []).append(ends[1][counts == 0])
        if name not in is_odd:
            trained = training_counts(run.graph, edges.relations)
            is_odd[name] = trained[edges.relation] == 0
            num_relations += len(np.unique(edges.relation[is_odd[name]]))
        is_odd[name] = is_odd[name] | (counts == 0)
    return {
        "nodes": sum(len(np.unique(np.concatenate(it))) for it in nodes.values()),
        "relations": num_relations,
        "edges": sum(int(it.sum()) for it in is_odd.values()),
    }


def _edge_types(found: list[DirectionRanks]) -> list[RelationSet]:
    """Return the relations of every edge type once, in the order of ``found``."""
    return [part.edges.relations for part in found if part.asks_for_dst]


def _relations(found: list[DirectionRanks]) -> tuple[list[str], Ints]:
    """Return the names of all relations, and which of them each query is about."""
    model = _edge_types(found)
    plain = [name for relations in model for name in relations.relations]
    names: list[str] = []
    first: dict[str, int] = {}
    for relations in model:
        first[relations.name] = len(names)
        for name in relations.relations:
            is_clear = plain.count(name) == 1
            names.append(name if is_clear else f"{relations.name}/{name}")
    about = [part.edges.relation + first[part.edges.relations.name] for part in found]
    return names, np.concatenate(about)


def _categories(run: Embeddings, found: list[DirectionRanks]) -> Ints:
    """Return the category of every relation, as a place in ``CATEGORIES``."""
    names = [c for m in _edge_types(found) for c in relation_categories(run.graph, m)]
    return np.array([CATEGORIES.index(name) for name in names], dtype=np.int64)


def _clusters(found: list[DirectionRanks], is_sampled: bool) -> Ints:
    """Return which queries are not independent: of one edge, or with one sample."""
    clusters: list[Ints] = []
    first = 0
    for part in found:
        numbers = np.arange(first, first + len(part.edges))
        if is_sampled:
            numbers = (part.edges.key % np.uint64(_SAMPLES)).astype(np.int64)
        elif not part.asks_for_dst:
            first += len(part.edges)
        clusters.append(numbers)
    distinct = np.unique(np.concatenate(clusters), return_inverse=True)[1]
    return distinct.astype(np.int64)


def _target_degrees(run: Embeddings, part: DirectionRanks) -> Ints:
    """Return the training degree of the true answer of every query."""
    kind, edges = part.edges.relations.edge_type, part.edges
    if part.asks_for_dst:
        return degrees_of(run.graph, run.model, kind.dst_type, edges.dst)
    return degrees_of(run.graph, run.model, kind.src_type, edges.src)
