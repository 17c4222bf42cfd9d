"""In which order an epoch visits the buckets, and how a bucket is cut into batches.

A unit is what is trained between two swaps: the buckets of all edge types whose
partitions are in memory together (types with one partition always are).
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.core.rng import generator
from graphsys.core.types import DEFAULT_SPLIT, Bucket
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.data.bucket_order import order_units
from graphsys.embedding.data.edge_selection import EdgePart
from graphsys.embedding.model import RelationSet
from graphsys.graph.csr import read_only

if TYPE_CHECKING:  # numba takes half a second, which asking for neighbors has not
    from graphsys.kernels.cpu.embedding.chunk import Edges

Part = tuple[str, int]


@dataclass(frozen=True)
class BucketTask:
    """One bucket of one edge type.

    Attributes:
        edge_type: Position of the edge type in the model.
        bucket: Place in its grid.
        src: Type and partition of the sources.
        dst: Type and partition of the destinations.
        num_edges: Edges trained at this step.
        split: Their split.
        part: Which part of the bucket's edges it is.
        phase: Position in the sequence of edge sets and parts; phases do not mix.
        round: Which of the rounds it belongs to in which partitions meet in groups.
    """

    edge_type: int
    bucket: Bucket
    src: Part
    dst: Part
    num_edges: int
    split: str = DEFAULT_SPLIT
    part: EdgePart = EdgePart()  # noqa: RUF009  (frozen)
    phase: int = 0
    round: int = 0


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How units follow each other, and how many partitions are in memory.

    Attributes:
        order: Name of the order.
        order_capacity: The capacity that the order is made for. It stays when a run is
            resumed with a buffer of another size, so that the order stays.
        capacity: Partitions that the buffer holds, types with one partition apart.
        prefetch: Whether partitions come and leave while others are trained.
    """

    order: str = "inside_out"
    order_capacity: int = 2
    capacity: int = 2
    prefetch: bool = True


class BucketSchedule:
    """The units of every epoch.

    Args:
        steps: The buckets of an epoch, inside out.
        num_partitions: Of every node type.
        layout: The order.
        seed: Of the orders that draw.
    """

    def __init__(
        self,
        steps: Iterable[BucketTask],
        num_partitions: Mapping[str, int],
        layout: Layout,
        seed: int,
    ) -> None:
        by_phase: dict[tuple[int, int], list[BucketTask]] = {}
        for step in steps:
            by_phase.setdefault((step.phase, step.round), []).append(step)
        phases = sorted(by_phase)
        groups = [units(by_phase[phase], num_partitions) for phase in phases]
        self._phases = [len(group) for group in groups]
        turns = [0, *(k for k in range(1, len(phases)) if phases[k][1] != phases[k - 1][1])]
        ends = np.cumsum([0, *self._phases])
        self._stretches = [int(ends[k]) for k in (*turns, len(phases))]
        self._units = [unit for group in groups for unit in group]
        self._needs = [needs_of(unit, num_partitions) for unit in self._units]
        self._layout, self._seed = layout, seed
        self._first: dict[int, list[int]] = {}

    def put_first(self, epoch: int, units: Iterable[int]) -> None:
        """Have some units of an epoch come before the others, in the order of the epoch.

        Args:
            epoch: Which one.
            units: Their places in the order without this.
        """
        self._first[epoch] = sorted(units)

    def places(self, epoch: int) -> list[int]:
        """Return the places of an epoch's units in the order without :meth:`put_first`."""
        first = self._first.get(epoch, [])
        return [*first, *sorted(set(range(len(self))).difference(first))]

    def __len__(self) -> int:
        return len(self._units)

    def epoch(self, epoch: int) -> list[list[BucketTask]]:
        """Return the units in the order of an epoch."""
        return [self._units[k] for k in self._order(epoch)]

    def needs(self, epoch: int) -> list[frozenset[Part]]:
        """Return the partitions that each of them needs, but for those always there."""
        return [self._needs[k] for k in self._order(epoch)]

    def stretches(self, unit: int = 0) -> list[slice]:
        """Return which units of an epoch, from one on, are trained with one buffer.

        Between two of them partitions change groups: the buffer begins anew.
        """
        pairs = itertools.pairwise(self._stretches)
        return [slice(max(begin, unit), end) for begin, end in pairs if end > unit]

    def always(self, unit: Iterable[BucketTask]) -> set[Part]:
        """Return the partitions of a unit that are in memory always."""
        parts = {part for step in unit for part in (step.src, step.dst)}
        return {part for part in parts if not any(part in need for need in self._needs)}

    def _order(self, epoch: int) -> list[int]:
        layout, result, begin = self._layout, list[int](), 0
        for phase, count in enumerate(self._phases):
            keys = (epoch, phase) if phase else (epoch,)
            rng = generator(self._seed, "order of units", *keys)
            needs = self._needs[begin : begin + count]
            order = order_units(layout.order, needs, layout.order_capacity, rng)
            result += [begin + k for k in order]
            begin += count
        return [result[place] for place in self.places(epoch)]


