"""Evaluation of given rows, nothing trained: ranks, samples, breakdowns in plain Python."""

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys import metrics
from graphsys.core.errors import ConfigError
from graphsys.core.progress import SILENT, Progress
from graphsys.core.types import EdgeType
from graphsys.embedding import EmbeddingConfig, Embeddings, evaluate
from graphsys.embedding.data.candidates import draw_candidates
from graphsys.embedding.data.held_out import HeldOut, held_out_edges
from graphsys.embedding.evaluation import evaluate as evaluation
from graphsys.embedding.evaluation import ranking
from graphsys.embedding.evaluation.counts import Ranks, joined, merged
from graphsys.embedding.evaluation.ranking import count_edges, rank_edges
from graphsys.embedding.model import RelationSet, relation_sets
from graphsys.embedding.rows.scorer import Scorer
from graphsys.graph.slices import Slice
from graphsys.storage import GraphReader
from tests.ranking_oracle import ask_all, means, triples
from tests.stores import edge_chunk, make_store

FACT = EdgeType("thing", "fact", "thing")
ALSO = EdgeType("thing", "also", "thing")
NUM_THINGS = 70
KINDS = {"also": ("one", "other"), "fact": ("many", "one")}


class Given(Embeddings):
    """A run whose rows and operators are given."""

    def __init__(self, graph: GraphReader, config: EmbeddingConfig, table: Any) -> None:
        self.path, self.graph, self.config = Path("given"), graph, config
        self._given = table
        self.model = relation_sets(graph, config)

    def take(self, node_type: str, numbers: Any) -> Any:
        return self._given[numbers]

    def rows(self, node_type: str, part: int) -> Any:
        low, high = self.graph.offsets(node_type)[part : part + 2]
        return self._given[low:high]

    blocks = rows

    def operators(self, relations: RelationSet) -> Any:
        rng = np.random.default_rng(len(relations.name))
        return rng.integers(1, 4, relations.initial().shape).astype(np.float32)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> GraphReader:
    """Return a graph of two edge types; both have a relation ``one``."""
    rng, chunks = np.random.default_rng(3), []
    for kind, sizes in ((ALSO, (90, 12)), (FACT, (120, 18))):
        every = sorted({tuple(p) for p in rng.integers(0, NUM_THINGS, (300, 2)).tolist()})
        order = rng.permutation(len(every))[: sum(sizes)].tolist()
        for split, some in (("train", order[: sizes[0]]), ("test", order[sizes[0] :])):
            names = [KINDS[kind.relation][every[k][0] % 3 == 0] for k in some]
            pairs = [(f"t{every[k][0]}", f"t{every[k][1]}") for k in some]
            relation = pa.array(names)
            chunks.append(edge_chunk(pairs, kind, split, relation=relation))
    folder = tmp_path_factory.mktemp("given") / "graph"
    make_store(folder, *chunks, partitions=3)
    return GraphReader(folder)


