import dataclasses
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import (
    BudgetError,
    ConfigError,
    CorruptStoreError,
    OutputExistsError,
    StorageFullError,
    StoreBusyError,
    TrainingFailedError,
    UnknownNameError,
)
from graphsys.core.events import recording
from graphsys.embedding import (
    EmbeddingConfig,
    Embeddings,
    RelationConfig,
    TrainReport,
    evaluate,
    open_run,
    train,
)
from graphsys.embedding import run as runs
from graphsys.embedding.training.trainer import EmbeddingTrainer
from graphsys.storage import Graph
from graphsys.storage.checked_files import FirstLook
from graphsys.storage.locks import WriterLock
from tests.trainings import Interrupt

MakeRing = Callable[[int], Graph]


def tables(path: Path) -> dict[str, bytes]:
    """Return the content of every file of a checkpoint under its version-free name."""
    state = runs.read_state(path)
    return {name.rsplit(".", 2)[0]: (path / name).read_bytes() for name in state.files}


def short(config: EmbeddingConfig, **changes: Any) -> EmbeddingConfig:
    return dataclasses.replace(
        config, **({"epochs": 3, "checkpoint_seconds": 0.0} | changes)
    )


@pytest.mark.parametrize("partitions", [1, 4])
def test_a_tiny_graph_is_overfitted(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path, partitions: int
) -> None:
    graph = make_ring(partitions)
    report = train(graph, ring_config, tmp_path / "run")
    assert isinstance(report, TrainReport)
    assert report.epochs == ring_config.epochs
    assert report.edges_per_second > 0
    found = evaluate(report.run, split="train")["metrics"]
    assert found["mrr"] > 0.95
    assert evaluate(report.run, split="test")["metrics"]["mrr"] > 0.6


