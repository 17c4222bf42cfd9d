"""Uniform random graphs, and planted partitions with features and labels.

References:
    Erdos, Renyi, "On random graphs I", Publicationes Mathematicae 6, 1959.
    Condon, Karp, "Algorithms for graph partitioning on the planted partition model",
    Random Structures and Algorithms 18(2), 2001.
"""

import numpy as np

from graphsys.datasets.generators.drawn import (
    CHUNK_ROWS,
    MAX_NODES,
    DrawnSource,
    Piece,
    check_integers,
    check_shares,
    plain_nodes,
    random_splits,
)
from graphsys.datasets.generators.draws import Draws, as_fractions, as_integers, as_normals
from graphsys.storage.source import EdgeChunk, NodeChunk


def uniform(
    num_nodes: int = 65536,
    num_edges: int = 1048576,
    *,
    directed: bool = False,
    weights: bool = False,
    seed: int = 0,
    chunk_rows: int = CHUNK_ROWS,
    num_threads: int | None = None,
) -> DrawnSource:
    """Make a graph of edges between any two nodes, drawn with replacement.

    Args:
        num_nodes: Nodes, all listed.
        num_edges: Edges; few of them are equal or loops.
        directed: Edges have directions.
        weights: Add weights in [0, 1).
        seed: Another seed, another graph.
        chunk_rows: Rows made at once; does not change them.
        num_threads: Threads; do not change the edges either.

    Raises:
        ConfigError: a value is out of range.
    """
    check_integers(
        "uniform",
        ("num_nodes", num_nodes, 1, MAX_NODES),
        ("num_edges", num_edges, 1, 2**48),
    )
    sources, targets, weight = (
        Draws(f"uniform:{seed}:{it}") for it in ("source", "target", "weight")
    )

    def edges(first: int, last: int) -> list[EdgeChunk]:
        size = last - first
        columns = {}
        if weights:
            columns["weight"] = weight.fractions(size, first).astype(np.float32)
        src = sources.integers(size, num_nodes, first)
        dst = targets.integers(size, num_nodes, first)
        return [EdgeChunk(src=src, dst=dst, columns=columns)]

    return DrawnSource(
        f"uniform(num_nodes={num_nodes}, seed={seed})",
        [plain_nodes(num_nodes), Piece(num_edges, edges)],
        is_directed=directed,
        chunk_rows=chunk_rows,
        num_threads=num_threads,
    )


def planted(
    num_nodes: int = 10000,
    num_classes: int = 8,
    *,
    mean_degree: int = 10,
    homophily: float = 0.8,
    dim: int = 32,
    noise: float = 1.0,
    seed: int = 0,
    chunk_rows: int = CHUNK_ROWS,
    num_threads: int | None = None,
) -> DrawnSource:
    """Make an undirected graph of classes, with features that tell of the class.

    Node i is of class ``i % num_classes``. Features ``x`` are the class's center plus
    noise; columns ``label`` and ``split`` (60 % train, 20 % valid, 20 % test).

    Args:
        num_nodes: Nodes.
        num_classes: Classes, of equal sizes.
        mean_degree: Neighbors of a node on average.
        homophily: Share of edges drawn inside a class; the others join any two nodes.
        dim: Length of features.
        noise: Standard deviation around the centers, which have 1 themselves.
        seed: Another seed, another graph.
        chunk_rows: Rows made at once; does not change them.
        num_threads: Threads; do not change the graph either.

    Raises:
        ConfigError: a value is out of range.
    """
    check_integers(
        "planted",
        ("num_nodes", num_nodes, 2, MAX_NODES),
        ("num_classes", num_classes, 1, num_nodes),
        ("mean_degree", mean_degree, 1, 1 << 20),
        ("dim", dim, 1, 1 << 14),
    )
    check_shares("planted", ("homophily", homophily))
    name = f"planted:{seed}"
    split, feature = Draws(f"{name}:split"), Draws(f"{name}:feature")
    ends, inside = Draws(f"{name}:ends"), Draws(f"{name}:inside")
    key = f"{name}:centre"  # so spelled by the first graphs, which come out the same
    centers = as_normals(Draws(key).words(num_classes * dim))
    centers = centers.reshape(num_classes, dim)

    def nodes(first: int, last: int) -> list[NodeChunk]:
        ids = np.arange(first, last, dtype=np.int64)
        around = as_normals(feature.words((last - first) * dim, first * dim))
        x = centers[ids % num_classes] + np.float32(noise) * around.reshape(-1, dim)
        columns = {"label": ids % num_classes, "split": random_splits(split, first, last)}
        return [NodeChunk(ids=ids, columns=columns, features={"x": x})]

    def edges(first: int, last: int) -> list[EdgeChunk]:
        size = last - first
        words = ends.words(2 * size, 2 * first)
        src, dst = as_integers(words[::2], num_nodes), as_integers(words[1::2], num_nodes)
        group = src % num_classes
        sizes = (num_nodes - group + num_classes - 1) // num_classes
        near = group + num_classes * as_integers(words[1::2], sizes)
        is_inside = as_fractions(inside.words(size, first)) < homophily
        return [EdgeChunk(src=src, dst=np.where(is_inside, near, dst))]

    return DrawnSource(
        f"planted(num_nodes={num_nodes}, seed={seed})",
        [Piece(num_nodes, nodes, dim), Piece(num_nodes * mean_degree // 2, edges)],
        is_directed=False,
        chunk_rows=chunk_rows,
        num_threads=num_threads,
    )
