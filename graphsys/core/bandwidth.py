"""How fast this machine copies memory and multiplies matrices: yardsticks for work."""

import statistics
import time
from collections.abc import Callable

import numpy as np

from graphsys.core.threads import num_cores, run_parallel


def median_seconds(call: Callable[[], object], repeats: int) -> float:
    """Return the median time of a call after one warm-up."""
    call()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def copy_bandwidth(num_bytes: int, repeats: int) -> float:
    """Copy with a thread per core; return bytes read plus bytes written per second.

    Args:
        num_bytes: Size of the array that is copied; several times the last-level cache.
        repeats: Of which the median counts.
    """
    source = np.ones(num_bytes // 8, dtype=np.int64)
    target = np.empty_like(source)
    step = -(-len(source) // num_cores())
    parts = [slice(start, start + step) for start in range(0, len(source), step)]

    def copy(part: slice) -> None:
        np.copyto(target[part], source[part])

    return 2 * num_bytes / median_seconds(lambda: run_parallel(copy, parts), repeats)


def gemm_rate(shape: tuple[int, int, int], repeats: int) -> float:
    """Multiply float32 matrices [M, K] x [K, N] through torch; return FLOP/s."""
    import torch

    rows, inner, columns = shape
    left, right = torch.rand(rows, inner), torch.rand(inner, columns)
    out = torch.empty(rows, columns)
    flops = 2 * rows * inner * columns
    times = max(1, int(2e9 / flops))

    def multiply() -> None:
        for _ in range(times):
            torch.mm(left, right, out=out)

    return times * flops / median_seconds(multiply, repeats)
