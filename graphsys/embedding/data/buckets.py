"""Buckets for the kernels, which index without looking: ranges are checked first."""

import numpy as np

from graphsys.core.errors import CorruptStoreError
from graphsys.core.types import EdgeType
from graphsys.storage.reader import GraphReader
from graphsys.storage.views import EdgeBucket


def read_bucket(
    graph: GraphReader, edge_type: EdgeType, i: int, j: int, split: str | None = None
) -> EdgeBucket:
    """Return a bucket whose numbers all lie inside their partitions.

    Opening a store does not read its edges, so an altered file would make the kernels
    write outside the tables.

    Args:
        graph: The graph.
        edge_type: One of its edge types.
        i: Partition of the sources.
        j: Partition of the destinations.
        split: A split; ``train`` (or the only one) by default.

    Raises:
        CorruptStoreError: a node or relation number is out of range.
    """
    bucket = graph.bucket(edge_type, i, j, split)
    limits = [
        ("src", bucket.src, int(np.diff(graph.offsets(edge_type.src_type))[i])),
        ("dst", bucket.dst, int(np.diff(graph.offsets(edge_type.dst_type))[j])),
    ]
    if bucket.relation is not None:
        limits.append(("relation", bucket.relation, len(graph.relations(edge_type) or [])))
    for column, numbers, limit in limits:
        if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < limit:
            raise CorruptStoreError(
                f"bucket {i}-{j} of edge type {graph.edge_type_name(edge_type)!r} in graph "
                f"{graph.path} has numbers in column {column} that are not below {limit}; "
                "run `graphsys verify`, then ingest again"
            )
    return bucket
