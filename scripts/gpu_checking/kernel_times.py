"""Which kernels a piece of work spends a card's time in, by torch's profiler."""

import time
from collections.abc import Callable
from typing import Any

_LARGEST = 12


def kernel_times(work: Callable[[], Any]) -> dict[str, Any]:
    """Do some work under torch's profiler.

    Args:
        work: What is watched; what it compiles should be compiled.

    Returns:
        ``seconds`` by the host's clock, ``kernel_device_seconds`` of all kernels, and
        ``kernels``: name, calls and milliseconds of those that took longest.
    """
    import torch
    from torch.profiler import ProfilerActivity, profile

    kinds = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        kinds = [ProfilerActivity.CUDA]
    began = time.perf_counter()
    with profile(activities=kinds) as found:
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    times = [
        (it.self_device_time_total / 1e3, it.count, it.key[:60])
        for it in found.key_averages()
    ]
    times.sort(reverse=True)
    return {
        "seconds": seconds,
        "kernel_device_seconds": sum(it[0] for it in times) / 1e3,
        "kernels": [
            {"name": name, "calls": calls, "ms": round(ms, 3)}
            for ms, calls, name in times[:_LARGEST]
        ],
    }
