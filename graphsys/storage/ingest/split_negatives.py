"""Pairs of nodes that are no edges, for telling held-out edges from others."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.core.errors import ConfigError
from graphsys.core.rng import generator
from graphsys.core.types import EdgeType
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
FEW_PAIRS = 1 << 22  # pairs, of which all that are no edges are listed
_ROUNDS = 30  # each about halves what is missing, but where nearly all pairs are edges


class NegativePairs:
    """Pairs that are edges in no split, drawn uniformly by relation, each at most once.

    Of undirected edges neither is a pair's reverse; no node is paired with itself. Pairs
    are of edges of their relation: another relation may join the same nodes.

    Args:
        graph: The graph, open; all its edges are known.
        edge_type: Of which edges.
        counts: How many pairs of each relation, ``[R]``; ``[1]`` without relations.
        seed: Of what is drawn; the outcome depends on the stored graph, too.

    Raises:
        ConfigError: There are fewer pairs that are no edges.
    """

    def __init__(
        self, graph: GraphReader, edge_type: EdgeType, counts: Ints, seed: int
    ) -> None:
        self._graph, self._type = graph, edge_type
        self._num_src = graph.num_nodes_of(edge_type.src_type)
        self._num_dst = graph.num_nodes_of(edge_type.dst_type)
        self._is_of_one = edge_type.src_type == edge_type.dst_type
        self._is_symmetric = self._is_of_one and not graph.is_directed_type(edge_type)
        self._num_pairs = self._num_src * self._num_dst
        if self._num_pairs * len(counts) >= 2**63:
            raise ConfigError(
                f"negatives: {self._num_pairs:.1e} pairs of nodes and {len(counts)} "
                "relations have no 64-bit number each; split without negatives"
            )
        self._rng = generator(seed, "negative pairs", edge_type.relation)
        self._keys = self._drawn(counts)
        self._next = np.cumsum(counts) - counts

    def take(self, relations: Ints) -> tuple[Ints, Ints]:
        """Return the ends of one more pair of each relation, by number, ``[n]`` each."""
        order = np.argsort(relations, kind="stable")
        counts = np.bincount(relations, minlength=len(self._next))
        begins = np.cumsum(counts) - counts
        rank = np.arange(len(relations)) - np.repeat(begins, counts)
        places = np.empty(len(relations), dtype=np.int64)
        places[order] = self._next[relations[order]] + rank
        self._next += counts
        src, dst = self._ends(self._keys[places])
        return src.astype(np.int64), dst.astype(np.int64)

    def _drawn(self, counts: Ints) -> Keys:
        """Return keys of as many pairs of each relation as are wanted, by relation."""
        if self._num_pairs * len(counts) <= FEW_PAIRS:
            every = np.arange(self._num_pairs * len(counts), dtype=np.uint64)
            free = self._free(every)
        else:
            free = self._tried(counts)
        free = self._rng.permutation(free)
        relations = self._relation(free)
        order = np.argsort(relations, kind="stable")
        begins = np.searchsorted(relations[order], np.arange(len(counts)))
        found = np.bincount(relations, minlength=len(counts))
        for code in np.flatnonzero(found < counts)[:1]:
            names = self._graph.relations(self._type)
            of = f" of relation {names[code]!r}" if names else ""
            raise ConfigError(
                f"negatives: {counts[code]} pairs{of} were asked for, {found[code]} that "
                "are no edges were found; ask for fewer"
            )
        spans = zip(begins, counts, strict=True)
        chosen = [order[begin : begin + n] for begin, n in spans]
        taken: Keys = free[np.concatenate(chosen)]
        return taken

    def _tried(self, counts: Ints) -> Keys:
        """Draw pairs of each relation until enough of them are no edges."""
        free = np.empty(0, dtype=np.uint64)
        for _ in range(_ROUNDS):
            found = np.bincount(self._relation(free), minlength=len(counts))
            missing = np.maximum(counts - found, 0)
            if not missing.any():
                break
            tries = 2 * missing + 16 * (missing > 0)
            pairs = self._rng.integers(0, self._num_pairs, tries.sum(), dtype=np.uint64)
            codes = np.repeat(np.arange(len(counts), dtype=np.uint64), tries)
            keys = distinct(codes * np.uint64(self._num_pairs) + pairs)
            free = np.union1d(free, self._free(keys))
        return free

    def _free(self, keys: Keys) -> Keys:
        """Return those of sorted keys that are no edges."""
        src, dst = self._ends(keys)
        is_free = np.ones(len(keys), dtype=bool)
        if self._is_symmetric:
            is_free = src < dst
        elif self._is_of_one:
            is_free = src != dst
        for known in self._edges() if len(keys) else ():
            places = np.searchsorted(keys, known)
            places[places == len(keys)] = 0
            is_free[places[keys[places] == known]] = False
        return keys[is_free]

    def _edges(self) -> Iterator[Keys]:
        """Yield the keys of all edges, bucket by bucket."""
        graph, kind = self._graph, self._type
        firsts = [graph.offsets(name) for name in (kind.src_type, kind.dst_type)]
        for split in graph.splits(kind):
            for i, j in graph.buckets(kind, split):
                bucket = graph.bucket(kind, i, j, split)
                src = bucket.src.astype(np.uint64) + np.uint64(firsts[0][i])
                dst = bucket.dst.astype(np.uint64) + np.uint64(firsts[1][j])
                if self._is_symmetric:
                    src, dst = np.minimum(src, dst), np.maximum(src, dst)
                keys = src * np.uint64(self._num_dst) + dst
                if bucket.relation is not None:
                    codes = bucket.relation.astype(np.uint64)
                    keys += codes * np.uint64(self._num_pairs)
                yield keys

    def _ends(self, keys: Keys) -> tuple[Keys, Keys]:
        pairs = keys % np.uint64(self._num_pairs or 1)
        return pairs // np.uint64(self._num_dst or 1), pairs % np.uint64(self._num_dst or 1)

    def _relation(self, keys: Keys) -> Ints:
        return (keys // np.uint64(self._num_pairs or 1)).astype(np.int64)
