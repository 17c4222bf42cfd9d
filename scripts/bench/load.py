"""How busy the machine was with other things while we measured."""

import os
import resource
import time
from types import TracebackType

QUIET_LOAD = 1.5
"""A load average above which a machine is not quiet."""


class LoadMeter:
    """Records the load average and the share of the processors that others used.

    Attributes:
        load_average: One-minute load average at the start and at the end.
        other_cpu_share: Processor time of all other processes as a fraction of what the
            machine has, over the block; finished children count as ours.
    """

    def __init__(self) -> None:
        self.load_average: list[float] = []
        self.other_cpu_share: float | None = None

    @property
    def is_quiet(self) -> bool:
        """Whether the load average was low at the start and at the end, ours included."""
        return max(self.load_average, default=0.0) <= QUIET_LOAD

    def __enter__(self) -> "LoadMeter":
        self._began = time.monotonic()
        self._busy = busy_seconds()
        self._own = own_seconds()
        self.load_average.append(os.getloadavg()[0])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        capacity = (time.monotonic() - self._began) * (os.cpu_count() or 1)
        others = (busy_seconds() - self._busy) - (own_seconds() - self._own)
        self.other_cpu_share = round(max(0.0, others / max(capacity, 1e-9)), 4)
        self.load_average.append(os.getloadavg()[0])


def busy_seconds() -> float:
    """Return the processor time that the machine has spent on anything but waiting."""
    with open("/proc/stat") as stat:
        fields = [int(field) for field in stat.readline().split()[1:]]
    idle = fields[3] + fields[4]
    return (sum(fields[:8]) - idle) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return total
