"""The graphs of the matrix: small, and with all that a graph may have."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tests.unit.engine.algorithms.small_graphs import SmallGraph

NUM_NODES: Final = 44
NUM_ISOLATED: Final = 4
NAMES: Final[dict[str, Callable[[int], Any]]] = {
    "integers": lambda k: 7 * k + 3,
    "texts": lambda k: f"node {k:02}",
}
WEIGHTS: Final[dict[str, Callable[[np.random.Generator, int], Any]]] = {
    "quarters": lambda rng, size: rng.integers(1, 17, size) / 4,
    "zeros": lambda rng, size: rng.integers(0, 2, size) * 1.5,
    "huge": lambda rng, size: rng.integers(1, 17, size) * 2.0**990,
}


def mixed(is_directed: bool, names: str, weights: str) -> SmallGraph:
    """Return a graph with a hub, cycles, a tail, loops, repetitions and isolated nodes."""
    rng = np.random.default_rng(7)
    num = NUM_NODES - NUM_ISOLATED
    src = rng.integers(0, num - 8, 70)
    dst = np.where(rng.random(70) < 0.2, 5, rng.integers(0, num - 8, 70))
    tail = np.arange(num - 9, num - 1)
    cycle = np.arange(6)
    ring = np.roll(cycle, -1)
    src = np.concatenate([src, tail, cycle, src[:5], [0, 5]])
    dst = np.concatenate([dst, tail + 1, ring, dst[:5], [0, 5]])
    return _named(src, dst, NUM_NODES, is_directed, names, WEIGHTS[weights](rng, len(src)))


def forest(is_directed: bool, names: str, weights: str) -> SmallGraph:
    """Return trees of 11 nodes and two isolated ones: few enough to try all states."""
    rng = np.random.default_rng(3)
    dst = np.arange(1, 11)
    src = np.array([int(rng.integers(0, k)) for k in dst])
    src, dst = np.delete(src, 6), np.delete(dst, 6)
    weight = np.where(weights == "zeros", 0.0, 1.0) * rng.integers(1, 5, len(src)) / 4
    return _named(src, dst, 13, is_directed, names, weight)


def two_parts(is_directed: bool, names: str, weights: str) -> SmallGraph:
    """Return a bipartite graph, some of its edges repeated."""
    rng = np.random.default_rng(13)
    places, half = rng.permutation(NUM_NODES), NUM_NODES // 2
    src, dst = places[rng.integers(0, half, 50)], places[rng.integers(half, 40, 50)]
    swapped = rng.random(50) < 0.5
    src, dst = np.where(swapped, dst, src), np.where(swapped, src, dst)
    src, dst = np.append(src, src[:5]), np.append(dst, dst[:5])
    weight = WEIGHTS[weights](rng, len(src))
    return _named(src, dst, NUM_NODES, is_directed, names, weight)


def acyclic(is_directed: bool, names: str, weights: str) -> SmallGraph:
    """Return a graph without cycles, whose numbers are in no order that fits."""
    rng = np.random.default_rng(11)
    places = rng.permutation(NUM_NODES)
    pairs = np.sort(rng.integers(0, NUM_NODES - NUM_ISOLATED, (2, 90)), axis=0)
    src, dst = places[pairs[:, pairs[0] < pairs[1]]]
    src, dst = np.append(src, src[:5]), np.append(dst, dst[:5])
    return _named(src, dst, NUM_NODES, True, names, WEIGHTS[weights](rng, len(src)))


def formula(is_directed: bool, names: str, weights: str) -> SmallGraph:
    """Return a formula of 12 variables and 30 clauses that some assignment satisfies."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, 12)
    src, dst, sign = [], [], []
    for clause in range(30):
        chosen = rng.choice(12, 3, replace=False)
        signs = rng.integers(0, 2, 3)
        signs[0] = truth[chosen[0]]
        src += [12 + clause] * 3
        dst += chosen.tolist()
        sign += (2.0 * signs - 1).tolist()
    return _named(np.array(src), np.array(dst), 42, True, names, np.array(sign))


def _named(
    src: Any, dst: Any, num_nodes: int, is_directed: bool, names: str, weight: Any
) -> SmallGraph:
    ids = [NAMES[names](k) for k in range(num_nodes)]
    edges = [
        (ids[a], ids[b], float(w))
        for a, b, w in zip(src.tolist(), dst.tolist(), weight.tolist(), strict=True)
    ]
    return SmallGraph(ids=ids, edges=edges, is_directed=is_directed)
