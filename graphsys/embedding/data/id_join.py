"""Nodes of two graphs that have the same user's id, found partition by partition."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import ConfigError
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Match:
    """Nodes of a partition that are in one partition of the other graph.

    Attributes:
        part: Partition of the other graph.
        here: Local numbers in this graph's partition, ascending, int64 ``[n]``.
        there: Local numbers in the other's, int64 ``[n]``.
    """

    part: int
    here: Ints
    there: Ints


def match_ids(
    graph: GraphReader, other: GraphReader, node_type: str, part: int
) -> Iterator[Match]:
    """Find the nodes of a partition in another graph by their ids.

    In memory are the ids that were not found yet and a hash table of one partition of the
    other graph.

    Args:
        graph: The graph.
        other: The other graph; may lack the node type.
        node_type: The node type.
        part: Partition of ``graph``.

    Yields:
        The matches with one partition of the other graph.

    Raises:
        ConfigError: The ids of one graph are integers and those of the other texts.
    """
    if node_type not in other.node_types:
        return
    ids = graph.nodes(node_type, part).column("id").combine_chunks()
    here = np.arange(len(ids), dtype=np.int64)
    total = other.num_partitions(node_type)
    for shift in range(total):  # the same partition first: most often it has them all
        number = (part + shift) % total
        known = other.nodes(node_type, number).column("id").combine_chunks()
        _require_same_kind(graph, other, node_type, ids.type, known.type)
        found = pc.index_in(ids, value_set=known)
        is_found = found.is_valid().to_numpy(zero_copy_only=False)
        if is_found.any():
            there = found.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
            yield Match(part=number, here=here[is_found], there=there)
            ids, here = ids.filter(pa.array(~is_found)), here[~is_found]
        if not len(here):
            return


def _require_same_kind(
    graph: GraphReader,
    other: GraphReader,
    node_type: str,
    kind: pa.DataType,
    known: pa.DataType,
) -> None:
    if pa.types.is_integer(kind) != pa.types.is_integer(known):
        names = ["integers" if pa.types.is_integer(k) else "texts" for k in (kind, known)]
        raise ConfigError(
            f"the ids of node type {node_type!r} are {names[0]} in {graph.path} and "
            f"{names[1]} in {other.path}; ingest both from ids of one kind"
        )
