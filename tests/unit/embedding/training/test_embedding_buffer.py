import dataclasses
import itertools
import resource
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphsys.analysis.profile import profile
from graphsys.core.errors import CorruptStoreError, StorageFullError
from graphsys.core.events import recording
from graphsys.core.progress import SILENT, Progress
from graphsys.embedding import EmbeddingConfig, train
from graphsys.embedding import run as runs
from graphsys.embedding.data.bucket_order import ORDERS
from graphsys.embedding.data.schedule import Layout, Part
from graphsys.embedding.rows.table_files import Table, TableFiles
from graphsys.embedding.training.bucket_trainer import BucketTrainer
from graphsys.embedding.training.buffer import PartitionBuffer
from graphsys.embedding.training.trainer import EmbeddingTrainer
from graphsys.metrics.overlap import overlap_alpha
from graphsys.storage import Graph
from tests.embedding_context import context_of

MakeRing = Callable[[int], Graph]


@pytest.fixture
def config(ring_config: EmbeddingConfig) -> EmbeddingConfig:
    """Return three epochs with few checkpoints, so that partitions leave unsaved."""
    return dataclasses.replace(ring_config, epochs=3)


def content(path: Path) -> dict[str, bytes]:
    state = runs.read_state(path)
    return {name.rsplit(".", 2)[0]: (path / name).read_bytes() for name in state.files}


def make_trainer(
    graph: Graph, config: EmbeddingConfig, out: Path, layout: Layout
) -> EmbeddingTrainer:
    runs.write_config(out, config)
    return EmbeddingTrainer(context_of(graph, config, out, layout))


@pytest.mark.parametrize("every", [0.0, 60.0])
@pytest.mark.parametrize("order", ["inside_out", "beta", "comet"])
def test_neither_the_capacity_nor_the_thread_changes_a_bit(
    make_ring: MakeRing, config: EmbeddingConfig, tmp_path: Path, order: str, every: float
) -> None:
    graph, found = make_ring(4), []
    config = dataclasses.replace(config, checkpoint_seconds=every, epochs=2)
    for capacity, prefetch in itertools.product((2, 3, 4), (False, True)):
        if every == 0.0 and capacity == 3 + prefetch:  # many small files: slow
            continue
        out = tmp_path / f"{capacity}-{prefetch}"
        out.mkdir()
        layout = Layout(order=order, order_capacity=3, capacity=capacity, prefetch=prefetch)
        trainer = make_trainer(graph, config, out, layout)
        trainer.run(SILENT)
        assert trainer.buffer.num_held <= capacity + prefetch
        assert (trainer.buffer.num_swaps == 0) == (capacity == 4)
        found.append(content(out))
    assert all(tables == found[0] for tables in found)


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_trains_types_with_other_numbers_of_partitions(
    shop: Graph, tmp_path: Path, order: Any
) -> None:
    config = EmbeddingConfig(
        dim=8,
        epochs=2,
        batch_size=40,
        num_batch_negatives=20,
        num_uniform_negatives=10,
        bucket_order=order,
        buffer_partitions=3,
        checkpoint_seconds=9.0,
    )
    metrics = train(shop, config, tmp_path / "run").metrics
    assert metrics["bucket_order"] == order
    assert metrics["buffer_partitions"] == 3  # of 3 for users and 2 for items
    assert runs.read_state(tmp_path / "run").num_edges == 2 * (500 + 20)