@pytest.fixture(params=["ties", "normal"])
def run(graph: GraphReader, request: pytest.FixtureRequest) -> Given:
    """Return rows of small whole numbers, or of very different lengths, some equal."""
    rng, num = np.random.default_rng(4), graph.num_nodes
    table = rng.integers(-2, 3, (num, 4)).astype(np.float32)
    if request.param == "normal":
        table = rng.normal(size=(num, 4)) * 10.0 ** rng.integers(-3, 4, (num, 1))
        table[num // 2 :] = table[: num - num // 2]
        table[0] = 0
    return Given(graph, EmbeddingConfig(dim=4, operator="diagonal"), table.astype("f4"))


def near(found: dict[str, Any], asked: Any) -> None:
    for name, value in means(asked).items():
        assert found[name] == pytest.approx(value), name


def ends_of(edges: HeldOut, is_tail: bool) -> tuple[Any, Any]:
    return (edges.src, edges.dst) if is_tail else (edges.dst, edges.src)


def known_of(
    graph: GraphReader, edge_type: EdgeType, given: int, r: int, tail: bool
) -> set[int]:
    """Return all true answers to a question."""
    every = triples(graph, edge_type, "train") + triples(graph, edge_type, "test")
    if tail:
        return {d for s, q, d in every if (s, q) == (given, r)}
    return {s for s, q, d in every if (d, q) == (given, r)}


def rank_all(
    run: Given, number: int, is_tail: bool, **options: Any
) -> tuple[HeldOut, Ranks]:
    (edges,) = held_out_edges(run.graph, run.model[number : number + 1], "test")
    scorer = Scorer(run, edges.relations, is_tail)
    return edges, rank_edges(scorer, edges, threads=1, progress=SILENT, **options)


def scores_of(run: Given, edges: HeldOut, k: int, is_tail: bool) -> Any:
    """Return the scores of all nodes as answers to a question."""
    model, r = edges.relations, int(edges.relation[k])
    factor = run.operators(model)[0, model.offsets[r] : model.offsets[r + 1]]
    given = ends_of(edges, is_tail)[0][k]
    return run._given.astype(np.float64) @ (factor * run._given[given].astype(np.float64))


def test_everything_that_is_said_equals_plain_python(run: Given) -> None:
    found, asked = evaluate(run), ask_all(run, "test")
    assert found["split"] == "test"
    told = found["metrics"]
    near(told, asked)
    for name, value in means(asked, "raw").items():
        assert told["unfiltered"][name] == pytest.approx(value)
    assert told["num_queries"] == len(asked) == 60
    assert told["candidates"] == "all"
    near(told["head"], [one for one in asked if one.side == "head"])
    near(told["tail"], [one for one in asked if one.side == "tail"])
    groups: dict[str, dict[str, Any]] = {
        "by_relation": defaultdict(list),
        "by_degree": defaultdict(list),
    }
    for one in asked:
        is_twice = one.relation == "one"
        name = f"{one.edge_type}/{one.relation}" if is_twice else one.relation
        groups["by_relation"][name].append(one)
        low = 2 ** (one.degree.bit_length() - 1) if one.degree else 0
        groups["by_degree"][str(low) if low < 2 else f"{low}-{2 * low - 1}"].append(one)
    for key, wanted in groups.items():
        assert set(told[key]) == set(wanted)
        for name, group in wanted.items():
            near(told[key][name], group)
            assert told[key][name]["num_queries"] == len(group)
    sides = [told["by_category"][name] for name in told["by_category"]]
    assert {"head", "tail"} <= sides[0].keys()
    assert sum(side["num_queries"] for side in sides) == 60


def test_categories_have_both_sides(run: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"also/one": "n-1", "other": "1-1", "many": "n-1", "fact/one": "1-n"}

    def told(graph: GraphReader, model: RelationSet) -> list[str]:
        return [names.get(r, names.get(f"{model.name}/{r}", "")) for r in model.relations]

    monkeypatch.setattr(evaluation, "relation_categories", told)
    found, asked = evaluate(run)["metrics"]["by_category"], ask_all(run, "test")
    assert list(found) == ["1-1", "1-n", "n-1"]
    for category, group in found.items():
        own = [
            one
            for one in asked
            if names.get(one.relation, names.get(f"{one.edge_type}/{one.relation}"))
            == category
        ]
        near(group, own)
        for side in ("head", "tail"):
            near(group[side], [one for one in own if one.side == side])


@pytest.mark.parametrize("candidates", [None, 20])
def test_intervals_know_which_questions_hang_together(
    run: Given, candidates: int | None
) -> None:
    clusters: list[str] = []
    ranks = []
    for number, model in enumerate(run.model):
        for is_tail in (True, False):
            samples = None
            if candidates is not None:
                samples = draw_samples(run, candidates)
            edges, found = rank_all(run, number, is_tail, samples=samples)
            own = [f"{model.name} {k}" for k in range(len(edges))]
            clusters += (
                own if samples is None else [str(key % 32) for key in edges.key.tolist()]
            )
            ranks.append(found.filtered)
    places = np.unique(np.array(clusters), return_inverse=True)[1]
    wanted = metrics.intervals(np.concatenate(ranks), places)
    found = evaluate(run, candidates=candidates)["metrics"]["confidence"]
    assert found.pop("method") == wanted.pop("method")
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value), name


def draw_samples(run: Given, size: int, seed: int = 0) -> list[Any]:
    drawn = draw_candidates(run.graph, run.model, "thing", size, 32, seed=seed)
    return list(map(np.sort, drawn))


