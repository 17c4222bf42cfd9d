"""The order of copies and waits on a GPU, told by streams and events that only note it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from graphsys.gnn import GnnConfig
from graphsys.gnn.data.device_transfer import (
    DeviceClock,
    DeviceTransfer,
    HostClock,
    PinnedBuffers,
    new_clock,
)
from graphsys.gnn.data.loader import Loader
from graphsys.gnn.training import api
from graphsys.storage import Graph

pytest.importorskip("triton", reason="the gpu extra (triton) is not installed")

CONFIG = GnnConfig(dim=8, fanouts=(3, 2), batch_size=8, epochs=1, prefetch=0)


class Stream:
    """A stream that notes what waits for what."""

    def __init__(self, log: list[str], name: str) -> None:
        self.log, self.name = log, name

    def wait_event(self, event: "Event") -> None:
        self.log.append(f"{self.name} waits for {event.stream}")


class Event:
    """An event that notes where it is recorded, and who waits for it."""

    log: list[str]
    now = 0.0

    def __init__(self, enable_timing: bool = False) -> None:
        self.stream, self.is_timing, self.at_ms = "?", enable_timing, 0.0

    def record(self, stream: Stream | None = None) -> None:
        self.stream = "compute" if stream is None else stream.name
        Event.now += 250.0
        self.at_ms = Event.now
        self.log.append(f"event on {self.stream}")

    def synchronize(self) -> None:
        self.log.append(f"host waits for {self.stream}")

    def elapsed_time(self, other: "Event") -> float:
        assert self.is_timing
        return other.at_ms - self.at_ms


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Put streams and events that take notes in CUDA's place; return the notes."""
    found: list[str] = []

    @contextmanager
    def stream(chosen: Stream) -> Iterator[None]:
        found.append(f"begin {chosen.name}")
        yield
        found.append(f"end {chosen.name}")

    monkeypatch.setattr(Event, "log", found, raising=False)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "stream", stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: Stream(found, "compute"))
    monkeypatch.setattr(
        torch.Tensor, "record_stream", lambda _, s: found.append(f"kept for {s.name}")
    )
    return found


@pytest.fixture
def transfer(log: list[str], monkeypatch: pytest.MonkeyPatch) -> DeviceTransfer:
    """Return a mover that takes itself for one to a GPU."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    made: Any = DeviceTransfer()
    made.is_real, made._stream = True, Stream(log, "copies")
    made.buffers = lambda: PinnedBuffers(is_pinned=False)
    return made  # type: ignore[no-any-return]


def test_training_waits_for_copies_and_buffers_for_theirs(
    groups: Callable[..., Graph], log: list[str], transfer: DeviceTransfer
) -> None:
    context = api.build_context(groups(), CONFIG)
    seeds = context.task.seeds(0)
    loader = Loader(
        context.message_graph,
        context.features,
        0,
        send=transfer.send,
        new_buffers=transfer.buffers,
    )
    first = loader.make(seeds[0], epoch=0, number=0)
    assert log == ["begin copies", "event on copies", "end copies"]
    log.clear()
    transfer.receive(first)
    assert log == ["compute waits for copies", "kept for compute", "kept for compute"]
    log.clear()
    loader.release(first)
    loader.make(seeds[1], epoch=0, number=1)
    assert log[:2] == ["host waits for copies", "begin copies"]  # written again after it
    log.clear()
    loader.make(seeds[2], epoch=0, number=2)
    assert log[0] == "begin copies"  # other buffers, that nobody has copied from


def test_stages_are_timed_by_the_device(log: list[str], transfer: DeviceTransfer) -> None:
    clock = new_clock(transfer)
    assert isinstance(clock, DeviceClock)
    for _ in range(3):
        clock.mark()
    assert clock.times() == [0.0, 0.25, 0.5]
    assert log[-1] == "host waits for compute"
    transfer.is_real = False
    assert type(new_clock(transfer)) is type(new_clock(None)) is HostClock
