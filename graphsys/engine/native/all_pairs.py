"""Distances between all pairs of nodes: shortest paths, a block of sources at a time."""

import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.core.threads import ThreadTeam
from graphsys.engine.native.arguments import require_count
from graphsys.engine.native.shortest_paths import distances_from, refuse_weights
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


def apsp(
    topology: Topology, *, max_nodes: int = MAX_NODES, num_threads: int | None = None
) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.apsp` tells of."""
    require_count("max_nodes", max_nodes)
    num = topology.num_nodes
    if topology.has_weight:
        with ThreadTeam(num_threads) as team:
            refuse_weights(topology, team)
    began = time.perf_counter()
    if num > max_nodes:
        return Result(
            source=lambda: _refuse(num, max_nodes),
            algorithm="apsp",
            supersteps=num,
            seconds=0.0,
            pieces=lambda: _blocks(topology, num_threads),
            num_rows=num * num,
        )
    blocks = list(_blocks(topology, num_threads))
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
