"""Where messages go: compressed rows, their transposed, self-loops; here and on a device.

On a device all that is derived is made there by sorts and sums of integers, so that only
offsets, indices and weights are copied, and the host never waits for a number that the
device has found.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.errors import ConfigError
from graphsys.core.threads import ThreadTeam
from graphsys.kernels.cpu.gnn.message_sums import transpose_block
from graphsys.sampling.blocks import Block

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]

_NO_PLACES = np.empty(0, dtype=np.int64)
PIECE: Final = 256
"""Most entries of a row that one program adds up."""
_MAX_ENTRIES: Final = 2**31  # of rows on a device
_team = ThreadTeam(1)


def kernel_team() -> ThreadTeam:
    """Return the threads that kernels of layers run on; those of the calling thread."""
    return _team


@contextmanager
def kernel_threads(num_threads: int) -> Iterator[None]:
    """Run the kernels of layers on so many threads inside the block, torch's too."""
    global _team
    outer, of_torch = _team, torch.get_num_threads()
    _team = ThreadTeam(num_threads)
    torch.set_num_threads(num_threads)
    try:
        yield
    finally:
        _team.close()
        _team = outer
        torch.set_num_threads(of_torch)


class RowEntries(NamedTuple):
    """Entries of rows, as kernels take them.

    Attributes:
        indptr: Row offsets, int64 ``[R + 1]``.
        indices: What each entry names, int32 ``[E]``.
        entry: Place of each entry's value, int64 ``[E]``, or empty: in order.
    """

    indptr: Ints
    indices: Places
    entry: Ints = _NO_PLACES


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


