"""What a profile sees of native algorithms that go superstep by superstep."""

import time
from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.events import count, ended, is_recording, launched, observe
from graphsys.core.row_trace import RowVisit
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.bits import Words
from graphsys.kernels.cpu.simt.row_steps import find_trips

_BIT = 1
"""Bytes of a bitmap that a lookup of one node touches."""


def tell_all_rows(superstep: int, rows: Csr, value_bytes: int, key: Hashable) -> None:
    """Tell that every row gathers from all its neighbors."""
    if is_recording():
        count("edges", rows.num_edges, at_most=False)
        observe(
            "rows",
            lambda: [
                RowVisit(
                    superstep=superstep,
                    kind="pull",
                    lengths=rows.degrees(),
                    starts=rows.begins,
                    indices=rows.indices,
                    value_bytes=value_bytes,
                    key=(key, id(rows.begins)),
                )
            ],
        )


def tell_push(superstep: int, rows: Csr, nodes: npt.NDArray[Any], value_bytes: int) -> None:
    """Tell that some nodes look at all their neighbors."""
    if not is_recording():
        return
    starts = rows.begins[nodes].astype(np.int64)
    lengths = rows.ends[nodes].astype(np.int64) - starts
    count("edges", int(lengths.sum()), at_most=False)
    observe(
        "rows",
        lambda: [
            RowVisit(
                superstep=superstep,
                kind="push",
                lengths=lengths,
                starts=starts,
                indices=rows.indices,
                value_bytes=value_bytes,
            )
        ],
    )


def tell_search(superstep: int, rows: Csr, seen: Words, senders: Words) -> None:
    """Tell that rows look for their first neighbor in a set; those ``seen`` do not."""

    def make() -> list[RowVisit]:
        trips = np.zeros(rows.num_nodes, dtype=np.int64)
        find_trips(rows.begins, rows.ends, rows.indices, seen, senders, trips)
        return [
            RowVisit(
                superstep=superstep,
                kind="pull",
                lengths=trips,
                starts=rows.begins,
                indices=rows.indices,
                value_bytes=_BIT,
            )
        ]

    count("edges", rows.num_edges, at_most=True)
    observe("rows", make)


def tell_levels(
    began_ns: int,
    rows: Csr,
    queue: npt.NDArray[Any],
    distance: npt.NDArray[Any],
    begin: int,
    end: int,
    kernel: str,
) -> None:
    """Tell of levels that one call of a kernel has pushed, now that it is done.

    Args:
        began_ns: When the call began.
        rows: Rows of out-neighbors.
        queue: Nodes in the order of their levels.
        distance: Level of every node found ``[N]``.
        begin: Where the first level pushed begins in the queue.
        end: Where the last one ends.
        kernel: Name of what was called.
    """
    if not is_recording() or begin == end:
        return
    took = time.perf_counter_ns() - began_ns
    nodes = queue[begin:end].astype(np.int64)
    levels = distance[nodes]
    first, last = int(levels[0]), int(levels[-1])
    launched(kernel, began_ns, (took,), wall_ns=took, levels=last - first + 1)
    for level in range(first, last + 1):
        low, high = np.searchsorted(levels, [level, level + 1]).tolist()
        tell_push(level, rows, nodes[low:high], _BIT)
        starts = rows.begins[nodes[low:high]].astype(np.int64)
        sent = int((rows.ends[nodes[low:high]].astype(np.int64) - starts).sum())
        # one call, several supersteps: only a lone one has a time of its own
        ended(
            "superstep",
            began_ns,
            took if first == last else None,
            number=level,
            phase="",
            mode="push",
            senders=high - low,
            messages=sent,
        )
