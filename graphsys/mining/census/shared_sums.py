"""Sums that several processes make together, a part of the chunks each."""

import contextlib
import contextvars
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.graph.slices import Slice

Counts = npt.NDArray[np.int64]
_TOLD_ENTRIES = 1 << 12


@dataclass(frozen=True, slots=True)
class SharedSums:
    """Other processes that make the same sums at the same time, a part each.

    Attributes:
        share: The part of this one.
        gather: Takes what is summed, in words, and the sums of each thread ``[T, 2 K]``;
            returns those of all processes, one below the other.
    """

    share: Slice
    gather: Callable[[str, Counts], Counts]


_SHARED: contextvars.ContextVar[SharedSums | None] = contextvars.ContextVar(
    "shared", default=None
)


@contextlib.contextmanager
def sharing(shared: SharedSums) -> Iterator[None]:
    """Have sums within made together with other processes, which all do the same."""
    token = _SHARED.set(shared)
    try:
        yield
    finally:
        _SHARED.reset(token)


def shared_with() -> SharedSums | None:
    """Return with whom sums are made, if with anyone."""
    return _SHARED.get()


def words_for(kernel: Callable[..., Any], arguments: Sequence[Any]) -> str:
    """Return what tells a sum from others: processes must make the same ones in turn."""
    told = [f"{kernel.__module__}.{kernel.__name__}"]
    for value in arguments:
        if isinstance(value, np.ndarray):
            some = np.ascontiguousarray(value[:_TOLD_ENTRIES])
            told.append(f"{value.shape} {zlib.crc32(some.tobytes())}")
        else:
            told.append(repr(value))
    return " ".join(told)
