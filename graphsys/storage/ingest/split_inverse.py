"""Relations that are each other's inverse, such as parent and child, for splits of edges.

An edge of one with its inverse in train is known to any model that looks it up. Whether
relations are inverse is estimated on all edges of sampled pairs of nodes: two are where
most edges of each have a reverse edge of the other.

References:
    Akrami et al., "Realistic re-evaluation of knowledge graph completion methods", SIGMOD
    2020, doi:10.1145/3318464.3380599 (inverse relations leak from test into train).
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]

_MAX_EDGES: Final = 1 << 18
_MOST: Final = 0.5
_MAX_PER_PAIR: Final = 8


@dataclass
class PairSample:
    """Edges of sampled pairs of nodes: all edges of a pair, or none.

    Attributes:
        bits: A pair is sampled where the lowest bits of its key are 0.
        keys: Key of the pair of each edge, equal for both directions ``[n]``.
        is_forward: Whether its source has the smaller hash ``[n]``.
        relations: Code of its relation ``[n]``.
        codes: Its split, 0 is train ``[n]``.
    """

    bits: int = 0
    keys: Keys = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    is_forward: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    relations: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    codes: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def add(
        self, keys: Keys, is_forward: npt.NDArray[np.bool_], relations: Ints, codes: Ints
    ) -> None:
        """Take in edges ``[n]`` each; fewer pairs are sampled where they are too many."""
        kept = self._is_sampled(keys)
        self.keys = np.concatenate([self.keys, keys[kept]])
        self.is_forward = np.concatenate([self.is_forward, is_forward[kept]])
        self.relations = np.concatenate([self.relations, relations[kept]])
        self.codes = np.concatenate([self.codes, codes[kept]])
        while len(self.keys) > _MAX_EDGES:
            self.bits += 1
            kept = self._is_sampled(self.keys)
            self.keys, self.is_forward = self.keys[kept], self.is_forward[kept]
            self.relations, self.codes = self.relations[kept], self.codes[kept]

    def _is_sampled(self, keys: Keys) -> npt.NDArray[np.bool_]:
        mask = np.uint64((1 << self.bits) - 1)
        found: npt.NDArray[np.bool_] = (keys & mask) == 0
        return found

    def reverses(self) -> tuple[Ints, Ints]:
        """Return edges and a reverse of each under another relation, places ``[m]``."""
        forward = np.flatnonzero(self.is_forward)
        back = np.flatnonzero(~self.is_forward)
        back = back[np.argsort(self.keys[back], kind="stable")]
        first = np.searchsorted(self.keys[back], self.keys[forward], side="left")
        last = np.searchsorted(self.keys[back], self.keys[forward], side="right")
        sizes = np.minimum(last - first, _MAX_PER_PAIR)
        inside = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        one = np.repeat(forward, sizes)
        other = back[np.repeat(first, sizes) + inside]
        differs = self.relations[one] != self.relations[other]
        one, other = one[differs], other[differs]
        return np.concatenate([one, other]), np.concatenate([other, one])

    def inverse_pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of relations that are each other's inverse, each once."""
        edges, reverses = self.reverses()
        if not len(edges):
            return []
        size = int(self.relations.max()) + 1
        pairs = np.stack([edges, self.relations[reverses]], axis=1)
        pairs = np.unique(pairs, axis=0)  # an edge counts once for each other relation
        codes = self.relations[pairs[:, 0]] * size + pairs[:, 1]
        found, counts = np.unique(codes, return_counts=True)
        totals = np.bincount(self.relations, minlength=size)
        is_most = counts >= _MOST * totals[found // size]
        most = {(int(it // size), int(it % size)) for it in found[is_most]}
        return sorted((a, b) for a, b in most if a < b and (b, a) in most)

    def leaks(self, pairs: list[tuple[int, int]], code: int) -> tuple[int, int]:
        """Count the edges of a split whose inverse is in train, and all of the split."""
        edges, reverses = self.reverses()
        size = int(self.relations.max(initial=0)) + 1
        known = {a * size + b for a, b in pairs} | {b * size + a for a, b in pairs}
        both = self.relations[edges] * size + self.relations[reverses]
        is_leak = (self.codes[edges] == code) & (self.codes[reverses] == 0)
        is_leak &= np.isin(both, list(known))
        return len(np.unique(edges[is_leak])), int((self.codes == code).sum())


def canonical_relations(num_relations: int, pairs: list[tuple[int, int]]) -> Ints:
    """Return the first of the relations that each one is an inverse of, ``[R]``."""
    canonical = np.arange(num_relations)
    for a, b in pairs:
        low, high = sorted((int(canonical[a]), int(canonical[b])))
        canonical[canonical == high] = low
    return canonical
