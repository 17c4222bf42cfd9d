"""Times of launches: what a device's events say goes to the kernel's figures."""

from types import SimpleNamespace
from typing import Any

import pytest

from graphsys.analysis.host import figures_of
from graphsys.core.cuda import launch_times
from graphsys.core.cuda.launch_times import LaunchTimes
from graphsys.core.events import count, recording

cuda: Any = pytest.importorskip("numba.cuda", reason="the gpu extra is not installed")
COMPILED = SimpleNamespace(overloads={"signature": 1})


class Stream:
    """Has a clock in ms, which launches move on."""

    now = 0.0
    num_waits = 0


class StreamEvent:
    """The time of a stream when it was recorded."""

    def __init__(self, *, timing: bool) -> None:
        assert timing

    def record(self, stream: Stream) -> None:
        self.at, self.stream = stream.now, stream

    def synchronize(self) -> None:
        self.stream.num_waits += 1

    def elapsed_time(self, other: "StreamEvent") -> float:
        return other.at - self.at


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Stream:
    """Return a stream on a device that is not there."""
    monkeypatch.setattr(cuda, "event", StreamEvent)
    monkeypatch.setattr(launch_times, "is_simulated", lambda: False)
    return Stream()


def launch(times: LaunchTimes, stream: Stream, kernel: str, ms: float, of: Any) -> None:
    with times.around(kernel, of):
        stream.now += ms
    count("kernel_launches", 1, kernel=kernel, grid=4, block=64)


def test_kernels_get_the_seconds_of_their_launches(stream: Stream) -> None:
    times = LaunchTimes(stream)
    with recording() as recorder:
        launch(times, stream, "pull", 900.0, SimpleNamespace(overloads={}))  # compiles
        for ms in (2.0, 4.0):
            launch(times, stream, "pull", ms, COMPILED)
        launch(times, stream, "send", 1.0, COMPILED)
        times.tell()
        times.tell()
    assert stream.num_waits == 1
    figures = figures_of(recorder.events)
    found = figures.kernels
    assert found["pull"].seconds == pytest.approx(0.006)
    assert found["send"].seconds == pytest.approx(0.001)
    assert (found["pull"].calls, found["pull"].device) == (3, "cuda")
    assert figures.device_s == pytest.approx(0.007)


def test_the_stream_is_waited_for_once_in_hundreds_of_launches(stream: Stream) -> None:
    times = LaunchTimes(stream)
    with recording() as recorder:
        for _ in range(1000):
            launch(times, stream, "pull", 1.0, COMPILED)
        times.tell()
    assert stream.num_waits == 2
    assert figures_of(recorder.events).kernels["pull"].seconds == pytest.approx(1.0)


def test_without_a_recorder_nothing_is_timed(stream: Stream) -> None:
    times = LaunchTimes(stream)
    launch(times, stream, "pull", 1.0, COMPILED)
    times.tell()
    assert stream.num_waits == 0
