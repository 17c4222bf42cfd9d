from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ConfigError
from graphsys.core.types import EdgeType
from graphsys.embedding import EmbeddingConfig, Embeddings, baselines, evaluate, train
from graphsys.embedding import evaluate as evaluate_function
from graphsys.embedding.model import OPERATOR_CODES
from graphsys.storage.ingest import ingest
from graphsys.storage.reader import Graph
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

MakeRing = Callable[[int], Graph]


def triples(graph: Graph, kind: EdgeType, split: str) -> list[tuple[int, int, int]]:
    """Return a split's edges as (source, relation, destination) numbers."""
    found = []
    src_offsets, dst_offsets = graph.offsets(kind.src_type), graph.offsets(kind.dst_type)
    for i, j in np.argwhere(graph.bucket_counts(kind, split)):
        bucket = graph.bucket(kind, i, j, split)
        relation = bucket.relation if bucket.relation is not None else [0] * len(bucket.src)
        for s, r, d in zip(bucket.src, relation, bucket.dst, strict=True):
            found.append((int(s + src_offsets[i]), int(r), int(d + dst_offsets[j])))
    return found


def operate(code: int, p: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> Any:
    half = x.shape[-1] // 2
    if code == OPERATOR_CODES["translation"]:
        return x + p
    if code == OPERATOR_CODES["diagonal"]:
        return x * p
    if code == OPERATOR_CODES["linear"]:
        return x @ p.reshape(x.shape[-1], -1).T
    if code == OPERATOR_CODES["complex_diagonal"]:
        z = (x[..., :half] + 1j * x[..., half:]) * (p[:half] + 1j * p[half:])
        return np.concatenate([z.real, z.imag], axis=-1)
    return x


def compare(comparator: str, q: Any, c: Any) -> Any:
    if comparator == "dot":
        return c @ q
    if comparator == "cos":
        return c @ q / np.linalg.norm(c, axis=1) / np.linalg.norm(q)
    return -np.linalg.norm(c - q, axis=1)


def brute_force(run: Embeddings, split: str) -> dict[str, float]:
    """Rank with plain Python over sets, in float64."""
    filtered: list[float] = []
    raw: list[float] = []
    graph = run.graph
    for model in run.model:
        kind = model.edge_type
        table = run.operators(model).astype(np.float64)
        src_x, dst_x = (
            run.take(t, np.arange(graph.num_nodes_of(t))).astype(np.float64)
            for t in (kind.src_type, kind.dst_type)
        )
        known = {e for name in graph.splits(kind) for e in triples(graph, kind, name)}
        if not graph.is_directed_type(kind):
            known |= {(d, r, s) for s, r, d in known}
        for s, r, d in triples(graph, kind, split):
            span = slice(model.offsets[r], model.offsets[r + 1])
            code = int(model.codes[r])
            if model.num_sides == 2:
                tails = compare(
                    run.config.comparator, operate(code, table[0, span], src_x[s]), dst_x
                )
                heads = compare(
                    run.config.comparator, operate(code, table[2, span], dst_x[d]), src_x
                )
            else:
                moved = operate(code, table[0, span], dst_x)
                tails = compare(run.config.comparator, src_x[s], moved)
                heads = compare(run.config.comparator, moved[d], src_x)
            others_d = [x for x in range(len(dst_x)) if x != d and (s, r, x) in known]
            others_s = [x for x in range(len(src_x)) if x != s and (x, r, d) in known]
            for scores, own, others in ((tails, d, others_d), (heads, s, others_s)):
                for into, out in ((raw, []), (filtered, others)):
                    kept = np.delete(scores, [own, *out])
                    equal = np.isclose(kept, scores[own], rtol=1e-9, atol=1e-9)
                    better = (kept > scores[own]) & ~equal
                    into.append(1 + better.sum() + equal.sum() / 2)
    ranks = np.array(filtered)
    return {
        "mrr": float(np.mean(1 / ranks)),
        "hits@3": float(np.mean(ranks <= 3)),
        "mr": float(np.mean(ranks)),
        "raw_mr": float(np.mean(raw)),
    }


def check(path: Path, split: str) -> None:
    run = Embeddings(path)
    found, wanted = evaluate(run, split=split), brute_force(run, split)
    metrics = found["metrics"]
    assert found["split"] == split
    assert metrics["mrr"] == pytest.approx(wanted["mrr"], rel=1e-6)
    assert metrics["mr"] == pytest.approx(wanted["mr"], rel=1e-6)
    assert metrics["hits@3"] == pytest.approx(wanted["hits@3"])
    assert metrics["unfiltered"]["mr"] == pytest.approx(wanted["raw_mr"], rel=1e-6)


@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("comparator", ["dot", "cos", "l2", "squared_l2"])
@pytest.mark.parametrize("operator", list(OPERATOR_CODES))
def test_ranks_equal_brute_force(
    make_ring: MakeRing, tmp_path: Path, operator: Any, comparator: Any, reciprocal: bool
) -> None:
    config = EmbeddingConfig(
        dim=6,
        epochs=2,
        operator=operator,
        comparator=comparator,
        reciprocal=reciprocal,
        init_scale=1.0,
        lr=0.3,
        deterministic=True,
        batch_size=16,
        num_batch_negatives=8,
        num_uniform_negatives=4,
        checkpoint_seconds=60.0,
    )
    train(make_ring(2), config, tmp_path / "run")
    check(tmp_path / "run", "test")


def test_ranks_of_several_types_equal_brute_force(shop: Graph, tmp_path: Path) -> None:
    config = EmbeddingConfig(dim=8, epochs=1, init_scale=1.0, operator="diagonal")
    train(shop, config, tmp_path / "run")
    check(tmp_path / "run", "test")


class Twins(Source):
    """An undirected graph on which an untrained model of zero length ties everywhere."""

    name = "twins"
    is_directed = False

    def chunks(self) -> Any:
        yield NodeChunk(ids=np.arange(12))
        yield EdgeChunk(src=np.arange(10), dst=np.arange(10) + 1)
        yield EdgeChunk(src=np.array([0, 3]), dst=np.array([5, 9]), split="test")


def test_undirected_edges_are_known_both_ways(tmp_path: Path) -> None:
    ingest(Twins(), tmp_path / "graph", partitions=3)
    graph = Graph(tmp_path / "graph")
    train(graph, EmbeddingConfig(dim=4, epochs=1, init_scale=1.0), tmp_path / "run")
    check(tmp_path / "run", "test")


def test_equal_rows_share_their_rank(make_ring: MakeRing, tmp_path: Path) -> None:
    for partitions in (1, 4):
        graph, out = make_ring(partitions), tmp_path / f"run{partitions}"
        train(graph, EmbeddingConfig(dim=64, epochs=1, seed=partitions), out)
        run = Embeddings(out)
        for name in run.state.files:
            if name.startswith("rows/"):
                rows = np.load(out / name)
                rows[:] = np.linspace(-1, 1, 64, dtype=np.float32) * 0.37
                np.save(out / name, rows)
        metrics = evaluate(out)["metrics"]
        # all 40 candidates tie: rank 1 + 39 / 2 raw, whatever the partitions
        assert metrics["unfiltered"]["mr"] == 20.5
        assert metrics["unfiltered"]["mrr"] == pytest.approx(1 / 20.5)
        assert metrics["hits@10"] == 0.0


def test_ranks_do_not_depend_on_partitions_or_threads(
    make_ring: MakeRing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 16)).astype(np.float32)
    rows[20:30] = rows[10:20]
    results = []
    for partitions in (1, 2, 4):
        graph, out = make_ring(partitions), tmp_path / f"run{partitions}"
        train(graph, EmbeddingConfig(dim=16, epochs=1, operator="diagonal"), out)
        place = np.argsort(graph.node_ids("entity").to_numpy(zero_copy_only=False))
        number = np.empty(40, dtype=np.int64)
        number[place] = np.arange(40)
        offsets = graph.offsets("entity")
        for name in Embeddings(out).state.files:
            if name.startswith("rows/"):
                part = int(name.rsplit("part-")[1].split(".")[0])
                np.save(out / name, rows[number[offsets[part] : offsets[part + 1]]])
            if name.startswith("relations/"):
                table = np.load(out / name)
                table[0] = np.tile(np.linspace(0.5, 2, 16), 3)
                np.save(out / name, table)
        results.append(evaluate(out, threads=1))
        monkeypatch.setattr("graphsys.embedding.evaluation._CANDIDATE_BLOCK", 7)
        results.append(evaluate(out, threads=2))
        monkeypatch.undo()
    assert all(result == results[0] for result in results)


