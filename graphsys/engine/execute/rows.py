"""Blocks of rows that kernels run over: the whole graph in memory, or parts from disk."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from graphsys.engine.execute.frontier import Frontier
from graphsys.engine.topology import Topology
from graphsys.engine.united_rows import Direction
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.rows.chunks import balanced_chunks

NUM_CHUNKS = 256


@dataclass(frozen=True)
class RowBlock:
    """Some rows in one direction.

    Attributes:
        key: Tells blocks apart; the direction comes first.
        row_base: Number of the first row's node.
        num_rows: How many rows.
        column_base: Added to ``indices`` to get numbers of nodes.
        indptr: Row offsets, uint32 or int64 ``[n + 1]``.
        indices: Neighbors, row after row ``[e]``.
        columns: ``weight``, ``relation`` and ``time`` in row order where they exist.
    """

    key: tuple[Any, ...]
    row_base: int
    num_rows: int
    column_base: int
    indptr: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    columns: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    @cached_property
    def bounds(self) -> npt.NDArray[np.int64]:
        """Chunks of rows of equal work; no two share a word of a bitmap over all nodes."""
        bounds = balanced_chunks(self.indptr, NUM_CHUNKS)
        if self.row_base % 64 == 0:
            return bounds
        shifted = np.maximum(bounds - self.row_base % 64, 0)
        shifted[-1] = self.num_rows
        aligned: npt.NDArray[np.int64] = np.unique(shifted)
        return aligned


class Rows(Protocol):
    """Where the executor gets rows from."""

    def blocks(
        self, direction: Direction, senders: Frontier | None = None
    ) -> Iterator[RowBlock]:
        """Yield the blocks of a direction; arrays may be let go after the next one.

        Args:
            direction: Whose rows.
            senders: Blocks in which none of these stands may be left out.
        """

    def holding(
        self, direction: Direction, nodes: npt.NDArray[Any]
    ) -> Iterator[tuple[RowBlock, npt.NDArray[Any]]]:
        """Yield the blocks that hold rows of some nodes, with those nodes."""

    def groups(
        self, directions: Sequence[Direction]
    ) -> Iterator[tuple[RowBlock, RowBlock | None]]:
        """Yield blocks so that all of a node's entries lie in one block or pair."""

    def num_blocks(self, direction: Direction) -> int:
        """Return how many blocks a direction has."""

    def are_whole(self, direction: Direction) -> bool:
        """Return whether every node has its row in exactly one block."""

    def close(self) -> None:
        """Let go of what reads ahead."""


class MemoryRows:
    """All rows of a direction as one block in memory."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._blocks: dict[str, RowBlock] = topology.row_blocks  # cut once for all runs

    def blocks(
        self, direction: Direction, senders: Frontier | None = None
    ) -> Iterator[RowBlock]:
        """Yield the one block."""
        yield self.block(direction)

    def block(self, direction: Direction) -> RowBlock:
        """Return the one block; both directions share it where edges have none."""
        if not self._topology.is_directed:
            direction = "out"
        if direction not in self._blocks:
            csr = self._topology.csr(direction)
            self._blocks[direction] = block_of(csr, direction)
        return self._blocks[direction]

    def holding(
        self, direction: Direction, nodes: npt.NDArray[Any]
    ) -> Iterator[tuple[RowBlock, npt.NDArray[Any]]]:
        """Yield the one block with all nodes."""
        yield self.block(direction), nodes

    def groups(
        self, directions: Sequence[Direction]
    ) -> Iterator[tuple[RowBlock, RowBlock | None]]:
        """Yield the block of the one direction or of both."""
        first, *others = [self.block(direction) for direction in directions]
        yield first, others[0] if others else None

    def num_blocks(self, direction: Direction) -> int:
        """Return 1."""
        return 1

    def are_whole(self, direction: Direction) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Do nothing."""


def all_nodes(topology: Topology) -> RowBlock:
    """Return empty rows of all nodes: for kernels that look at no edges."""
    blocks = topology.row_blocks
    if "nodes" not in blocks:
        n = topology.num_nodes
        nowhere = np.zeros(n + 1, dtype=np.uint32)
        blocks["nodes"] = RowBlock(("nodes",), 0, n, 0, nowhere, np.empty(0, np.uint32))
    block: RowBlock = blocks["nodes"]
    return block


def part_of_nodes(block: RowBlock, first: int, most: int) -> RowBlock:
    """Return nodes of :func:`all_nodes` from a number on, which 64 divides."""
    num = min(most, block.num_rows - first)
    indptr = block.indptr[first : first + num + 1]
    return replace(block, key=("some",), row_base=first, num_rows=num, indptr=indptr)


def block_of(csr: Csr, direction: Direction) -> RowBlock:
    """Return rows of all nodes as a block."""
    return RowBlock(
        key=(direction,),
        row_base=0,
        num_rows=csr.num_nodes,
        column_base=0,
        indptr=read_only(csr.indptr),
        indices=read_only(csr.indices),
        columns={name: read_only(column) for name, column in csr.columns().items()},
    )


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view that kernels see as mapped files: one machine code serves both."""
    view = array.view()
    view.flags.writeable = False
    return view
