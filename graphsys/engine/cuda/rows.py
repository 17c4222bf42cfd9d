"""Rows on the device: resident, or streamed block by block through two buffers.

Resident rows of the last graph stay on the device until the graph goes or another comes:
copying them takes longer than most runs.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from graphsys.core.cuda.device import Array, DeviceArray, DeviceMemory, is_simulated
from graphsys.core.errors import BudgetError
from graphsys.core.events import count as emit_count
from graphsys.core.memory import format_bytes
from graphsys.engine.topology import Topology
from graphsys.engine.united_rows import Direction
from graphsys.graph.csr import Csr, row_lengths


@dataclass(frozen=True, slots=True)
class DeviceBlock:
    """Some rows of one direction on the device.

    Attributes:
        key: Tells blocks apart; says nothing else.
        direction: Whose rows they are; an undirected graph has ``out`` alone.
        row_base: Number of the first row's node.
        num_rows: How many rows.
        num_edges: How many entries.
        indptr: Offsets of the rows, from 0.
        indices: Neighbors.
        columns: Of ``weight``, ``relation`` and ``time`` those that kernels read.
        first_edge: Entries of the direction before this block.
    """

    key: tuple[Any, ...]
    direction: Direction
    row_base: int
    num_rows: int
    num_edges: int
    indptr: DeviceArray
    indices: DeviceArray
    columns: dict[str, DeviceArray] = field(default_factory=dict)
    first_edge: int = 0


@dataclass(frozen=True, slots=True)
class _RowsOnDevice:
    """The rows of a direction that stay on the device from one run to the next."""

    csr: Csr
    block: DeviceBlock

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return _bytes_of(self.csr, self.block.columns)


_KEPT: WeakKeyDictionary[Topology, dict[Direction, _RowsOnDevice]] = WeakKeyDictionary()
"""Of one graph at most."""


def kept_of(topology: Topology) -> dict[Direction, _RowsOnDevice]:
    """Return the rows of a graph that lie on the device; those of others are given up."""
    for other in [it for it in _KEPT if it is not topology]:
        del _KEPT[other]
    return _KEPT.setdefault(topology, {})


class DeviceBlocks:
    """The rows of a graph for kernels, within a budget.

    Args:
        topology: The graph; its rows lie in the host's memory.
        memory: The device.
        budget: Bytes for rows; None: as many as it takes.
        columns: The columns of edges that kernels read.
    """

    def __init__(
        self,
        topology: Topology,
        memory: DeviceMemory,
        budget: int | None,
        columns: frozenset[str],
    ) -> None:
        self.topology = topology
        self.memory = memory
        self.budget = budget
        self.columns = columns
        self._kept = kept_of(topology)
        self._streams: dict[Direction, _Streamed] = {}
        self._is_streamed: dict[Direction, bool] = {}

    def is_streamed(self, direction: Direction) -> bool:
        """Return whether the rows of a direction do not stay on the device."""
        direction = self._same(direction)
        if direction not in self._is_streamed:
            size = _bytes_of(self.topology.csr(direction), self.columns)
            left = None if self.budget is None else self.budget - self._resident_bytes()
            self._is_streamed[direction] = left is not None and size > left
            kept = self._kept.get(direction)
            if kept is not None and left is not None and kept.nbytes > left:
                del self._kept[direction]  # with more columns than are asked for
        return self._is_streamed[direction]

    def blocks(self, direction: Direction) -> Iterator[DeviceBlock]:
        """Yield the blocks of a direction; one that is streamed lives until the next."""
        direction = self._same(direction)
        if not self.is_streamed(direction):
            yield self.block(direction)
            return
        if direction not in self._streams:
            assert self.budget is not None  # without one nothing is streamed
            csr = self.topology.csr(direction)
            budget = self.budget - self._resident_bytes()
            other: Direction = "in" if direction == "out" else "out"
            # The other direction may be asked for later, when the buffers are there
            # already.
            if self.topology.is_directed and self._is_streamed.get(other, True):
                budget //= 2  # for the other direction
            self._streams[direction] = _Streamed(
                csr, direction, self.memory, budget, self.columns
            )
        yield from self._streams[direction].blocks()

    def block(self, direction: Direction) -> DeviceBlock:
        """Return the one block of a direction that stays on the device."""
        direction = self._same(direction)
        csr = self.topology.csr(direction)
        kept = self._kept.get(direction)
        if kept is None or kept.csr is not csr:
            block = DeviceBlock(
                (direction,),
                direction,
                0,
                csr.num_nodes,
                csr.num_edges,
                self.memory.upload(csr.indptr),
                self.memory.upload(csr.indices),
            )
            kept = self._kept[direction] = _RowsOnDevice(csr, block)
        columns = kept.block.columns
        for name in self.columns & csr.columns.keys() - columns.keys():
            columns[name] = self.memory.upload(csr.columns[name])
        return kept.block

    def _same(self, direction: Direction) -> Direction:
        return direction if self.topology.is_directed else "out"

    def _resident_bytes(self) -> int:
        resident = [d for d, streamed in self._is_streamed.items() if not streamed]
        rows = (self.topology.csr(direction) for direction in resident)
        return sum(_bytes_of(csr, self.columns) for csr in rows)


def _bytes_of(csr: Csr, columns: Iterable[str]) -> int:
    """Return the bytes of rows and of those of their columns that are named."""
    arrays = [csr.indptr, csr.indices, *_columns_of(csr, columns).values()]
    return sum(int(array.nbytes) for array in arrays)


def _columns_of(csr: Csr, columns: Iterable[str]) -> dict[str, Array]:
    return {name: csr.columns[name] for name in columns if name in csr.columns}


class _Streamed:
    """Rows copied through two pinned buffers, one filled while the other is used."""

    def __init__(
        self,
        csr: Csr,
        direction: Direction,
        memory: DeviceMemory,
        budget: int,
        columns: Iterable[str],
    ) -> None:
        self.csr = csr
        self.columns = _columns_of(csr, columns)
        self.direction = direction
        self.memory = memory
        self.bounds = _row_bounds(csr, self.columns, budget // 2, direction)
        ends = csr.indptr[self.bounds].astype(np.int64)
        self._max_rows = int(np.diff(self.bounds).max(initial=1)) + 1
        self._max_edges = int(np.diff(ends).max(initial=1))
        self._slots: list[_Slot] = []

    def blocks(self) -> Iterator[DeviceBlock]:
        """Yield block after block; the next is copied while one is used."""
        if not self._slots:
            lengths = {
                "indptr": (self._max_rows, self.csr.indptr.dtype),
                "indices": (self._max_edges, self.csr.indices.dtype),
                **{n: (self._max_edges, c.dtype) for n, c in self.columns.items()},
            }
            self._slots = [_Slot(lengths) for _ in range(2)]
            self.memory.nbytes += sum(slot.nbytes for slot in self._slots)
        last = len(self.bounds) - 2
        waiting = self._load(0)
        for number in range(last + 1):
            block = waiting
            if number < last:
                waiting = self._load(number + 1)
            slot = self._slots[number % 2]
            # The device waits, not the host: kernels are enqueued while the copy is under
            # way.
            slot.loaded.wait(self.memory.stream)
            yield block
            slot.used.record(self.memory.stream)

    def _load(self, number: int) -> DeviceBlock:
        low, high = int(self.bounds[number]), int(self.bounds[number + 1])
        first, last = int(self.csr.indptr[low]), int(self.csr.indptr[high])
        slot = self._slots[number % 2]
        slot.used.synchronize()  # the kernels that read this buffer are done
        indptr = self.csr.indptr[low : high + 1] - self.csr.indptr[low]
        slot.copy("indptr", indptr)
        slot.copy("indices", self.csr.indices[first:last])
        for name, column in self.columns.items():
            slot.copy(name, column[first:last])
        slot.loaded.record(slot.stream)
        columns = {name: slot.device[name] for name in self.columns}
        return DeviceBlock(
            (self.direction, number),
            self.direction,
            low,
            high - low,
            last - first,
            slot.device["indptr"],
            slot.device["indices"],
            columns,
            first,
        )


class _Slot:
    """One pinned buffer and its copy on the device.

    Args:
        lengths: Number and type of the values by name.
    """

    def __init__(self, lengths: Mapping[str, tuple[int, np.dtype[Any]]]) -> None:
        from numba import cuda

        self.stream = cuda.stream()
        self.loaded = cuda.event(timing=False) if not is_simulated() else cuda.event()
        self.used = cuda.event(timing=False) if not is_simulated() else cuda.event()
        self.pinned: dict[str, Array] = {}
        self.device: dict[str, DeviceArray] = {}
        for name, (length, dtype) in lengths.items():
            self.pinned[name] = cuda.pinned_array(max(length, 1), dtype=dtype)
            self.device[name] = cuda.device_array(max(length, 1), dtype=dtype)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(int(array.nbytes) for array in self.pinned.values())

    def copy(self, name: str, values: Array) -> None:
        """Copy values to the device without waiting."""
        if not len(values):
            return
        # Only from pinned memory does the device copy while the host goes on.
        pinned = self.pinned[name][: len(values)]
        np.copyto(pinned, values)
        emit_count("bytes_copied", values.nbytes, direction="to_device")
        self.device[name][: len(values)].copy_to_device(pinned, stream=self.stream)


def _row_bounds(
    csr: Csr, columns: Mapping[str, Array], budget: int, direction: Direction
) -> Array:
    """Cut rows into blocks, each within the budget.

    Raises:
        BudgetError: one row alone is larger.
    """
    per_edge = csr.indices.dtype.itemsize
    per_edge += sum(column.dtype.itemsize for column in columns.values())
    sizes = row_lengths(csr.indptr) * per_edge + csr.indptr.dtype.itemsize
    budget -= csr.indptr.dtype.itemsize
    largest = int(sizes.max(initial=0))
    if largest > budget:
        raise BudgetError(
            f"the device budget leaves {format_bytes(max(budget, 0))} for a block of rows, "
            f"but one {direction} row alone needs {format_bytes(largest)}: raise "
            "device_memory"
        )
    ends = np.cumsum(sizes)
    bounds = [0]
    while bounds[-1] < csr.num_nodes:
        begin = bounds[-1]
        before = int(ends[begin - 1]) if begin else 0
        bounds.append(int(np.searchsorted(ends, before + budget, side="right")))
    return np.asarray(bounds, dtype=np.int64)