def inside_out(buckets: Iterable[Bucket]) -> list[Bucket]:
    """Order buckets of a grid in growing squares, each walked along its border.

    Examples:
        >>> corner = [Bucket(0, 0), Bucket(0, 1), Bucket(1, 0), Bucket(1, 1)]
        >>> [tuple(bucket) for bucket in inside_out(corner)]
        [(0, 0), (0, 1), (1, 1), (1, 0)]
    """

    def place(bucket: Bucket) -> tuple[int, int]:
        i, j = bucket
        return (j, i) if i <= j else (i, 2 * i - j)

    return sorted(buckets, key=place)


def units(
    steps: Iterable[BucketTask], num_partitions: Mapping[str, int]
) -> list[list[BucketTask]]:
    """Group steps that need the same partitioned partitions, in order of first need."""
    groups: dict[frozenset[Part], list[BucketTask]] = {}
    for step in steps:
        groups.setdefault(needs_of([step], num_partitions), []).append(step)
    return list(groups.values())


def needs_of(
    unit: Iterable[BucketTask], num_partitions: Mapping[str, int]
) -> frozenset[Part]:
    """Return the partitions of a unit that are not in memory always: one or two."""
    parts = (part for step in unit for part in (step.src, step.dst))
    return frozenset(part for part in parts if num_partitions[part[0]] > 1)


