"""Negatives: nodes that are no neighbors, or not likely to be."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.core.rng import draw_key
from graphsys.kernels.cpu.alias_table import build_alias
from graphsys.kernels.cpu.rows.gathered_rows import first_outside
from graphsys.kernels.cpu.sampling.drawn_nodes import draw_alike, draw_nodes
from graphsys.sampling.adjacency import PartitionedCsr

Ints = npt.NDArray[np.int64]
Draw = Literal["uniform", "degree"]
POWER = 0.75


class NegativeSampler:
    """Draws nodes of the type that a relation's entries are of.

    Args:
        rows: The rows of the queries: their entries are what negatives should not be.
        draw: ``uniform``, or ``degree``: in proportion to degree ** 0.75, as in word2vec
            and GraphSAGE.
        degrees: Of the candidates, int64 ``[N]``; needed for ``degree``.
        is_excluding: Whether neighbors of the query are drawn again (up to 15 times).
        seed: Of all draws.

    Raises:
        ConfigError: An unknown draw, no candidates, or degrees that do not fit.

    References:
        Mikolov et al., "Distributed representations of words and phrases and their
        compositionality", NeurIPS 2013 (the power 0.75).
    """

    def __init__(
        self,
        rows: PartitionedCsr,
        draw: Draw = "uniform",
        *,
        degrees: Ints | None = None,
        is_excluding: bool = False,
        seed: int = 0,
    ) -> None:
        if draw not in ("uniform", "degree"):
            raise ConfigError(f"negatives: got {draw!r}, expected uniform or degree")
        self.num_candidates = rows.num_neighbors
        if not 0 < self.num_candidates < 2**32:
            raise ConfigError(
                f"negatives: {self.num_candidates} nodes of type {rows.neighbor_type!r}, "
                "expected 1 to 2**32 - 1"
            )
        self.rows, self.is_excluding, self.seed = rows, is_excluding, seed
        self._threshold, self._other = np.empty(0, np.float32), np.empty(0, np.int64)
        if draw == "degree":
            self._weigh(degrees)

    def _weigh(self, degrees: Ints | None) -> None:
        if degrees is None or len(degrees) != self.num_candidates or not degrees.any():
            got = "none" if degrees is None else f"{len(degrees)}"
            raise ConfigError(
                f"negatives by degree: got {got} degrees, expected {self.num_candidates}, "
                "not all 0"
            )
        self._threshold = np.empty(self.num_candidates, np.float32)
        self._other = np.empty(self.num_candidates, np.int64)
        build_alias(degrees.astype(np.float64) ** POWER, self._threshold, self._other)

    def draw(self, queries: Ints, count: int, *, epoch: int = 0, batch: int = 0) -> Ints:
        """Draw ``count`` negatives for each query, int64 ``[n, count]``.

        Without ``is_excluding`` queries are only counted; one query stands for a set of
        negatives that a whole minibatch shares.

        Raises:
            UnknownNameError: A query, whose neighbors are looked at, is not in the graph.
        """
        if self.is_excluding:
            rows = self.rows
            _require_nodes("query", queries, rows.num_nodes, rows.node_type)
        out = np.empty((len(queries), count), dtype=np.int64)
        draw_nodes(
            self.rows.offsets,
            self.rows.table,
            self.rows.wide,
            np.ascontiguousarray(queries, np.int64),
            self.is_excluding,
            self.num_candidates,
            self._threshold,
            self._other,
            draw_key(self.seed, "negatives", epoch, batch),
            out,
        )
        return out


class ConditionalNegativeSampler:
    """Draws nodes that are like a positive: of the same category, brand, city ...

    They are not the positive, nor neighbors of the query, as far as 15 draws find such;
    those of a group of one node are the positive itself.

    Args:
        rows: The rows of the queries: their entries are what negatives should not be.
        values: What the candidates are compared by, one value each; NumPy or Arrow ``[N]``.
            Nulls are alike.
        share: How many of a positive's negatives are like it; the others are uniform.
        is_excluding: Whether neighbors of the query are drawn again.
        seed: Of all draws.

    Raises:
        ConfigError: Values that do not fit the candidates, or a share outside 0 to 1.

    References:
        AliGraph's conditional negative sampler (graph-learn).
    """

    def __init__(
        self,
        rows: PartitionedCsr,
        values: Any,
        *,
        share: float = 1.0,
        is_excluding: bool = True,
        seed: int = 0,
    ) -> None:
        if len(values) != rows.num_neighbors:
            raise ConfigError(
                f"values: got {len(values)}, expected one for each of the "
                f"{rows.num_neighbors} nodes of type {rows.neighbor_type!r}"
            )
        if not 0 <= share <= 1:
            raise ConfigError(f"share: got {share}, expected a number from 0 to 1")
        self.rows, self.share, self.seed = rows, share, seed
        self._uniform = NegativeSampler(rows, is_excluding=is_excluding, seed=seed)
        array = (
            values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
        )
        coded = array.combine_chunks().dictionary_encode(null_encoding="encode")
        self._codes = coded.indices.to_numpy().astype(np.int64)
        sizes = np.bincount(self._codes, minlength=len(coded.dictionary))
        self._begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._members = np.argsort(self._codes, kind="stable")

    def draw(
        self, queries: Ints, positives: Ints, count: int, *, epoch: int = 0, batch: int = 0
    ) -> Ints:
        """Draw ``count`` negatives for each query and its positive, int64 ``[n, count]``.

        The first ``round(share * count)`` of them are like the positive.

        Raises:
            UnknownNameError: A positive or a query is not in the graph.
        """
        queries, positives = (
            np.ascontiguousarray(it, np.int64) for it in (queries, positives)
        )
        rows = self.rows
        _require_nodes("positive", positives, rows.num_neighbors, rows.neighbor_type)
        if self._uniform.is_excluding:
            _require_nodes("query", queries, rows.num_nodes, rows.node_type)
        num_alike = round(self.share * count)
        alike = np.empty((len(queries), num_alike), dtype=np.int64)
        draw_alike(
            rows.offsets,
            rows.table,
            rows.wide,
            queries,
            self._uniform.is_excluding,
            positives,
            self._codes,
            self._begins,
            self._members,
            draw_key(self.seed, "alike", epoch, batch),
            alike,
        )
        rest = self._uniform.draw(queries, count - num_alike, epoch=epoch, batch=batch)
        return np.concatenate([alike, rest], axis=1)


def _require_nodes(what: str, nodes: Ints, count: int, node_type: str) -> None:
    outside = first_outside(np.ascontiguousarray(nodes, np.int64), count)
    if outside >= 0:
        raise UnknownNameError(
            f"{what} {nodes[outside]} is not in the graph, which has {count} nodes of type "
            f"{node_type!r}"
        )
