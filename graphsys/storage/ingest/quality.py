"""What is told of a new store: how good its partitioning is, whether edges repeat."""

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from graphsys.core.caller_warnings import note
from graphsys.core.types import EdgeType
from graphsys.storage.ingest.options import IngestOptions
from graphsys.storage.manifest import EdgeTypeEntry


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


def warn_of_duplicates(entry: EdgeTypeEntry, options: IngestOptions) -> None:
    """Warn where more than half of the edges repeat another; edges of some time may.

    Args:
        entry: The edge type as it was written.
        options: Of the ingest; ``coalesce`` keeps one of each, and nothing is said.
    """
    stored = sum(entry.num_edges.values())
    is_many = (2 if entry.directed else 4) * entry.duplicates > stored > 0
    if options.coalesce or not is_many or (entry.directed and "time" in entry.columns):
        return
    if entry.directed:
        what = (
            f"{entry.duplicates} of the {stored} edges of {entry.relation!r} repeat "
            "another (same src, dst and relation); if a column is missing, name it with "
            "--columns, else"
        )
    else:
        what = (
            f"most of the {stored} undirected edges of {entry.relation!r} are there twice "
            f"({entry.duplicates} repeat another);"
        )
    note(f"{what} pass --coalesce to keep one of each")
