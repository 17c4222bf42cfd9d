"""Link prediction: the best answers to (head, relation, ?) and (?, relation, tail)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.core.memory import metered, stated_budget
from graphsys.core.progress import IN_NOTEBOOKS, SILENT, Progress
from graphsys.core.threads import num_cores
from graphsys.datasets.temporary import GraphLike
from graphsys.embedding.blas import single_threaded_blas
from graphsys.embedding.data.filtered_queries import (
    BatchLimits,
    Queries,
    find,
    query_batches,
)
from graphsys.embedding.inference.topk import SPARE, best_answers, exact_pairs
from graphsys.embedding.inference.triples import (
    QueryGroup,
    as_table,
    groups,
    relation_names,
)
from graphsys.embedding.rows.batch_memory import FEW, batch_bytes, fitting_limits
from graphsys.embedding.rows.scorer import Scorer
from graphsys.embedding.rows.trained_rows import TrainedEmbedding

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Known = Literal["drop", "mark", "keep"]
_FOUND_BYTES = 48  # of an answer of a batch: in float32, again in float64, in order
_AGAIN_BYTES = 40  # of a dimension of an answer that is scored again, in float64
_ANSWER_BYTES = 17
_JOINED_BYTES = 160  # of an answer: a row of the table, and all of them in order


def predict(
    run: str | Path | TrainedEmbedding,
    questions: pa.Table | Mapping[str, Sequence[Any]],
    k: int = 10,
    *,
    known: Known = "drop",
    known_splits: str = "all",
    graph: GraphLike | None = None,
    threads: int = 0,
    memory: int | str | None = None,
    progress: Progress = IN_NOTEBOOKS,
) -> pa.Table:
    """Answer questions with the nodes of the right type that score best.

    Args:
        run: A run or its folder.
        questions: Columns ``head``, ``relation``, ``tail``; in every row either ``head``
            or ``tail`` is null and asked for. A column that is missing is null, and the
            relation may be missing where the run has one.
        k: Answers to each question.
        known: What to do with answers that are edges already: ``drop`` them, ``mark``
            them in a column ``known``, or ``keep`` them unmarked.
        known_splits: The splits whose edges these are: "all", or some ("train,valid").
            With "train" alone answers can be compared with the edges of ``test``.
        graph: The graph trained on, if it is not where it was.
        threads: Number of threads, 0: one per core.
        memory: Budget of anonymous memory of the process, as ``"4GB"`` or in bytes: so
            many questions are answered at a time as fit in it; None: no limit.
        progress: Receives one stage.

    Returns:
        Columns ``query`` (row of the question), ``rank`` (from 1), ``head``,
        ``relation``, ``tail``, ``score`` (float64) and, with ``mark``, ``known``: in the
        order of the questions, best first, ties by the order of the store. Fewer than
        ``k`` rows where there are no more nodes. Ids are text where node types with
        integers and with text meet in a column.

    Raises:
        ConfigError: ``k``, ``known`` or ``known_splits`` is wrong, or a row gives too
            much or too little.
        UnknownNameError: A node or a relation is not in the graph.
        BudgetError: The budget is too small; the message names one that works.
    """
    if k < 1:
        raise ConfigError(f"k: got {k}, expected an int >= 1")
    if known not in get_args(Known):
        raise ConfigError(
            f"known: got {known!r}, expected one of {', '.join(get_args(Known))}"
        )
    budget = stated_budget(memory)
    opened = (
        run if isinstance(run, TrainedEmbedding) else TrainedEmbedding(run, graph=graph)
    )
    table = as_table(questions)
    asked = _Asked(opened, k, known, threads or num_cores(), known_splits)
    if budget is not None:
        asked.fit(table, budget)
    progress.stage("predict", table.num_rows, "queries")
    pieces = asked.answer_all(groups(opened, table), progress)
    progress.close()
    return _join(opened, pieces, known)


def score(
    run: str | Path | TrainedEmbedding,
    triples: pa.Table | Mapping[str, Sequence[Any]],
    *,
    graph: GraphLike | None = None,
) -> Doubles:
    """Score triples by the run's comparator: inner product, cosine or minus the distance.

    With reciprocal relations the score is the one that orders the answers to
    (head, relation, ?).

    Args:
        run: A run or its folder.
        triples: Columns ``head``, ``relation``, ``tail``; the relation may be missing
            where the run has one.
        graph: The graph trained on, if it is not where it was.

    Returns:
        Scores, float64 ``[n]``.

    Raises:
        ConfigError: A row lacks something.
        UnknownNameError: A node or a relation is not in the graph.
    """
    opened = (
        run if isinstance(run, TrainedEmbedding) else TrainedEmbedding(run, graph=graph)
    )
    table = as_table(triples)
    result = np.empty(table.num_rows, dtype=np.float64)
    for group in groups(opened, table, is_complete=True):
        assert group.head is not None  # is_complete
        assert group.tail is not None
        asks_for_dst = group.relations.num_sides == 2
        scorer = Scorer(opened, group.relations, asks_for_dst)
        given, answer = group.head, group.tail
        if not asks_for_dst:
            given, answer = answer, given
        result[group.rows] = scorer.scores(
            scorer.prepare_queries(given, group.relation),
            scorer.prepare_candidates(
                opened.take(scorer.answer_type, answer), group.relation
            ),
            scorer.constants(given, group.relation),
        )
    return result


class _Asked:
    """How questions are answered."""

    def __init__(
        self, run: TrainedEmbedding, k: int, known: Known, threads: int, known_splits: str
    ) -> None:
        self.run, self.k, self.known, self.threads = run, k, known, threads
        self.known_splits = known_splits
        self.limits: BatchLimits | None = None

    def fit(self, table: pa.Table, budget: int) -> None:
        """Answer a few of the questions, and choose how many fit a budget at a time.

        Raises:
            BudgetError: Not even a few do.
        """
        self.limits = BatchLimits().smaller()[-1]
        with metered() as finding:
            every = list(groups(self.run, table))
        few = [group.first(FEW) for group in every]
        with metered() as answering:
            pieces = self.answer_all(iter(few), SILENT)
        with metered() as joining:
            _join(self.run, pieces, self.known)
        if not every:
            return
        model, num = [group.relations for group in every], int(table.num_rows)
        largest = max(len(group.rows) for group in every)
        most = max(self.run.graph.num_nodes_of(t) for t in self.run.node_types)
        answers, width = num * min(self.k, most), min(self.k + SPARE, most)
        dim = max(map(self.run.dim_of, self.run.node_types))
        again = exact_pairs(self.limits, dim) * dim * _AGAIN_BYTES
        joined = _JOINED_BYTES + 3 * _text_bytes(self.run)
        del every, few, pieces

        def needed(limits: BatchLimits) -> int:
            batch = batch_bytes(self.run, model, limits, largest, self.threads)
            batch += min(limits.questions, largest) * width * _FOUND_BYTES
            batch += again
            return max(
                finding.peak_bytes,
                answering.peak_bytes + batch + answers * _ANSWER_BYTES,
                joining.peak_bytes + answers * joined,
            )

        self.limits = fitting_limits(f"answering {num} questions", needed, budget)

    def answer_all(
        self, asked: Iterator[QueryGroup], progress: Progress
    ) -> list["_Answers"]:
        """Answer the questions of groups."""
        pieces = []
        with single_threaded_blas():
            for group in asked:
                for piece in self._answer(group):
                    pieces.append(piece)
                    progress.advance(len(piece))
        return pieces

    def _answer(self, group: QueryGroup) -> Iterator["_Answers"]:
        scorer = Scorer(self.run, group.relations, group.tail is None)
        for queries in _batches(
            self.run, group, self.known, self.limits, self.known_splits
        ):
            numbers, scores = best_answers(
                scorer,
                queries,
                self.k,
                leaves_out_known=self.known == "drop",
                threads=self.threads,
                limits=self.limits,
            )
            yield _Answers(
                group=group,
                queries=replace(queries, known=queries.known[:0]),
                numbers=numbers,
                scores=scores,
                is_known=_is_known(queries, numbers),
            )


@dataclass(frozen=True, kw_only=True)
class _Answers:
    """The best answers to some questions of a group, ``[n, k]`` with -1 for none."""

    group: QueryGroup
    queries: Queries
    numbers: Ints
    scores: Doubles
    is_known: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.numbers)


def _batches(
    run: TrainedEmbedding,
    group: QueryGroup,
    known: Known,
    limits: BatchLimits | None,
    known_splits: str,
) -> Iterator[Queries]:
    asks_for_dst = group.tail is None
    node = group.head if asks_for_dst else group.tail
    assert node is not None  # one end is given
    if known != "keep":
        any_one = np.full(len(node), -1, dtype=np.int64)
        yield from query_batches(
            run.graph,
            group.relations.edge_type,
            node,
            group.relation,
            any_one,
            asks_for_dst=asks_for_dst,
            limits=limits,
            splits=known_splits,
        )
        return
    size = (limits or BatchLimits()).questions
    for begin in range(0, len(node), size):
        some = slice(begin, min(begin + size, len(node)))
        none = np.zeros(some.stop - begin, dtype=np.int64)
        yield Queries(
            index=np.arange(begin, some.stop),
            node=node[some],
            relation=group.relation[some],
            target=none - 1,
            known_begin=none,
            known_end=none,
            known=none[:0],
        )


def _text_bytes(run: TrainedEmbedding) -> int:
    """Return what the names in an answer take beyond a number each, on average."""
    names = [name for relations in run.model for name in relations.relations]
    ids = [run.graph.node_ids(name) for name in run.node_types]
    texts: list[int] = [column.nbytes // max(len(column), 1) - 8 for column in ids]
    return 2 * max(texts) + max(map(len, names), default=0)


def _is_known(queries: Queries, numbers: Ints) -> npt.NDArray[np.bool_]:
    """Return which answers are edges of the graph."""
    found = np.zeros(numbers.shape, dtype=bool)
    for row, (begin, end) in enumerate(
        zip(queries.known_begin.tolist(), queries.known_end.tolist(), strict=True)
    ):
        found[row] = find(queries.known[begin:end], numbers[row])[1]
    return found


def _join(run: TrainedEmbedding, answers: list[_Answers], known: Known) -> pa.Table:
    """Turn numbers into names: one row per answer, in the order of the questions."""
    tables = [_named(run, some) for some in answers]
    if not tables:
        name = run.model[0].edge_type.src_type
        ids = run.ids(name, [])
        empty = {"head": ids, "relation": pa.array([], pa.string()), "tail": ids}
        numbers, scores = pa.array([], pa.int64()), pa.array([], pa.float64())
        tables = [
            pa.table(
                {
                    "query": numbers,
                    "rank": numbers,
                    **empty,
                    "score": scores,
                    "known": pa.array([], pa.bool_()),
                }
            )
        ]
    for name in ("head", "tail"):
        if len({table.schema.field(name).type for table in tables}) > 1:
            place = tables[0].column_names.index(name)
            tables = [
                t.set_column(place, name, t.column(name).cast(pa.large_string()))
                for t in tables
            ]
    joined = pa.concat_tables(tables)
    order = np.argsort(joined.column("query").to_numpy(), kind="stable")
    joined = joined.take(pa.array(order)).combine_chunks()
    return joined if known == "mark" else joined.drop_columns(["known"])


def _named(run: TrainedEmbedding, answers: _Answers) -> pa.Table:
    group, kind = answers.group, answers.group.relations.edge_type
    row, place = np.nonzero(answers.numbers >= 0)
    own = {"head": kind.src_type, "tail": kind.dst_type}
    asked = "tail" if group.tail is None else "head"
    given = "head" if asked == "tail" else "tail"
    ids = {
        asked: run.ids(own[asked], answers.numbers[row, place]),
        given: run.ids(own[given], answers.queries.node[row]),
    }
    names = {pair: name for name, pair in relation_names(run).items()}
    number = next(n for n, m in enumerate(run.model) if m is group.relations)
    codes = answers.queries.relation
    relation = pa.array([names[number, code] for code in codes.tolist()], pa.string())
    return pa.table(
        {
            "query": pa.array(group.rows[answers.queries.index][row]),
            "rank": pa.array(place + 1),
            "head": ids["head"],
            "relation": relation.take(pa.array(row)),
            "tail": ids["tail"],
            "score": pa.array(answers.scores[row, place]),
            "known": pa.array(answers.is_known[row, place]),
        }
    )
