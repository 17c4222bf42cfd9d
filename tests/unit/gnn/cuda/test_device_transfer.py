"""Batches on their way to a device: what arrives, when memory is used again, errors."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphsys import gnn
from graphsys.core.errors import BudgetError, ConfigError, MissingDependencyError
from graphsys.gnn import GnnConfig
from graphsys.gnn.data.device_transfer import (
    DeviceTransfer,
    Parcel,
    PinnedBuffers,
    open_transfer,
    room_of,
)
from graphsys.gnn.data.loader import Batch, Loader
from graphsys.gnn.ops.cuda.feature_cache import DeviceCache
from graphsys.gnn.process_group import ProcessGroup
from graphsys.gnn.training import api
from graphsys.sampling.blocks import Buffers
from graphsys.storage import Graph

pytest.importorskip("triton", reason="the gpu extra (triton) is not installed")

Store = Callable[..., Graph]
CONFIG = GnnConfig(model="gcn", dim=8, fanouts=(3, 2), batch_size=8, epochs=1, prefetch=0)


@pytest.fixture
def transfer(monkeypatch: pytest.MonkeyPatch) -> DeviceTransfer:
    """Return a mover to the interpreter's device; no kernel is started here."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    return DeviceTransfer()


def numbers(batch: Batch) -> list[Any]:
    """Return copies of all that a batch holds, as lists."""
    found: list[Any] = [values.tolist() for values in batch.x.values()]
    found += [places.tolist() for places in batch.places.values()]
    for hop in batch.hops:
        for rows in hop.values():
            assert rows.weight is not None  # those of a GCN
            assert rows.self_weight is not None
            found += [rows.indptr.tolist(), rows.indices.tolist()]
            found += [rows.weight.tolist(), rows.self_weight.tolist(), rows.is_prefix]
    return found


def test_batches_arrive_as_they_were_and_stay(
    groups: Store, transfer: DeviceTransfer
) -> None:
    graph = groups()
    context = api.build_context(graph, CONFIG)
    seeds = context.task.seeds(0)
    plain = Loader(context.message_graph, context.features, 0)
    sending = Loader(
        context.message_graph,
        context.features,
        0,
        send=transfer.send,
        new_buffers=transfer.buffers,
    )
    wanted = [numbers(batch) for batch in plain.batches(seeds, epoch=0)]
    sent = []
    for batch in sending.batches(seeds, epoch=0):
        assert all(rows.is_on_device for hop in batch.hops for rows in hop.values())
        transfer.receive(batch)
        sending.release(batch)  # its buffers are written again, the device's block is not
        sent.append(batch)
    assert len(sent) == 3
    assert [numbers(batch) for batch in sent] == wanted


def test_types_that_are_read_on_the_host_stay_there(transfer: DeviceTransfer) -> None:
    x = {"paper": torch.ones(2, 3), "author": torch.arange(4)}
    kept = transfer.input(x, kept={"author"})
    assert kept["author"] is x["author"]
    assert torch.equal(kept["paper"], x["paper"])


def test_buffers_are_written_again_after_their_copy(groups: Store) -> None:
    class Event:
        num_waits = 0

        def synchronize(self) -> None:
            self.num_waits += 1

    context = api.build_context(groups(), CONFIG)
    event, buffers = Event(), PinnedBuffers(is_pinned=False)
    loader = Loader(context.message_graph, context.features, 0, new_buffers=lambda: buffers)
    seeds = context.task.seeds(0)
    first = loader.make(seeds[0], epoch=0, number=0)
    buffers.copied = event
    loader.release(first)
    assert event.num_waits == 0
    second = loader.make(seeds[1], epoch=0, number=1)
    assert event.num_waits == 1
    assert buffers.copied is None
    loader.release(second)
    loader.make(seeds[2], epoch=0, number=2)
    assert event.num_waits == 1


def test_a_parcel_holds_arrays_of_all_kinds() -> None:
    arrays = [
        np.arange(3, dtype=np.int64),
        torch.arange(6, dtype=torch.float32).reshape(2, 3),
        np.empty(0, dtype=np.int32),
        np.array([7], dtype=np.int32),
    ]
    size = sum(map(room_of, arrays))
    assert (size, room_of(None)) == (32 + 32 + 0 + 16, 0)
    parcel = Parcel(size, Buffers(), torch.device("cpu"))
    found = [parcel.put(array) for array in arrays]
    assert parcel.ship() == size
    for array, tensor in zip(arrays, found, strict=True):
        assert torch.equal(tensor, torch.as_tensor(array))


