"""Who visits a row: chosen by the work that the SIMT model predicts, or forced.

A warp takes as long as its longest lane, so the cost of a mapping follows from the degrees
alone (the model: shared/reference/simt_model.py). The constants are instructions counted
from machine code, not yet measured on a GPU.
"""

from typing import Literal

import numpy as np

from graphsys.core.cuda.device import Array
from graphsys.core.errors import ConfigError
from graphsys.kernels.cpu.simt.lanes import WARP
from graphsys.kernels.cpu.simt.row_steps import NUM_STEPS, count_steps

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
        One pass over the rows.
    """
    steps = np.zeros(NUM_STEPS, dtype=np.int64)
    count_steps(np.ascontiguousarray(degrees), block, steps)
    of_thread, of_warp, of_block, num_edges, *rest = (int(it) for it in steps)
    binned_thread, binned_warp, binned_block, *sizes = rest
    in_block, num_rows = block // WARP, len(degrees)
    num_bins = sum(1 for size in sizes if size)
    binned = (
        _by_thread(sizes[0], binned_thread)
        + _by_warp(sizes[1], binned_warp)
        + _by_block(sizes[2], binned_block, in_block)
    )
    search = _PER_STEP + 6 * max(num_rows, 2).bit_length() + _PER_ATOMIC
    by_edge = -(-num_edges // WARP) * search + -(-num_rows // WARP) * _PER_ITEM
    return {
        "thread": _by_thread(num_rows, of_thread),
        "warp": _by_warp(num_rows, of_warp),
        "block": _by_block(num_rows, of_block, in_block),
        "twc": binned + (num_bins - 1) * _PER_LAUNCH if num_bins else 0,
        "edge": by_edge + _PER_LAUNCH,
    }


def choose(work: dict[str, int], allowed: tuple[str, ...]) -> str:
    """Return the mapping with the least work among those allowed."""
    return min(allowed, key=lambda name: work[name])


def _by_thread(num_rows: int, steps: int) -> int:
    return _PER_ITEM * -(-num_rows // WARP) + _PER_LONE_STEP * steps


def _by_warp(num_rows: int, steps: int) -> int:
    return (_PER_ITEM + _PER_REDUCE) * num_rows + _PER_STEP * steps


def _by_block(num_rows: int, steps: int, in_block: int) -> int:
    fixed = in_block * (_PER_ITEM + 2 * _PER_REDUCE) * num_rows
    return fixed + _PER_STEP * steps * in_block
