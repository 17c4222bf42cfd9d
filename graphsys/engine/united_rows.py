"""Rows of all nodes made of the blocks that a store keeps: mapped in place, or copied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from graphsys.core.types import EdgeType, number_dtype
from graphsys.graph.csr import COLUMNS, Allocate, Csr, row_lengths, transpose
from graphsys.graph.file_columns import CAN_MAP, FileColumn, map_side_by_side
from graphsys.graph.rows import Rows
from graphsys.kernels.cpu.rows.csr import append_rows
from graphsys.storage.views import Index

Direction = Literal["in", "out"]
ENTRIES_AT_A_TIME = 1 << 18
"""Entries of a block that are put to their places at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexBlock:
    """Rows of one partition of one edge type.

    Attributes:
        edge_type: The edge type.
        side: ``out`` or ``in``: of which ends of the edges the rows are.
        part: The partition whose nodes the rows are.
        row_base: Number of the first row's node.
        column_base: Added to ``index.indices`` to get numbers of neighbors.
        index: The rows, views of the mapped file.
    """

    edge_type: EdgeType
    side: Direction
    part: int
    row_base: int
    column_base: int
    index: Index


def can_map(blocks: Sequence[IndexBlock], num_nodes: int) -> bool:
    """Return whether :func:`map_rows` can: each node's row is in one block, as it lies."""
    end = 0
    for block in blocks:
        is_in_place = block.row_base == end and block.column_base == 0
        if not is_in_place or not (len(block.index.indices) == 0 or block.index.file):
            return False
        end += len(block.index.indptr) - 1
    return CAN_MAP and end == num_nodes and len({_dtype(block) for block in blocks}) == 1


def map_rows(blocks: Sequence[IndexBlock]) -> Rows:
    """Return the rows of blocks that :func:`can_map`, with neighbors where they lie.

    Raises:
        OSError: a file cannot be mapped (any more).

    Complexity:
        O(N) time and twice 4 bytes a node; 8 from 2**32 entries on.
    """
    columns = [
        block.index.file or FileColumn(path=Path(), begin=0, length=0) for block in blocks
    ]
    indices, places = map_side_by_side(columns, np.dtype(_dtype(blocks[0])))
    num_nodes = sum(len(block.index.indptr) - 1 for block in blocks)
    dtype = np.uint32 if len(indices) < 2**32 else np.int64
    begins, ends = np.empty(num_nodes, dtype=dtype), np.empty(num_nodes, dtype=dtype)
    for block, place in zip(blocks, places.astype(dtype), strict=True):
        indptr = block.index.indptr
        own = slice(block.row_base, block.row_base + len(indptr) - 1)
        np.add(indptr[:-1], place, out=begins[own])
        np.add(indptr[1:], place, out=ends[own])
    for array in (begins, ends):
        array.flags.writeable = False  # as those of one file: kernels compile once
    return Rows(begins=begins, ends=ends, indices=indices, num_edges=num_entries(blocks))


def num_entries(blocks: Sequence[IndexBlock]) -> int:
    """Return how many entries blocks have."""
    return sum(len(block.index.indices) for block in blocks)


def _dtype(block: IndexBlock) -> str:
    return block.index.indices.dtype.str


def is_whole(blocks: Sequence[IndexBlock], num_nodes: int) -> bool:
    """Return whether one block is the rows of all nodes as it lies on disk."""
    return len(blocks) == 1 and len(blocks[0].index.indptr) == num_nodes + 1


def unite(blocks: Sequence[IndexBlock], num_nodes: int, allocate: Allocate) -> Csr:
    """Join blocks to rows of all nodes, sorted by neighbor.

    Args:
        blocks: The rows of a direction.
        num_nodes: Nodes of all types.
        allocate: Where arrays of all entries come from.

    Complexity:
        O(N + E) time; 16 bytes a node, and a few megabytes, besides the rows.
    """
    if is_whole(blocks, num_nodes):
        index = blocks[0].index
        columns = {name: getattr(index, name) for name in COLUMNS}
        return Csr(indptr=index.indptr, indices=index.indices, **columns)
    counts = np.zeros(num_nodes + 1, dtype=np.int64)
    for block in blocks:
        lengths = row_lengths(block.index.indptr)
        counts[block.row_base + 1 : block.row_base + 1 + len(lengths)] += lengths
    indptr = np.cumsum(counts, out=counts)
    num_edges = int(indptr[-1])
    indices = allocate(num_edges, number_dtype(num_nodes))
    columns = _empty_columns(blocks, num_edges, allocate)
    cursor = indptr[:-1].copy()
    for block in blocks:
        _append(block, cursor, indices, columns)
    if num_edges < 2**32:
        indptr = indptr.astype(np.uint32)
    csr = Csr(indptr=indptr, indices=indices, **columns)
    several = len({block.edge_type for block in blocks}) > 1
    if several:  # transposing twice is a stable counting sort of every row
        csr = transpose(transpose(csr, allocate=allocate), allocate=allocate)
    return csr


def _append(
    block: IndexBlock,
    cursor: npt.NDArray[np.int64],
    indices: npt.NDArray[Any],
    columns: Mapping[str, npt.NDArray[Any]],
) -> None:
    """Write a block's entries to their places, some rows at a time."""
    index = block.index
    wanted = np.arange(ENTRIES_AT_A_TIME, len(index.indices), ENTRIES_AT_A_TIME)
    cuts = np.searchsorted(index.indptr, wanted)
    bounds = np.unique(np.concatenate([[0], cuts, [len(index.indptr) - 1]]))
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        begin, end = int(index.indptr[low]), int(index.indptr[high])
        offsets = index.indptr[low : high + 1] - index.indptr[low]
        places = np.empty(end - begin, dtype=np.int64)
        append_rows(offsets, block.row_base + low, cursor, places)
        indices[places] = index.indices[begin:end] + indices.dtype.type(block.column_base)
        for name, column in columns.items():
            own = getattr(index, name)
            fill = 1 if name == "weight" else 0
            column[places] = fill if own is None else own[begin:end]


def _empty_columns(
    blocks: Sequence[IndexBlock], num_edges: int, allocate: Allocate
) -> dict[str, npt.NDArray[Any]]:
    columns = {}
    for name in COLUMNS:
        found = [getattr(block.index, name) for block in blocks]
        dtypes = [values.dtype for values in found if values is not None]
        if dtypes:
            columns[name] = allocate(num_edges, np.result_type(*dtypes))
    return columns
