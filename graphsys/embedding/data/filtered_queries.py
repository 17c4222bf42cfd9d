"""The questions of an evaluation, and which of their answers are known to be true.

Known answers are found by passing over the sorted buckets of the store, one bounded piece
of edges at a time, for one batch of questions after the other; a batch is as large as its
known answers allow. So memory is bounded whatever the number of edges.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from graphsys.core.types import EdgeType, known_splits
from graphsys.embedding.data.edge_stream import stream_edges
from graphsys.embedding.data.held_out import HeldOut
from graphsys.graph.slices import WHOLE, Slice
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
_BATCH = 1 << 14
_PAIRS = 1 << 21
_LEAST = 128
"""How much smaller a batch may become where memory is short."""


@dataclass(frozen=True, kw_only=True)
class BatchLimits:
    """How large a batch of questions may be.

    Attributes:
        questions: Questions of a batch, at most.
        known: Known answers of a batch together, at most, unless it is one question.
    """

    questions: int = field(default_factory=lambda: _BATCH)
    known: int = field(default_factory=lambda: _PAIRS)

    def smaller(self) -> list["BatchLimits"]:
        """Return these and halves of them, down to what still keeps threads busy."""
        return [
            BatchLimits(
                questions=max(self.questions >> k, 1), known=max(self.known >> k, 1)
            )
            for k in range(_LEAST.bit_length())
        ]


@dataclass(frozen=True, kw_only=True)
class Queries:
    """One query per row: a node and a relation ask for the node at the other end.

    Attributes:
        index: Which of all questions each is ``[Q]``.
        node: Number of the node given ``[Q]``.
        relation: Code of the relation ``[Q]``.
        target: Number of the answer asked for, -1 where any is ``[Q]``.
        known_begin: Where the known answers of a query begin in ``known`` ``[Q]``.
        known_end: Where they end ``[Q]``.
        known: Numbers of answers in any true split, ascending within a query, each once.
    """

    index: Ints
    node: Ints
    relation: Ints
    target: Ints
    known_begin: Ints
    known_end: Ints
    known: Ints

    def __len__(self) -> int:
        return len(self.node)

    def take(self, chosen: npt.NDArray[np.integer] | slice) -> "Queries":
        """Return some of the queries."""
        return replace(
            self,
            index=self.index[chosen],
            node=self.node[chosen],
            relation=self.relation[chosen],
            target=self.target[chosen],
            known_begin=self.known_begin[chosen],
            known_end=self.known_end[chosen],
        )

    def among(self, numbers: Ints) -> "Queries":
        """Return the same queries about a few candidates: answers are places in them.

        Args:
            numbers: Numbers of the candidates, ascending, each once ``[k]``.
        """
        sizes = self.known_end - self.known_begin
        ends = np.cumsum(sizes)
        owner = np.repeat(np.arange(len(self)), sizes)
        inside = np.arange(len(owner)) - np.repeat(ends - sizes, sizes)
        answers = self.known[np.repeat(self.known_begin, sizes) + inside]
        place, found = find(numbers, answers)
        own, is_own = find(numbers, self.target)
        ends = np.cumsum(np.bincount(owner[found], minlength=len(self)))
        return replace(
            self,
            target=np.where(is_own, own, -1),
            known_begin=np.concatenate([[0], ends[:-1]]).astype(np.int64),
            known_end=ends.astype(np.int64),
            known=place[found],
        )


def held_out_queries(
    graph: GraphReader,
    edges: HeldOut,
    *,
    asks_for_dst: bool,
    limits: BatchLimits | None = None,
    share: Slice = WHOLE,
) -> Iterator[Queries]:
    """Ask for one end of every held-out edge, in batches in the edges' order.

    Args:
        graph: The graph.
        edges: The edges.
        asks_for_dst: Whether the source is given, or the destination.
        limits: Of a batch.
        share: Whose answers are of interest.
    """
    given, target = edges.src, edges.dst
    if not asks_for_dst:
        given, target = target, given
    return query_batches(
        graph,
        edges.relations.edge_type,
        given,
        edges.relation,
        target,
        asks_for_dst=asks_for_dst,
        limits=limits,
        share=share,
    )


def query_batches(
    graph: GraphReader,
    edge_type: EdgeType,
    node: Ints,
    relation: Ints,
    target: Ints,
    *,
    asks_for_dst: bool,
    limits: BatchLimits | None = None,
    share: Slice = WHOLE,
    splits: str = "all",
) -> Iterator[Queries]:
    """Find the known answers of questions, batch by batch.

    Args:
        graph: The graph.
        edge_type: The edge type asked about.
        node: Numbers of the nodes given ``[Q]``.
        relation: Codes of the relations ``[Q]``.
        target: Numbers of the answers, -1 where any is asked for ``[Q]``.
        asks_for_dst: Whether sources are given, or destinations.
        limits: Of a batch: by default at most 2**14 questions, with at most 2**21 known
            answers together, or one question.
        share: Known answers are looked for among these nodes only.
        splits: The splits whose edges are known ("train,valid").

    Yields:
        Consecutive questions.
    """
    limits = limits or BatchLimits()
    adjacency = _Adjacency(graph, edge_type, asks_for_dst, share, splits)
    for begin in range(0, len(node), limits.questions):
        block = slice(begin, min(begin + limits.questions, len(node)))
        keys = adjacency.keys(node[block], relation[block])
        wanted, own = np.unique(keys, return_inverse=True)
        counts = adjacency.count(wanted)
        for low, high in _cut(own, counts, limits.known):
            some = slice(begin + low, begin + high)
            kept, own_kept = np.unique(own[low:high], return_inverse=True)
            begins, known = adjacency.collect(wanted[kept])
            yield Queries(
                index=np.arange(some.start, some.stop),
                node=node[some],
                relation=relation[some],
                target=target[some],
                known_begin=begins[own_kept],
                known_end=begins[own_kept + 1],
                known=known,
            )


def find(wanted: Ints, keys: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return the place of every key among sorted ones, and whether it is there."""
    if not len(wanted):
        return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
    place = np.minimum(np.searchsorted(wanted, keys), len(wanted) - 1)
    return place.astype(np.int64), wanted[place] == keys


