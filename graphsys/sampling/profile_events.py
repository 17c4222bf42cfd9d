"""What a profile sees of sampling and of gathering features: rows, and their addresses."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.events import observe
from graphsys.core.row_trace import RowVisit
from graphsys.kernels.cpu.rows.row_table import INDICES

Ints = npt.NDArray[np.int64]


def tell_sampled(
    rows: Any,
    indptr: Ints,
    low: int,
    high: int,
    edge: Ints | None,
    *,
    is_exact: bool,
) -> None:
    """Offer the rows that a hop sampled to the SIMT model.

    A lane draws the place of an entry and reads the neighbor there. The index files count
    as one array. What samplers read besides (weights, times, entries that they reject) is
    left out.

    Args:
        rows: The relation, a :class:`~graphsys.sampling.PartitionedCsr`.
        indptr: Where the sampled entries of each row begin.
        low: The first row of this hop.
        high: The end of its rows.
        edge: Place of each entry in the index files; None where entries are no edges.
        is_exact: Whether the sampler reads no more than it takes.
    """
    reason = "" if edge is not None else "walks or far rows, whose places are not noted"
    observe(
        "rows",
        lambda: [
            RowVisit(
                superstep=0,
                kind="pull",
                part="sampling",
                lengths=np.diff(indptr[low : high + 1]),
                starts=None if edge is None else indptr[low:high],
                indices=edge,
                value_bytes=8 if rows.wide[:, INDICES].any() else 4,
                has_index_loads=False,
                is_exact=is_exact and edge is not None,
                reason=reason,
            )
        ],
    )


def tell_gathered(nodes: Ints, width: int, value_bytes: int) -> None:
    """Offer rows of features that are gathered to the SIMT model: one for each node.

    Args:
        nodes: Whose rows, in order ``[n]``.
        width: Columns of a row.
        value_bytes: Size of one of them.
    """
    observe(
        "rows",
        lambda: [
            RowVisit(
                superstep=0,
                kind="pull",
                part="gather",
                lengths=np.ones(len(nodes), dtype=np.int64),
                starts=np.arange(len(nodes)),
                indices=nodes,
                width=width,
                value_bytes=value_bytes,
                mapping="warp",
            )
        ],
    )
