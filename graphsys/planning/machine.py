"""How fast this machine gathers from memory, and reads and writes its disk."""

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from graphsys.core.bandwidth import median_seconds
from graphsys.core.threads import num_cores, run_parallel
from graphsys.kernels.jit import jit


@jit
def _gather(table: Any, places: Any) -> Any:
    total = table[0]
    for place in places:
        total += table[place]
    return total


def gather_rate(table_bytes: int, repeats: int) -> float:
    """Read random 4-byte entries with a thread per core; return reads/s.

    Args:
        table_bytes: Size of the table that is read from.
        repeats: Of which the median counts.
    """
    rng = np.random.default_rng(0)
    table = np.ones(table_bytes // 4, dtype=np.uint32)
    places = [
        rng.integers(0, len(table), size=1 << 22, dtype=np.uint32)
        for _ in range(num_cores())
    ]
    seconds = median_seconds(
        lambda: run_parallel(lambda part: _gather(table, part), places), repeats
    )
    return sum(map(len, places)) / seconds


def disk_bandwidths(folder: Path, num_bytes: int) -> tuple[float, float, float]:
    """Write, read cold and read warm one file; return bytes/s of each.

    Args:
        folder: Where the file lies for a while.
        num_bytes: Its size.
    """
    block = np.random.default_rng(0).bytes(8 << 20)
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        began = time.perf_counter()
        for _ in range(num_bytes // len(block)):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        write = num_bytes / (time.perf_counter() - began)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        cold = _read_seconds(file.fileno(), len(block))
        warm = _read_seconds(file.fileno(), len(block))
    return write, num_bytes / cold, num_bytes / warm


def _read_seconds(descriptor: int, block_bytes: int) -> float:
    buffer = bytearray(block_bytes)
    os.lseek(descriptor, 0, os.SEEK_SET)
    began = time.perf_counter()
    while os.readv(descriptor, [buffer]):
        pass
    return time.perf_counter() - began
