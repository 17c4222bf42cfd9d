"""Communities of different sizes with skewed degrees, after the LFR benchmark.

Degrees and sizes of communities follow truncated power laws, whose tables are computed in
decimal arithmetic, so that they are the same everywhere. An edge is drawn as a pair of
stubs, one at any node, the other in its community or, for the share ``mixing``, anywhere.

Departs from LFR: edges are drawn with replacement, so that degrees hold on average, and
there is no rewiring; equal edges and loops are rare and kept. Memory: 24 bytes a node.

References:
    Lancichinetti, Fortunato, Radicchi, "Benchmark graphs for testing community detection
    algorithms", Physical Review E 78, 2008.
"""

from decimal import Decimal, localcontext

import numpy as np
import numpy.typing as npt

from graphsys.datasets.generators.drawn import (
    CHUNK_ROWS,
    MAX_NODES,
    DrawnSource,
    Piece,
    check_integers,
    check_shares,
    random_splits,
)
from graphsys.datasets.generators.draws import Draws, Integers, as_fractions
from graphsys.storage.source import EdgeChunk, NodeChunk


def power_law(
    words: npt.NDArray[np.uint64], low: int, high: int, exponent: str
) -> Integers:
    """Turn random words into integers ``low .. high``, k with a chance of k**-exponent."""
    with localcontext() as context:
        context.prec = 30
        chances = [Decimal(k) ** -Decimal(exponent) for k in range(low, high + 1)]
        total, limits, so_far = sum(chances), [], Decimal(0)
        for chance in chances:
            so_far += chance
            limits.append(int(so_far / total * 2**53))
    table = np.array(limits, dtype=np.uint64)
    places = np.searchsorted(table, words >> np.uint64(11), side="right")
    return np.minimum(places, high - low).astype(np.int64) + low


def communities(
    num_nodes: int = 10000,
    *,
    mean_degree: int = 16,
    max_degree: int = 200,
    min_community: int = 20,
    max_community: int = 500,
    mixing: float = 0.2,
    scramble: bool = True,
    seed: int = 0,
    chunk_rows: int = CHUNK_ROWS,
    num_threads: int | None = None,
) -> DrawnSource:
    """Make an undirected graph of communities; the node column ``label`` names them.

    Args:
        num_nodes: Nodes.
        mean_degree: Neighbors of a node on average; degrees fall like k**-2.5.
        max_degree: How skewed they are: the greatest is this many times the least.
        min_community: Size of the least community; sizes fall like k**-1.5.
        max_community: Size of the greatest.
        mixing: Share of a node's edges that are drawn regardless of communities.
        scramble: Permute the ids, which otherwise follow the communities.
        seed: Another seed, another graph.
        chunk_rows: Rows made at once; does not change them.
        num_threads: Threads; do not change the graph either.

    Raises:
        ConfigError: a value is out of range.
    """
    check_integers(
        "communities",
        ("num_nodes", num_nodes, 2, MAX_NODES),
        ("mean_degree", mean_degree, 1, 1 << 20),
        ("max_degree", max_degree, 1, 20000),
        ("min_community", min_community, 1, num_nodes),
        ("max_community", max_community, min_community, 20000),
    )
    check_shares("communities", ("mixing", mixing))
    name = f"communities:{seed}"
    starts = _starts(Draws(f"{name}:size"), num_nodes, min_community, max_community)
    weight = power_law(Draws(f"{name}:degree").words(num_nodes), 1, max_degree, "2.5")
    stubs = np.concatenate([[0], np.cumsum(weight)])
    node_id = np.arange(num_nodes, dtype=np.int64)
    if scramble:
        # Else communities were runs of ids, which any partitioner by range would find.
        node_id = np.argsort(Draws(f"{name}:id").words(num_nodes), kind="stable")
    split, draws = Draws(f"{name}:split"), Draws(f"{name}:edge")

    def nodes(first: int, last: int) -> list[NodeChunk]:
        label = np.searchsorted(starts, np.arange(first, last), side="right") - 1
        columns = {"label": label, "split": random_splits(split, first, last)}
        return [NodeChunk(ids=node_id[first:last], columns=columns)]

    def edges(first: int, last: int) -> list[EdgeChunk]:
        size = last - first
        # Draws by the edge's number: blocks may be made in any order, by any thread.
        pick = as_fractions(draws.words(3 * size, 3 * first)).reshape(-1, 3)
        src = _node_at(stubs, 0, stubs[-1], pick[:, 0])
        group = np.searchsorted(starts, src, side="right") - 1
        ends = np.append(starts, num_nodes)
        near = _node_at(stubs, stubs[ends[group]], stubs[ends[group + 1]], pick[:, 1])
        far = _node_at(stubs, 0, stubs[-1], pick[:, 1])
        dst = np.where(pick[:, 2] < mixing, far, near)
        return [EdgeChunk(src=node_id[src], dst=node_id[dst])]

    return DrawnSource(
        f"communities(num_nodes={num_nodes}, seed={seed})",
        [Piece(num_nodes, nodes), Piece(num_nodes * mean_degree // 2, edges)],
        is_directed=False,
        chunk_rows=chunk_rows,
        num_threads=num_threads,
    )


def _starts(draws: Draws, num_nodes: int, low: int, high: int) -> Integers:
    """Return the first node of every community; the last takes what is left."""
    count = num_nodes // low + 1
    sizes = power_law(draws.words(count), low, high, "1.5")
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return starts[: max(int(np.searchsorted(starts, num_nodes - low, side="right")), 1)]


def _node_at(
    stubs: Integers,
    first: int | Integers,
    last: int | Integers,
    fraction: npt.NDArray[np.float64],
) -> Integers:
    """Return the nodes of random stubs between two."""
    stub = first + (fraction * (last - first)).astype(np.int64)
    return np.searchsorted(stubs, stub, side="right").astype(np.int64) - 1
