"""What the card can do at best, here and now: what other rows are fractions of."""

import statistics
import time
from collections.abc import Callable
from typing import Any

from gpu_checking.steps import Context

_ROUNDS = 5


def planned() -> list[str]:
    """Return the rows that a card is to give."""
    copies = ["copy on the device", "copy to the device"]
    return [*copies, *(f"product of {name}" for name in ("float32", "bfloat16"))]


def measure(context: Context) -> None:
    """Tell the bandwidth of a copy on the device and to it, and the rate of products."""
    import torch

    device = "cpu" if context.is_simulated else "cuda"
    size = 1 << (16 if context.is_simulated else 30)
    first = torch.randint(256, (size,), dtype=torch.uint8, device=device)
    second = torch.empty_like(first)
    seconds = median_of(lambda: second.copy_(first), device)
    context.tell({"case": "copy on the device", "bytes_per_second": 2 * size / seconds})
    host = torch.zeros(size // 4, dtype=torch.uint8, pin_memory=device == "cuda")
    part = first[: size // 4]
    seconds = median_of(lambda: part.copy_(host), device)
    context.tell({"case": "copy to the device", "bytes_per_second": size / 4 / seconds})
    side = 64 if context.is_simulated else 8192
    kinds: tuple[tuple[str, Any], ...] = (
        ("float32", torch.float32),
        ("bfloat16", torch.bfloat16),
    )
    for name, dtype in kinds:
        # random: a product of zeros or ones is faster than one of data
        matrix = torch.randn((side, side), device=device).to(dtype)
        seconds = median_of(lambda m=matrix: m @ m, device)  # type: ignore[misc]
        rate = 2 * side**3 / seconds
        context.tell({"case": f"product of {name}", "flops_per_second": rate})


def median_of(work: Callable[[], Any], device: str) -> float:
    """Return the median of the seconds of some rounds, after one that is not counted."""
    import torch

    times = []
    for _ in range(_ROUNDS + 1):
        began = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:])
