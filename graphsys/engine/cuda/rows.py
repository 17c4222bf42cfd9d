"""Rows on the device: resident, or streamed block by block through two buffers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

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
        columns: ``weight``, ``relation`` and ``time`` where they exist.
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


class DeviceBlocks:
    """The rows of a graph for kernels, within a budget.

    Args:
        topology: The graph; its rows lie in the host's memory.
        memory: The device.
        budget: Bytes for rows; None: as many as it takes.
    """

    def __init__(
        self, topology: Topology, memory: DeviceMemory, budget: int | None
    ) -> None:
        self.topology = topology
        self.memory = memory
        self.budget = budget
        self._resident: dict[Direction, DeviceBlock] = {}
        self._streams: dict[Direction, _Streamed] = {}
        self._is_streamed: dict[Direction, bool] = {}

    def is_streamed(self, direction: Direction) -> bool:
        """Return whether the rows of a direction do not stay on the device."""
        direction = self._same(direction)
        if direction not in self._is_streamed:
            size = _bytes_of(self.topology.csr(direction))
            fits = self.budget is None or size <= self.budget - self._resident_bytes()
            self._is_streamed[direction] = not fits
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
            if self.topology.is_directed and self._is_streamed.get(other, True):
                budget //= 2  # for the other direction
            self._streams[direction] = _Streamed(csr, direction, self.memory, budget)
        yield from self._streams[direction].blocks()

    def block(self, direction: Direction) -> DeviceBlock:
        """Return the one block of a direction that stays on the device."""
        direction = self._same(direction)
        if direction not in self._resident:
            csr = self.topology.csr(direction)
            columns = {n: self.memory.upload(c) for n, c in csr.columns.items()}
            self._resident[direction] = DeviceBlock(
                (direction,),
                direction,
                0,
                csr.num_nodes,
                csr.num_edges,
                self.memory.upload(csr.indptr),
                self.memory.upload(csr.indices),
                columns,
            )
        return self._resident[direction]

    def _same(self, direction: Direction) -> Direction:
        return direction if self.topology.is_directed else "out"

    def _resident_bytes(self) -> int:
        resident = [d for d, streamed in self._is_streamed.items() if not streamed]
        return sum(_bytes_of(self.topology.csr(direction)) for direction in resident)


def _bytes_of(csr: Csr) -> int:
    arrays = [csr.indptr, csr.indices, *csr.columns.values()]
    return sum(int(array.nbytes) for array in arrays)


class _Streamed:
    """Rows copied through two pinned buffers, one filled while the other is used."""

    def __init__(
        self, csr: Csr, direction: Direction, memory: DeviceMemory, budget: int
    ) -> None:
        self.csr = csr
        self.direction = direction
        self.memory = memory
        self.bounds = _row_bounds(csr, budget // 2, direction)
        ends = csr.indptr[self.bounds].astype(np.int64)
        self._max_rows = int(np.diff(self.bounds).max(initial=1)) + 1
        self._max_edges = int(np.diff(ends).max(initial=1))
        self._slots: list[_Slot] = []

    def blocks(self) -> Iterator[DeviceBlock]:
        """Yield block after block; the next is copied while one is used."""
        if not self._slots:
            made = (_Slot(self.csr, self._max_rows, self._max_edges) for _ in range(2))
            self._slots = list(made)
            self.memory.nbytes += sum(slot.nbytes for slot in self._slots)
        last = len(self.bounds) - 2
        waiting = self._load(0)
        for number in range(last + 1):
            block = waiting
            if number < last:
                waiting = self._load(number + 1)
            slot = self._slots[number % 2]
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
        for name, column in self.csr.columns.items():
            slot.copy(name, column[first:last])
        slot.loaded.record(slot.stream)
        columns = {name: slot.device[name] for name in self.csr.columns}
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
    """One pinned buffer and its copy on the device."""

    def __init__(self, csr: Csr, max_rows: int, max_edges: int) -> None:
        from numba import cuda

        self.stream = cuda.stream()
        self.loaded = cuda.event(timing=False) if not is_simulated() else cuda.event()
        self.used = cuda.event(timing=False) if not is_simulated() else cuda.event()
        lengths = {"indptr": (max_rows, csr.indptr), "indices": (max_edges, csr.indices)}
        lengths.update({n: (max_edges, c) for n, c in csr.columns.items()})
        self.pinned: dict[str, Array] = {}
        self.device: dict[str, DeviceArray] = {}
        for name, (length, like) in lengths.items():
            self.pinned[name] = cuda.pinned_array(max(length, 1), dtype=like.dtype)
            self.device[name] = cuda.device_array(max(length, 1), dtype=like.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(int(array.nbytes) for array in self.pinned.values())

    def copy(self, name: str, values: Array) -> None:
        """Copy values to the device without waiting."""
        if not len(values):
            return
        pinned = self.pinned[name][: len(values)]
        np.copyto(pinned, values)
        emit_count("bytes_copied", values.nbytes, direction="to_device")
        self.device[name][: len(values)].copy_to_device(pinned, stream=self.stream)


def _row_bounds(csr: Csr, budget: int, direction: Direction) -> Array:
    """Cut rows into blocks, each within the budget.

    Raises:
        BudgetError: one row alone is larger.
    """
    columns = sum(column.dtype.itemsize for column in csr.columns.values())
    per_edge = csr.indices.dtype.itemsize + columns
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
