"""A budget of the whole process, and what of it an ingest has for what it keeps.

``ingest(memory=...)`` bounds what is kept beside the process and the chunks under way. The
command line's ``--memory`` bounds all of it: the interpreter, the readers' chunks in their
threads, the ranges of edges being sorted. These were measured on inputs of up to 40M edges
of integers (peaks grow no more from some megabytes of input on) and are subtracted here.
"""

from graphsys.core.errors import BudgetError
from graphsys.core.memory import format_bytes, parse_bytes, resident_bytes
from graphsys.storage.options import MIN_MEMORY

_LOADED_BYTES = 56 << 20
_UNDER_WAY_BYTES = 120 << 20
_UNDER_WAY_SHARE = 16  # bytes under way for a byte of a small input, maybe compressed


def kept_bytes(memory: int | str, total_bytes: int | None = None) -> int:
    """Return what an ingest may keep, so that the process stays within a budget.

    Args:
        memory: Budget of the whole process, as ``"4GB"`` or in bytes.
        total_bytes: Size of the input, where known.

    Raises:
        ConfigError: not an amount of memory.
        BudgetError: less than the process and the least ingest take; the message names an
            amount that works.
    """
    budget = parse_bytes(memory)
    under_way = _UNDER_WAY_BYTES
    if total_bytes is not None:
        under_way = min(under_way, _UNDER_WAY_SHARE * total_bytes)
    beside = resident_bytes() + _LOADED_BYTES + under_way
    if budget - beside >= MIN_MEMORY:
        return budget - beside
    smallest = (beside + MIN_MEMORY) * 21 // 20
    amount = f"{-(-smallest // 10**6)}MB"
    error = BudgetError(
        f"memory: reading a graph takes {format_bytes(smallest)}, the process included, "
        f"got {format_bytes(budget)}; give --memory {amount} or more"
    )
    error.smallest = smallest
    raise error