def test_threads_learn_as_well_as_one(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    config = dataclasses.replace(ring_config, threads=2, deterministic=False)
    report = train(make_ring(2), config, tmp_path / "run")
    assert evaluate(report.run, split="train")["metrics"]["mrr"] > 0.9


@pytest.mark.parametrize("partitions", [1, 4])
def test_a_deterministic_rerun_is_equal_bit_by_bit(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path, partitions: int
) -> None:
    config = short(ring_config)
    for name in ("a", "b"):
        train(make_ring(partitions), config, tmp_path / name)
    assert tables(tmp_path / "a") == tables(tmp_path / "b")
    other = dataclasses.replace(config, seed=1)
    train(make_ring(partitions), other, tmp_path / "c")
    assert tables(tmp_path / "a") != tables(tmp_path / "c")


@pytest.mark.parametrize("steps", [0, 5, 17, 40])
@pytest.mark.parametrize("every", [0.0, 1000.0])
def test_a_resumed_run_is_equal_to_an_unbroken_one(
    make_ring: MakeRing,
    ring_config: EmbeddingConfig,
    tmp_path: Path,
    steps: int,
    every: float,
) -> None:
    graph, config = make_ring(4), short(ring_config, checkpoint_seconds=every)
    train(graph, config, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(graph, config, tmp_path / "broken", progress=Interrupt(steps))
    assert runs.read_state(tmp_path / "broken").is_complete is False
    report = train(graph, config, tmp_path / "broken", resume=True)
    assert report.epochs == 3
    assert tables(tmp_path / "whole") == tables(tmp_path / "broken")
    whole, broken = (runs.read_state(tmp_path / name) for name in ("whole", "broken"))
    assert whole.losses == broken.losses


def test_a_complete_run_has_no_litter_and_resumes_to_itself(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph, config, out = make_ring(4), short(ring_config), tmp_path / "run"
    train(graph, config, out)
    files = {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()}
    assert files == {
        "run.json",
        "config.toml",
        "training.jsonl",
        *runs.read_state(out).files,
    }
    before = (out / "run.json").read_bytes()
    train(graph, config, out, resume=True)
    assert (out / "run.json").read_bytes() == before
    train(graph, None, out, resume=True)  # with the run's own settings
    assert (out / "run.json").read_bytes() == before


def test_only_the_partitions_of_the_unit_are_in_memory(
    make_ring: MakeRing,
    ring_config: EmbeddingConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = []
    end_step = EmbeddingTrainer.end_step

    def watch(self: EmbeddingTrainer, *args: Any) -> None:
        end_step(self, *args)
        held.append(len(self.buffer.resident))

    monkeypatch.setattr(EmbeddingTrainer, "end_step", watch)
    with recording() as recorder:
        train(make_ring(4), short(ring_config, checkpoint_seconds=60.0), tmp_path / "run")
    assert max(held) <= 3  # one to spare
    names = {event.name for event in recorder.events}
    assert {"read", "compute", "write_back", "bytes_read", "bytes_written"} <= names


def test_several_node_types_and_weights_are_trained(shop: Graph, tmp_path: Path) -> None:
    config = EmbeddingConfig(
        dim=8, epochs=2, num_batch_negatives=20, num_uniform_negatives=10, batch_size=40
    )
    report = train(shop, config, tmp_path / "run")
    run = open_run(report.run)
    assert run.node_types == shop.node_types
    for name in run.node_types:
        ids = shop.node_ids(name).to_pylist()
        rows = run.lookup(ids, node_type=name)
        assert rows.shape == (len(ids), 8)
        assert np.abs(rows).max() > 0.01


def test_edge_types_of_the_config_are_the_ones_trained(shop: Graph, tmp_path: Path) -> None:
    config = EmbeddingConfig(dim=8, epochs=1, edge_types=("likes",))
    train(shop, config, tmp_path / "run")
    assert open_run(tmp_path / "run").node_types == ["item", "user"]
    with pytest.raises(UnknownNameError, match=r"'like'; known: likes, of; did you mean"):
        train(shop, EmbeddingConfig(edge_types=("like",)), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_an_unknown_relation_in_the_config_is_an_error(
    make_ring: MakeRing, tmp_path: Path
) -> None:
    config = EmbeddingConfig(relations={"nxt": RelationConfig()})
    with pytest.raises(ConfigError, match=r"'nxt' is not a relation.*did you mean 'next'"):
        train(make_ring(1), config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_relation_missing_from_the_config_is_an_error(
    make_ring: MakeRing, tmp_path: Path
) -> None:
    listed = {name: RelationConfig() for name in ("next", "before")}
    with pytest.raises(
        ConfigError, match="relation 'opposite' of edge type 'triple' is mis"
    ):
        train(make_ring(1), EmbeddingConfig(relations=listed), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_existing_run_is_kept_without_overwrite(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph, config, out = make_ring(1), short(ring_config), tmp_path / "run"
    train(graph, config, out)
    before = tables(out)
    with pytest.raises(OutputExistsError, match="--resume or replace it with --overwrite"):
        train(graph, config, out)
    other = dataclasses.replace(config, seed=5)
    with pytest.raises(KeyboardInterrupt):
        train(graph, other, out, overwrite=True, progress=Interrupt(1))
    assert tables(out) == before
    assert (tmp_path / ".run.graphsys-next" / ".replaces").exists()
    train(graph, other, out, resume=True)
    assert tables(out) != before
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_folder_with_other_files_is_never_written_to(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    (tmp_path / "thesis.tex").write_text("")
    for overwrite in (False, True):
        with pytest.raises(OutputExistsError, match="exists and is no run"):
            train(make_ring(1), ring_config, tmp_path, overwrite=overwrite)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_empty_folder_is_an_output_too(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(OutputExistsError, match="already exists, an empty folder"):
        train(make_ring(1), ring_config, tmp_path / "run")
    train(make_ring(1), ring_config, tmp_path / "run", overwrite=True)


def test_a_resume_with_other_settings_is_refused(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph, config, out = make_ring(1), short(ring_config), tmp_path / "run"
    with pytest.raises(ConfigError, match="no run to resume"):
        train(graph, config, out, resume=True)
    train(graph, config, out)
    with pytest.raises(
        ConfigError, match=r"other settings \(lr: 0.1 -> 0.5\).* may change .*epochs"
    ):
        train(graph, dataclasses.replace(config, lr=0.5, epochs=9), out, resume=True)
    assert runs.read_config(out) == config


def test_a_resume_on_another_graph_is_refused(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    config, out = short(ring_config), tmp_path / "run"
    train(make_ring(1), config, out)
    with pytest.raises(ConfigError, match=r"partitions.entity: 1 -> 4"):
        train(make_ring(4), config, out, resume=True)
    with pytest.raises(ConfigError, match="another graph"):
        evaluate(out, graph=make_ring(4))


def test_a_second_training_into_one_run_is_refused(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    out.mkdir()
    lock = WriterLock(out)
    with pytest.raises(StoreBusyError, match="being written by another process"):
        train(make_ring(1), ring_config, out)
    lock.release()


def test_a_loss_that_is_no_number_stops_and_keeps_the_checkpoint(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph, out = make_ring(4), tmp_path / "run"
    config = short(ring_config, lr=1e30, regularizer=0.0)
    message = r"not a number in epoch 1, bucket \(\d, \d\) of edge type 'triple'"
    with pytest.raises(TrainingFailedError, match=message) as caught:
        train(graph, config, out)
    assert caught.value.exit_code == 1
    state = runs.read_state(out)
    runs.check_files(out, state)
    assert not state.is_complete
    run = Embeddings(out)
    assert all(np.isfinite(run.rows("entity", part)).all() for part in range(4))


def test_a_full_disk_keeps_the_last_checkpoint(
    make_ring: MakeRing,
    ring_config: EmbeddingConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, config, out = make_ring(4), short(ring_config), tmp_path / "run"
    train(graph, config, tmp_path / "whole")
    fsync, left = os.fsync, [40]

    def fail(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageFullError, match="no space left on device") as caught:
        train(graph, config, out)
    assert "\n" not in str(caught.value)
    monkeypatch.undo()
    runs.check_files(out, runs.read_state(out))
    train(graph, config, out, resume=True)
    assert tables(out) == tables(tmp_path / "whole")


def test_too_little_memory_or_disk_is_said_before_anything_is_written(
    make_ring: MakeRing,
    ring_config: EmbeddingConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("graphsys.embedding.training.api.available_bytes", lambda: 1000)
    with pytest.raises(
        BudgetError, match=r"training needs \d.* got \d.*; give --memory \d+MB"
    ):
        train(make_ring(1), ring_config, tmp_path / "run")
    monkeypatch.undo()
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, 0)
    )
    with pytest.raises(StorageFullError, match="two checkpoints"):
        train(make_ring(1), ring_config, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_plans_and_writes_nothing(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    report = train(make_ring(4), ring_config, tmp_path / "run", dry_run=True)
    assert report.epochs == 0
    plan = report.metrics
    assert plan["planned_num_edges"] == make_ring(4).num_edges
    assert plan["planned_memory_bytes"] > 0
    # inside out over a full 4 x 4 grid: every unit after the first loads at most one
    assert plan["planned_swaps"] <= plan["planned_num_units"] + 3
    assert list(tmp_path.iterdir()) == []


def test_the_plan_states_the_bytes_that_are_written(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    config = short(ring_config, epochs=1)
    plan = train(make_ring(4), config, tmp_path / "run", dry_run=True).metrics
    with recording() as recorder:
        train(make_ring(4), config, tmp_path / "run")
    events = recorder.events
    written = sum(event.value for event in events if event.name == "bytes_written")
    reads = [
        event
        for event in events
        if event.name == "read" and "partition" in event.attributes
    ]
    operators = len(make_ring(4).relations("triple") or []) * 4 * 4 * config.dim
    units = plan["planned_num_units"]
    assert written == plan["planned_write_bytes"] - units * operators
    assert len(reads) == plan["planned_loads"] == plan["planned_swaps"] + 2


def test_damage_to_a_run_is_named(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    train(make_ring(1), short(ring_config), out)
    rows = next(out.glob("rows/*/*.npy"))
    content = rows.read_bytes()
    rows.write_bytes(content[:-4])
    with pytest.raises(CorruptStoreError, match=rf"has {len(content) - 4} bytes"):
        open_run(out)
    rows.unlink()
    with pytest.raises(CorruptStoreError, match="is missing from the checkpoint"):
        train(make_ring(1), short(ring_config), out, resume=True)
    state = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps(state | {"format_version": 99}))
    with pytest.raises(CorruptStoreError, match="format 99 is newer than 2"):
        open_run(out)
    (out / "run.json").write_text("{")
    with pytest.raises(CorruptStoreError, match="cannot be read"):
        open_run(out)
    with pytest.raises(
        ConfigError,
        match=r"holds no run .*train embedding GRAPH -o RUN` or `graphsys train gnn",
    ):
        open_run(tmp_path)


def test_evaluation_while_training_is_recorded(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    report = train(make_ring(1), short(ring_config, eval_every=2), tmp_path / "run")
    ((epoch, mrr),) = report.metrics["valid_mrr"]
    assert epoch == 2
    assert 0 < mrr <= 1


@pytest.mark.parametrize("column", ["src", "dst", "relation"])
def test_numbers_outside_of_the_tables_are_refused_before_a_kernel_sees_them(
    make_ring: MakeRing,
    ring_config: EmbeddingConfig,
    tmp_path: Path,
    column: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # whose checksums fit, as a forger's would
    monkeypatch.setattr(FirstLook, "require", lambda *_: None)
    graph = Graph(shutil.copytree(make_ring(2).path, tmp_path / "graph"))
    kind = graph.edge_types[0]
    found = graph.bucket(kind, 0, 1)
    numbers = getattr(found, column)
    altered = np.full_like(numbers, np.iinfo(numbers.dtype).max)
    bucket = graph.path / f"gen-1/edges/{graph.edge_type_name(kind)}/train/bucket-0-1.arrow"
    content = bucket.read_bytes()
    assert content.count(numbers.tobytes()) >= 1
    bucket.write_bytes(content.replace(numbers.tobytes(), altered.tobytes(), 1))
    with pytest.raises(CorruptStoreError, match=rf"bucket 0-1 .* column {column}"):
        train(Graph(graph.path), ring_config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "changes", [{"graph": {}}, {"files": "x"}, {"epoch": "x"}, {"losses": 3}, {"more": 1}]
)
def test_an_altered_checkpoint_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    state = dataclasses.asdict(runs.EmbeddingRunState(graph={"path": "graph"})) | changes
    (tmp_path / "run.json").write_text(json.dumps(state))
    with pytest.raises(CorruptStoreError, match=r"run\.json cannot be read"):
        runs.read_state(tmp_path)


def test_a_split_to_evaluate_on_must_be_there_before_anything_is_written(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    config = short(ring_config, eval_every=1, eval_split="dev")
    with pytest.raises(ConfigError, match="split 'dev' has no edges"):
        train(make_ring(1), config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