@pytest.mark.parametrize("is_tail", [True, False])
@pytest.mark.parametrize("number", [0, 1])
def test_each_question_meets_the_sample_of_its_key(
    run: Given, number: int, is_tail: bool
) -> None:
    samples = draw_samples(run, 9)[:3]
    edges, found = rank_all(run, number, is_tail, samples=samples)
    assert len(found.positive) == len(found.negative) == 0
    given, target = ends_of(edges, is_tail)
    kind = edges.relations.edge_type
    for k in range(len(edges)):
        scores = scores_of(run, edges, k, is_tail)
        pool = set(samples[int(edges.key[k]) % 3].tolist()) - {int(target[k])}
        known = known_of(run.graph, kind, given[k], int(edges.relation[k]), is_tail)
        for ranks, others in ((found.raw, pool), (found.filtered, pool - known)):
            other = scores[sorted(others)]
            equal = np.isclose(other, scores[target[k]], rtol=1e-9, atol=1e-12)
            better = (other > scores[target[k]]) & ~equal
            assert ranks[k] == 1 + better.sum() + equal.sum() / 2


@pytest.mark.parametrize("is_tail", [True, False])
def test_wrong_answers_are_the_first_of_a_sample_that_are_wrong(
    run: Given, is_tail: bool
) -> None:
    (edges,) = held_out_edges(run.graph, run.model[1:], "test")
    given, target = ends_of(edges, is_tail)
    kind = edges.relations.edge_type
    known = [
        known_of(run.graph, kind, given[k], int(edges.relation[k]), is_tail)
        for k in range(len(edges))
    ]
    shuffled = np.random.default_rng(1).permutation(NUM_THINGS)[:15]
    right = np.array([target[0], *sorted(known[0])] * 2)  # none of them is wrong
    negatives = [np.concatenate([target, shuffled]), right, right[:0], np.array([0])]
    # half of each of these is right for one question, so that a second try is needed
    halves = [
        np.array([*sorted(known[k] | {int(target[k])}), *shuffled[: len(known[k])]])
        for k in range(len(edges))
    ]
    num_none = 0
    for samples in (negatives, *([half] for half in halves)):
        edges, found = rank_all(run, 1, is_tail, negatives=samples)
        for k in range(len(edges)):
            key = int(edges.key[k])
            sample, wrong = samples[key % len(samples)].tolist(), None
            for step in range(len(sample)):
                tried = sample[((key >> 32) % len(sample) + step) % len(sample)]
                if tried != target[k] and tried not in known[k]:
                    wrong = tried
                    break
            scores = scores_of(run, edges, k, is_tail)
            assert found.positive[k] == pytest.approx(scores[target[k]], 1e-5, 1e-6)
            if wrong is None:
                num_none += 1
                assert np.isnan(found.negative[k])
            else:
                assert found.negative[k] == pytest.approx(scores[wrong], 1e-5, 1e-6)
    assert 0 < num_none < len(edges)


def test_a_run_asked_for_its_area_draws_64_wrong_answers(run: Given) -> None:
    drawn = draw_candidates(run.graph, run.model, "thing", 64, 32)
    parts = [
        rank_all(run, number, is_tail, negatives=drawn)[1]
        for number in (0, 1)
        for is_tail in (True, False)
    ]
    wanted = metrics.roc_auc(
        np.concatenate([part.positive for part in parts]),
        np.concatenate([part.negative for part in parts]),
    )
    assert evaluate(run)["metrics"]["roc_auc"] == wanted
    only_means = evaluate(run, breakdown=False)["metrics"]
    assert only_means.keys() == {"mrr", "mr", "hits@1", "hits@3", "hits@10", "unfiltered"}


