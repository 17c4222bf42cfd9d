"""How much arithmetic a slice of a bucket is, operator by operator, told to a profile.

One kernel does it all, so no operator has a time of its own; operations and bytes follow
from the sizes of the chunks: ``n`` positives, ``k`` candidates a side, rows of ``D``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphsys.core.events import count
from graphsys.embedding.rows.row_precision import num_columns
from graphsys.kernels.cpu.embedding.chunk import ASKS_DST, ASKS_SRC, Edges
from graphsys.kernels.cpu.embedding.operators import AFFINE, IDENTITY, LINEAR, Operators
from graphsys.kernels.cpu.embedding.rows import Tables
from graphsys.kernels.cpu.embedding.step import Settings

KERNEL = "train_batches"
_FLOAT = 4
_NUMBER = 8

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OperatorWork:
    """What one kind of operator does.

    Attributes:
        flop: Exact for products and sums of rows, one per element for other work; None
            where it is not known.
        bytes: Of what it reads and writes, each array once a call.
    """

    flop: int | None
    bytes: int


def operator_work(
    edges: Edges,
    first: int,
    last: int,
    tables: Tables,
    operators: Operators,
    settings: Settings,
) -> dict[str, OperatorWork]:
    """Return the work of batches ``first`` to ``last`` by kind of operator.

    ``gather`` reads the rows of the pools, ``elementwise`` applies relation operators there
    and back, ``gemm`` makes scores and both gradients, ``softmax`` turns scores into losses
    and gradients, ``scatter`` sums gradients by row. The optimizer's step is left out: how
    many distinct rows a batch has, only the kernel knows.
    """
    n, sides, against, in_batch = _sizes(edges, first, last, tables, settings)
    dim, itemsize = num_columns(tables.src_rows), tables.src_rows.itemsize
    is_paired = settings.objective.calls.rank_pairs != 0 and not operators.is_reciprocal
    rows = int(sum(side.sum() for side in sides))
    # a block of scores that both ways share counts once
    scores = sum(int((n * side).sum()) for side in against)
    if is_paired:
        against[0] = np.where(in_batch, sides[0] - n, against[0])
    products = sum(int((n * side).sum()) for side in against)
    touched = sum(int((side + n).sum()) for side in against) * dim
    moved = 2 * int(n.sum()) if operators.is_reciprocal else int(sides[1].sum())
    return {
        "gather": OperatorWork(0, rows * (dim * (itemsize + _FLOAT) + _NUMBER)),
        "elementwise": _operator(operators.codes, moved, dim),
        "gemm": OperatorWork(
            None if settings.objective.calls.score else 6 * products * dim,
            3 * _FLOAT * (products + touched),
        ),
        "softmax": OperatorWork(scores, 2 * _FLOAT * scores),
        "scatter": OperatorWork(rows * dim, 3 * _FLOAT * rows * dim),
    }


def query_rows(
    edges: Edges, first: int, last: int, tables: Tables, settings: Settings
) -> npt.NDArray[np.int64]:
    """Return how many candidates every query of some batches is compared with.

    A query is one end of a positive and its relation: both ways of every positive, chunk by
    chunk, int64 ``[2 n]``.
    """
    n, _, against, _ = _sizes(edges, first, last, tables, settings)
    return np.concatenate([np.repeat(side, n) for side in against])


def _sizes(
    edges: Edges, first: int, last: int, tables: Tables, settings: Settings
) -> tuple[Counts, list[Counts], list[Counts], npt.NDArray[np.bool_]]:
    """Return the sizes of the chunks of some batches.

    Returns:
        Positives of each; for both sides the rows that are read, and what a query is
        compared with; whether the batch's own nodes are among the latter.
    """
    chunks = edges.chunks[edges.batches[first] : edges.batches[last]]
    n = (chunks[:, 1] - chunks[:, 0]).astype(np.int64)
    has_all = _has_all(edges, chunks)
    drawn = int(settings.candidates.pools.begins[-1])
    sides = [
        n + np.where(has_all, len(rows) * _asks(edges, first, last, side), drawn)
        for rows, side in ((tables.src_rows, ASKS_SRC), (tables.dst_rows, ASKS_DST))
    ]
    in_batch = settings.use_batch & ~has_all
    against = [np.where(in_batch, side, side - n) for side in sides]
    return n, sides, against, in_batch


def _has_all(edges: Edges, chunks: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which chunks have all nodes as negatives."""
    if not edges.all_negatives.any():
        return np.zeros(len(chunks), dtype=np.bool_)
    if edges.relation.size == 0:
        return np.full(len(chunks), bool(edges.all_negatives[0]))
    found: npt.NDArray[np.bool_] = edges.all_negatives[
        edges.relation[edges.order[chunks[:, 0]]]
    ]
    return found


def _asks(edges: Edges, first: int, last: int, side: int) -> Counts:
    """Return for each chunk of some batches 1 where it asks for an end, else 0."""
    if edges.asked.size == 0:
        return np.ones(int(edges.batches[last] - edges.batches[first]), dtype=np.int64)
    asked = edges.asked[edges.batches[first] : edges.batches[last]]
    return ((asked & side) > 0).astype(np.int64)


def _operator(codes: npt.NDArray[np.int64], rows: int, dim: int) -> OperatorWork:
    """Return the work of relation operators on rows, there and back."""
    kinds = set(codes.tolist())
    if min(kinds) < 0:  # of another package; addresses follow its code
        return OperatorWork(None, 6 * _FLOAT * rows * dim)
    moved = 6 * _FLOAT * rows * dim  # read and write there; read twice and write back
    if kinds == {IDENTITY}:
        return OperatorWork(0, 0)
    if kinds & {LINEAR, AFFINE}:  # products with a matrix, three of them
        return OperatorWork(6 * rows * dim * dim if len(kinds) == 1 else None, moved)
    return OperatorWork(2 * rows * dim, moved)


def tell(work: Mapping[str, OperatorWork]) -> None:
    """Emit the work of a launch, in all and by kind."""
    known = [it.flop for it in work.values() if it.flop is not None]
    total = sum(it.bytes for it in work.values())
    count("kernel_work", sum(known), kernel=KERNEL, bytes=total)
    for kind, it in work.items():
        if it.bytes:
            count(
                "operator_part", 1, kernel=KERNEL, kind=kind, flop=it.flop, bytes=it.bytes
            )
