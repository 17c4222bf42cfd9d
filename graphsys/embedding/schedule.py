"""In which order an epoch visits the buckets, and how a bucket is cut into batches.

A unit is what is trained between two swaps: the buckets of all edge types whose
partitions are in memory together (types with one partition always are). Units follow
each other inside out (Lerer et al., 2019): growing squares of the grid, so that every
bucket but the first shares a partition with one trained before.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from graphsys.core.rng import generator
from graphsys.core.types import Bucket
from graphsys.embedding.config import EmbeddingConfig
from graphsys.kernels.cpu.embedding_chunk import Edges

Part = tuple[str, int]
T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class Step:
    """One bucket of one edge type.

    Attributes:
        edge_type: Position of the edge type in the model.
        bucket: Place in its grid.
        src: Type and partition of the sources.
        dst: Type and partition of the destinations.
        num_edges: Training edges in it.
    """

    edge_type: int
    bucket: Bucket
    src: Part
    dst: Part
    num_edges: int


def inside_out(num_src: int, num_dst: int) -> list[Bucket]:
    """Order the buckets of a grid in growing squares, each walked along its border.

    Examples:
        >>> [tuple(bucket) for bucket in inside_out(2, 2)]
        [(0, 0), (0, 1), (1, 1), (1, 0)]
    """
    order = []
    for size in range(max(num_src, num_dst)):
        border = [(k, size) for k in range(size)] + [(size, size)]
        border += [(size, k) for k in reversed(range(size))]
        order += [Bucket(i, j) for i, j in border if i < num_src and j < num_dst]
    return order


def units(steps: Iterable[Step], num_partitions: Mapping[str, int]) -> list[list[Step]]:
    """Group steps that need the same partitioned partitions, in order of first need."""
    groups: dict[frozenset[Part], list[Step]] = {}
    for step in steps:
        needed = frozenset(p for p in (step.src, step.dst) if num_partitions[p[0]] > 1)
        groups.setdefault(needed, []).append(step)
    return list(groups.values())


def cut_bucket(
    src: npt.NDArray[np.uint32],
    dst: npt.NDArray[np.uint32],
    relation: npt.NDArray[np.uint32],
    weight: npt.NDArray[np.float32],
    relation_weight: npt.NDArray[np.float32],
    config: EmbeddingConfig,
    keys: Sequence[int | str],
) -> Edges:
    """Shuffle a bucket and cut it into chunks and batches.

    Without reciprocal relations the edges of a chunk share one relation.

    Args:
        src: Local numbers of the sources ``[E]``.
        dst: Local numbers of the destinations ``[E]``.
        relation: Codes of the relations ``[E]``, or empty.
        weight: Weights ``[E]``, or empty.
        relation_weight: Loss weight of every relation ``[R]``.
        config: Sizes and seed.
        keys: What the shuffle is for (epoch, edge type, bucket).
    """
    rng = generator(config.seed, "shuffle", *keys)
    order = np.arange(len(src), dtype=np.uint32)
    rng.shuffle(order)
    size = config.chunk_size
    if config.reciprocal or len(relation_weight) == 1:
        begins = np.arange(0, len(src), size, dtype=np.int64)
        chunks = np.stack([begins, np.minimum(begins + size, len(src))], axis=1)
    else:
        order = order[np.argsort(relation[order], kind="stable")]
        counts = np.bincount(relation, minlength=len(relation_weight))
        pieces = -(-counts // size)
        firsts = np.repeat(np.cumsum(counts) - counts, pieces)
        inner = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        ends = np.repeat(np.cumsum(counts), pieces)
        begins = firsts + inner * size
        chunks = np.stack([begins, np.minimum(begins + size, ends)], axis=1)
        chunks = chunks[rng.permutation(len(chunks))].astype(np.int64)
    stride = max(1, config.batch_size // size)
    batches = np.append(np.arange(0, len(chunks), stride), len(chunks)).astype(np.int64)
    return Edges(
        src=_frozen(src),
        dst=_frozen(dst),
        relation=_frozen(relation),
        weight=_frozen(weight),
        relation_weight=relation_weight,
        order=order,
        chunks=np.ascontiguousarray(chunks),
        batches=batches,
    )


def _frozen(array: npt.NDArray[T]) -> npt.NDArray[T]:
    """Mark as read-only, as mapped columns are: one compiled kernel for both."""
    view = array.view()
    view.flags.writeable = False
    return view