def cut_bucket(
    src: npt.NDArray[np.uint32],
    dst: npt.NDArray[np.uint32],
    relation: npt.NDArray[np.uint32],
    weight: npt.NDArray[np.float32],
    relations: RelationSet,
    config: EmbeddingConfig,
    keys: Sequence[int | str],
    chosen: npt.NDArray[np.uint32] | None = None,
) -> "Edges":
    """Shuffle a bucket and cut it into chunks and batches.

    Without reciprocal relations, or with negatives by relation, the edges of a chunk share
    one relation; else only those whose negatives are all nodes keep apart from the others.
    Of mode kvsall a chunk asks for one end, and has an edge for each of its questions,
    whose weight may be how many edges answer it.

    Args:
        src: Local numbers of the sources ``[E]``.
        dst: Local numbers of the destinations ``[E]``.
        relation: Codes of the relations ``[E]``, or empty.
        weight: Weights ``[E]``, or empty.
        relations: The relations of the edge type.
        config: Sizes and seed.
        keys: What the shuffle is for (epoch, edge type, bucket).
        chosen: Positions of the edges to be trained, ``[T]``, shuffled in place; all by
            default.
    """
    from graphsys.kernels.cpu.embedding.chunk import ASKS_DST, ASKS_SRC, Edges

    rng = generator(config.seed, "shuffle", *keys)
    order = np.arange(len(src), dtype=np.uint32) if chosen is None else chosen
    rng.shuffle(order)
    size, asked = config.chunk_size, np.empty(0, dtype=np.uint8)
    group, num_groups = relation, len(relations.codes)
    # Only two kinds must not meet in a chunk: all nodes as negatives, and drawn ones.
    if not config.is_cut_by_relation:
        has_both = distinct(relations.all_negatives).size > 1
        num_groups = 2 if has_both else 1
        group = relations.all_negatives.astype(np.uint32)[relation] if has_both else group
    if config.mode == "kvsall":
        first, asks_src, num_answers = _questions(
            src, dst, relation, order, len(relations.codes)
        )
        groups = asks_src.astype(np.uint32) * num_groups
        groups += group[first] if num_groups > 1 else 0
        order = np.arange(len(first), dtype=np.uint32)
        order, chunks, kinds = _cut_by_group(order, groups, 2 * num_groups, size, rng)
        if config.weigh_by_answers:  # an edge may answer two questions of unlike weights
            src, dst, weight = src[first], dst[first], num_answers
            relation = relation[first] if len(relation) else relation
        else:
            order = first[order]
        asked = np.where(kinds >= num_groups, ASKS_SRC, ASKS_DST).astype(np.uint8)
    elif num_groups == 1:
        begins = np.arange(0, len(order), size, dtype=np.int64)
        chunks = np.stack([begins, np.minimum(begins + size, len(order))], axis=1)
    else:
        order, chunks, _ = _cut_by_group(order, group[order], num_groups, size, rng)
    # Batches are whole chunks, whose negatives are shared.
    stride = max(1, config.batch_size // size)
    batches = np.append(np.arange(0, len(chunks), stride), len(chunks)).astype(np.int64)
    return Edges(
        src=read_only(src),
        dst=read_only(dst),
        relation=read_only(relation),
        weight=read_only(weight),
        relation_weight=relations.weights,
        all_negatives=relations.all_negatives,
        order=order,
        chunks=np.ascontiguousarray(chunks),
        batches=batches,
        asked=asked,
    )


def _cut_by_group(
    order: npt.NDArray[np.uint32],
    groups: npt.NDArray[np.uint32],
    num_groups: int,
    size: int,
    rng: np.random.Generator,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Cut edges into chunks of one group each.

    Args:
        order: The edges, shuffled.
        groups: Group of each.
        num_groups: How many groups there are.
        size: Most edges of a chunk.
        rng: Shuffles the chunks.

    Returns:
        The edges by group, where each chunk begins and ends in them, and its group.
    """
    order = order[np.argsort(groups, kind="stable")]
    counts = np.bincount(groups, minlength=num_groups)
    pieces = -(-counts // size)
    firsts = np.repeat(np.cumsum(counts) - counts, pieces)
    inner = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    ends = np.repeat(np.cumsum(counts), pieces)
    begins = firsts + inner * size
    chunks = np.stack([begins, np.minimum(begins + size, ends)], axis=1)
    shuffled = rng.permutation(len(chunks))
    kinds = np.repeat(np.arange(num_groups), pieces)
    return order, chunks[shuffled].astype(np.int64), kinds[shuffled]


def _questions(
    src: npt.NDArray[np.uint32],
    dst: npt.NDArray[np.uint32],
    relation: npt.NDArray[np.uint32],
    order: npt.NDArray[np.uint32],
    num_relations: int,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_], npt.NDArray[np.float32]]:
    """Return an edge for every distinct question, its end, and its edges' number.

    A question is a node and a relation; of the edges that answer it the first in ``order``
    stands for it.

    Returns:
        Numbers of edges, ``[Q]``; whether each asks for the source; how many edges answer
        it.
    """
    found, counts = [], []
    for given in (src, dst):
        keys = given[order].astype(np.uint64) * np.uint64(num_relations)
        keys += relation[order] if num_relations > 1 else np.uint64(0)
        _, first, count = np.unique(keys, return_index=True, return_counts=True)
        by_first = np.argsort(first)
        found.append(order[first[by_first]])
        counts.append(count[by_first].astype(np.float32))
    asks_src = np.repeat([False, True], [len(found[0]), len(found[1])])
    return np.concatenate(found), asks_src, np.concatenate(counts)
