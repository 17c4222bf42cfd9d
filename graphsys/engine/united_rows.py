"""Rows of all nodes made of the blocks that a store keeps: mapped in place, or copied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from graphsys.core.types import EdgeType, number_dtype
from graphsys.graph.csr import (
    COLUMNS,
    Allocate,
    Csr,
    offset_dtype,
    row_lengths,
    transpose,
)
from graphsys.graph.file_columns import CAN_MAP, FileColumn, map_side_by_side
from graphsys.kernels.cpu.rows.csr import append_rows

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
    index: Csr


def why_copied(
    blocks: Sequence[IndexBlock], num_nodes: int, columns: Sequence[str] = ()
) -> str:
    """Return why :func:`map_rows` cannot map blocks, for people; empty where it can.

    Args:
        blocks: The rows of a direction.
        num_nodes: Nodes of all types.
        columns: Columns of the entries that are wanted besides.
    """
    if not CAN_MAP:
        return "files are mapped side by side on Linux only"
    kinds = {(block.edge_type, block.side) for block in blocks}
    if len(kinds) > 1:
        return f"each node's row is merged from {len(kinds)} sets of rows of edge types"
    ends = np.cumsum([0, *(len(block.index.indptr) - 1 for block in blocks)])
    is_in_place = [block.row_base for block in blocks] == ends[:-1].tolist()
    if not is_in_place or any(b.column_base for b in blocks) or ends[-1] != num_nodes:
        return "nodes of several types are numbered anew"
    filled = [block.index for block in blocks if len(block.index.indices)]
    for name in ("indices", *columns):
        if any(name not in index.files for index in filled):
            return "edges were appended (`graphsys compact` merges their files)"
        if len({getattr(index, name).dtype for index in filled}) > 1:
            return f"{name} have different types of numbers in different files"
    return ""


def map_rows(blocks: Sequence[IndexBlock]) -> Csr:
    """Return the rows of blocks with neighbors where they lie.

    Args:
        blocks: The rows of a direction, of which :func:`why_copied` says nothing.

    Raises:
        OSError: a file cannot be mapped (any more).

    Complexity:
        O(N) time and twice 4 bytes a node; 8 from 2**32 entries on.
    """
    indices, places = _side_by_side(blocks, "indices")
    return Csr.with_gaps(
        begins=_offsets(blocks, places, slice(None, -1)),
        ends=_offsets(blocks, places, slice(1, None)),
        indices=indices,
        num_edges=num_entries(blocks),
    )


def with_columns(rows: Csr, blocks: Sequence[IndexBlock], names: Sequence[str]) -> Csr:
    """Return mapped rows with columns of their entries, where these lie.

    A column begins elsewhere in its page than the neighbors do, so that its gaps between
    two files are others: where each row begins is told for each column.

    Args:
        rows: What :func:`map_rows` made of the blocks.
        blocks: The blocks.
        names: Columns that the blocks have.

    Raises:
        OSError: a file cannot be mapped (any more).

    Complexity:
        O(N) time and 4 bytes a node for each column; 8 from 2**32 entries on.
    """
    columns, begins = dict(rows.columns), dict(rows.column_begins)
    for name in names:
        columns[name], places = _side_by_side(blocks, name)
        begins[name] = _offsets(blocks, places, slice(None, -1))
    return Csr.with_gaps(
        begins=rows.begins,
        ends=rows.ends,
        indices=rows.indices,
        num_edges=rows.num_edges,
        columns=columns,
        column_begins=begins,
    )


def _side_by_side(
    blocks: Sequence[IndexBlock], name: str
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Map an array of entries; return it and where each block's part begins in it."""
    nowhere = FileColumn(path=Path(), begin=0, length=0)
    files = [
        block.index.files[name] if len(block.index.indices) else nowhere for block in blocks
    ]
    arrays = (getattr(block.index, name) for block in blocks if len(block.index.indices))
    dtype = next((array.dtype for array in arrays), blocks[0].index.indices.dtype)
    values, places = map_side_by_side(files, dtype)
    return values, places.astype(offset_dtype(len(values)))


def _offsets(
    blocks: Sequence[IndexBlock], places: npt.NDArray[Any], which: slice
) -> npt.NDArray[Any]:
    """Return where rows begin or end in mapped entries ``[N]``: ``which`` offsets."""
    num_nodes = sum(len(block.index.indptr) - 1 for block in blocks)
    found = np.empty(num_nodes, dtype=places.dtype)
    for block, place in zip(blocks, places, strict=True):
        own = slice(block.row_base, block.row_base + len(block.index.indptr) - 1)
        np.add(block.index.indptr[which], place, out=found[own], casting="unsafe")
    found.flags.writeable = False  # as those of one file: kernels compile once
    return found


def num_entries(blocks: Sequence[IndexBlock]) -> int:
    """Return how many entries blocks have."""
    return sum(len(block.index.indices) for block in blocks)


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
        return blocks[0].index
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
