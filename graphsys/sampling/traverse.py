"""Batches of all nodes or edges, partition by partition: AliGraph's TRAVERSE."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from graphsys.core.errors import ConfigError
from graphsys.core.rng import generator
from graphsys.core.types import EdgeType
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
Order = Literal["shuffled", "stored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeBatch:
    """Edges from one partition to another.

    Attributes:
        src: Numbers of the sources, int64 ``[n]``.
        dst: Numbers of the destinations, int64 ``[n]``.
        bucket: The partitions of the sources and of the destinations.
        places: Rows of the edges in their bucket, int64 ``[n]``; for further columns.
    """

    src: Ints
    dst: Ints
    bucket: tuple[int, int]
    places: Ints


def traverse_nodes(
    graph: GraphReader,
    node_type: str,
    batch_size: int,
    *,
    split: str | None = None,
    split_column: str = "split",
    order: Order = "shuffled",
    seed: int = 0,
    epoch: int = 0,
) -> Iterator[Ints]:
    """Yield every node of a type once, in batches that lie within a partition.

    So a batch touches the files of one partition. ``shuffled``: partitions in random
    order, nodes in random order within them; the last batch of each may be smaller.

    Args:
        graph: An open graph.
        node_type: The node type.
        batch_size: Nodes of a batch at most.
        split: Only nodes whose column says so.
        split_column: The column.
        order: ``shuffled``, or as ``stored``.
        seed: Of the order.
        epoch: Part of the key of the order.

    Yields:
        Numbers of nodes, int64.

    Raises:
        ConfigError: A batch size below 1, or an unknown order.
        UnknownNameError: There is no such node type.
    """
    _check(batch_size, order)
    offsets = graph.offsets(node_type)
    parts = _ordered(graph.num_partitions(node_type), order, seed, "parts", epoch)
    for part in parts:
        numbers = np.arange(offsets[part], offsets[part + 1])
        if split is not None:
            column = graph.nodes(node_type, part).column(split_column)
            chosen = pc.fill_null(pc.equal(column, split), False).to_numpy()
            numbers = numbers[np.asarray(chosen, dtype=bool)]
        if order == "shuffled":
            numbers = generator(seed, "nodes", epoch, int(part)).permutation(numbers)
        for begin in range(0, len(numbers), batch_size):
            yield numbers[begin : begin + batch_size]


def traverse_edges(
    graph: GraphReader,
    edge_type: EdgeType | str,
    batch_size: int,
    *,
    split: str | None = None,
    order: Order = "shuffled",
    seed: int = 0,
    epoch: int = 0,
) -> Iterator[EdgeBatch]:
    """Yield every edge once, in batches that lie within a bucket.

    One bucket's order is in memory at a time, 8 bytes an edge. An undirected edge comes
    once, as it is stored.

    Args:
        graph: An open graph.
        edge_type: The edge type or its name.
        batch_size: Edges of a batch at most.
        split: The split of the edges; by default the training edges.
        order: ``shuffled`` (buckets, and edges within them), or as ``stored``.
        seed: Of the order.
        epoch: Part of the key of the order.

    Raises:
        ConfigError: A batch size below 1, or an unknown order.
        UnknownNameError: There is no such edge type.
    """
    _check(batch_size, order)
    name = graph.edge_type_name(edge_type)
    kind = graph.edge_type(name)
    src_offsets, dst_offsets = graph.offsets(kind.src_type), graph.offsets(kind.dst_type)
    buckets = list(graph.buckets(name, split))
    for k in _ordered(len(buckets), order, seed, "buckets", epoch):
        i, j = buckets[k]
        bucket = graph.bucket(name, i, j, split)
        places = _ordered(bucket.num_edges, order, seed, "edges", epoch, int(k))
        for begin in range(0, len(places), batch_size):
            chosen = places[begin : begin + batch_size]
            yield EdgeBatch(
                src=bucket.src[chosen].astype(np.int64) + src_offsets[i],
                dst=bucket.dst[chosen].astype(np.int64) + dst_offsets[j],
                bucket=(i, j),
                places=chosen,
            )


def _ordered(count: int, order: Order, seed: int, *keys: int | str) -> Ints:
    if order == "stored":
        return np.arange(count)
    return generator(seed, *keys).permutation(count)


def _check(batch_size: int, order: str) -> None:
    if batch_size < 1:
        raise ConfigError(f"batch_size: got {batch_size}, expected at least 1")
    if order not in get_args(Order):
        known = " or ".join(get_args(Order))
        raise ConfigError(f"order: got {order!r}, expected {known}")