class SparseRows:
    """The entries of a bipartite hop: row ``i`` receives from ``indices[indptr[i]:...]``.

    Args:
        indptr: Row offsets, int64 ``[D + 1]``.
        indices: Places of sources, int32 ``[E]``.
        num_src: Number of sources.
        weight: Weights of the entries ``[E]``, or None.
        self_weight: Weight of each row's own node, for layers that count it ``[D]``.
        is_prefix: Whether the first D sources are the rows' own nodes.
    """

    is_on_device = False
    device = torch.device("cpu")

    def __init__(
        self,
        indptr: Ints,
        indices: Places,
        num_src: int,
        *,
        weight: torch.Tensor | None = None,
        self_weight: torch.Tensor | None = None,
        is_prefix: bool = True,
    ) -> None:
        self.indptr, self.indices, self.num_src = indptr, indices, num_src
        self.weight, self.self_weight, self.is_prefix = weight, self_weight, is_prefix

    @classmethod
    def of(cls, block: Block, *, is_prefix: bool = True) -> "SparseRows":
        """Wrap a block without copying it."""
        weight = None if block.weight is None else torch.from_numpy(block.weight)
        return cls(
            block.indptr, block.indices, block.num_src, weight=weight, is_prefix=is_prefix
        )

    def to(self, device: "str | torch.device") -> "SparseRows":
        """Return the same rows where kernels of a device (``cpu`` or ``cuda``) take them.

        See :class:`DeviceSparseRows`.

        Raises:
            ConfigError: There is no such device, or too many entries for one.
        """
        if torch.device(device).type == "cpu":
            return self
        from graphsys.core.triton.device import cuda_device, require_device

        require_device()
        target = cuda_device()
        return DeviceSparseRows.moved(self, lambda array: torch.as_tensor(array).to(target))

    @property
    def entries(self) -> RowEntries:
        """The entries, row by row."""
        return RowEntries(self.indptr, self.indices)

    @property
    def num_dst(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        """Number of entries."""
        return len(self.indices)

    @cached_property
    def degrees(self) -> torch.Tensor:
        """Entries of every row, float32 ``[D]``."""
        return torch.from_numpy(np.diff(self.indptr).astype(np.float32))

    @cached_property
    def transposed(self) -> RowEntries:
        """The entries source by source: rows, and where each entry was."""
        starts = np.zeros(self.num_src + 1, dtype=np.int64)
        rows = np.empty(self.num_edges, dtype=np.int32)
        entry = np.empty(self.num_edges, dtype=np.int64)
        transpose_block(self.indptr, self.indices, starts, rows, entry)
        return RowEntries(starts, rows, entry)

    @cached_property
    def with_self(self) -> "SparseRows":
        """The same rows, each with its own node as a first entry; itself without prefix."""
        if not self.is_prefix:
            return self
        num_dst = self.num_dst
        lengths = np.diff(self.indptr)
        indices = np.empty(self.num_edges + num_dst, dtype=np.int32)
        indptr = self.indptr + np.arange(num_dst + 1)
        moved = np.arange(self.num_edges) + np.repeat(np.arange(1, num_dst + 1), lengths)
        indices[moved] = self.indices
        indices[indptr[:-1]] = np.arange(num_dst, dtype=np.int32)
        return SparseRows(indptr, indices, self.num_src)


class DeviceSparseRows(SparseRows):
    """Rows whose arrays are tensors on a device.

    Args:
        indptr: Row offsets, int64 ``[D + 1]``.
        indices: Places of sources, int32 ``[E]``.
        num_src: Number of sources.
        options: ``weight``, ``self_weight`` and ``is_prefix`` of :class:`SparseRows`.
        longest: Entries of the longest row, where that is known.

    Raises:
        ConfigError: Too many entries.
    """

    is_on_device = True
    indptr: Any
    indices: Any

    def __init__(
        self,
        indptr: torch.Tensor,
        indices: torch.Tensor,
        num_src: int,
        *,
        longest: int | None = None,
        **options: Any,
    ) -> None:
        own: Any = indptr
        named: Any = indices
        super().__init__(own, named, num_src, **options)
        self.device = indptr.device
        self._longest = longest
        if len(indices) >= _MAX_ENTRIES:
            raise ConfigError(
                f"rows have {len(indices)} entries, a device takes fewer than "
                f"{_MAX_ENTRIES} at once; train in batches, or with device='cpu'"
            )

    @classmethod
    def moved(
        cls, rows: SparseRows, put: Callable[[Any], torch.Tensor]
    ) -> "DeviceSparseRows":
        """Return rows of the host on a device.

        Args:
            rows: Rows of the host.
            put: Returns an array or a tensor of the host on the device.
        """
        longest = int((rows.indptr[1:] - rows.indptr[:-1]).max(initial=0))
        weights = {
            name: None if value is None else put(value)
            for name, value in (("weight", rows.weight), ("self_weight", rows.self_weight))
        }
        return cls(
            put(rows.indptr),
            put(rows.indices),
            rows.num_src,
            longest=longest,
            is_prefix=rows.is_prefix,
            **weights,
        )

    @cached_property
    def entries(self) -> Any:
        """The entries, row by row (:class:`DeviceEntries`)."""
        return DeviceEntries(self.indptr, self.indices, longest=self._longest)

    @cached_property
    def degrees(self) -> torch.Tensor:
        """Entries of every row, float32 ``[D]``."""
        return self.indptr.diff().to(torch.float32)  # type: ignore[no-any-return]

    @cached_property
    def transposed(self) -> Any:
        """The entries source by source (:class:`DeviceEntries`), by a stable sort."""
        source, order = torch.sort(self.indices, stable=True)
        numbers = torch.arange(self.num_src + 1, device=self.device, dtype=torch.int32)
        starts = torch.searchsorted(source, numbers)
        rows = self.entries.row_of.index_select(0, order)
        return DeviceEntries(starts, rows, order.to(torch.int32))

    @cached_property
    def with_self(self) -> SparseRows:
        """The same rows, each with its own node as a first entry; itself without prefix."""
        if not self.is_prefix:
            return self
        own = torch.arange(self.num_dst + 1, device=self.device)
        indptr = self.indptr + own
        indices = torch.empty(
            self.num_edges + self.num_dst, dtype=torch.int32, device=self.device
        )
        places = torch.arange(self.num_edges, device=self.device)
        indices[places + self.entries.row_of + 1] = self.indices
        indices[indptr[:-1]] = own[:-1].to(torch.int32)
        longest = None if self._longest is None else self._longest + 1
        return DeviceSparseRows(indptr, indices, self.num_src, longest=longest)


def join_rows(parts: Sequence[SparseRows]) -> SparseRows:
    """Return rows with the entries of several, whose sources follow one another.

    Args:
        parts: Rows of the same nodes; entries of one come before those of the next.
    """
    if len(parts) == 1:
        return parts[0]
    if parts[0].is_on_device:
        return _join_on_device(parts)
    lengths = [np.diff(part.indptr) for part in parts]
    indptr = np.concatenate([[0], np.cumsum(np.sum(lengths, axis=0))])
    indices = np.empty(int(indptr[-1]), dtype=np.int32)
    first = indptr[:-1].copy()
    num_src = 0
    for part, length in zip(parts, lengths, strict=True):
        moved = np.repeat(first - part.indptr[:-1], length) + np.arange(part.num_edges)
        indices[moved] = part.indices + num_src
        first += length
        num_src += part.num_src
    return SparseRows(indptr, indices, num_src, is_prefix=False)


def _join_on_device(parts: Sequence[SparseRows]) -> DeviceSparseRows:
    """Return what :func:`join_rows` does, on the device."""
    all_entries: list[Any] = [part.entries for part in parts]
    lengths = [entries.indptr.diff() for entries in all_entries]
    device = parts[0].device
    indptr = torch.zeros(parts[0].num_dst + 1, dtype=torch.int64, device=device)
    torch.cumsum(torch.stack(lengths).sum(dim=0), 0, out=indptr[1:])
    total = sum(part.num_edges for part in parts)
    indices = torch.empty(total, dtype=torch.int32, device=device)
    first, num_src = indptr[:-1].clone(), 0
    for part, entries, length in zip(parts, all_entries, lengths, strict=True):
        places = torch.arange(part.num_edges, device=device)
        shift = (first - entries.indptr[:-1]).index_select(0, entries.row_of)
        indices[places + shift] = entries.indices + num_src
        first += length
        num_src += part.num_src
    return DeviceSparseRows(indptr, indices, num_src, is_prefix=False)
