"""Counts of patterns by sampling, with an interval that says how good they are."""

from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.notebook.tables import fields_table
from graphsys.core.rng import draw_key
from graphsys.core.threads import ThreadTeam
from graphsys.datasets.temporary import GraphLike
from graphsys.kernels.cpu.mining.matches import ABOVE
from graphsys.kernels.cpu.mining.samples import SAMPLES_A_CHUNK, draw_matches
from graphsys.mining.count_plan import plan_count
from graphsys.mining.labeled_graph import LabeledGraph
from graphsys.mining.pattern import Pattern
from graphsys.mining.simple_graph import SimpleGraph

_DEVIATIONS = 2.576
"""Half an interval in standard deviations of the mean. Of a normal mean that is 99 %; what
matches stand for is skewed, of which 1.96 would hold too seldom."""
_FIRST_CHUNKS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An approximate count.

    Attributes:
        count: The estimate.
        low: Lower end of the interval, not below 0.
        high: Upper end. The count lies in the interval in 95 of 100 estimates.
        samples: Matches drawn.
        converged: Whether the interval became as narrow as was asked for.
    """

    count: float
    low: float
    high: float
    samples: int
    converged: bool

    def _repr_html_(self) -> str:
        return fields_table("estimate", asdict(self))


def estimate(
    graph: LabeledGraph | SimpleGraph | GraphLike,
    pattern: Pattern | str | Any,
    *,
    induced: str = "edge",
    labels: str | None = None,
    relative_error: float = 0.05,
    max_samples: int = 4_000_000,
    seed: int = 0,
    num_threads: int | None = None,
) -> Estimate:
    """Estimate how often a pattern is in a graph, each set of edges (or nodes) once.

    Matches are drawn neighbor by neighbor, from 65,536 on twice as many each time, until
    the interval is narrow enough. The same seed gives the same for any number of threads.

    Args:
        graph: A store, its path, or an object that holds a graph; counts as simple and,
            but for arrows of the pattern, undirected.
        pattern: What :meth:`graphsys.mining.pattern.Pattern.of` takes.
        induced: ``edge``, or ``vertex``: no other edges among a match's nodes.
        labels: Where labels of nodes are; see :func:`graphsys.mining.count`.
        relative_error: Half of the interval as a share of the count.
        max_samples: Most matches to draw.
        seed: Of the draws.
        num_threads: All cores by default.

    Raises:
        ConfigError: the pattern is not one, or a number is out of range; arrows in a graph
            without direction.
        UnknownNameError: there is no pattern of this name, or no label in the graph.
    """
    if induced not in ("vertex", "edge"):
        raise ConfigError(f"induced={induced!r} is neither 'vertex' nor 'edge'")
    if not 0 < relative_error < 1:
        raise ConfigError(f"relative_error={relative_error}: expected a share, as 0.05")
    if max_samples < 1:
        raise ConfigError(f"max_samples={max_samples}: expected 1 or more")
    shape = Pattern.of(pattern)
    labeled = LabeledGraph.of(graph, shape, labels)
    with ThreadTeam(num_threads) as team:
        draws = _Draws(labeled, shape, induced == "vertex", seed, team)
        chunks = _FIRST_CHUNKS
        while True:
            found = draws.estimate(chunks, relative_error)
            if found.converged or found.samples * 2 > max_samples:
                return found
            chunks *= 2


class _Draws:
    """Draws of matches of one pattern; those made stay when more are wanted."""

    def __init__(
        self,
        graph: LabeledGraph,
        pattern: Pattern,
        is_induced: bool,
        seed: int,
        team: ThreadTeam,
    ) -> None:
        self._rows = rows = graph.rows
        self._team = team
        kind = "vertex" if is_induced else "edge"
        plan = plan_count(pattern, induced=kind)
        self._steps = plan.steps.copy()
        self._asked = (plan.tests, graph.kinds, plan.wanted, graph.labels)
        self._steps[:, ABOVE] = 0  # automorphic matches are divided out
        self._ways = pattern.num_automorphisms()
        self._key = draw_key(seed, "pattern")
        degrees = np.diff(rows.indptr)
        self._owners = np.repeat(
            np.arange(rows.num_nodes, dtype=rows.indices.dtype), degrees
        )
        longest = int(degrees.max(initial=0))
        scratch = team.num_threads, len(self._steps), longest
        self._candidates = np.empty(scratch, rows.indices.dtype)
        self._sums: npt.NDArray[np.float64] = np.empty((0, 2))

    def estimate(self, num_chunks: int, relative_error: float) -> Estimate:
        """Draw up to a number of chunks in all, and estimate from all of them."""
        if not len(self._rows.indices):
            return Estimate(count=0, low=0, high=0, samples=0, converged=True)
        more = np.zeros((num_chunks - len(self._sums), 2))
        self._team.run(
            draw_matches,
            self._rows.indptr,
            self._rows.indices,
            self._owners,
            self._steps,
            *self._asked,
            self._key,
            len(self._sums),
            np.zeros(1, dtype=np.int64),
            self._candidates,
            np.zeros((self._team.num_threads, len(self._steps)), dtype=np.int64),
            more,
        )
        self._sums = np.concatenate([self._sums, more])
        samples = num_chunks * SAMPLES_A_CHUNK
        mean, square = (self._sums.sum(axis=0) / samples).tolist()
        half = _DEVIATIONS * sqrt(max(square - mean * mean, 0) / (samples - 1))
        return Estimate(
            count=mean / self._ways,
            low=max(mean - half, 0) / self._ways,
            high=(mean + half) / self._ways,
            samples=samples,
            converged=mean > 0 and half <= relative_error * mean,
        )