def test_blocks_change_nothing_where_candidates_move(
    graph: GraphReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = np.random.default_rng(6).normal(size=(NUM_THINGS, 4)).astype(np.float32)
    config = EmbeddingConfig(dim=4, operator="diagonal", comparator="cos")
    run = Given(graph, config, table)
    whole = evaluate(run, threads=1)
    near(whole["metrics"], ask_all(run, "test"))
    monkeypatch.setattr("graphsys.embedding.evaluation.ranking._QUERY_BLOCK", 3)
    monkeypatch.setattr("graphsys.embedding.rows.batch_memory._CANDIDATES", 11)
    cut = ranking._Batch._blocks
    blocks: list[list[int]] = []

    def watched(batch: Any, chosen: Any) -> Any:
        found = cut(batch, chosen)
        if batch.scorer.moves_candidates:
            blocks.extend(batch.queries.relation[each].tolist() for each in found)
        return found

    monkeypatch.setattr(ranking._Batch, "_blocks", watched)
    assert evaluate(run, threads=2) == whole
    assert {tuple(sorted(set(relation))) for relation in blocks} == {(0,), (1,)}


def test_samples_are_drawn_by_size_seed_and_way(run: Given) -> None:
    found = evaluate(run, candidates=12)
    assert found == evaluate(run, candidates=12, seed=0, draw="uniform")
    assert found["metrics"]["candidates"] == {"num": 12, "draw": "uniform", "seed": 0}
    for changes in ({"seed": 1}, {"draw": "degree"}, {"candidates": 13}):
        options: dict[str, Any] = {"candidates": 12, **changes}
        assert evaluate(run, **options)["metrics"]["mr"] != found["metrics"]["mr"]


def test_a_few_questions_are_two_of_each_edge(run: Given) -> None:
    for queries, wanted in ((2, 2), (7, 6), (10**6, 60)):
        assert evaluate(run, queries=queries)["metrics"]["num_queries"] == wanted
    assert evaluate(run, candidates=1)["metrics"]["candidates"]["num"] == 1
    with pytest.raises(ConfigError, match="queries: got 1, expected an int >= 2"):
        evaluate(run, queries=1)
    with pytest.raises(ConfigError, match="candidates: got 0, expected an int >= 1"):
        evaluate(run, candidates=0)
    with pytest.raises(ConfigError, match="draw: got 'no', expected one of uniform, deg"):
        evaluate(run, draw="no")  # type: ignore[arg-type]


class Told(Progress):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.stages: list[Any] = []
        self.steps: list[int] = []

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        self.stages.append((name, total, unit))

    def advance(self, steps: int, **figures: float) -> None:
        self.steps.append(steps)

    def close(self) -> None:
        self.stages.append("end")


@pytest.mark.parametrize("candidates", [None, 5])
def test_progress_is_told_of_every_question(run: Given, candidates: int | None) -> None:
    told = Told()
    evaluate(run, candidates=candidates, progress=told)
    assert told.stages == [("evaluate test", 60, "queries"), "end"]
    assert told.steps == [12, 12, 18, 18]


def test_all_cores_count_where_no_threads_are_named(
    run: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def noted(*arguments: Any, threads: int, **options: Any) -> Ranks:
        seen.append(threads)
        return rank_edges(*arguments, threads=threads, **options)

    monkeypatch.setattr(evaluation, "rank_edges", noted)
    monkeypatch.setattr(evaluation, "num_cores", lambda: 3)
    evaluate(run, queries=2)
    evaluate(run, queries=2, threads=2)
    assert set(seen[: len(seen) // 2]) == {3}
    assert set(seen[len(seen) // 2 :]) == {2}


def test_a_folder_without_a_run_is_an_error(graph: GraphReader, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="run"):
        evaluate(tmp_path / "none", graph=graph)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("is_sampled", [False, True])
def test_shares_of_the_candidates_merge_to_the_whole(
    run: Given, size: int, is_sampled: bool
) -> None:
    """With fewer workers than partitions, as many, and more; to the last bit."""
    drawn = [
        draw_candidates(run.graph, run.model, "thing", num, 32, seed=1) for num in (9, 5)
    ]
    options: dict[str, Any] = {
        "samples": list(map(np.sort, drawn[0])) if is_sampled else None,
        "negatives": drawn[1],
        "threads": 1,
        "progress": SILENT,
    }
    for relations in run.model:
        (edges,) = held_out_edges(run.graph, [relations], "test")
        for is_tail in (True, False):
            scorer = Scorer(run, relations, is_tail)
            whole = count_edges(scorer, edges, **options)
            cuts = [edges.take(np.arange(7)), edges.take(np.arange(7, len(edges)))]
            found = joined(
                [
                    merged(
                        [
                            count_edges(scorer, some, share=Slice(rank, size), **options)
                            for rank in range(size)
                        ]
                    )
                    for some in cuts
                ]
            )
            for name in ("counts", "positive", "negative", "tried"):
                np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
            assert not np.isnan(found.positive).any()


def test_shares_are_whole_partitions_or_parts_of_them() -> None:
    offsets = np.array([0, 4, 4, 10, 15])
    shares = [Slice(rank, 2).partitions(offsets) for rank in range(2)]
    assert shares == [[(0, 0, 4)], [(2, 0, 6), (3, 0, 5)]]
    spans = [Slice(rank, 7).span(offsets) for rank in range(7)]
    assert spans[0][0] == 0
    assert spans[-1][1] == 15
    assert all(a[1] == b[0] for a, b in pairwise(spans))
    assert Slice(2, 7).partitions(offsets) == [(2, 0, 2)]
    assert Slice(0, 3).partitions(np.array([0, 0])) == []
