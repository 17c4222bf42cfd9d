"""Learned rows on disk: trained as rows in memory are, within a bound, safe from kills."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from graphsys import gnn
from graphsys.core.errors import BudgetError, ConfigError, CorruptStoreError, StoreBusyError
from graphsys.core.memory import MemoryMeter, release_free_memory, resident_bytes
from graphsys.gnn import GnnConfig, layerwise_passes
from graphsys.gnn import run as runs
from graphsys.gnn.models.model import key_of
from graphsys.gnn.process_group import ProcessGroup
from graphsys.gnn.training.api import build_context
from graphsys.gnn.training.trainer import GnnTrainer
from graphsys.storage import Graph, NodeChunk
from graphsys.storage.verify.run import verify_run
from tests.stores import edge_chunk, make_store
from tests.unit.gnn.training.test_api import StopAfter, StoppedError, config_of

NUM_NODES = 60


@pytest.fixture
def bare(tmp_path: Path) -> Graph:
    """Return 3 groups of 20 nodes without features, most edges within a group."""
    rng = np.random.default_rng(3)
    label = np.arange(NUM_NODES) % 3
    pairs = [
        (u, v)
        for v in range(NUM_NODES)
        for u in range(v)
        if rng.random() < (0.3 if label[u] == label[v] else 0.02)
    ]
    split = np.array(["train", "valid", "train", "test"])[np.arange(NUM_NODES) // 3 % 4]
    columns = {
        "label": label,
        "split": pa.array(split.tolist()),
        "time": np.arange(NUM_NODES),
    }
    nodes = NodeChunk(ids=np.arange(NUM_NODES), columns=columns)
    times = np.arange(len(pairs)) % NUM_NODES
    make_store(
        tmp_path / "bare",
        nodes,
        edge_chunk(pairs, time=times),
        is_directed=False,
        partitions=3,
    )
    return Graph(tmp_path / "bare")


@pytest.fixture
def words(tmp_path: Path) -> Graph:
    """Return the same kind of nodes with bags of words."""
    bags = [[v % 3, 3 + v % 7] if v % 5 else [] for v in range(NUM_NODES)]
    columns = {
        "label": np.arange(NUM_NODES) % 3,
        "split": pa.array(["train", "valid", "train"] * 20),
    }
    nodes = NodeChunk(
        ids=np.arange(NUM_NODES),
        columns=columns,
        features={"words": pa.array(bags, pa.large_list(pa.uint32()))},
    )
    pairs = [(v, (v + 3) % NUM_NODES) for v in range(NUM_NODES)]
    make_store(tmp_path / "words", nodes, edge_chunk(pairs), is_directed=False)
    return Graph(tmp_path / "words")


def on_disk(**changes: Any) -> GnnConfig:
    return config_of(**{"learned_rows": "disk", "epochs": 3, **changes})


class BothOptimizers:
    """An optimizer of the network, and row-wise Adagrad on tables in memory."""

    def __init__(self, config: GnnConfig, network: Any) -> None:
        self.tables = [table.weight for table in network.learned.values()]
        own = {id(table) for table in self.tables}
        rest = [p for p in network.parameters() if id(p) not in own]
        self.adam = torch.optim.Adam(rest, config.lr)
        self.param_groups = self.adam.param_groups
        self.sums = [torch.zeros(len(table)) for table in self.tables]
        self.config = config

    def zero_grad(self, *, set_to_none: bool) -> None:
        """Forget gradients."""
        self.adam.zero_grad(set_to_none=set_to_none)
        for table in self.tables:
            table.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move all rows; those without a gradient stay."""
        self.adam.step()
        rate = self.config.rows_lr * self.param_groups[0]["lr"] / self.config.lr
        for table, total in zip(self.tables, self.sums, strict=True):
            total += table.grad.square().mean(dim=1)
            table -= rate * table.grad / (total.sqrt() + 1e-10)[:, None]


def losses_of(trainer: GnnTrainer, epochs: int) -> list[float]:
    losses = []
    for epoch in range(epochs):
        seeds = trainer.context.task.seeds(epoch)
        for batch in trainer.batches(epoch, seeds):
            losses.append(trainer.train_batch(epoch, batch, len(seeds)))
            trainer.loader.release(batch)
    return losses


LINKS = {"task": "link_prediction", "num_negatives": 6, "batch_size": 50}


