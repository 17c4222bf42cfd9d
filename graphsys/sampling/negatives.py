"""Negatives: nodes that are no neighbors, or not likely to be."""

from typing import Literal

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.rng import draw_key
from graphsys.kernels.cpu.drawn_nodes import build_alias, draw_nodes
from graphsys.sampling.adjacency import Rows

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
        rows: Rows,
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
        """
        out = np.empty((len(queries), count), dtype=np.int64)
        draw_nodes(
            self.rows.offsets, self.rows.table, self.rows.wide,
            np.ascontiguousarray(queries, np.int64), self.is_excluding,
            self.num_candidates, self._threshold, self._other,
            draw_key(self.seed, "negatives", epoch, batch), out,
        )  # fmt: skip
        return out
