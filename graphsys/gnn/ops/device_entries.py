"""Entries of rows on a device: tensors there, and long rows cut into pieces."""

from functools import cached_property
from typing import Final

import torch

PIECE: Final = 256
"""Most entries of a row that one program adds up."""


class DeviceEntries:
    """Entries of rows on a device, as its kernels take them.

    Args:
        indptr: Row offsets, int64 ``[R + 1]``.
        indices: What each entry names, int32 ``[E]``.
        entry: Place of each entry's value, int32 ``[E]``; None: in order.
        longest: Entries of the longest row, where that is known.
    """

    def __init__(
        self,
        indptr: torch.Tensor,
        indices: torch.Tensor,
        entry: torch.Tensor | None = None,
        longest: int | None = None,
    ) -> None:
        self.indptr, self.indices, self.entry = indptr, indices, entry
        has_long = longest is None or longest > PIECE
        self.num_extras = len(indices) // PIECE if has_long else 0

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    @cached_property
    def row_of(self) -> torch.Tensor:
        """The row of every entry, int32 ``[E]``."""
        rows = torch.arange(self.num_rows, dtype=torch.int32, device=self.indptr.device)
        lengths = self.indptr.diff()
        return rows.repeat_interleave(lengths, output_size=len(self.indices))

    @cached_property
    def extras(self) -> tuple[torch.Tensor, torch.Tensor]:
        """First extra piece of every row, and the row of every extra piece, int32.

        There may be fewer than ``num_extras``; those beyond are of row ``num_rows``.
        """
        begin = torch.zeros_like(self.indptr)
        more = (self.indptr.diff() - 1).div_(PIECE, rounding_mode="floor").clamp_(min=0)
        torch.cumsum(more, 0, out=begin[1:])
        numbers = torch.arange(self.num_extras, device=begin.device)
        row = torch.searchsorted(begin[1:], numbers, right=True, out_int32=True)
        return begin.to(torch.int32), row
