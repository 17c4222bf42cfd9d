"""What the models say of trainings: the rows that the batches really had."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import graphsys as gs
from graphsys.analysis.page.page import page_of
from graphsys.analysis.report import MOST_POINTS, memory_points
from graphsys.core.events import Event, recording
from graphsys.core.row_trace import RowVisit
from graphsys.sampling import NeighborSampler
from graphsys.storage import Graph, NodeChunk
from graphsys.training.memory_split import MEMORY
from tests.stores import edge_chunk, make_store

NUM_NODES, DIM = 60, 12


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    rng = np.random.default_rng(5)
    split = pa.array(np.resize(["train", "train", "valid", "test"], NUM_NODES).tolist())
    nodes = NodeChunk(
        ids=np.arange(NUM_NODES),
        columns={"label": np.arange(NUM_NODES) % 3, "split": split},
        features={"x": rng.normal(0, 1, (NUM_NODES, DIM)).astype(np.float32)},
    )
    pairs = zip(rng.integers(0, NUM_NODES, 400), rng.integers(0, 20, 400), strict=True)
    edges = edge_chunk([(int(u), int(v)) for u, v in pairs])
    make_store(tmp_path / "graph", nodes, edges, is_directed=True)
    return Graph(tmp_path / "graph")


def watched(work: Any) -> list[RowVisit]:
    seen: list[RowVisit] = []
    with recording({"rows": lambda visits: seen.extend(copy.deepcopy(list(visits)))}):
        work()
    return seen


def test_sampled_rows_are_those_of_the_blocks(graph: Graph) -> None:
    sampler = NeighborSampler(graph, [4, 2])
    samples: list[Any] = []
    seeds = np.array([3, 1, 15])
    visits = watched(lambda: samples.append(sampler.sample(seeds)))
    blocks = samples[0].blocks[::-1]  # the hop next to the seeds first
    assert [visit.part for visit in visits] == ["sampling"] * 2
    (index,) = sampler.rows[0].indexes
    for visit, block in zip(visits, blocks, strict=True):
        assert visit.lengths.tolist() == np.diff(block.indptr).tolist()
        assert visit.indices is not None
        assert not visit.has_index_loads
        # the addresses that are read hold the neighbors that were found
        read = index.indices[visit.indices[: block.num_edges]]
        assert read.tolist() == block.src_nodes[block.indices].tolist()
        assert visit.value_bytes == index.indices.itemsize


def test_every_part_of_a_gnn_training_has_values(graph: Graph, tmp_path: Path) -> None:
    config = gs.gnn.GnnConfig(
        epochs=1, fanouts=(4, 2), batch_size=8, dim=16, eval_every=0, prefetch=2
    )
    with gs.profile() as p:
        report = gs.gnn.train(graph, config, tmp_path / "run")
    found = {metric["name"]: metric for metric in p.report["metrics"]}
    names = (
        "lane_utilization",
        "sm_imbalance",
        "cta_variance",
        "ctas_per_sm",
        "value_sectors_per_request",
        "coalescing_efficiency",
        "atomics",
    )
    for part in ("", ".sampling", ".gather", ".messages"):
        for name in names:
            metric = found[f"{name}{part}"]
            assert metric["source"] == "model"
            assert metric["value"] is not None, metric
    # twelve columns of a row are twelve lanes of a warp, in two sectors or three
    assert found["lane_utilization.gather"]["value"] == DIM / 32
    assert 1.5 <= found["value_sectors_per_request.gather"]["value"] <= 2.5
    assert found["lane_utilization.gather"]["exact"]
    parts = p.report["gpu"]["parts"]
    steps = p.report["supersteps"]
    sent = [step["predicted_transfers"] for step in steps]
    # features, and what is small as one block; then the loss
    assert {it["ours"]["count"] for it in sent} == {3}
    rows = parts["gather"]["entries"]
    assert sum(it["host-driven"]["bytes"] for it in sent) > rows * DIM * 4
    assert found["predicted_transfer_count.ours"]["value"] == 3 * len(steps)
    stages = {row["stage"]: row for row in p.report["overlap"]["stages"]}
    assert set(stages) == {"all", "sample", "gather"}
    epochs = [row["epoch"] for row in p.report["overlap"]["epochs"]]
    assert epochs == [1, 1, 1]
    assert report.metrics["overlap_by_epoch"][0]["epoch"] == 1
    assert report.metrics["overlap_by_epoch"][0]["rho"] > 0
    # a step has the rows of its own messages, not of what was made ahead
    assert all(step["gpu_mapping"] == "warp" for step in steps)
    assert parts["messages"]["entries"] == sum(step["edges"] for step in steps)


def test_a_report_has_the_memory_of_every_step(graph: Graph, tmp_path: Path) -> None:
    config = gs.gnn.GnnConfig(
        epochs=2, fanouts=(4, 2), batch_size=8, dim=16, eval_every=0, threads=1
    )
    with gs.profile(level="L0") as p:
        report = gs.gnn.train(graph, config, tmp_path / "run")
    points = p.report["memory"]
    assert [it["phase"] for it in points[:3]] == ["forward", "backward", "step"]
    assert len(points) == 3 * report.metrics["batches"]
    seconds = [it["seconds"] for it in points]
    assert seconds == sorted(seconds)
    assert 0 < seconds[0] < seconds[-1] < p.report["timeline"]["seconds"]
    for it in points:
        assert sum(it["parts"].values()) == it["bytes"]
        assert (it["parts"]["activations"] > 0) == (it["phase"] == "forward")
    largest = max(it["parts"]["activations"] for it in points)
    assert largest >= report.metrics["peak_memory_split"]["activations"] > 0
    page, text = page_of(p.report), p.summary()
    assert page.count(", optimizer: ") == len(points) - 2  # none before the first step
    assert "activations" in page.split('<p class="key">')[1]
    assert "memory_bytes" in text
    assert "parameters" in text.splitlines()[-1]


def test_memory_of_a_long_run_is_the_largest_of_equal_spans() -> None:
    sizes = [(7 * k) % 1000 for k in range(1000)]
    events = [
        Event(
            MEMORY, k, value=size, attributes={"phase": "step", "parts": {"caches": size}}
        )
        for k, size in enumerate(sizes)
    ]
    found = memory_points(events, 0, 1000)
    assert len(found) == MOST_POINTS
    spans: dict[int, int] = {}
    for k, size in enumerate(sizes):
        spans[k * MOST_POINTS // 1000] = max(spans.get(k * MOST_POINTS // 1000, 0), size)
    assert [it["bytes"] for it in found] == list(spans.values())
    assert len(memory_points(events[:MOST_POINTS], 0, 1000)) == MOST_POINTS


def test_a_run_without_a_training_tells_no_memory() -> None:
    with gs.profile(level="L0") as p:
        pass
    assert p.report["memory"] == []
    assert 'id="memory"' not in page_of(p.report)


def test_an_embedding_step_gathers_and_updates_the_rows_that_change(
    graph: Graph, tmp_path: Path
) -> None:
    config = gs.embedding.EmbeddingConfig(
        dim=8,
        epochs=1,
        threads=1,
        batch_size=100,
        num_uniform_negatives=3,
        num_batch_negatives=5,
        seed=4,
    )
    seen = watched(lambda: gs.embedding.train(graph, config, tmp_path / "run"))
    gathers = [visit for visit in seen if visit.part == "gather"]
    updates = [visit for visit in seen if visit.part == "update"]
    scores = [visit for visit in seen if visit.part == "scores"]
    assert len(gathers) == len(updates) == len(scores) == 4  # batches of 400 edges
    num_edges = 0
    for gather, update, score in zip(gathers, updates, scores, strict=True):
        assert gather.indices is not None
        assert update.indices is not None
        counts = np.bincount(gather.indices, minlength=NUM_NODES)
        # each distinct row is updated once, from all of its positions
        assert update.lengths.tolist() == counts[counts > 0].tolist()
        assert np.sort(update.indices).tolist() == list(range(len(gather.indices)))
        at = gather.indices[update.indices]
        assert (np.diff(at) >= 0).all()
        num_edges += len(score.lengths) // 2
    assert num_edges == 400


def test_the_nodes_told_are_those_that_the_kernel_moves(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graphsys.embedding.training import bucket_trainer

    moved: set[int] = set()
    plain = bucket_trainer._train_timed

    def spied(busy: Any, worker: int, tables: Any, *rest: Any) -> None:
        before = tables.src_rows.copy()
        plain(busy, worker, tables, *rest)
        moved.update(np.flatnonzero((before != tables.src_rows).any(axis=1)).tolist())

    monkeypatch.setattr(bucket_trainer, "_train_timed", spied)
    config = gs.embedding.EmbeddingConfig(
        dim=8,
        epochs=1,
        threads=1,
        batch_size=30,
        num_batch_negatives=5,
        num_uniform_negatives=2,
        seed=4,
    )
    visits = watched(lambda: gs.embedding.train(graph, config, tmp_path / "run"))
    told = {
        int(node)
        for visit in visits
        if visit.part == "gather" and visit.indices is not None
        for node in visit.indices
    }
    assert moved == told
