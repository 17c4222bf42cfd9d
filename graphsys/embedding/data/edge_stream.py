"""Edges read in pieces: all splits of a bucket side by side, source by source."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.core.types import EdgeType
from graphsys.embedding.data.buckets import read_bucket
from graphsys.storage.reader import GraphReader
from graphsys.storage.views import EdgeBucket

Ints = npt.NDArray[np.int64]
_PIECE = 1 << 18


class Triples(NamedTuple):
    """Edges by the numbers of their ends in their types, int64 ``[E]`` each."""

    src: Ints
    relation: Ints
    dst: Ints


def stream_edges(
    graph: GraphReader,
    edge_type: EdgeType,
    splits: Sequence[str],
    buckets: Sequence[tuple[int, int]] | None = None,
) -> Iterator[Triples]:
    """Yield the edges of some splits, bucket by bucket, in pieces of bounded size.

    A piece has about 2**18 edges of each split, and all those of a source in its bucket
    (more only where one source has more). So an edge that occurs twice in a bucket, also
    in two splits, occurs twice in one piece.

    Args:
        graph: The graph.
        edge_type: The edge type.
        splits: The splits.
        buckets: Only these (source partition, destination partition); all by default.
    """
    src_first = graph.offsets(edge_type.src_type)
    dst_first = graph.offsets(edge_type.dst_type)
    if buckets is None:
        shape = (len(src_first) - 1, len(dst_first) - 1)
        buckets = list(np.ndindex(shape))
    counts = {split: graph.bucket_counts(edge_type, split) for split in splits}
    for i, j in buckets:
        filled = [split for split in splits if counts[split][i, j]]
        parts = [read_bucket(graph, edge_type, i, j, split) for split in filled]
        for src, relation, dst in _pieces(parts):
            yield Triples(src + src_first[i], relation, dst + dst_first[j])


def _pieces(parts: list[EdgeBucket]) -> Iterator[Triples]:
    """Cut buckets sorted by source at the same sources."""
    begins = [0] * len(parts)
    while any(begin < len(p.src) for begin, p in zip(begins, parts, strict=True)):
        ends = [len(p.src) for p in parts]
        lasts = [
            int(p.src[begin + _PIECE])
            for begin, p in zip(begins, parts, strict=True)
            if begin + _PIECE < len(p.src)
        ]
        if lasts:
            ends = [_place(p.src, min(lasts), "left") for p in parts]
            if ends == begins:
                ends = [_place(p.src, min(lasts), "right") for p in parts]
        cut = [slice(b, e) for b, e in zip(begins, ends, strict=True)]
        yield Triples(
            _join([p.src[c] for p, c in zip(parts, cut, strict=True)]),
            _join([_relation(p, c) for p, c in zip(parts, cut, strict=True)]),
            _join([p.dst[c] for p, c in zip(parts, cut, strict=True)]),
        )
        begins = ends


def _place(numbers: npt.NDArray[np.integer], number: int, side: str) -> int:
    wanted = numbers.dtype.type(number)  # another type would copy the whole column
    return int(np.searchsorted(numbers, wanted, side=side))  # type: ignore[call-overload]


def _relation(bucket: EdgeBucket, cut: slice) -> npt.NDArray[np.integer]:
    if bucket.relation is None:
        return np.zeros(cut.stop - cut.start, dtype=np.int64)
    return bucket.relation[cut]


def _join(pieces: list[npt.NDArray[np.integer]]) -> Ints:
    return np.concatenate([piece.astype(np.int64) for piece in pieces])
