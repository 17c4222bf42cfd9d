"""The queries of an evaluation, and which of their answers are known to be true."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphsys.core.types import EdgeType
from graphsys.embedding.buckets import read_bucket
from graphsys.storage.reader import Graph

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Queries:
    """One query per row: a node and a relation ask for the node at the other end.

    Attributes:
        node: Number of the node given ``[Q]``.
        relation: Code of the relation ``[Q]``.
        target: Number of the answer asked for ``[Q]``.
        known_begin: Where the known answers of a query begin in ``known`` ``[Q]``.
        known_end: Where they end ``[Q]``.
        known: Numbers of answers in any split, sorted within a query.
        answer_type: Node type of the answers.
    """

    node: Ints
    relation: Ints
    target: Ints
    known_begin: Ints
    known_end: Ints
    known: Ints
    answer_type: str

    def take(self, chosen: npt.NDArray[np.intp]) -> "Queries":
        """Return some of the queries."""
        return Queries(
            node=self.node[chosen],
            relation=self.relation[chosen],
            target=self.target[chosen],
            known_begin=self.known_begin[chosen],
            known_end=self.known_end[chosen],
            known=self.known,
            answer_type=self.answer_type,
        )


def make_queries(
    graph: Graph, edge_type: EdgeType, split: str, *, asks_for_dst: bool
) -> Queries:
    """Turn the edges of a split into queries.

    The known answers are collected in one pass over all buckets, keeping the edges whose
    given node and relation some query has.

    Args:
        graph: The graph.
        edge_type: The edge type.
        split: Its split to ask about.
        asks_for_dst: Whether the source is given, or the destination.
    """
    num_relations = len(graph.relations(edge_type) or [""])
    edges = list(_edges(graph, edge_type, split, asks_for_dst))
    node, relation, target = (
        np.concatenate([part[k] for part in edges]) if edges else np.empty(0, np.int64)
        for k in range(3)
    )
    keys = node * num_relations + relation
    wanted = np.unique(keys)
    positions, answers = [], []
    is_directed = graph.is_directed_type(edge_type)
    for other in graph.splits(edge_type):
        for side in [asks_for_dst] if is_directed else [True, False]:
            for given, code, answer in _edges(graph, edge_type, other, side):
                place, found = _find(wanted, given * num_relations + code)
                positions.append(place[found])
                answers.append(answer[found])
    place = np.concatenate([np.empty(0, np.int64), *positions])
    known = np.concatenate([np.empty(0, np.int64), *answers])
    order = np.lexsort((known, place))
    begins = np.searchsorted(place[order], np.arange(len(wanted) + 1))
    own, _ = _find(wanted, keys)
    return Queries(
        node=node,
        relation=relation,
        target=target,
        known_begin=begins[own].astype(np.int64),
        known_end=begins[own + 1].astype(np.int64) if len(own) else np.empty(0, np.int64),
        known=known[order],
        answer_type=edge_type.dst_type if asks_for_dst else edge_type.src_type,
    )


def _edges(
    graph: Graph, edge_type: EdgeType, split: str, asks_for_dst: bool
) -> list[tuple[Ints, Ints, Ints]]:
    """Read a split as (given node, relation, answer), bucket by bucket."""
    result = []
    src_offsets, dst_offsets = (
        graph.offsets(edge_type.src_type),
        graph.offsets(edge_type.dst_type),
    )
    for i, j in np.argwhere(graph.bucket_counts(edge_type, split)):
        bucket = read_bucket(graph, edge_type, int(i), int(j), split)
        src = bucket.src.astype(np.int64) + src_offsets[i]
        dst = bucket.dst.astype(np.int64) + dst_offsets[j]
        relation = np.zeros(len(src), dtype=np.int64)
        if bucket.relation is not None:
            relation = bucket.relation.astype(np.int64)
        result.append((src, relation, dst) if asks_for_dst else (dst, relation, src))
    return result


def _find(wanted: Ints, keys: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return the place of every key among the sorted wanted ones, and if it is there."""
    if not len(wanted):
        return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
    place = np.minimum(np.searchsorted(wanted, keys), len(wanted) - 1)
    return place.astype(np.int64), wanted[place] == keys
