"""Grids, and road-like graphs made of them: few neighbors, long ways, lengths as weights.

Node ``row * cols + col`` has its right and its lower neighbor. A road-like graph lacks a
share of these edges, has lengths of 80 to 120 (shorter on every 16th row and column: the
highways, which lack none), and node columns ``x`` and ``y``.
"""

import numpy as np

from graphsys.core.errors import ConfigError
from graphsys.datasets.generators.drawn import (
    CHUNK_ROWS,
    MAX_NODES,
    DrawnSource,
    Piece,
    check_integers,
    check_shares,
)
from graphsys.datasets.generators.draws import Draws, as_fractions, as_integers
from graphsys.storage.source import EdgeChunk, NodeChunk

_HIGHWAY = 16


def grid(
    rows: int = 256,
    cols: int = 256,
    *,
    seed: int = 0,
    chunk_rows: int = CHUNK_ROWS,
    num_threads: int | None = None,
) -> DrawnSource:
    """Make an undirected grid without weights.

    Args:
        rows: Rows of nodes.
        cols: Columns of nodes.
        seed: Not used; all generators have one.
        chunk_rows: Rows of tables made at once; does not change them.
        num_threads: Threads.

    Raises:
        ConfigError: a value is out of range.
    """
    return _lattice("grid", rows, cols, None, seed, chunk_rows, num_threads)


def road(
    rows: int = 256,
    cols: int = 256,
    *,
    removed: float = 0.15,
    seed: int = 0,
    chunk_rows: int = CHUNK_ROWS,
    num_threads: int | None = None,
) -> DrawnSource:
    """Make an undirected road-like graph with lengths as weights.

    Args:
        rows: Rows of crossings.
        cols: Columns of crossings.
        removed: Share of the small roads that are left out.
        seed: Another seed, another graph.
        chunk_rows: Rows of tables made at once; does not change them.
        num_threads: Threads.

    Raises:
        ConfigError: a value is out of range.
    """
    check_shares("road", ("removed", removed))
    return _lattice("road", rows, cols, float(removed), seed, chunk_rows, num_threads)


def _lattice(
    name: str,
    rows: int,
    cols: int,
    removed: float | None,
    seed: int,
    chunk_rows: int,
    num_threads: int | None,
) -> DrawnSource:
    check_integers(name, ("rows", rows, 1, MAX_NODES), ("cols", cols, 1, MAX_NODES))
    if not 2 <= rows * cols <= MAX_NODES:
        raise ConfigError(
            f"{name}: got {rows} x {cols}, expected 2 to {MAX_NODES} nodes in all"
        )
    draws = Draws(f"{name}:{seed}:road")
    num_across = rows * (cols - 1)

    def nodes(first: int, last: int) -> list[NodeChunk]:
        ids = np.arange(first, last, dtype=np.int64)
        columns = {} if removed is None else {"x": ids % cols, "y": ids // cols}
        return [NodeChunk(ids=ids, columns=columns)]

    def edges(first: int, last: int) -> list[EdgeChunk]:
        k = np.arange(first, last, dtype=np.int64)
        is_across = k < num_across
        src = np.where(is_across, k // max(cols - 1, 1) * cols, k - num_across)
        src += np.where(is_across, k % max(cols - 1, 1), 0)
        dst = src + np.where(is_across, 1, cols)
        if removed is None:
            return [EdgeChunk(src=src, dst=dst)]
        line = np.where(is_across, src // cols, src % cols)
        is_highway = line % _HIGHWAY == 0
        words = draws.words(last - first, first)
        length = 80 + as_integers(words, 41)
        length = np.where(is_highway, length // 4, length).astype(np.int32)
        low = np.uint64(0xFFFFFFFF)
        is_kept = is_highway | (as_fractions((words & low) << np.uint64(32)) >= removed)
        weight = length[is_kept]
        return [EdgeChunk(src=src[is_kept], dst=dst[is_kept], columns={"weight": weight})]

    return DrawnSource(
        f"{name}({rows} x {cols}, seed={seed})",
        [Piece(rows * cols, nodes), Piece(num_across + (rows - 1) * cols, edges)],
        is_directed=False,
        chunk_rows=chunk_rows,
        num_threads=num_threads,
    )
