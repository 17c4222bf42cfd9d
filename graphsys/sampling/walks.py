"""Random walks straight from a store's index files, also along metapaths."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.core.rng import draw_key
from graphsys.kernels.cpu.rows.gathered_rows import first_outside
from graphsys.kernels.cpu.sampling.second_order import step_nodes_second_order
from graphsys.kernels.cpu.sampling.visited_rows import step_nodes
from graphsys.sampling.adjacency import PartitionedCsr

Ints = npt.NDArray[np.int64]


def walk(
    path: Sequence[PartitionedCsr],
    starts: Ints,
    length: int,
    *,
    p: float = 1.0,
    q: float = 1.0,
    seed: int = 0,
    epoch: int = 0,
    batch: int = 0,
) -> Ints:
    """Walk from each start, each step to a neighbor drawn uniformly or as node2vec does.

    For whole graphs in memory, also with weights, see ``gs.algorithms.random_walks``.

    Args:
        path: The rows of each step, repeated as long as the walk goes on: one for a graph
            of one relation, several for a metapath.
        starts: Numbers of nodes, of the type of the first rows ``[n]``.
        length: Steps.
        p: Return parameter: going back to the last node is 1/p as likely as a node next
            to both.
        q: In-out parameter: nodes that the last one has no edge to are 1/q as likely. On
            a path of several relations those are all but the last node.
        seed: Of all draws.
        epoch: Part of the key of the draws.
        batch: Part of the key of the draws.

    Returns:
        Numbers of nodes, the starts first, -1 after a dead end ``[n, length + 1]``; column
        k is of the type that step k leads to.

    Raises:
        ConfigError: No rows, rows that do not follow each other, or a p or q that is no
            number above 0.
        UnknownNameError: A start is not in the graph.

    References:
        Grover, Leskovec, "node2vec", KDD 2016.
    """
    if not path or length < 0:
        raise ConfigError(
            f"a walk of {length} steps along {len(path)} relations; expected >= 0, 1"
        )
    for name, value in (("p", p), ("q", q)):
        if not 0.0 < value < np.inf:
            raise ConfigError(f"{name}: got {value}, expected a number > 0")
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
    # A row for each step, which the kernels read and write as a whole; turned at the end.
    walks = np.empty((length + 1, len(nodes)), dtype=np.int64)
    walks[0] = nodes
    for k in range(length):
        rows = path[k % len(path)]
        key = draw_key(seed, "walk", epoch, batch, k)
        places = (rows.offsets, rows.table, rows.wide)
        # The first step has no last node to go back to.
        if k == 0 or p == q == 1.0:
            step_nodes(*places, walks[k], key, walks[k + 1])
            continue
        step_nodes_second_order(
            *places,
            walks[k - 1],
            walks[k],
            len(path) == 1,
            1.0 / p,
            1.0 / q,
            key,
            walks[k + 1],
        )
    return np.ascontiguousarray(walks.T)
