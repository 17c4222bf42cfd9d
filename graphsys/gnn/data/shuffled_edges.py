"""Edges of a store in a random order, of which only those asked for are read.

An order that is kept takes 8 bytes an edge, and the edges in it 16 more. Here the edge at
a place of the order is computed: a Feistel network (Luby, Rackoff, "How to construct
pseudorandom permutations from pseudorandom functions", SIAM J. Comput. 17(2), 1988) is a
permutation of the numbers of an even number of bits, and what it sends beyond the last
edge is sent on until it falls among them (cycle walking: Black, Rogaway, "Ciphers with
arbitrary finite domains", CT-RSA 2002).
"""

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.core.rng import generator
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
_ROUNDS = 6


class SplitEdges:
    """The edges of a split by their number, read where they lie.

    Args:
        graph: An open graph.
        name: The edge type.
        split: The split; train by default.
    """

    def __init__(self, graph: GraphReader, name: str, split: str | None = None) -> None:
        kind = graph.edge_type(name)
        src, dst = graph.offsets(kind.src_type), graph.offsets(kind.dst_type)
        self._buckets, counts = [], [0]
        for i, j in graph.buckets(name, split):
            bucket = graph.bucket(name, i, j, split)
            self._buckets.append((int(src[i]), bucket.src, int(dst[j]), bucket.dst))
            counts.append(bucket.num_edges)
        self._begins = np.cumsum(counts)

    def __len__(self) -> int:
        return int(self._begins[-1])

    def pairs(self, numbers: Ints) -> Ints:
        """Return the ends of edges by the numbers of their nodes, int64 ``[n, 2]``."""
        found = np.empty((len(numbers), 2), dtype=np.int64)
        owner = np.searchsorted(self._begins, numbers, side="right") - 1
        for k in distinct(owner).tolist():
            own = np.flatnonzero(owner == k)
            first_src, src, first_dst, dst = self._buckets[k]
            places = numbers[own] - self._begins[k]
            found[own, 0] = src[places].astype(np.int64) + first_src
            found[own, 1] = dst[places].astype(np.int64) + first_dst
        return found


class ShuffledEdges:
    """Edges in a random order; a slice of it is what is read.

    Args:
        edges: The edges.
        seed: The user's seed.
        keys: What the order is for (see ``core.rng``).
    """

    def __init__(self, edges: SplitEdges, seed: int, *keys: int | str) -> None:
        self._edges = edges
        self._keys = generator(seed, *keys).integers(0, 2**64, _ROUNDS, dtype=np.uint64)

    def __len__(self) -> int:
        return len(self._edges)

    def __getitem__(self, places: slice) -> Ints:
        wanted = np.arange(*places.indices(len(self)), dtype=np.int64)
        return self._edges.pairs(permuted(wanted, len(self), self._keys))


def permuted(places: Ints, length: int, keys: Words) -> Ints:
    """Return which number comes at each place of a random order of ``length`` numbers.

    Args:
        places: Places from 0 to ``length - 1``, int64 ``[n]``.
        length: How many numbers the order has.
        keys: A key for each round, which decide the order.

    Complexity:
        O(n): a number is sent on less than three times on average.
    """
    half = np.uint64(max((max(length - 1, 1).bit_length() + 1) // 2, 1))
    found = places.astype(np.uint64)
    outside = np.arange(len(places))
    while len(outside):
        found[outside] = _network(found[outside], half, keys)
        outside = outside[found[outside] >= length]
    return found.astype(np.int64)


def _network(values: Words, half: np.uint64, keys: Words) -> Words:
    mask = (np.uint64(1) << half) - np.uint64(1)
    left, right = values >> half, values & mask
    for key in keys:
        left, right = right, left ^ (_mixed(right ^ key) & mask)
    return (left << half) | right


def _mixed(words: Words) -> Words:
    """Mix the bits of words (the finalizer of SplitMix64: Steele et al., OOPSLA 2014)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