def _cut(
    own: npt.NDArray[np.integer], counts: Ints, most: int
) -> Iterator[tuple[int, int]]:
    """Cut questions so that the known answers of each piece stay within bounds.

    Args:
        own: Which list of known answers each question has ``[Q]``.
        counts: How many answers each list has.
        most: Known answers of a piece.
    """
    begin, total, seen = 0, 0, set[int]()
    for place, number in enumerate(own.tolist()):
        size = 0 if number in seen else int(counts[number])
        if place > begin and total + size > most:
            yield begin, place
            begin, total, seen = place, 0, set()
            size = int(counts[number])
        seen.add(number)
        total += size
    if len(own):
        yield begin, len(own)


class _Adjacency:
    """The answers that the edges of some splits give, looked up for many keys at once.

    Splits of labeled negatives give none. A key is a node and a relation:
    ``node * num_relations + relation``.
    """

    def __init__(
        self,
        graph: GraphReader,
        edge_type: EdgeType,
        asks_for_dst: bool,
        share: Slice,
        splits: str,
    ) -> None:
        self.graph, self.edge_type = graph, edge_type
        self.splits = known_splits(graph.splits(edge_type), splits)
        self.num_relations = len(graph.relations(edge_type) or [""])
        given = edge_type.src_type if asks_for_dst else edge_type.dst_type
        self.num_given = graph.num_nodes_of(given)
        is_symmetric = edge_type.src_type == edge_type.dst_type
        is_symmetric = is_symmetric and not graph.is_directed_type(edge_type)
        self.sides = [True, False] if is_symmetric else [asks_for_dst]
        self.span: tuple[int, int] | None = None
        self.buckets: list[tuple[int, int]] | None = None
        if not share.is_all:
            answers = graph.offsets(
                edge_type.dst_type if asks_for_dst else edge_type.src_type
            )
            self.span = share.span(answers)
            self.buckets = self._buckets({part for part, _, _ in share.partitions(answers)})

    def keys(self, node: Ints, relation: Ints) -> Ints:
        """Return the keys of nodes and relations."""
        return node * self.num_relations + relation

    def count(self, wanted: Ints) -> Ints:
        """Count the edges that answer every key; one edge in two splits counts twice."""
        counts = np.zeros(len(wanted), dtype=np.int64)
        for place, _ in self._matches(wanted):
            counts += np.bincount(place, minlength=len(wanted))
        return counts

    def collect(self, wanted: Ints) -> tuple[Ints, Ints]:
        """Return where the answers to each key begin ``[K + 1]``, and the answers."""
        none = np.empty(0, dtype=np.int64)
        found = list(self._matches(wanted))
        place = np.concatenate([none, *(match[0] for match in found)])
        answer = np.concatenate([none, *(match[1] for match in found)])
        del found
        order = np.lexsort((answer, place))
        place, answer = place[order], answer[order]
        if len(place):
            is_new = np.ones(len(place), dtype=bool)
            is_new[1:] = (place[1:] != place[:-1]) | (answer[1:] != answer[:-1])
            place, answer = place[is_new], answer[is_new]
        begins = np.searchsorted(place, np.arange(len(wanted) + 1)).astype(np.int64)
        return begins, answer

    def _matches(self, wanted: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Yield the edges that answer keys: places among the keys, and answers."""
        is_given = np.zeros(self.num_given, dtype=bool)
        is_given[wanted // self.num_relations] = True
        for edges in stream_edges(self.graph, self.edge_type, self.splits, self.buckets):
            for is_src_given in self.sides:
                given, answer = edges.src, edges.dst
                if not is_src_given:
                    given, answer = answer, given
                is_near = is_given[given]
                if self.span is not None:
                    is_near &= (answer >= self.span[0]) & (answer < self.span[1])
                near = np.flatnonzero(is_near)
                keys = self.keys(given[near], edges.relation[near])
                place, found = find(wanted, keys)
                yield place[found], answer[near[found]]

    def _buckets(self, parts: set[int]) -> list[tuple[int, int]]:
        """Return the buckets with answers in some partitions."""
        kind = self.edge_type
        shape = (
            self.graph.num_partitions(kind.src_type),
            self.graph.num_partitions(kind.dst_type),
        )
        return [
            (i, j)
            for i, j in np.ndindex(shape)
            if any((j if is_src_given else i) in parts for is_src_given in self.sides)
        ]