@pytest.mark.parametrize(
    ("store", "changes"),
    [
        ("bare", {}),
        ("bare", {"accumulate": 2, "prefetch": 4, "lr_decay": 0.5}),
        ("bare", {"model": "gat", "recompute": "all", "row_decay": 0.1}),
        ("bare", {"sampler": "temporal", "row_decay": 0.1}),
        ("bare", {"model": "pinsage"}),
        ("bare", {**LINKS, "negatives_of": "pair", "accumulate": 3}),
        ("words", {"row_decay": 0.1}),
        ("library", {**LINKS, "row_decay": 0.1}),
        ("library", {**LINKS, "model": "hgt"}),
    ],
)
def test_losses_are_those_of_rows_in_memory(
    request: pytest.FixtureRequest, tmp_path: Path, store: str, changes: dict[str, Any]
) -> None:
    """The same optimizer on tables in memory, from the same first rows."""
    graph = request.getfixturevalue(store)
    config = on_disk(**changes)
    ours = GnnTrainer(replace(build_context(graph, config), path=tmp_path))
    theirs_config = config_of(**{"epochs": 3, **changes})
    context = build_context(graph, theirs_config)
    theirs = GnnTrainer(context)
    theirs.network.load_state_dict(ours.network.state_dict(), strict=False)
    theirs.stepper.optimizer = BothOptimizers(theirs_config, context.network)  # type: ignore[assignment]
    with torch.no_grad():
        for files in ours.network.stored:
            weight: Any = context.network.learned[key_of(files.name)].weight
            weight.copy_(ours.network.stored.read(files.name, torch.arange(len(weight))))
    found, wanted = losses_of(ours, 3), losses_of(theirs, 3)
    assert found == pytest.approx(wanted, rel=1e-4)
    assert found[-1] != pytest.approx(found[0], rel=1e-3)  # something was learned
    ours.checkpoint()
    assert list((tmp_path / "rows").rglob("segment-0.bin"))


def test_a_run_learns_and_is_used_with_its_best_rows(bare: Graph, tmp_path: Path) -> None:
    config = on_disk(epochs=12, eval_every=1, keep="best", dropout=0.3, rows_lr=0.2)
    report = gnn.train(bare, config, tmp_path / "run")
    found = gnn.evaluate(tmp_path / "run", split="valid")["metrics"]
    assert found["accuracy"] == pytest.approx(report.metrics["valid_accuracy"])
    assert found["loss"] == pytest.approx(report.metrics["valid_loss"], rel=1e-5)
    assert found["accuracy"] > 0.6
    assert report.metrics["best_epoch"] < 12  # so the rows kept are not the last
    table = gnn.predict(tmp_path / "run", [7, 3])
    assert table.column("id").to_pylist() == [7, 3]
    whole = gnn.open_run(tmp_path / "run").output()
    few = gnn.open_run(tmp_path / "run").output(np.array([7, 3]))
    # a product of two rows may add in another order than one of sixty
    assert np.allclose(whole[[7, 3]], few, rtol=1e-5, atol=1e-6)
    # a budget is planned on a copy of the network, and these rows are in mapped files
    within = gnn.predict(tmp_path / "run", [7, 3], memory="4GB")
    assert within.equals(table)
    assert gnn.evaluate(tmp_path / "run", split="valid", memory="4GB")["metrics"] == found


@pytest.mark.parametrize(
    ("stop", "changes"),
    [
        (5, {"eval_every": 1, "keep": "best"}),
        (9, {"accumulate": 2}),
        (7, {"sampler": "temporal"}),
    ],
)
def test_resumed_run_is_equal_bit_by_bit(
    bare: Graph, tmp_path: Path, stop: int, changes: dict[str, Any]
) -> None:
    config = on_disk(epochs=4, deterministic=True, checkpoint_seconds=0, **changes)
    whole = gnn.train(bare, config, tmp_path / "whole")
    with pytest.raises(StoppedError):
        gnn.train(bare, config, tmp_path / "run", progress=StopAfter(stop))
    report = gnn.train(bare, None, tmp_path / "run", resume=True)
    assert report.metrics["loss"] == whole.metrics["loss"]
    ours, theirs = (gnn.open_run(tmp_path / name).output() for name in ("run", "whole"))
    assert np.array_equal(ours, theirs)
    state = runs.read_state(tmp_path / "run")
    files = {f.relative_to(tmp_path / "run").as_posix() for f in tmp_path.rglob("run/**/*")}
    assert set(state.files) < files
    assert files - set(state.files) <= {
        "run.json",
        "config.toml",
        ".lock",
        "rows",
        "rows/node",
    }


