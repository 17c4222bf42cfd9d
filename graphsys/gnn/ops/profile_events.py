"""What a profile sees of message passing: the rows that a kernel walks, and how far."""

from hashlib import blake2b
from typing import Any

import numpy as np

from graphsys.core.events import count, is_recording, observe
from graphsys.core.row_trace import RowVisit


def tell_rows(indptr: Any, indices: Any = None, *, width: int, value_bytes: int) -> None:
    """Count the entries of one launch, and offer its rows to the SIMT model.

    Kernels of a device give a row of entries to a warp, whose lanes take the columns
    (``kernels/cuda/gnn``), which is what the model is told.

    Args:
        indptr: Row offsets, int64 ``[R + 1]``.
        indices: Which rows of values the entries name ``[E]``; None: those in order.
        width: Columns of such a row.
        value_bytes: Size of one of them.
    """
    if is_recording():
        count("edges", int(indptr[-1]))
    observe("rows", lambda: [_visit(indptr, indices, width, value_bytes)])


def _visit(indptr: Any, indices: Any, width: int, value_bytes: int) -> RowVisit:
    has_indices = indices is not None
    if not has_indices:
        indices = np.arange(int(indptr[-1]), dtype=np.int32)
    # the arrays of batches are used again, so that only their content tells them apart
    content = blake2b(np.ascontiguousarray(indptr).data, digest_size=16)
    content.update(np.ascontiguousarray(indices).data)
    return RowVisit(
        superstep=0,
        kind="pull",
        lengths=np.diff(indptr),
        starts=indptr[:-1],
        indices=indices,
        width=width,
        value_bytes=value_bytes,
        part="messages",
        key=("messages", content.digest(), width, value_bytes, has_indices),
        mapping="warp",
        has_index_loads=has_indices,
    )
