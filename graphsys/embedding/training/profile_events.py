"""What a profile sees of a training step: rows gathered, scored and updated, by batch.

As kernels of a device do it (``kernels/cuda/embedding``): the rows of all positions of a
batch are gathered, every query is compared with its candidates, and the gradients of each
distinct row are summed, position by position, by one program that then writes the row.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from graphsys.core.events import observe
from graphsys.core.row_trace import RowVisit, tell_arrays
from graphsys.embedding.rows.row_precision import num_columns
from graphsys.embedding.training.flop_count import Counts, query_rows
from graphsys.kernels.cpu.embedding.chunk import Edges
from graphsys.kernels.cpu.embedding.rows import Tables
from graphsys.kernels.cpu.embedding.step import Settings

_FLOAT = 4
_TILES = "scores are products of matrices, whose loads depend on their tiles"


def tell_rows(
    edges: Edges, first: int, last: int, tables: Tables, settings: Settings
) -> None:
    """Offer the rows of batches ``first`` to ``last`` to the SIMT model."""
    observe("rows", lambda: list(_visits(edges, first, last, tables, settings)))


def tell_unit(tables: Mapping[Any, tuple[Any, Any]], work: Sequence[Any]) -> None:
    """Say what a device would get for a unit: its partitions, which come back, and edges.

    Negatives are drawn there; edges are sent with their order and their chunks.

    Args:
        tables: Rows and state by partition.
        work: The unit's buckets.
    """
    parts = dict.fromkeys(part for it in work for part in (it.step.src, it.step.dst))
    rows = [array.nbytes for part in parts for array in tables[part]]
    edges = [
        sum(
            np.asarray(array).nbytes
            for array in (e.src, e.dst, e.relation, e.weight, e.order, e.chunks, e.batches)
        )
        for e in (it.edges for it in work)
    ]
    tell_arrays([*rows, *edges], results=rows)


def _visits(
    edges: Edges, first: int, last: int, tables: Tables, settings: Settings
) -> Iterator[RowVisit]:
    from graphsys.kernels.cpu.simt.batch_nodes import list_nodes

    num_src, num_dst = len(tables.src_rows), len(tables.dst_rows)
    src, dst, begins = list_nodes(
        edges, first, last, settings.candidates, settings.key, num_src, num_dst
    )
    dst = dst + (0 if tables.is_shared else num_src)
    width, size = num_columns(tables.src_rows), tables.src_rows.itemsize
    for k in range(last - first):
        (src_low, dst_low), (src_high, dst_high) = begins[k], begins[k + 1]
        nodes = np.concatenate([src[src_low:src_high], dst[dst_low:dst_high]])
        yield _rows("gather", nodes, np.ones(len(nodes), np.int64), width, size)
        queries = query_rows(edges, first + k, first + k + 1, tables, settings)
        yield RowVisit(
            superstep=0,
            kind="pull",
            part="scores",
            lengths=queries,
            width=width,
            key=("scores", width, queries.tobytes()),
            reason=_TILES,
        )
        # positions by row, as the host sorts them for the device
        order = np.argsort(nodes, kind="stable")
        _, lengths = np.unique(nodes, return_counts=True)
        yield _rows("update", order, lengths, width, _FLOAT)


def _rows(
    part: str, places: Counts, lengths: Counts, width: int, value_bytes: int
) -> RowVisit:
    """Return a launch that reads the rows of values at places, some for each row."""
    return RowVisit(
        superstep=0,
        kind="pull",
        part=part,
        lengths=lengths,
        starts=np.cumsum(lengths) - lengths,
        indices=places.astype(np.int32),
        width=width,
        value_bytes=value_bytes,
        mapping="warp",
    )