def test_a_split_without_edges_is_an_error(make_ring: MakeRing, tmp_path: Path) -> None:
    train(make_ring(1), EmbeddingConfig(dim=4, epochs=1), tmp_path / "run")
    with pytest.raises(
        ConfigError, match="split 'dev' has no edges; the graph has test, tr"
    ):
        evaluate_function(tmp_path / "run", split="dev")


def test_baselines_rank_by_chance_and_by_popularity(make_ring: MakeRing) -> None:
    for partitions in (1, 4):
        found = baselines(make_ring(partitions))
        raw = found["random"]["unfiltered"]
        assert raw["mr"] == 20.5
        assert raw["mrr"] == pytest.approx(sum(1 / k for k in range(1, 41)) / 40)
        assert raw["hits@10"] == pytest.approx(0.25)
        assert found["random"]["mr"] <= raw["mr"]
        # everyone has one edge of each relation: held-out answers have none, and come last
        assert found["popularity"]["unfiltered"]["mr"] > 30


def test_the_popular_answer_comes_first(tmp_path: Path) -> None:
    class Plain(Source):
        name = "star"

        def chunks(self) -> Any:
            yield EdgeChunk(src=np.arange(1, 9), dst=np.zeros(8, dtype=np.int64))
            yield EdgeChunk(src=np.array([9]), dst=np.array([0]), split="test")

    ingest(Plain(), tmp_path / "graph")
    found = baselines(Graph(tmp_path / "graph"))["popularity"]
    # tail: node 0 is first; head: 9 ties with 0 after the eight known answers are left out
    assert found["hits@1"] == 0.5
    assert found["mr"] == pytest.approx((1 + 1.5) / 2)
