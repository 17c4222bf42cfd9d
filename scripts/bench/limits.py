"""What this machine can do at best, measured beside the work."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphsys.core.bandwidth import copy_bandwidth, gemm_rate
from graphsys.planning.rates import disk_bandwidths, gather_rate

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
