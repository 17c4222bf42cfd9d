"""The cache model against the counters of this processor: a traversal, and its misses.

``perf_event_open`` is asked for the loads that miss in L1 and in the last level while a
thread walks rows and adds up values at their neighbors. The model of
``graphsys/analysis/model/caches.py`` gets the same rows and this processor's caches, and
predicts both. Its lines are of 128 bytes, a processor's of 64: all sizes are doubled, which
changes no set and no line. What it knows nothing of: what the hardware loads ahead, other
processes, and levels between the two. Counters of hardware are often withheld, as in
virtual machines: then there is a reason, and no figure.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from graphsys.analysis.model.caches import CacheModel, Caches
from graphsys.analysis.model.devices import Gpu
from graphsys.analysis.model.simt import SimtLaunch
from graphsys.core.row_trace import RowVisit
from graphsys.kernels.cpu.simt import caches as kernels

CALLS = {"x86_64": 298, "aarch64": 241}
"""Number of the system call ``perf_event_open``, by machine."""
L1_MISSES = 3, 0 | 0 << 8 | 1 << 16
"""Type and number of an event: loads that miss in the L1 for data."""
LAST_LEVEL_MISSES = 0, 3
PAGE_FAULTS = 1, 2
"""The kernel's own count, for which no hardware is needed."""
_SIZE = 136
_FLAGS = 1 << 0 | 1 << 5 | 1 << 6  # off at first, without the kernel and the hypervisor
_ENABLE, _DISABLE = 0x2400, 0x2401
LINE_BYTES = 64


class CountersMissingError(Exception):
    """This machine counts nothing of the kind; says why."""


def counted(event: tuple[int, int], work: Callable[[], Any]) -> int:
    """Return how often an event happened in this thread while ``work`` ran.

    Raises:
        CountersMissingError: the system refuses.
    """
    import fcntl

    number = CALLS.get(platform.machine())
    if number is None or platform.system() != "Linux":
        raise CountersMissingError(f"no perf_event_open on {platform.platform()}")
    attributes = bytearray(_SIZE)
    struct.pack_into("=IIQ", attributes, 0, event[0], _SIZE, event[1])
    struct.pack_into("=Q", attributes, 40, _FLAGS)
    libc = ctypes.CDLL(None, use_errno=True)
    given = (ctypes.c_char * _SIZE).from_buffer(attributes)
    handle = libc.syscall(number, given, 0, -1, -1, 0)
    if handle < 0:
        code = ctypes.get_errno()
        why = {
            errno.ENOENT: "the processor offers no such counter here",
            errno.EACCES: "kernel.perf_event_paranoid forbids it",
            errno.EPERM: "this process may not",
        }.get(code, "the system refuses")
        raise CountersMissingError(f"perf_event_open: {os.strerror(code)}: {why}")
    try:
        fcntl.ioctl(handle, _ENABLE, 0)
        work()
        fcntl.ioctl(handle, _DISABLE, 0)
        return int(struct.unpack("=Q", os.read(handle, 8))[0])
    finally:
        os.close(handle)


@dataclass(frozen=True)
class Cache:
    """A cache of the processor: bytes, and lines of a set."""

    num_bytes: int
    ways: int


def own_caches(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> list[Cache]:
    """Return this processor's L1 for data and its last level.

    Raises:
        CountersMissingError: the system does not tell them.
    """
    found: dict[int, Cache] = {}
    for index in sorted(folder.glob("index*")):
        told = {
            name: (index / name).read_text().strip()
            for name in ("level", "type", "size", "ways_of_associativity")
            if (index / name).is_file()
        }
        size = told.get("size", "")
        if told.get("type") == "Instruction" or not size.endswith("K"):
            continue
        ways = int(told.get("ways_of_associativity") or 0)
        found[int(told["level"])] = Cache(int(size[:-1]) << 10, max(ways, 1))
    if len(found) < 2:
        raise CountersMissingError(f"{folder} does not tell the processor's caches")
    return [found[min(found)], found[max(found)]]


@dataclass(frozen=True)
class Traversal:
    """Rows whose neighbors' values are added up.

    Attributes:
        starts: Where rows begin, int64 ``[n + 1]``.
        indices: Neighbors, int32 ``[E]``.
        values: Of the nodes, float64 ``[n]``.
    """

    starts: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]

    def run(self) -> float:
        """Walk all rows in turn, in this thread."""
        return float(_walk(self.starts, self.indices, self.values))


def random_traversal(num_nodes: int, degree: int, seed: int = 0) -> Traversal:
    """Return rows of equal length with neighbors drawn at random."""
    rng = np.random.default_rng(seed)
    starts = np.arange(num_nodes + 1, dtype=np.int64) * degree
    indices = rng.integers(0, num_nodes, num_nodes * degree).astype(np.int32)
    return Traversal(starts, indices, np.ones(num_nodes))


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _walk(starts: Any, indices: Any, values: Any) -> Any:
    total = 0.0
    for row in range(len(starts) - 1):
        for e in range(starts[row], starts[row + 1]):
            total += values[indices[e]]
    return total


def predicted(traversal: Traversal, first: Cache, last: Cache) -> tuple[int, int]:
    """Return the loads of values that miss in L1, and in the last level, by the model.

    Neighbors' numbers and offsets come in order, which hardware loads ahead: they pass
    through the caches and are not counted.
    """
    caches = Caches(
        l1_bytes=2 * first.num_bytes,
        l2_bytes=2 * last.num_bytes,
        brings_lines=True,
        l1_ways=first.ways,
        l2_ways=last.ways,
    )
    alone = Gpu(
        name="one core",
        num_sms=1,
        max_threads=32,
        max_ctas=1,
        registers=1 << 16,
        register_unit=256,
        shared_bytes=1 << 16,
        reserved_bytes=0,
    )
    model = CacheModel(alone, caches, sms=1, shape=SimtLaunch(threads=32))
    visit = RowVisit(
        superstep=0,
        kind="pull",
        lengths=np.diff(traversal.starts),
        starts=traversal.starts[:-1],
        indices=traversal.indices.astype(np.int64),
        value_bytes=2 * traversal.values.itemsize,
        mapping="warp",
    )
    model.run(visit)
    asked, hits = (model.tallies[0, it, 2] for it in (kernels.L1_ASKED, kernels.L1_HITS))
    asked2, hits2 = (
        model.tallies[0, it, 2] for it in (kernels.L2_ACCESSES, kernels.L2_HITS)
    )
    return int(asked - hits), int(asked2 - hits2) // 4  # four sectors of a line


def compared(num_nodes: int, degree: int) -> dict[str, tuple[int, int]]:
    """Return predicted and counted misses of a random traversal, by level.

    Raises:
        CountersMissingError: nothing is counted here.
    """
    caches = own_caches()
    counted(L1_MISSES, lambda: None)  # where it is refused nothing is simulated
    traversal = random_traversal(num_nodes, degree)
    traversal.run()  # compiles, and warms as the model does not: the rest is steady
    found = {}
    told = zip(("L1", "last level"), (L1_MISSES, LAST_LEVEL_MISSES), strict=True)
    for expected, (name, event) in zip(predicted(traversal, *caches), told, strict=True):
        found[name] = expected, counted(event, traversal.run)
    return found


def main() -> int:
    """Print misses as the model predicts and as the processor counts them."""
    for num_nodes in (2_000, 200_000, 5_000_000):
        try:
            for name, (expected, seen) in compared(num_nodes, 8).items():
                print(f"{num_nodes:,} values, {name}: {expected:,} predicted, {seen:,}")
        except CountersMissingError as err:
            print(f"error: {err}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
