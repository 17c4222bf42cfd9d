"""Chunks one after the other, with what the next ones need on its way from memory.

Rows lie anywhere in tables of hundreds of megabytes, and so do the edges of a chunk. While
a chunk is computed, the rows of the next one come into the second-level cache, and the
edges of the one after that. Results do not depend on it.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.bags import Extras
from graphsys.kernels.cpu.embedding.chunk import (
    ASKS_BOTH,
    ASKS_DST,
    ASKS_SRC,
    Chunk,
    Edges,
    draw_negatives,
    load_all_nodes,
    load_positives,
)
from graphsys.kernels.cpu.embedding.negatives import Candidates
from graphsys.kernels.cpu.embedding.rows import Tables
from graphsys.kernels.cpu.embedding.storage import Table
from graphsys.kernels.cpu.embedding.vector_math import (
    fused_jit,
    lean_fused_jit,
    uncounted_jit,
)
from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.prefetch import prefetch, prefetch_row_far

Ints = npt.NDArray[np.int64]
_MOST_BYTES: Final = 1 << 18  # of one side; more would push out what is computed with


class Sizes(NamedTuple):
    """How large a chunk is.

    Attributes:
        n: Positives.
        src, dst: Candidates on either side, the positives among them.
        has_all: Whether the negatives are all nodes.
        asked: Which end is asked for; the other one has its positives alone.
    """

    n: int
    src: int
    dst: int
    has_all: bool
    asked: int


@fused_jit
def chunks_of(edges: Edges, first: int, last: int, stride: int) -> Ints:
    """List the chunks of batches ``first``, ``first + stride``, ... below ``last``."""
    count = 0
    for b in range(first, last, stride):
        count += edges.batches[b + 1] - edges.batches[b]
    found, count = np.empty(count, np.int64), 0
    for b in range(first, last, stride):
        for c in range(edges.batches[b], edges.batches[b + 1]):
            found[count] = c
            count += 1
    return found


@fused_jit
def load_chunk(
    edges: Edges,
    c: int,
    candidates: Candidates,
    key: np.uint64,
    num_src: int,
    num_dst: int,
    chunk: Chunk,
) -> Sizes:
    """Read the positives of chunk ``c`` and append its negatives.

    Args:
        edges: The bucket.
        c: Which chunk.
        candidates: What negatives are drawn from.
        key: Key of the draws of the bucket.
        num_src: Nodes of the source partition.
        num_dst: Nodes of the destination partition.
        chunk: Receives the nodes.
    """
    n = load_positives(edges, c, candidates, chunk)
    asked = ASKS_BOTH
    if edges.all_negatives[chunk.relations[0]]:
        if edges.asked.size > 0:
            asked = int(edges.asked[c])
        num_src = num_src if asked & ASKS_SRC else 0
        num_dst = num_dst if asked & ASKS_DST else 0
        num_src, num_dst = load_all_nodes(n, num_src, num_dst, chunk)
        return Sizes(n, num_src, num_dst, True, asked)
    size = draw_negatives(candidates, mix64(key + np.uint64(c)), n, chunk)
    return Sizes(n, size, size, False, asked)


@lean_fused_jit
def ask_for_edges(edges: Edges, c: int) -> None:
    """Ask for the positives of chunk ``c``."""
    for i in range(edges.chunks[c, 0], edges.chunks[c, 1]):
        e = edges.order[i]
        prefetch(edges.src, e)
        prefetch(edges.dst, e)
        if edges.relation.size > 0:
            prefetch(edges.relation, e)
        if edges.weight.size > 0:
            prefetch(edges.weight, e)


@lean_fused_jit
def _ask_for_side(table: Table, begins: Ints, nodes: Ints) -> None:
    if begins.size > 0 or nodes.size * table.strides[0] > _MOST_BYTES:
        return
    for i in range(nodes.size):
        prefetch_row_far(table, nodes[i])


@uncounted_jit
def ask_for_rows(tables: Tables, extras: Extras, chunk: Chunk, sizes: Sizes) -> None:
    """Ask for the rows of a chunk, unless they are pooled from others, or very many."""
    _ask_for_side(tables.src_rows, extras.src_bags.begins, chunk.src[: sizes.src])
    _ask_for_side(tables.dst_rows, extras.dst_bags.begins, chunk.dst[: sizes.dst])
