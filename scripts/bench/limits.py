"""What this machine can do at best, measured beside the work."""

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphsys.core.bandwidth import copy_bandwidth, gemm_rate, median_seconds
from graphsys.core.threads import num_cores, run_parallel
from graphsys.kernels.jit import jit

GEMM_SHAPES = ((50, 100, 100), (500, 200, 1000))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits; bandwidths in bytes/s.

    Attributes:
        copy_bandwidth: Memory copy with all cores, bytes read plus bytes written.
        gather_rate_small: Random 4-byte reads per second from a 16 MB table, all cores.
        gather_rate_large: The same from a 512 MB table.
        gemm_rate: float32 FLOP/s of one matrix product, by shape "MxKxN", all cores.
        disk_write_bandwidth: Write and fsync of one file.
        disk_read_bandwidth: The same file read back after it left the page cache, as far
            as the system let go of it.
        cached_read_bandwidth: The same file read from the page cache.
    """

    copy_bandwidth: float
    gather_rate_small: float
    gather_rate_large: float
    gemm_rate: dict[str, float]
    disk_write_bandwidth: float
    disk_read_bandwidth: float
    cached_read_bandwidth: float

    def as_mapping(self) -> dict[str, Any]:
        """Return the limits for the record."""
        return asdict(self)


def measure_limits(
    folder: Path, *, quick: bool, gemm_shapes: Sequence[tuple[int, int, int]] = GEMM_SHAPES
) -> Limits:
    """Measure everything; a few seconds.

    Args:
        folder: Where the benchmark's files lie.
        quick: Smaller tables and fewer repeats.
        gemm_shapes: Shapes (M, K, N) of the products that the case uses.
    """
    repeats = 3 if quick else 5
    write, read, cached = disk_bandwidths(folder, (128 if quick else 512) << 20)
    return Limits(
        copy_bandwidth=copy_bandwidth((128 if quick else 512) << 20, repeats),
        gather_rate_small=gather_rate(16 << 20, repeats),
        gather_rate_large=gather_rate(512 << 20, repeats),
        gemm_rate={
            "x".join(map(str, shape)): gemm_rate(shape, repeats) for shape in gemm_shapes
        },
        disk_write_bandwidth=write,
        disk_read_bandwidth=read,
        cached_read_bandwidth=cached,
    )


@jit
def _gather(table: Any, places: Any) -> Any:
    total = table[0]
    for place in places:
        total += table[place]
    return total


def gather_rate(table_bytes: int, repeats: int) -> float:
    """Read random 4-byte entries with a thread per core; return reads/s."""
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
    """Write, read cold and read warm one file; return bytes/s of each."""
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
