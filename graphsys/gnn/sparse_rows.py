"""Where messages go, as layers see it: compressed rows, their transposed, self-loops."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.threads import ThreadTeam
from graphsys.kernels.cpu.message_sums import transpose_block
from graphsys.sampling.blocks import Block

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]

_NO_PLACES = np.empty(0, dtype=np.int64)
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


class Entries(NamedTuple):
    """Entries of rows, as kernels take them.

    Attributes:
        indptr: Row offsets, int64 ``[R + 1]``.
        indices: What each entry names, int32 ``[E]``.
        entry: Place of each entry's value, int64 ``[E]``, or empty: in order.
    """

    indptr: Ints
    indices: Places
    entry: Ints = _NO_PLACES


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

        See :class:`graphsys.gnn.device_rows.DeviceRows`.

        Raises:
            ConfigError: There is no such device, or too many entries for one.
        """
        if torch.device(device).type == "cpu":
            return self
        from graphsys.core.triton_device import cuda_device, require_device
        from graphsys.gnn.device_rows import DeviceRows

        require_device()
        target = cuda_device()
        return DeviceRows.moved(self, lambda array: torch.as_tensor(array).to(target))

    @property
    def entries(self) -> Entries:
        """The entries, row by row."""
        return Entries(self.indptr, self.indices)

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
    def transposed(self) -> Entries:
        """The entries source by source: rows, and where each entry was."""
        starts = np.zeros(self.num_src + 1, dtype=np.int64)
        rows = np.empty(self.num_edges, dtype=np.int32)
        entry = np.empty(self.num_edges, dtype=np.int64)
        transpose_block(self.indptr, self.indices, starts, rows, entry)
        return Entries(starts, rows, entry)

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


def join_rows(parts: Sequence[SparseRows]) -> SparseRows:
    """Return rows with the entries of several, whose sources follow one another.

    Args:
        parts: Rows of the same nodes; entries of one come before those of the next.
    """
    if len(parts) == 1:
        return parts[0]
    if parts[0].is_on_device:
        from graphsys.gnn.device_rows import join_device_rows

        return join_device_rows(parts)
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
