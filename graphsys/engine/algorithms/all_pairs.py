"""Distances between all pairs of nodes: shortest paths, a block of sources at a time."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.core.threads import ThreadTeam
from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    NativeOptions,
    listed,
)
from graphsys.engine.algorithms.arguments import require_count
from graphsys.engine.algorithms.shortest_paths import (
    distances_from,
    refuse_weights,
    sssp_needs,
)
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology

MAX_NODES = 5000
"""Nodes up to which all pairs are one table unless asked otherwise: 25 million rows."""
BLOCK_BYTES = 48 << 20
"""Bytes of a block's table."""


def row_bytes(id_bytes: float) -> float:
    """Return the bytes of a pair: two ids, a distance, and what making them takes."""
    return 18 + 2 * id_bytes


def block_sources(num_nodes: int, id_bytes: float) -> int:
    """Return how many sources a block has."""
    return max(1, int(BLOCK_BYTES / (row_bytes(id_bytes) * max(num_nodes, 1))))


def _apsp(facts: Facts) -> Need:
    own, block = sssp_needs(facts), block_sources(facts.nodes, 8)
    making = row_bytes(facts.id_bytes) * facts.nodes * min(block, facts.nodes)
    if facts.nodes > facts.options.get("max_nodes", MAX_NODES):  # two blocks at a time
        return replace(own, bytes=own.bytes + 2 * making)
    kept = (8.2 + 2 * facts.id_bytes) * facts.nodes**2  # all of the table, and a block
    return replace(own, bytes=own.bytes + kept + making)


@listed(needs=_apsp, tags=("APSP",), example=Example(largest=12))
def apsp(
    graph: GraphLike, *, max_nodes: int = 5000, **options: Unpack[NativeOptions]
) -> Result:
    """Distances between all pairs of nodes.

    The result has N^2 rows of 24 bytes (more with text ids), whatever the number of edges.
    Above ``max_nodes`` it is no table but comes in blocks of sources, made when they are
    asked for: ``pieces()`` of the result, or ``-o FILE``, which writes them as they come.

    Args:
        graph: An open graph, its path, or edges in memory; the column ``weight`` holds the
            lengths of edges, which are 1 where there is none.
        max_nodes: The largest number of nodes whose pairs are made at once.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        One row per pair, sources in the order of the store: ``id``, ``other``, and
        ``value``, the distance from the one to the other, float64, null where not reached.

    Raises:
        ConfigError: the table of more than ``max_nodes`` nodes was asked for.
        InvalidGraphError: a negative length.

    Complexity:
        O(N) times that of ``sssp``; O(N^2) memory, in blocks some 100 MB.

    References:
        Meyer, Sanders, "Delta-stepping: a parallelizable shortest path algorithm", J.
        Algorithms 49(1), 2003.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1], [1, 2], num_nodes=3)
        >>> done = gs.algorithms.apsp(graph).table.to_pydict()
        >>> done["id"][:3], done["other"][:3], done["value"][:3]
        ([0, 0, 0], [0, 1, 2], [0.0, 1.0, 2.0])
    """
    topology = Topology.of(graph)
    require_count("max_nodes", max_nodes)
    num = topology.num_nodes
    if topology.has_weight:
        with ThreadTeam(options.get("num_threads")) as team:
            refuse_weights(topology, team)
    began = time.perf_counter()
    if num > max_nodes:
        return Result(
            source=lambda: _refuse(num, max_nodes),
            algorithm="apsp",
            supersteps=num,
            seconds=0.0,
            pieces=lambda: _blocks(topology, options.get("num_threads")),
            num_rows=num * num,
        )
    blocks = list(_blocks(topology, options.get("num_threads")))
    return Result(
        source=pa.concat_tables(blocks),  # in chunks: as one it would be there twice
        algorithm="apsp",
        supersteps=num,
        seconds=time.perf_counter() - began,
    )


def _refuse(num: int, max_nodes: int) -> pa.Table:
    raise ConfigError(
        f"apsp gives {num}^2 = {num * num} rows for {num} nodes, more than the limit of "
        f"{max_nodes} nodes for one table; write them block by block (-o FILE, or pieces() "
        "of the result), raise max_nodes, or run sssp from the sources you need"
    )


def _blocks(topology: Topology, num_threads: int | None) -> Iterator[pa.Table]:
    """Yield the rows of blocks of sources, in the order of the store."""
    num = topology.num_nodes
    everyone = np.arange(num)
    size = block_sources(num, 8)
    with ThreadTeam(num_threads) as team:
        for first in range(0, max(num, 1), size):
            sources = everyone[first : first + size]
            distance = np.full((len(sources), num), np.inf)
            for place, source in enumerate(sources.tolist()):
                distance[place] = distances_from(topology, source, team)
            yield _table(topology, sources, everyone, distance.ravel())


def _table(
    topology: Topology,
    sources: npt.NDArray[np.int64],
    everyone: npt.NDArray[np.int64],
    flat: npt.NDArray[np.float64],
) -> pa.Table:
    return pa.table(
        {
            "id": topology.ids(np.repeat(sources, len(everyone))),
            "other": topology.ids(np.tile(everyone, len(sources))),
            "value": pa.array(flat, mask=np.isinf(flat)),
        }
    )
