"""Random walks straight from a store's index files, also along metapaths."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.core.rng import draw_key
from graphsys.kernels.cpu.rows.gathered_rows import first_outside
from graphsys.kernels.cpu.sampling.visited_rows import step_nodes
from graphsys.sampling.adjacency import PartitionedCsr

Ints = npt.NDArray[np.int64]


def walk(
    path: Sequence[PartitionedCsr],
    starts: Ints,
    length: int,
    *,
    seed: int = 0,
    epoch: int = 0,
    batch: int = 0,
) -> Ints:
    """Walk from each start, each step to a neighbor drawn uniformly.

    For whole graphs in memory, with weights or node2vec's p and q, see
    ``gs.algorithms.random_walks``.

    Args:
        path: The rows of each step, repeated as long as the walk goes on: one for a graph
            of one relation, several for a metapath.
        starts: Numbers of nodes, of the type of the first rows ``[n]``.
        length: Steps.
        seed: Of all draws.
        epoch: Part of the key of the draws.
        batch: Part of the key of the draws.

    Returns:
        Numbers of nodes, the starts first, -1 after a dead end ``[n, length + 1]``; column
        k is of the type that step k leads to.

    Raises:
        ConfigError: No rows, or rows that do not follow each other.
        UnknownNameError: A start is not in the graph.
    """
    if not path or length < 0:
        raise ConfigError(
            f"a walk of {length} steps along {len(path)} relations; expected >= 0, 1"
        )
    for k in range(min(length, len(path)) if length > 1 else 0):
        here, there = path[k], path[(k + 1) % len(path)]
        if k + 1 < length and here.neighbor_type != there.node_type:
            raise ConfigError(
                f"step {k + 1} leads to {here.neighbor_type}, step {k + 2} begins at "
                f"{there.node_type}; give rows that follow each other"
            )
    nodes = np.ascontiguousarray(starts, dtype=np.int64)
    outside = first_outside(nodes, path[0].num_nodes)
    if outside >= 0:
        raise UnknownNameError(
            f"start {nodes[outside]} is not in the graph, which has {path[0].num_nodes} "
            f"nodes of type {path[0].node_type!r}"
        )
    walks = np.empty((length + 1, len(nodes)), dtype=np.int64)
    walks[0] = nodes
    for k in range(length):
        rows = path[k % len(path)]
        key = draw_key(seed, "walk", epoch, batch, k)
        step_nodes(rows.offsets, rows.table, rows.wide, walks[k], key, walks[k + 1])
    return np.ascontiguousarray(walks.T)
