"""What the edges say about nodes and relations: training degrees, 1-1 to n-n."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.core.types import true_splits
from graphsys.embedding.data.buckets import read_bucket
from graphsys.embedding.data.edge_stream import stream_edges
from graphsys.embedding.model import RelationSet
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
_MANY = 1.5
_PIECE = 1 << 18


def training_degrees(
    graph: GraphReader, model: Iterable[RelationSet], node_type: str, part: int
) -> Ints:
    """Count the training edges at every node of a partition, at either end.

    Returns:
        Counts, int64 ``[N]``; a self-loop counts twice.
    """
    size = int(np.diff(graph.offsets(node_type))[part])
    degrees = np.zeros(size, dtype=np.int64)
    for relations in model:
        kind = relations.edge_type
        counts = graph.bucket_counts(kind)
        for i, j in np.argwhere(counts).tolist():
            is_src = kind.src_type == node_type and i == part
            is_dst = kind.dst_type == node_type and j == part
            if is_src or is_dst:
                bucket = read_bucket(graph, kind, i, j)
                if is_src:
                    degrees += np.bincount(bucket.src, minlength=size)
                if is_dst:
                    degrees += np.bincount(bucket.dst, minlength=size)
    return degrees


def degrees_of(
    graph: GraphReader, model: Iterable[RelationSet], node_type: str, numbers: Ints
) -> Ints:
    """Return the training degree of nodes given by their numbers, ``[n]``."""
    model = list(model)
    offsets = graph.offsets(node_type)
    parts = np.searchsorted(offsets, numbers, side="right") - 1
    result = np.zeros(len(numbers), dtype=np.int64)
    for part in distinct(parts).tolist():
        chosen = parts == part
        degrees = training_degrees(graph, model, node_type, part)
        result[chosen] = degrees[numbers[chosen] - offsets[part]]
    return result


def training_counts(graph: GraphReader, relations: RelationSet) -> Ints:
    """Count the training edges of every relation of an edge type, int64 ``[R]``."""
    counts = np.zeros(len(relations.relations), dtype=np.int64)
    if len(counts) == 1:  # no edge needs to be read
        counts[0] = graph.bucket_counts(relations.edge_type, "train").sum()
        return counts
    for edges in stream_edges(graph, relations.edge_type, ["train"]):
        counts += np.bincount(edges.relation, minlength=len(counts))
    return counts


def relation_categories(graph: GraphReader, relations: RelationSet) -> list[str]:
    """Call every relation 1-1, 1-n, n-1 or n-n.

    A side is n where a pair of the relation and a node at the other end has on average at
    least 1.5 nodes there, over the distinct true edges of all splits (Bordes et al.,
    "Translating embeddings for modeling multi-relational data", NIPS 2013, section 4.3);
    ``1-n`` has one head and many tails. Edges without direction count both ways.

    Returns:
        A category per relation; a relation without edges is 1-1.
    """
    kind, num = relations.edge_type, len(relations.relations)
    splits = true_splits(graph.splits(kind))
    rows, columns = graph.num_partitions(kind.src_type), graph.num_partitions(kind.dst_type)
    is_symmetric = not graph.is_directed_type(kind) and kind.src_type == kind.dst_type
    triples, pairs = np.zeros(num, dtype=np.int64), np.zeros((2, num), dtype=np.int64)
    for i in range(rows):
        heads = _Distinct()
        for edges in stream_edges(graph, kind, splits, [(i, j) for j in range(columns)]):
            triples += _num_distinct(edges.src, edges.relation, edges.dst, num)
            heads.add(edges.src * num + edges.relation)
        if is_symmetric:
            for edges in stream_edges(graph, kind, splits, [(j, i) for j in range(rows)]):
                heads.add(edges.dst * num + edges.relation)
        pairs[0] += np.bincount(heads.merge() % num, minlength=num)
    for j in range(columns if not is_symmetric else 0):
        tails = _Distinct()
        for edges in stream_edges(graph, kind, splits, [(i, j) for i in range(rows)]):
            tails.add(edges.dst * num + edges.relation)
        pairs[1] += np.bincount(tails.merge() % num, minlength=num)
    if is_symmetric:
        triples, pairs[1] = 2 * triples, pairs[0]
    tails_per_head, heads_per_tail = triples / np.maximum(pairs, 1)
    return [
        f"{'n' if heads >= _MANY else '1'}-{'n' if tails >= _MANY else '1'}"
        for heads, tails in zip(heads_per_tail, tails_per_head, strict=True)
    ]


class _Distinct:
    """A growing set of numbers, merged whenever it has doubled."""

    def __init__(self) -> None:
        self._pieces = [np.empty(0, dtype=np.int64)]

    def add(self, numbers: Ints) -> None:
        """Take in numbers."""
        self._pieces.append(distinct(numbers))
        if sum(map(len, self._pieces[1:])) > len(self._pieces[0]) + _PIECE:
            self.merge()

    def merge(self) -> Ints:
        """Return all numbers so far, ascending, each once."""
        self._pieces = [distinct(np.concatenate(self._pieces))]
        return self._pieces[0]


def _num_distinct(src: Ints, relation: Ints, dst: Ints, num_relations: int) -> Ints:
    """Count the distinct edges of every relation."""
    order = np.lexsort((dst, src, relation))
    src, relation, dst = src[order], relation[order], dst[order]
    is_new = np.ones(len(src), dtype=bool)
    is_new[1:] = (
        (src[1:] != src[:-1]) | (relation[1:] != relation[:-1]) | (dst[1:] != dst[:-1])
    )
    return np.bincount(relation[is_new], minlength=num_relations)
