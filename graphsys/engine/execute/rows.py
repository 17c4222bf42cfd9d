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
from graphsys.graph.csr import Csr, cut_rows

NUM_CHUNKS = 256


@dataclass(frozen=True)
class RowBlock:
    """Some rows in one direction.

    Attributes:
        key: Tells blocks apart; says nothing else.
        direction: Whose rows they are: of the edges' ``src`` (``out``) or ``dst`` (``in``).
            An undirected graph has ``out`` alone. None for blocks without edges.
        row_base: Number of the first row's node.
        num_rows: How many rows.
        column_base: Added to ``indices`` to get numbers of nodes.
        begins: Where each row begins in ``indices``, uint32 or int64 ``[n]``, ascending.
        ends: Where it ends ``[n]``.
        indices: Neighbors, row after row; between two files may lie what means nothing.
        columns: ``weight``, ``relation`` and ``time`` in row order where they exist.
        column_begins: Where each row begins in a column, if elsewhere than in ``indices``.
    """

    key: tuple[Any, ...]
    direction: Direction | None
    row_base: int
    num_rows: int
    column_base: int
    begins: npt.NDArray[Any]
    ends: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    columns: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    column_begins: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    @property
    def span(self) -> tuple[int, int]:
        """Where the entries begin and end in ``indices``."""
        return (int(self.begins[0]), int(self.ends[-1])) if len(self.ends) else (0, 0)

    def begins_of(self, column: str) -> npt.NDArray[Any]:
        """Return where each row begins in a column ``[n]``."""
        return self.column_begins.get(column, self.begins)

    @cached_property
    def bounds(self) -> npt.NDArray[np.int64]:
        """Chunks of rows of equal work; no two share a word of a bitmap over all nodes."""
        bounds = cut_rows(self.begins, self.span[1], NUM_CHUNKS)
        if self.row_base % 64 == 0:
            return bounds
        shifted = np.maximum(bounds - self.row_base % 64, 0)
        shifted[-1] = self.num_rows
        aligned: npt.NDArray[np.int64] = np.unique(shifted)
        return aligned


class RowProvider(Protocol):
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


class MemoryBlocks:
    """All rows of a direction as one block in memory.

    Args:
        topology: The graph.
        columns: Read the rows where they lie (``Topology.rows``), with these columns; None:
            one behind the other, with all that they have, as states of edges need them.
    """

    def __init__(self, topology: Topology, columns: Sequence[str] | None = None) -> None:
        self._topology, self._columns = topology, columns
        self._kind = "united" if columns is None else ",".join(columns)
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
        key = f"{direction} {self._kind}"
        if key not in self._blocks:
            if self._columns is None:
                rows = self._topology.csr(direction)
            else:
                rows = self._topology.rows(direction, self._columns)
            self._blocks[key] = block_of(rows, direction)
        return self._blocks[key]

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
        nowhere, nobody = np.zeros(n, dtype=np.uint32), np.empty(0, dtype=np.uint32)
        blocks["nodes"] = RowBlock(("nodes",), None, 0, n, 0, nowhere, nowhere, nobody)
    block: RowBlock = blocks["nodes"]
    return block


def part_of_nodes(block: RowBlock, first: int, most: int) -> RowBlock:
    """Return nodes of :func:`all_nodes` from a number on, which 64 divides."""
    num = min(most, block.num_rows - first)
    begins, ends = block.begins[first : first + num], block.ends[first : first + num]
    return replace(
        block, key=("some",), row_base=first, num_rows=num, begins=begins, ends=ends
    )


def block_of(rows: Csr, direction: Direction) -> RowBlock:
    """Return rows of all nodes as a block."""
    return RowBlock(
        key=(direction,),
        direction=direction,
        row_base=0,
        num_rows=rows.num_nodes,
        column_base=0,
        begins=rows.begins,
        ends=rows.ends,
        indices=rows.indices,
        columns=rows.columns,
        column_begins=rows.column_begins,
    )
