"""Edges that are no rows of a table: lists of neighbors, blocks of sparse matrices."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from graphsys.core.errors import InputError
from graphsys.core.threads import map_in_order
from graphsys.datasets.array_files import load_arrays
from graphsys.datasets.files import InputFile, text_file
from graphsys.datasets.readers.npz import sparse_entries
from graphsys.datasets.table_spec.spec import EdgeCard
from graphsys.datasets.text.blocks import TextBlock, text_blocks
from graphsys.datasets.text.layout import is_integer, show
from graphsys.datasets.text.lines import line_at
from graphsys.datasets.text.prefetch import prefetch
from graphsys.kernels.cpu.text import adjacency as kernels
from graphsys.kernels.cpu.text.parsing import count_lines
from graphsys.storage.source import EdgeChunk, NodeChunk

CHUNK_ROWS: Final = 1 << 20
_MAX_LISTED: Final = 10**17


def list_chunks(
    file: InputFile,
    card: EdgeCard,
    num_threads: int | None,
    *,
    has_names: bool = False,
    has_lone: bool = False,
) -> Iterator[EdgeChunk | NodeChunk]:
    """Yield the edges of lines ``src dst dst ...``; a line of one id has none.

    Args:
        file: The file.
        card: What is said about it.
        num_threads: Threads that parse.
        has_names: Ids are names, or keep their zeros in front.
        has_lone: Yield the ids of lines of one id, too, as often as they occur.

    Raises:
        InputError: a field is no id, or there is no edge.
    """
    file = text_file(file)
    loaders: Any = text_blocks(file, skip=card.skip)
    if not file.is_plain:
        loaders = prefetch(loaders)
    lines_before, is_empty = card.skip, True
    work = partial(_parse_names if has_names else _parse_lists, card)
    for chunk, lone, lines, error in map_in_order(work, loaders, num_threads=num_threads):
        lines_before += lines
        if error is not None:
            raise InputError(f"{file.name}:{lines_before + 1}: {error}")
        is_empty &= not len(chunk.src)
        yield chunk
        if has_lone and len(lone):
            yield NodeChunk(ids=lone, node_type=card.edge_type.src_type, is_partial=True)
    if is_empty:
        raise InputError(f"{file.name}: no edge in the file, expected at least one")


def _parse_lists(
    card: EdgeCard, load: Callable[[], TextBlock]
) -> tuple[EdgeChunk, Any, int, str | None]:
    """Return a block's edges, lone ids and lines, and what is wrong with the next one."""
    block = load()
    lines = int(count_lines(block.data))
    fields = len(block.data) // 2 + 1  # a bound: pages that nothing fills cost nothing
    leading = np.full((lines, 1), -1, dtype=np.int64)  # -1 is a blank line
    stops, ends = np.empty(lines, np.int64), np.empty(fields, np.int64)
    num_rows, _, _, bad = kernels.parse_neighbors(
        block.data,
        0,
        _MAX_LISTED,
        1,
        False,
        leading,
        stops,
        ends,
        np.empty(0),
        np.empty((0, 3), dtype=np.int64),
    )
    error = None
    if bad >= 0:
        line = line_at(block.data, bad)
        wrong = [it for it in line.split() if not (it.isdigit() and is_integer(it))]
        found = show(wrong[0]) if wrong else show(line)
        error = (
            f"found {found}, expected integer ids below 10**17; pass --ids string if ids "
            "are names"
        )
        lines = block.data[:bad].tobytes().count(b"\n")
    stops = stops[:num_rows]
    entries = int(stops[-1]) if num_rows else 0  # without those of a bad line
    first, sizes = leading[:num_rows, 0], np.diff(stops, prepend=0)
    chunk = EdgeChunk(
        src=np.repeat(first, sizes),
        dst=ends[:entries],
        edge_type=card.edge_type,
        split=card.split,
        bytes_read=block.bytes_read,
    )
    return chunk, first[(sizes == 0) & (first >= 0)], int(lines), error


def _parse_names(
    card: EdgeCard, load: Callable[[], TextBlock]
) -> tuple[EdgeChunk, Any, int, str | None]:
    """Do the same for names."""
    block = load()
    src: list[bytes] = []
    dst: list[bytes] = []
    lone: list[bytes] = []
    error = None
    lines = block.data.tobytes().split(b"\n")[:-1]
    for number, line in enumerate(lines):
        fields = line.split()
        try:
            line.decode()
        except UnicodeDecodeError:
            error = (
                f"found bytes that are not UTF-8, {show(line)}; convert the file, for "
                "example with iconv -f latin1 -t utf-8 FILE > NEW"
            )
            lines = lines[:number]
            break
        src += fields[:1] * (len(fields) - 1)
        dst += fields[1:]
        lone += fields[:1] if len(fields) == 1 else []
    chunk = EdgeChunk(
        src=_words(src),
        dst=_words(dst),
        edge_type=card.edge_type,
        split=card.split,
        bytes_read=block.bytes_read,
    )
    return chunk, _words(lone), len(lines), error


def _words(fields: list[bytes]) -> pa.DictionaryArray:
    return pa.array(fields, pa.binary()).cast(pa.string()).dictionary_encode()


def matrix_chunks(
    file: InputFile, card: EdgeCard, num_threads: int | None
) -> Iterator[EdgeChunk]:
    """Yield the entries of a sparse matrix, or of a block of it.

    Raises:
        InputError: the file holds no sparse matrix, or the block is outside.
    """
    del num_threads  # decompression takes the time
    arrays = load_arrays(file)
    if "format" not in arrays:
        raise InputError(f"{file.name}: no sparse matrix of SciPy, expected one")
    matrix = sparse_entries(file.name, arrays)
    row, col, values = matrix.row, matrix.col, matrix.values
    mask = np.ones(len(row), dtype=bool)
    starts = []
    for name, ends, bounds, size in (
        ("rows", row, card.rows, matrix.shape[0]),
        ("cols", col, card.cols, matrix.shape[1]),
    ):
        first, last = bounds or (0, size)
        if last > size:
            raise InputError(f"{file.name}: {name} to {last} of a matrix with {size}")
        mask &= (ends >= first) & (ends < last)
        starts.append(first)
    row, col = row[mask], col[mask]
    has_weights = values is not None and card.weights
    for begin in range(0, len(row), CHUNK_ROWS):
        part = slice(begin, begin + CHUNK_ROWS)
        columns = (
            {"weight": values[mask][part]} if has_weights and values is not None else {}
        )
        yield EdgeChunk(
            src=row[part].astype(np.int64) - starts[0],
            dst=col[part].astype(np.int64) - starts[1],
            edge_type=card.edge_type,
            split=card.split,
            columns=columns,
            bytes_read=file.num_bytes if begin == 0 else 0,
        )