def test_a_cache_holds_the_hottest_and_names_the_others() -> None:
    scores = np.array([1.0, 9.0, 2.0, 9.0, 5.0])
    cache = DeviceCache(
        "paper",
        scores,
        2,
        3 * 8 + 7,
        lambda n: np.stack([n, n], 1).astype(np.float32),
        torch.device("cpu"),
    )
    assert cache.table.tolist() == [[1, 1], [3, 3], [4, 4]]
    where, missing = cache.split(np.array([3, 0, 4, 0, 2, 1]))
    assert where.tolist() == [1, -1, 2, -2, -3, 0]
    assert missing.tolist() == [0, 0, 2]
    assert (cache.num_found, cache.num_asked) == (3, 6)
    everything = DeviceCache(
        "paper",
        scores,
        1,
        1 << 20,
        lambda n: n[:, None].astype(np.float32),
        torch.device("cpu"),
    )
    assert everything.table[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_too_little_memory_for_a_cache(
    groups: Store, tmp_path: Path, transfer: DeviceTransfer, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = GnnConfig(cache_device_memory="31B")
    message = "cache_device_memory: got 31 B for rows of type 'node', expected 32 B or more"
    with pytest.raises(ConfigError, match=message):
        gnn.train(groups(), config, tmp_path / "run", device="cuda")

    monkeypatch.setattr("graphsys.gnn.ops.cuda.feature_cache.torch.empty", full)
    with pytest.raises(BudgetError, match="64 B of rows of type 'paper' do not fit in the"):
        DeviceCache("paper", np.ones(9), 4, 64, np.empty, torch.device("cpu"))


def test_settings_and_places_without_kernels_are_refused() -> None:
    assert open_transfer("cpu", CONFIG) is None
    with pytest.raises(ConfigError, match="--device: got 'tpu', expected cpu or cuda"):
        open_transfer("tpu", CONFIG)
    with pytest.raises(ConfigError, match="no kernels for aggregator = 'lstm', there are"):
        open_transfer("cuda", GnnConfig(aggregator="lstm"))
    with pytest.raises(ConfigError, match="no kernels for model = 'gatne', there are for"):
        open_transfer("cuda", GnnConfig(model="gatne", task="link_prediction"))


def test_no_gpu_is_said_before_anything_is_written(
    groups: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="no CUDA device or driver; use device='cpu'"):
        gnn.train(groups(), CONFIG, tmp_path / "run", device="cuda")
    assert not (tmp_path / "run").exists()
    gnn.train(groups(), CONFIG, tmp_path / "run")
    with pytest.raises(ConfigError, match="no CUDA device or driver"):
        gnn.evaluate(tmp_path / "run", device="cuda")
    monkeypatch.setitem(__import__("sys").modules, "triton", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'graphsys\[gpu\]'"):
        gnn.predict(tmp_path / "run", device="cuda")


def test_several_processes_are_refused(
    groups: Store, tmp_path: Path, transfer: DeviceTransfer, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def joined() -> Iterator[ProcessGroup]:
        yield ProcessGroup(0, 2)

    monkeypatch.setattr(api, "joined_process_group", joined)
    with pytest.raises(ConfigError, match="'cuda': got 2 processes, expected one; those"):
        gnn.train(groups(), CONFIG, tmp_path / "run", device="cuda")


def full(*_: Any, **__: Any) -> None:
    """Do as a device whose memory is full."""
    raise torch.OutOfMemoryError("CUDA out of memory")


@pytest.mark.parametrize(
    ("prefetch", "where"),
    [
        (0, "data.device_transfer.DeviceTransfer.send"),
        (2, "data.device_transfer.DeviceTransfer.send"),
        (0, "training.step.Stepper.train"),
    ],
)
def test_a_device_that_is_too_small_is_said(
    groups: Store,
    tmp_path: Path,
    transfer: DeviceTransfer,
    monkeypatch: pytest.MonkeyPatch,
    prefetch: int,
    where: str,
) -> None:
    monkeypatch.setattr(f"graphsys.gnn.{where}", full)
    config = GnnConfig(dim=8, fanouts=(3, 2), batch_size=8, prefetch=prefetch)
    message = "does not fit into memory; try --set batch_size=4, or smaller fanouts than"
    with pytest.raises(BudgetError, match=message):
        gnn.train(groups(), config, tmp_path / "run", device="cuda")


def test_a_device_that_is_too_small_for_all_nodes_is_said(
    groups: Store, tmp_path: Path, transfer: DeviceTransfer, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = groups()
    gnn.train(graph, CONFIG, tmp_path / "run")
    monkeypatch.setattr(DeviceTransfer, "layer", full)
    message = "do not fit in the device's memory; use device='cpu', a smaller dim, or a"
    with pytest.raises(BudgetError, match=message):
        gnn.evaluate(tmp_path / "run", device="cuda")
    whole = GnnConfig(model="gcn", dim=8, batch_size=0)
    with pytest.raises(BudgetError, match=message):
        gnn.train(graph, whole, tmp_path / "whole", device="cuda")
