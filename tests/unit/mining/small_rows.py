"""Small simple graphs with nodes by descending degree, and motifs counted one by one."""

import gzip
from collections import Counter
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from graphsys.mining.census.shapes import edge_set, mask_of, shapes_of

Edges = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SmallRows:
    """A simple graph: offsets, sorted neighbors, both directions."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[Any]

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1

    def edges(self) -> list[tuple[int, int]]:
        owners = np.repeat(np.arange(self.num_nodes), np.diff(self.indptr))
        pairs = zip(owners.tolist(), self.indices.tolist(), strict=True)
        return [(a, b) for a, b in pairs if a < b]


def rows_of(edges: Edges, num_nodes: int) -> SmallRows:
    """Make a graph of edges ``[E, 2]``: loops and repetitions fall away."""
    edges = np.sort(np.asarray(edges, dtype=np.int64).reshape(-1, 2), axis=1)
    edges = np.unique(edges[edges[:, 0] != edges[:, 1]], axis=0)
    degrees = np.bincount(edges.ravel(), minlength=num_nodes)
    label = np.empty(num_nodes, dtype=np.int64)
    label[np.argsort(-degrees, kind="stable")] = np.arange(num_nodes)
    one, other = label[edges].T
    owners, others = np.concatenate([one, other]), np.concatenate([other, one])
    order = np.lexsort((others, owners))
    indptr = np.zeros(num_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(owners, minlength=num_nodes), out=indptr[1:])
    return SmallRows(indptr, others[order].astype(np.int32))


def read_rows(path: Any) -> SmallRows:
    """Read a text file of edges, perhaps below lines that say what it is."""
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt") as file:
        lines = [line.split()[:2] for line in file if line[0].isdigit()]
    edges = np.array(lines, dtype=np.int64)
    ids, numbers = np.unique(edges, return_inverse=True)
    return rows_of(numbers.reshape(-1, 2), len(ids))


@st.composite
def small_rows(draw: st.DrawFn, most: int = 9) -> SmallRows:
    """Draw a graph of up to ``most`` nodes, sparse or dense."""
    num_nodes = draw(st.integers(0, most))
    pairs = list(combinations(range(num_nodes), 2))
    share = draw(st.sampled_from([0.2, 0.5, 0.8, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    taken = [pair for pair in pairs if rng.random() < share]
    return rows_of(np.array(taken, dtype=np.int64), num_nodes)


def induced_by_hand(rows: SmallRows, size: int) -> dict[str, int]:
    """Look at every set of nodes, and name the graph that it induces."""
    names = {
        mask_of(edge_set(text), order): name
        for name, text in shapes_of(size).items()
        for order in permutations(range(size))
    }
    edges, pairs = set(rows.edges()), list(combinations(range(size), 2))
    found = Counter(
        names.get(
            sum(1 << k for k, (a, b) in enumerate(pairs) if (nodes[a], nodes[b]) in edges)
        )
        for nodes in combinations(range(rows.num_nodes), size)
    )
    return {name: found[name] for name in shapes_of(size)}
