"""How good a partitioning is."""

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from graphsys.core.types import EdgeType


def partition_quality(
    offsets: Mapping[str, npt.NDArray[np.int64]],
    counts: Iterable[tuple[EdgeType, npt.NDArray[np.int64]]],
) -> dict[str, float]:
    """Measure cut and balance over all types.

    Args:
        offsets: Partition offsets of every node type, int64 ``[P + 1]``.
        counts: Edges of every bucket of every edge type, int64 ``[P_src, P_dst]``.

    Returns:
        ``edge_cut``: edges between different partitions of one type, as a fraction of the
        edges inside types; ``node_balance``: largest partition over the mean, the worst of
        all types; ``edge_balance``: the same of incident edges.
    """
    cut = inside = 0
    incident = {name: np.zeros(len(bounds) - 1) for name, bounds in offsets.items()}
    for kind, grid in counts:
        if not grid.ndim:
            continue
        if kind.src_type == kind.dst_type:
            inside += int(grid.sum())
            cut += int(grid.sum() - np.trace(grid))
        incident[kind.src_type] += grid.sum(axis=1)
        incident[kind.dst_type] += grid.sum(axis=0)
    return {
        "edge_cut": cut / inside if inside else 0.0,
        "node_balance": max(
            (_balance(np.diff(bounds)) for bounds in offsets.values()), default=1.0
        ),
        "edge_balance": max((_balance(load) for load in incident.values()), default=1.0),
    }


def _balance(load: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> float:
    mean = float(np.mean(load)) if len(load) else 0.0
    return float(np.max(load)) / mean if mean else 1.0
