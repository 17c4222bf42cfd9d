"""The edges that a training holds out, as a split of the graph for ``evaluate``."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.types import Bucket, EdgeType
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.data.edge_selection import held_out_edges, num_held_out
from graphsys.storage.reader import GraphReader
from graphsys.storage.views import EdgeBucket

HELD_OUT = "held_out"


class GraphWithHeldOut(GraphReader):
    """A graph with one more split: what a training with ``eval_fraction`` leaves out.

    The other splits stay as they are, so that the held-out edges, which are edges of
    ``train``, count as known answers there.

    Args:
        graph: The graph; closing this closes nothing.
        config: The run's seed and fraction.
    """

    def __init__(self, graph: GraphReader, config: EmbeddingConfig) -> None:
        vars(self).update(vars(graph))
        self._config = config

    def close(self) -> None:
        """Do nothing: the graph it was made of is open."""

    def splits(self, edge_type: EdgeType | str) -> list[str]:
        """Return the splits of an edge type, the held-out edges last."""
        return [*super().splits(edge_type), HELD_OUT]

    def num_edges_of(self, edge_type: EdgeType | str, split: str | None = None) -> int:
        """Return the edges of a type in a split."""
        if split != HELD_OUT:
            return super().num_edges_of(edge_type, split)
        return int(self.bucket_counts(edge_type, HELD_OUT).sum())

    def bucket_counts(
        self, edge_type: EdgeType | str, split: str | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the edges of every bucket, int64 ``[P_src, P_dst]``."""
        if split != HELD_OUT:
            return super().bucket_counts(edge_type, split)
        counts = super().bucket_counts(edge_type)
        fraction = self._config.eval_fraction
        held = [num_held_out(int(count), fraction) for count in counts.flat]
        return np.array(held, dtype=np.int64).reshape(counts.shape)

    def bucket(
        self, edge_type: EdgeType | str, i: int, j: int, split: str | None = None
    ) -> EdgeBucket:
        """Return the edges from partition ``i`` to ``j``."""
        if split != HELD_OUT:
            return super().bucket(edge_type, i, j, split)
        bucket = super().bucket(edge_type, i, j)
        config, name = self._config, self.edge_type_name(edge_type)
        rows = held_out_edges(
            config.seed,
            config.eval_fraction,
            name,
            self.default_split(edge_type),
            Bucket(i, j),
            bucket.num_edges,
        )
        return _take(bucket, rows)


def _take(bucket: EdgeBucket, rows: npt.NDArray[np.uint32]) -> EdgeBucket:
    def of(array: npt.NDArray[Any] | None) -> Any:
        return None if array is None else array[rows]

    return EdgeBucket(
        src=of(bucket.src),
        dst=of(bucket.dst),
        relation=of(bucket.relation),
        weight=of(bucket.weight),
        time=of(bucket.time),
        columns={k: v.take(pa.array(rows)) for k, v in bucket.columns.items()},
    )
