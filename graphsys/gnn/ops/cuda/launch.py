"""How kernels of message passing are started: block sizes, room for results, pieces.

Block sizes are chosen so that one warp has a thousand numbers under way; no GPU has told
yet whether that is best.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch

from graphsys.core.triton.device import start
from graphsys.gnn.ops.adjacency import DeviceEntries, SparseRows

_TILE: Final = 1024  # numbers that a warp has under way
_MOST_COLUMNS: Final = 128
_MOST_ROWS: Final = 32
FLAT: Final = 512
"""Numbers of a program that takes them one by one."""

_start: Callable[..., None] = start


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """Start a kernel over a grid, by the function that :func:`launching` names."""
    _start(kernel, grid, *arguments, **options)


@contextmanager
def launching(by: Callable[..., None]) -> Iterator[None]:
    """Start kernels by another function inside the block: one that compiles, say."""
    global _start
    outer, _start = _start, by
    try:
        yield
    finally:
        _start = outer


def blocks(number: int, size: int) -> int:
    """Return how many blocks of a size hold a number of things."""
    return -(-number // size)


def tile(width: int, like: torch.Tensor, num_ends: int = 1) -> tuple[int, int]:
    """Return how many entries and columns a program has under way.

    Args:
        width: Columns of a row.
        like: Of the dtype that values are added in.
        num_ends: Rows that are read for an entry.
    """
    columns = min(1 << max(width - 1, 0).bit_length(), _MOST_COLUMNS)
    numbers = _TILE // (num_ends * (2 if like.dtype == torch.float64 else 1))
    return max(1, min(numbers // columns, _MOST_ROWS)), columns


def room(shape: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
    """Return a tensor to be filled, of the dtype that values like these are added in."""
    dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
    return torch.empty(shape, dtype=dtype, device=like.device)


def extras_of(
    entries: DeviceEntries, shape: tuple[int, ...], like: torch.Tensor
) -> tuple[torch.Tensor | None, Any, Any]:
    """Return room for what extras find, and whose they are; None without any."""
    if not entries.num_extras:
        return None, None, None
    return room((entries.num_extras, *shape), like), *entries.extras


def entries_of(rows: SparseRows) -> DeviceEntries:
    """Return the entries of rows that are on a device."""
    entries: Any = rows.entries
    found: DeviceEntries = entries
    return found
