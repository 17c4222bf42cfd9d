"""Which edges of a bucket are trained, and which are held out for evaluation.

Held-out edges are the same in every epoch and in a resumed run: ``int(E * eval_fraction)``
of the E edges of a bucket, drawn from (seed, edge type, split, bucket), as PBG does.
The rest is cut into ``edge_chunks`` parts, which an epoch visits one after the other.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphsys.core.rng import generator
from graphsys.core.types import Bucket

Rows = npt.NDArray[np.uint32]


@dataclass(frozen=True, kw_only=True)
class EdgePart:
    """One of several parts of the edges that are trained.

    Attributes:
        number: Which part, from 0.
        total: How many there are.
    """

    number: int = 0
    total: int = 1

    def size(self, num_edges: int) -> int:
        """Return how many of so many edges are in this part."""
        return len(range(self.number, num_edges, self.total))


def num_held_out(num_edges: int, fraction: float) -> int:
    """Return how many of the edges of a bucket are held out."""
    return int(num_edges * fraction)


def held_out_edges(
    seed: int, fraction: float, edge_type: str, split: str, bucket: Bucket, num_edges: int
) -> Rows:
    """Draw the held-out edges of a bucket.

    Args:
        seed: Seed of the run.
        fraction: Fraction held out, below 1.
        edge_type: Name of the edge type, which keys the draw, as the next two do.
        split: The split.
        bucket: The bucket.
        num_edges: Edges in the bucket, E.

    Returns:
        Their rows in the bucket, ascending, uint32 ``[int(E * fraction)]``.
    """
    count = num_held_out(num_edges, fraction)
    rng = generator(seed, "held out", edge_type, split, *bucket)
    rows = rng.choice(num_edges, size=count, replace=False, shuffle=False)
    return np.sort(rows).astype(np.uint32)


def edges_to_train(
    num_edges: int, held_out: Rows, part: EdgePart, only: Rows | None = None
) -> Rows | None:
    """Return the rows of a bucket that are trained now.

    A part is every ``total``-th edge of what is not held out, so that all sources are in
    every part although buckets are sorted by source.

    Args:
        num_edges: Edges in the bucket.
        held_out: Rows to leave out, ascending.
        part: Which part of the rest.
        only: Rows to choose from, ascending; None for all.

    Returns:
        Rows, ascending, uint32, a copy; None for all edges.
    """
    if only is None and not len(held_out) and part.total == 1:
        return None
    kept = np.arange(num_edges, dtype=np.uint32) if only is None else only
    if len(held_out):
        keeps = np.ones(num_edges, dtype=bool)
        keeps[held_out] = False
        kept = kept[keeps[kept]]
    return kept[part.number :: part.total].copy()
