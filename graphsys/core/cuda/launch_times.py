"""How long kernels run on the device, by events of its stream; only while recorded.

A launch returns before its kernel ran: the host's clock says nothing of it. Events stand in
the stream before and behind each launch, and are read when many are done, so that the
stream need not be waited for between launches.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from graphsys.core.cuda.device import is_simulated
from graphsys.core.events import count as emit_count
from graphsys.core.events import is_recording

DEVICE_SECONDS = "kernel_device_seconds"
"""Amount: what launches of a kernel took on the device, told after they ran."""
_AT_ONCE = 512
"""Launches whose events are open at the same time."""


class LaunchTimes:
    """Times the launches of one stream."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._open: list[tuple[str, Any, Any]] = []

    @contextmanager
    def around(self, kernel: str, function: Any) -> Iterator[None]:
        """Time what is launched inside, if somebody records.

        Args:
            kernel: What it is called.
            function: It; one that has still to be compiled is not timed, nor is what the
                simulator runs, whose events have no time.
        """
        if not is_recording() or is_simulated() or not function.overloads:
            yield
            return
        from numba import cuda

        begin, end = cuda.event(timing=True), cuda.event(timing=True)
        begin.record(self._stream)
        yield
        end.record(self._stream)
        self._open.append((kernel, begin, end))
        if len(self._open) >= _AT_ONCE:
            self.tell()

    def tell(self) -> None:
        """Wait for the launches so far; emit the seconds of each kernel."""
        if not self._open:
            return
        self._open[-1][2].synchronize()
        seconds: dict[str, float] = {}
        for kernel, begin, end in self._open:
            seconds[kernel] = seconds.get(kernel, 0.0) + begin.elapsed_time(end) / 1e3
        self._open.clear()
        for kernel, value in seconds.items():
            emit_count(DEVICE_SECONDS, value, kernel=kernel)