def test_overwriting_leaves_nothing_of_the_old_run(bare: Graph, tmp_path: Path) -> None:
    gnn.train(bare, on_disk(), tmp_path / "run")
    with pytest.raises(StoppedError):
        gnn.train(
            bare,
            on_disk(epochs=4, checkpoint_seconds=0),
            tmp_path / "run",
            overwrite=True,
            progress=StopAfter(3),
        )
    report = gnn.train(bare, on_disk(epochs=2), tmp_path / "run", overwrite=True)
    assert report.epochs == 2
    assert gnn.evaluate(tmp_path / "run")["metrics"]["num_nodes"] > 0


def test_rows_trained_while_they_are_read_are_refused(bare: Graph, tmp_path: Path) -> None:
    config = on_disk(checkpoint_seconds=0)
    with pytest.raises(StoppedError):
        gnn.train(bare, config, tmp_path / "run", progress=StopAfter(4))
    opened = gnn.open_run(tmp_path / "run")
    assert len(opened.output()) == NUM_NODES
    gnn.train(bare, None, tmp_path / "run", resume=True)
    with pytest.raises(StoreBusyError, match="went on training while its rows on disk"):
        opened.output()


def test_memory_stays_below_the_table(
    bare: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """256 MB of rows, nearly all of which are trained; evaluation reads all of them."""
    monkeypatch.setattr(
        layerwise_passes, "_NODES_AT_A_TIME", 1024
    )  # batches are not the point
    num_nodes, dim = 500_000, 128
    rng = np.random.default_rng(0)
    columns = {
        "label": rng.integers(0, 3, num_nodes),
        "split": pa.array(
            np.where(np.arange(num_nodes) % 10 > 0, "train", "valid").tolist()
        ),
    }
    pairs = rng.integers(0, num_nodes, (100_000, 2)).tolist()
    make_store(
        tmp_path / "g",
        NodeChunk(ids=np.arange(num_nodes), columns=columns),
        edge_chunk(pairs),
        partitions=2,
    )
    del pairs, columns
    graph = Graph(tmp_path / "g")
    config = on_disk(
        dim=dim,
        epochs=1,
        batch_size=2000,
        eval_every=1,
        keep="best",
        checkpoint_seconds=1.0,
        prefetch=1,
    )
    gnn.train(bare, config, tmp_path / "first")  # kernels, and what torch imports
    gnn.evaluate(tmp_path / "first", split="valid")
    release_free_memory()
    before = resident_bytes()
    with MemoryMeter(0.005) as meter:
        gnn.train(graph, config, tmp_path / "run")
        gnn.evaluate(tmp_path / "run", split="valid")
    table_bytes = 4 * num_nodes * dim
    assert meter.peak_bytes - before < table_bytes // 2
    assert sum(runs.read_state(tmp_path / "run").files.values()) > 0.9 * table_bytes


def test_the_plan_states_memory_and_disk(bare: Graph, tmp_path: Path) -> None:
    plan = gnn.train(bare, on_disk(), tmp_path / "run", dry_run=True).metrics
    assert plan["planned_rows_bytes"] == 4 * NUM_NODES * 4 * (16 + 1)
    assert not (tmp_path / "run").exists()
    plan = gnn.train(bare, config_of(), tmp_path / "run", dry_run=True).metrics
    assert "planned_rows_bytes" not in plan
    with pytest.raises(
        BudgetError, match=r"or learned_rows=disk \(they have 3.8 KiB, their"
    ):
        gnn.train(bare, config_of(), tmp_path / "run", memory="1MB")


def test_what_rows_on_disk_cannot_do_is_said(
    bare: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="got disk with messages over the whole graph"):
        on_disk(batch_size=0)
    with pytest.raises(ConfigError, match="got disk with messages over the whole graph"):
        on_disk(model="lightgcn", task="recommendation")
    monkeypatch.setattr(
        "graphsys.gnn.tasks.task.current_process_group", lambda: ProcessGroup(0, 2)
    )
    with pytest.raises(ConfigError, match="learned_rows: got disk with 2 processes"):
        build_context(bare, on_disk())


def test_rows_on_disk_have_checksums_when_the_training_is_over(
    bare: Graph, tmp_path: Path
) -> None:
    gnn.train(bare, on_disk(), tmp_path / "run")
    content = json.loads((tmp_path / "run" / "run.json").read_text())
    assert any("segment" in name for name in content["files"])
    assert content["checksums"].keys() == {*content["files"], "config.toml"}
    assert verify_run(tmp_path / "run").problems == []
    (segment,) = (tmp_path / "run").rglob("segment-0.bin")
    data = bytearray(segment.read_bytes())
    data[100] ^= 4
    segment.write_bytes(data)
    with pytest.raises(CorruptStoreError, match=r"segment-0\.bin has the checksum"):
        gnn.evaluate(tmp_path / "run")
