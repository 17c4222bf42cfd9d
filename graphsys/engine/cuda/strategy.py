"""Who visits a row: chosen by the work that the SIMT model predicts, or forced.

A warp takes as long as its longest lane, so the cost of a mapping follows from the degrees
alone (the model: shared/reference/simt_model.py). The constants are instructions counted
from machine code, not yet measured on a GPU.
"""

from typing import Literal

import numpy as np

from graphsys.core.cuda.device import Array
from graphsys.core.errors import ConfigError

Strategy = Literal["auto", "thread", "warp", "block", "twc", "edge", "fused"]
STRATEGIES = ("auto", "thread", "warp", "block", "twc", "edge", "fused")

_PER_ITEM = 10
"""Instructions of a warp to begin and end its rows."""
_PER_STEP = 20
"""Instructions of a warp per entry that its lanes visit together."""
_PER_LONE_STEP = 60
"""The same where every lane walks its own row, and each reads another sector."""
_PER_REDUCE = 40
"""Instructions to combine what 32 lanes found."""
_PER_LAUNCH = 300_000
"""Instructions of all warps in the time that one more launch takes."""
_PER_ATOMIC = 30
WARP = 32


def check_strategy(strategy: str) -> None:
    """Raise ConfigError unless a strategy is known."""
    if strategy not in STRATEGIES:
        raise ConfigError(
            f"strategy must be one of {', '.join(STRATEGIES)}, got {strategy!r}"
        )


def predicted_work(degrees: Array, block: int) -> dict[str, int]:
    """Return the instructions of all warps for one pass over rows, by mapping.

    Args:
        degrees: Lengths of the rows in the order in which they are visited ``[N]``.
        block: Threads per block.

    Complexity:
        O(N) numpy.
    """
    degrees = np.asarray(degrees, dtype=np.int64)
    in_block = block // WARP
    small = degrees[degrees < WARP]
    medium = degrees[(degrees >= WARP) & (degrees < block)]
    large = degrees[degrees >= block]
    num_bins = sum(1 for part in (small, medium, large) if len(part))
    binned = _by_thread(small) + _by_warp(medium) + _by_block(large, block, in_block)
    num_edges = int(degrees.sum())
    search = _PER_STEP + 6 * max(len(degrees), 2).bit_length() + _PER_ATOMIC
    by_edge = -(-num_edges // WARP) * search + -(-len(degrees) // WARP) * _PER_ITEM
    return {
        "thread": _by_thread(degrees),
        "warp": _by_warp(degrees),
        "block": _by_block(degrees, block, in_block),
        "twc": binned + (num_bins - 1) * _PER_LAUNCH if num_bins else 0,
        "edge": by_edge + _PER_LAUNCH,
    }


def choose(work: dict[str, int], allowed: tuple[str, ...]) -> str:
    """Return the mapping with the least work among those allowed."""
    return min(allowed, key=lambda name: work[name])


def _by_thread(degrees: Array) -> int:
    if not len(degrees):
        return 0
    longest = np.maximum.reduceat(degrees, np.arange(0, len(degrees), WARP))
    return int(_PER_ITEM * len(longest) + _PER_LONE_STEP * longest.sum())


def _by_warp(degrees: Array) -> int:
    steps = int((-(-degrees // WARP)).sum())
    return (_PER_ITEM + _PER_REDUCE) * len(degrees) + _PER_STEP * steps


def _by_block(degrees: Array, block: int, in_block: int) -> int:
    steps = int((-(-degrees // block)).sum()) * in_block
    return in_block * (_PER_ITEM + 2 * _PER_REDUCE) * len(degrees) + _PER_STEP * steps
