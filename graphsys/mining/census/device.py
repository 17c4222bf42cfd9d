"""The sums that motifs of 3 and 4 nodes and cliques follow from, made on a GPU.

Kernels: kernels/cuda/mining.py, a warp for each edge.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from graphsys.core.cuda.device import (
    DeviceMemory,
    LaunchShape,
    default_shape,
    free_memory,
    require_device,
)
from graphsys.core.cuda.launch_times import LaunchTimes
from graphsys.core.errors import BudgetError
from graphsys.core.events import count as emit_count
from graphsys.core.memory import format_bytes
from graphsys.core.progress import SILENT, Progress
from graphsys.kernels.cpu.mining.big_counts import wide_totals
from graphsys.mining.census.sums import Counts, DegreeOrderedGraph

_WARP: Final = 32
_SPARE: Final = 0.9
"""Part of the device's free memory that is used."""


@contextlib.contextmanager
def device_kernels(
    rows: DegreeOrderedGraph, progress: Progress = SILENT
) -> "Iterator[DeviceKernels]":
    """Return what makes sums over a graph on the device."""
    yield DeviceKernels(rows, progress)
    progress.close()


class DeviceKernels:
    """Makes sums over one graph on a GPU, as :class:`..sums.Kernels` does on the CPU.

    Args:
        rows: The graph; its rows are copied to the device.
        progress: Receives a stage for each kernel.
        shape: How large launches are; what fills the device by default.

    Raises:
        MissingDependencyError: numba-cuda is not installed.
        ConfigError: there is no GPU.
        BudgetError: the rows do not fit the device's free memory.
    """

    def __init__(
        self,
        rows: DegreeOrderedGraph,
        progress: Progress = SILENT,
        shape: LaunchShape | None = None,
    ) -> None:
        require_device()
        self.indptr, self.indices = rows.indptr, rows.indices
        self.num_nodes = len(rows.indptr) - 1
        self.num_edges = len(rows.indices) // 2
        self._progress = progress
        self._shape = shape or default_shape()
        self._free = free_memory()
        self._prefixes = _prefix_lengths(rows)
        starts = np.zeros(self.num_nodes + 1, dtype=np.int64)
        np.cumsum(self._prefixes, out=starts[1:])
        needed = sum(part.nbytes for part in (self.indptr, self.indices, starts))
        self._require(needed)
        self._memory = DeviceMemory()
        self._rows = tuple(
            self._memory.upload(part) for part in (self.indptr, self.indices, starts)
        )

    def clique_counts(self, size: int) -> list[int]:
        """Return the numbers of triangles, 4-cliques and 5-cliques up to a size, 3 to 5."""
        from graphsys.kernels.cuda.mining import count_cliques

        longest = int(self._prefixes.max(initial=0))
        of_warp = (size - 3) * longest * self.indices.itemsize
        blocks = self._blocks(self.num_edges, of_warp * self._shape.block // _WARP)
        length = blocks * self._shape.block // _WARP * (size - 3) * longest
        scratch = self._memory.empty(length, self.indices.dtype)
        return self._sums(count_cliques, 3, blocks, size, longest, scratch)

    def small_sums(self) -> list[int]:
        """Return the sums of ``graphsys.kernels.cpu.mining.four_cycles.count_small``."""
        from graphsys.kernels.cuda.mining import sum_edges

        sums = self._sums(sum_edges, 4, self._blocks(self.num_edges, 0))
        return [*sums, self.num_squares()]

    def num_squares(self) -> int:
        """Return the number of 4-cycles."""
        from graphsys.kernels.cuda.mining import count_squares

        of_block = 4 * self.num_nodes
        per_block = self._shape.block // _WARP  # one takes a node, not a warp an edge
        blocks = self._blocks(self.num_nodes * per_block, of_block)
        counts = self._memory.empty(blocks * self.num_nodes, np.int32)
        return self._sums(count_squares, 1, blocks, counts)[0]

    def _sums(
        self, kernel: Callable[..., Any], num: int, blocks: int, *arguments: Any
    ) -> list[int]:
        """Launch a kernel whose last argument receives ``num`` sums; return them."""
        name = str(kernel.py_func.__name__ if hasattr(kernel, "py_func") else kernel)
        self._progress.stage(name.replace("_", " "), 1, "launches")
        memory, block = self._memory, self._shape.block
        cursor = memory.full(1, 0, np.int64)
        totals = memory.full(2 * num, 0, np.int64)
        launch: Any = kernel
        values = (*self._rows, self.num_nodes, *arguments, cursor, totals)
        times = LaunchTimes(memory.stream)
        with times.around(name, kernel):
            launch[blocks, block, memory.stream](*values)
        emit_count("kernel_launches", 1, kernel=name, grid=blocks, block=block)
        times.tell()
        found = np.zeros(2 * num, dtype=np.int64)
        memory.read(totals, found)
        self._progress.advance(1)
        return wide_totals(found[np.newaxis])

    def _blocks(self, num_warps: int, bytes_each: int) -> int:
        """Return how many blocks to launch: what there is to do for, and memory for.

        Raises:
            BudgetError: there is none for one block.
        """
        block = self._shape.block
        wanted = max(1, min(self._shape.max_blocks, -(-num_warps * _WARP // block)))
        if not bytes_each or self._free is None:
            return wanted
        left = int(_SPARE * self._free) - self._memory.nbytes
        self._require(self._memory.nbytes + bytes_each)
        return min(wanted, left // bytes_each)

    def _require(self, needed: int) -> None:
        """Refuse what does not fit the device."""
        if self._free is not None and needed > _SPARE * self._free:
            raise BudgetError(
                f"device='cuda': {self.num_edges:,} edges need {format_bytes(needed)} on "
                f"the device, {format_bytes(int(_SPARE * self._free))} are to be had; use "
                "device='cpu'"
            )


def _prefix_lengths(rows: DegreeOrderedGraph) -> Counts:
    """Return how many neighbors of each node have smaller numbers ``[N]``."""
    from graphsys.kernels.cpu.mining.cliques import prefix_lengths

    lengths = np.zeros(len(rows.indptr) - 1, dtype=np.int64)
    prefix_lengths(rows.indptr, rows.indices, lengths)
    return lengths
