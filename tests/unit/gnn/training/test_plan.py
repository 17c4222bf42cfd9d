"""What a training says that it takes: its batches, and what is evaluated after them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphsys import gnn
from graphsys.core.errors import BudgetError
from graphsys.gnn import GnnConfig
from graphsys.gnn.layerwise_inference import probe
from graphsys.gnn.layerwise_passes import LayerByLayer
from graphsys.gnn.training import plan
from graphsys.gnn.training.api import build_context
from graphsys.gnn.training.trainer import GnnTrainer
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store
from tests.unit.gnn.conftest import NUM_NODES, Store
from tests.unit.gnn.training.test_api import are_equal, weights_of

MANY = 20_000  # nodes


def config_of(**changes: Any) -> GnnConfig:
    settings: dict[str, Any] = {
        "dim": 16,
        "epochs": 2,
        "batch_size": 8,
        "fanouts": (5, 5),
        "eval_every": 0,
        "threads": 1,
    }
    return GnnConfig(**{**settings, **changes})


@pytest.fixture
def ring(tmp_path: Path) -> Graph:
    """A ring of many nodes, of which 8 are trained and 8 are valid."""
    split = np.array(["none"] * MANY, dtype=object)
    split[:8], split[8:16] = "train", "valid"
    nodes = NodeChunk(
        ids=np.arange(MANY),
        columns={"label": np.arange(MANY) % 2, "split": split.tolist()},
        features={"x": np.ones((MANY, 4), dtype=np.float32)},
    )
    edges = [(v, (v + 1) % MANY) for v in range(MANY)]
    make_store(tmp_path / "ring", nodes, edge_chunk(edges), is_directed=False)
    return Graph(tmp_path / "ring")


def test_a_plan_has_the_rows_of_two_layers(ring: Graph, tmp_path: Path) -> None:
    def planned(**changes: Any) -> int:
        config = config_of(dim=512, fanouts=(2, 2, 2), layers=3, **changes)
        metrics = gnn.train(ring, config, tmp_path / "run", dry_run=True).metrics
        return int(metrics["planned_memory_bytes"])

    rows = 2 * MANY * 512 * 4
    assert planned(eval_every=1) > planned(eval_every=0) + rows // 2
    assert planned(eval_every=1) > rows


def test_a_probe_tells_the_rows_of_two_layers(groups: Store) -> None:
    context = build_context(groups(2), config_of())
    num_out = context.network.num_out
    assert probe(context, "node") == 4 * NUM_NODES * (16 + num_out)
    deep = build_context(groups(2), config_of(fanouts=(5, 5, 5), layers=3))
    assert probe(deep, "node") == 4 * NUM_NODES * (16 + 16)


def test_a_few_nodes_are_planned_as_what_they_need(groups: Store) -> None:
    context = build_context(groups(2), config_of())
    num_out = context.network.num_out
    lonely = int(np.argmin(context.message_graph.rows[0].degrees()))
    read = LayerByLayer(context, None, 40).wanted("node", np.array([lonely]))
    num_read = sum(map(len, read[0].values()))
    assert num_read < NUM_NODES // 2
    assert probe(context, "node", np.array([lonely])) == 4 * (num_read * 16 + num_out)


def test_a_probe_computes_the_batch_of_most_entries(
    groups: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = build_context(groups(1), config_of())
    seen: list[int] = []
    inner = context.network.convolve

    def convolve(k: int, layer: Any, *rest: Any) -> Any:
        seen.append(sum(len(each.indices) for each in layer.values()))
        return inner(k, layer, *rest)

    monkeypatch.setattr(context.network, "convolve", convolve)
    with torch.no_grad():
        LayerByLayer(context, None, 40).run("node", None)
        most = max(seen)
        seen.clear()
        LayerByLayer(context, None, 40).probe("node")
    assert max(seen) == most
    assert len(seen) < 2 * 5 * 2


def test_dry_run_plans_and_writes_nothing(groups: Store, tmp_path: Path) -> None:
    graph = groups(1)
    report = gnn.train(graph, config_of(), tmp_path / "run", dry_run=True)
    assert not (tmp_path / "run").exists()
    assert report.metrics["planned_batches"] == 3
    assert report.metrics["planned_memory_bytes"] > 1 << 20
    assert report.metrics["estimated_seconds"] > 0
    message = (
        r"^memory: the training takes about .*; give --memory \d+MB or more, or smaller"
    )
    with pytest.raises(BudgetError, match=message):
        gnn.train(graph, config_of(), tmp_path / "run", memory="1MB")


@pytest.mark.parametrize("accumulate", [1, 5])
def test_a_plan_has_the_optimizers_moments(
    groups: Store, tmp_path: Path, accumulate: int
) -> None:
    config = config_of(batch_size=2, accumulate=accumulate)
    found = gnn.train(groups(1), config, tmp_path / "run", dry_run=True).metrics
    assert found["planned_batches"] > 5
    optimizer = found["planned_memory_split"]["optimizer"]
    assert optimizer >= 2 * found["planned_parameter_bytes"]


def test_learned_rows_are_counted_once_whatever_the_share_of_a_batch(
    tmp_path: Path,
) -> None:
    split = ["train" if v < 64 else "none" for v in range(MANY)]
    columns = {"label": np.arange(MANY) % 2, "split": split}
    nodes = NodeChunk(ids=np.arange(MANY), columns=columns)
    edges = edge_chunk([(v, (v + 1) % MANY) for v in range(MANY)])
    make_store(tmp_path / "bare", nodes, edges, is_directed=False)
    context = build_context(Graph(tmp_path / "bare"), config_of(dim=512, batch_size=64))
    kept = plan.checkpoint_bytes(context)
    needed = plan.bytes_beyond(context, 1)
    assert needed is not None
    assert kept <= needed < kept + 4 * MANY * 512 * 4  # a first batch takes 5 of them


def test_neighborhoods_that_meet_are_not_counted_again(tmp_path: Path) -> None:
    num = 128
    columns = {"label": np.arange(num) % 2, "split": ["train"] * num}
    edges = [(u, v) for u in range(num) for v in range(u)]
    chunks = NodeChunk(ids=np.arange(num), columns=columns), edge_chunk(edges)
    make_store(tmp_path / "dense", *chunks, is_directed=False)
    config = config_of(batch_size=128, fanouts=(10, 10))
    dense = build_context(Graph(tmp_path / "dense"), config)
    in_proportion = 2 * (128 / 16 - 1)
    assert plan._times_grown(dense, 16, is_first=False) < in_proportion


def test_learned_rows_are_refused_before_they_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = ["train" if v < 64 else "none" for v in range(MANY)]
    columns = {"label": np.arange(MANY) % 2, "split": split}
    nodes = NodeChunk(ids=np.arange(MANY), columns=columns)
    edges = edge_chunk([(v, (v + 1) % MANY) for v in range(MANY)])
    make_store(tmp_path / "bare", nodes, edges, is_directed=False)
    made: list[int] = []
    make = torch.nn.Embedding.__init__

    def counting(self: Any, num_rows: int, dim: int, **given: Any) -> None:
        made.append(num_rows)
        make(self, num_rows, dim, **given)

    monkeypatch.setattr(torch.nn.Embedding, "__init__", counting)
    graph, config = Graph(tmp_path / "bare"), config_of(dim=512, batch_size=64)
    with pytest.raises(
        BudgetError, match=r"learned_rows=disk \(they have 39\.1 MiB"
    ) as err:
        gnn.train(graph, config, tmp_path / "run", memory="300MB")
    assert made == [1]
    named = re.search(r"--memory (\d+MB)", str(err.value))
    assert named is not None
    gnn.train(graph, config, tmp_path / "run", memory=named[1], dry_run=True)
    assert made == [1, 1, MANY]


def test_a_budget_does_not_change_what_is_learned(groups: Store, tmp_path: Path) -> None:
    graph, config = groups(1), config_of(epochs=1)
    free, kept = (tmp_path / name for name in ("free", "kept"))
    gnn.train(graph, config, free)
    gnn.train(graph, config, kept, memory="8GB")
    assert are_equal(weights_of(free), weights_of(kept))


def test_a_plan_tries_no_batch_beyond_the_budget(
    groups: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    taken = 10**9  # bytes of a seed
    once = 0  # bytes of a first batch of any size
    now = [500 * 10**6]

    def batches(self: GnnTrainer, epoch: int, seeds: Any) -> Any:
        sizes.append(self.config.batch_size)
        now[0] = 500 * 10**6 + once + taken * self.config.batch_size
        return iter(())

    class Meter:
        def __init__(self, interval_s: float = 0.0) -> None:
            self.peak_bytes = 0

        def __enter__(self) -> "Meter":
            now[0] = 500 * 10**6
            return self

        def __exit__(self, *err: object) -> None:
            self.peak_bytes = now[0]

    monkeypatch.setattr(GnnTrainer, "batches", batches)
    monkeypatch.setattr(plan, "_sampled", lambda _, size: np.full(2, float(size)))
    monkeypatch.setattr(plan, "MemoryMeter", Meter)
    monkeypatch.setattr(plan, "resident_bytes", lambda: now[0])
    config = config_of(batch_size=32, recompute="none")  # else all is tried twice
    # 32 seeds take 32.5 GB, and the heap keeps 32 MiB; 2 * 8 fit into 16.4 GB and torch's
    # 0.2, 2 * 16 do not
    with pytest.raises(BudgetError, match=r"give --memory 36238MB or more"):
        gnn.train(groups(1), config, tmp_path / "run", memory="16.4GB")
    assert sizes == [1, 2, 4, 8, 16]
    with pytest.raises(BudgetError, match=r"give --memory 36238MB or more"):
        gnn.train(groups(1), config, tmp_path / "run", memory="3GB")
    assert sizes[5:] == [1, 2]
    taken, once, now[0] = 10**6, 60 * 10**6, 500 * 10**6
    # 500 of the process, 60 once and 32 for the seeds: the 60 are not taken 32 times
    with pytest.raises(BudgetError, match=r"give --memory 664MB or more"):
        gnn.train(groups(1), config, tmp_path / "run", memory="300MB")
    assert sizes[7:] == [1, 2]
    assert not (tmp_path / "run").exists()
