"""R-MAT (Kronecker) graphs as sources of any size: GAP's and Graph500's parameters.

Edge k is computed from (seed, k) alone (kernels/cpu/rows/rmat.py), so the stream is the
same on every machine, for any number of threads and any chunk size.

References:
    Chakrabarti, Zhan, Faloutsos, "R-MAT: a recursive model for graph mining", SDM 2004.
    Beamer, Asanovic, Patterson, "The GAP benchmark suite", arXiv:1508.03619.
    The Graph500 benchmark specification, version 3, graph500.org.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from graphsys.core.errors import ConfigError, unknown_name
from graphsys.core.threads import map_in_order
from graphsys.datasets.generators.draws import draw_keys
from graphsys.kernels.cpu.rows import rmat as kernels
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

CHUNK_EDGES: Final = 1 << 20
MAX_SCALE: Final = 48


class Variant(NamedTuple):
    """Parameters of a benchmark.

    Attributes:
        a: Probability of the upper left quadrant.
        b: Of the upper right one.
        c: Of the lower left one.
        weights: Range of integer weights, or None for fractions in [0, 1).
    """

    a: float
    b: float
    c: float
    weights: tuple[int, int] | None


VARIANTS: Final = {
    "gap": Variant(0.57, 0.19, 0.19, (1, 255)),
    "graph500": Variant(0.57, 0.19, 0.19, None),
}


class RmatSource(Source):
    """Edges of one R-MAT graph; made by ``rmat``."""

    def __init__(
        self,
        scale: int,
        num_edges: int,
        limits: tuple[float, float, float],
        *,
        seed: int,
        weights: tuple[int, int] | bool,
        is_scrambled: bool,
        is_directed: bool,
        has_nodes: bool,
        chunk_edges: int,
        num_threads: int | None,
    ) -> None:
        self.name = f"rmat(scale={scale}, seed={seed})"
        self.scale = scale
        self.num_edges = num_edges
        self.total_bytes = 16 * num_edges
        self.is_directed = is_directed
        self._limits = np.array([round(limit * 2**32) for limit in limits], dtype=np.uint64)
        keys = draw_keys(f"rmat:{int(seed)}", 3)
        self._keys, self._weight_key = keys[:2], keys[2]
        self._weights = weights
        self._is_scrambled = is_scrambled
        self._has_nodes = has_nodes
        self._chunk_edges = chunk_edges
        self._num_threads = num_threads

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the nodes ``0 .. 2**scale - 1``, then the edges in order."""
        if self._has_nodes:
            for first in range(0, 2**self.scale, self._chunk_edges):
                last = min(first + self._chunk_edges, 2**self.scale)
                yield NodeChunk(ids=np.arange(first, last, dtype=np.int64))
        starts = range(0, self.num_edges, self._chunk_edges)
        yield from map_in_order(self._chunk, starts, num_threads=self._num_threads)

    def _chunk(self, first: int) -> EdgeChunk:
        """Draw the edges from ``first`` on."""
        size = min(self._chunk_edges, self.num_edges - first)
        src, dst = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        kernels.rmat_edges(
            first, self.scale, self._limits, self._keys, self._is_scrambled, src, dst
        )
        columns: dict[str, Any] = {}
        if isinstance(self._weights, tuple):
            low, high = self._weights
            whole = np.empty(size, dtype=np.int64)
            kernels.uniform_integers(first, self._weight_key, low, high, whole)
            columns["weight"] = whole.astype(np.int32)
        elif self._weights:
            fraction = np.empty(size, dtype=np.float32)
            kernels.uniform_fractions(first, self._weight_key, fraction)
            columns["weight"] = fraction
        return EdgeChunk(src=src, dst=dst, columns=columns, bytes_read=16 * size)


def rmat(
    scale: int,
    edge_factor: int = 16,
    *,
    variant: str = "gap",
    a: float | None = None,
    b: float | None = None,
    c: float | None = None,
    seed: int = 0,
    weights: bool = False,
    scramble: bool = True,
    directed: bool = False,
    isolated: bool = False,
    chunk_edges: int = CHUNK_EDGES,
    num_threads: int | None = None,
) -> RmatSource:
    """Make an R-MAT graph of ``2**scale`` nodes and ``edge_factor * 2**scale`` edges.

    Args:
        scale: Logarithm of the number of nodes, 1 to 48.
        edge_factor: Edges per node.
        variant: "gap" or "graph500": both a = .57, b = c = .19; they differ in weights.
        a: Probability of the upper left quadrant, where not the variant's.
        b: Of the upper right one.
        c: Of the lower left one; the rest is d.
        seed: Another seed, another graph.
        weights: Add weights: 1 to 255 (gap) or fractions in [0, 1) (graph500).
        scramble: Permute the labels, so that they tell nothing about degrees.
        directed: Edges have directions; in both benchmarks they do not.
        isolated: List all nodes, those without edges too.
        chunk_edges: Edges made at once; does not change them.
        num_threads: Threads; do not change the edges either.

    Raises:
        ConfigError: a value is out of range.
        UnknownNameError: there is no such variant.

    Examples:
        >>> chunk = next(rmat(4, 2).chunks())
        >>> len(chunk.src), int(max(chunk.src)) < 16
        (32, True)
    """
    if variant not in VARIANTS:
        raise unknown_name("variant", variant, VARIANTS)
    chosen = VARIANTS[variant]
    for name, value, low, high in (
        ("scale", scale, 1, MAX_SCALE),
        ("edge_factor", edge_factor, 1, 1 << 20),
        ("chunk_edges", chunk_edges, 1, 1 << 40),
    ):
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or not low <= value <= high
        ):
            raise ConfigError(
                f"rmat.{name}: got {value!r}, expected an int of {low} to {high}"
            )
    pa, pb, pc = (
        own if own is not None else default
        for own, default in zip((a, b, c), chosen[:3], strict=True)
    )
    if min(pa, pb, pc) < 0 or pa + pb + pc > 1:
        raise ConfigError(
            f"rmat: got a={pa}, b={pb}, c={pc}, expected probabilities that add up to at "
            "most 1"
        )
    make = partial(RmatSource, scale, edge_factor << scale, (pa, pa + pb, pa + pb + pc))
    return make(
        seed=seed,
        weights=(chosen.weights or True) if weights else False,
        is_scrambled=scramble,
        is_directed=directed,
        has_nodes=isolated,
        chunk_edges=chunk_edges,
        num_threads=num_threads,
    )