def test_the_next_partition_is_read_while_others_are_trained(
    make_ring: MakeRing,
    config: EmbeddingConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load, work = TableFiles.load, BucketTrainer.train

    def slow_load(self: TableFiles, part: Part) -> Table:
        time.sleep(0.02)
        return load(self, part)

    def slow_train(self: BucketTrainer, *args: Any) -> Any:
        time.sleep(0.04)
        return work(self, *args)

    monkeypatch.setattr(TableFiles, "load", slow_load)
    monkeypatch.setattr(BucketTrainer, "train", slow_train)
    alpha = {}
    for prefetch in (False, True):
        changed = dataclasses.replace(config, prefetch=prefetch)
        report = train(make_ring(4), changed, tmp_path / str(prefetch))
        metrics = report.metrics
        alpha[prefetch] = metrics["overlap_alpha"]
        assert alpha[prefetch] == overlap_alpha(
            metrics["io_seconds"], metrics["compute_seconds"], metrics["overlap_seconds"]
        )
    assert alpha[False] == 0.0
    assert alpha[True] > 0.5


@pytest.mark.parametrize("prefetch", [False, True])
def test_waiting_for_anything_but_embeddings_is_no_negative_overlap(
    make_ring: MakeRing,
    config: EmbeddingConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    prefetch: bool,
) -> None:
    """A commit writes ``run.json``, which is waited for and no transfer of embeddings."""
    commit = runs.commit

    def slow_commit(*arguments: Any) -> None:
        time.sleep(0.02)
        commit(*arguments)

    monkeypatch.setattr(runs, "commit", slow_commit)
    config = dataclasses.replace(config, checkpoint_seconds=0.0, prefetch=prefetch)
    page = tmp_path / "page.html"
    with profile(page, level="L0") as seen:
        metrics = train(make_ring(4), config, tmp_path / "run").metrics
    assert metrics["waiting_seconds"] > metrics["io_seconds"]
    told = {metric["name"]: metric["value"] for metric in seen.report["metrics"]}
    for alpha in (metrics["overlap_alpha"], told["overlap_alpha"]):
        assert 0.0 <= alpha <= 1.0
        assert prefetch or alpha == 0.0


def test_the_report_counts_what_was_read_and_written(
    make_ring: MakeRing, config: EmbeddingConfig, tmp_path: Path
) -> None:
    with recording() as recorder:
        metrics = train(make_ring(4), config, tmp_path / "run").metrics
    for name in ("bytes_read", "bytes_written", "swaps"):
        seen = sum(event.value for event in recorder.events if event.name == name)
        assert metrics[name] == seen > 0
    assert metrics["waiting_seconds"] >= 0
    assert metrics["io_seconds"] > 0
    assert metrics["peak_memory_bytes"] > 1 << 20
    writers = {e.thread_id for e in recorder.events if e.name == "write_back"}
    assert writers != {threading.get_ident()}  # one in a thread of its own


class UntilSecondEpoch(Progress):
    """Interrupts a training when the second epoch begins."""

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        if name == "epoch 2":
            raise KeyboardInterrupt


def test_figures_of_a_resumed_run_go_on(
    make_ring: MakeRing, config: EmbeddingConfig, tmp_path: Path
) -> None:
    config = dataclasses.replace(config, checkpoint_seconds=0.0, prefetch=False)
    graph, out = make_ring(4), tmp_path / "run"
    whole = train(graph, config, tmp_path / "whole").metrics
    trainer = make_trainer(graph, config, out_of(out), Layout(prefetch=False))
    with pytest.raises(KeyboardInterrupt):
        trainer.run(UntilSecondEpoch())
    found = train(graph, config, out, resume=True).metrics
    # every unit stores its partitions, so breaks add no writes; the buffer is read again
    assert found["bytes_written"] == whole["bytes_written"]
    assert found["bytes_read"] >= whole["bytes_read"]


def out_of(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.fixture
def small_files() -> Iterator[Callable[[int], None]]:
    """Return a function that limits the size of any file written, until the end."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("prefetch", [False, True])
@pytest.mark.parametrize("stores", [0, 1, 5])
def test_no_room_to_write_back_leaves_the_checkpoint_whole(
    make_ring: MakeRing,
    config: EmbeddingConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    small_files: Callable[[int], None],
    prefetch: bool,
    stores: int,
) -> None:
    graph, out = make_ring(4), tmp_path / "run"
    config = dataclasses.replace(config, prefetch=prefetch)
    train(graph, config, tmp_path / "whole")
    store, left = TableFiles.store, [stores]

    def limited(self: TableFiles, part: Part, table: Table) -> None:
        left[0] -= 1
        if left[0] < 0:
            small_files(500)
        try:
            store(self, part, table)
        finally:
            small_files(resource.RLIM_INFINITY)

    monkeypatch.setattr(TableFiles, "store", limited)
    message = r"too large; allow larger files.*is whole: go on with --resume"
    with pytest.raises(StorageFullError, match=message) as caught:
        train(graph, config, out)
    assert "\n" not in str(caught.value)
    monkeypatch.undo()
    runs.check_files(out, runs.read_state(out))
    train(graph, config, out, resume=True)
    assert content(out) == content(tmp_path / "whole")
    files = {p.relative_to(out).as_posix() for p in out.rglob("*.npy")}
    assert files == runs.read_state(out).files.keys()


def test_a_partition_that_cannot_be_read_ends_the_training_where_it_waits(
    make_ring: MakeRing,
    config: EmbeddingConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load = TableFiles.load

    def broken(self: TableFiles, part: Part) -> Table:
        if part[1] == 3:
            raise CorruptStoreError("part-3 cannot be read")
        return load(self, part)

    monkeypatch.setattr(TableFiles, "load", broken)
    with pytest.raises(CorruptStoreError, match="part-3 cannot be read"):
        train(make_ring(4), config, tmp_path / "run")
    assert not [t for t in threading.enumerate() if t.daemon and "_run" in t.name]


def test_a_checkpoint_while_the_thread_works_loses_nothing(
    make_ring: MakeRing, config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph = make_ring(4)
    config = dataclasses.replace(config, checkpoint_seconds=0.0)
    trainer = make_trainer(graph, config, tmp_path, Layout())
    seen = []
    store_dirty = PartitionBuffer.store_dirty

    def checked(self: PartitionBuffer) -> None:
        store_dirty(self)
        seen.append(set(self.resident))

    trainer.buffer.store_dirty = checked.__get__(trainer.buffer)  # type: ignore[method-assign]
    commit = trainer.commit

    def read_back() -> None:
        commit()
        state = runs.read_state(tmp_path)
        runs.check_files(tmp_path, state)

    trainer.commit = read_back  # type: ignore[method-assign]
    trainer.run(SILENT)
    assert len(seen) == 3 * len(trainer.schedule)
