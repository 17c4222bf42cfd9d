"""A budget of memory: kept by work that was planned, refused with an amount that works."""

from contextlib import AbstractContextManager

from graphsys.core.errors import BudgetError
from graphsys.core.memory import (
    MemoryMeter,
    format_bytes,
    keep_to_budget,
    parse_bytes,
    release_free_memory,
)

_METER_S = 0.002
_KEPT_BYTES = 8 << 20
"""Blocks of questions and candidates take less, and are made anew all the time."""
_VARIES = 20
"""A process takes one part in so many more or less from one time to the next."""


def stated_budget(memory: int | str | None) -> int | None:
    """Return a budget in bytes, None where none was stated.

    Where one is, what the process frees goes back to the system from now on.

    Raises:
        ConfigError: not an amount of memory.
    """
    if memory is None:
        return None
    budget = parse_bytes(memory)
    keep_to_budget(_KEPT_BYTES)
    return budget


def metered() -> AbstractContextManager[MemoryMeter]:
    """Meter a step of a rehearsal, which begins with what the process must have."""
    release_free_memory()
    return MemoryMeter(_METER_S)


def require_budget(what: str, needed: int, budget: int | None) -> None:
    """Check that work fits a budget.

    Args:
        what: The work.
        needed: Bytes that it takes at its peak, the process itself included.
        budget: Bytes allowed; None: no limit.

    Raises:
        BudgetError: It does not; the message names an amount that works.
    """
    if budget is not None and needed > budget:
        raise too_small(what, needed, budget)


def too_small(what: str, needed: int, budget: int, why: str = "") -> BudgetError:
    """Return the refusal of a budget; it names one that works.

    Args:
        what: The work.
        needed: Bytes that it takes in the smallest way.
        budget: Bytes allowed.
        why: What is said of the amount, if anything.
    """
    smallest = needed * (_VARIES + 1) // _VARIES
    amount = rounded(smallest)
    error = BudgetError(
        f"memory: {what} needs {format_bytes(smallest)}{why}, got "
        f"{format_bytes(budget)}; give --memory {amount} (memory={amount!r}) or more"
    )
    error.smallest = smallest
    return error


def rounded(amount: int) -> str:
    """Write an amount of memory that is enough, in whole megabytes.

    Examples:
        >>> rounded(2_000_001)
        '3MB'
    """
    return f"{-(-amount // 10**6)}MB"
