"""Betweenness centrality, exact or sampled; see kernels/cpu/algorithms/betweenness.py."""

import time
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError, InvalidGraphError
from graphsys.core.threads import ThreadTeam
from graphsys.engine.algorithms.algorithm import (
    GraphLike,
    NativeOptions,
    listed,
)
from graphsys.engine.algorithms.distances import length_search
from graphsys.engine.algorithms.shortest_paths import weighted_csr
from graphsys.engine.algorithms.traversal import search
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.algorithms import betweenness as kernels
from graphsys.kernels.cpu.algorithms.weighted_betweenness import (
    OVERFLOWS,
    SearchSpace,
    accumulate_by_length,
)
from graphsys.kernels.cpu.bits import empty_bits
from graphsys.kernels.cpu.rows.csr import CsrArrays

SERIAL_EDGES = 1 << 14  # a level of fewer edges is not worth waking another thread
SMALL_EDGES = 1 << 20  # up to here threads take whole sources
Floats = npt.NDArray[np.float64]


def _betweenness(facts: Facts) -> Need:
    if facts.options.get("weighted") and facts.topology.has_weight:
        return Need(
            rows=("out",),
            in_place=True,
            columns=("weight",),
            bytes=(64 * facts.threads + 32) * facts.nodes,
            variant="weighted",
        )
    if facts.edges <= SMALL_EDGES:
        per_node, variant = 32 * facts.threads + 32, "sources"
    else:
        per_node, variant = 8 + 14 + 4 + 32 + 24, "levels"
    total = per_node * facts.nodes
    return Need(rows=facts.both, in_place=True, bytes=total, variant=variant)


@listed(needs=_betweenness, shown="largest")
def betweenness(
    graph: GraphLike,
    *,
    samples: int | None = None,
    sources: Sequence[Any] | None = None,
    seed: int = 0,
    normalized: bool = True,
    weighted: bool = False,
    **options: Unpack[NativeOptions],
) -> Result:
    """Shares of shortest paths that pass through every node, exact or sampled.

    Paths follow the edges' direction, and differ if their nodes do: repeated edges count
    once, the shortest of them. As in NetworkX, the ends of a path do not count; with a
    sample of the sources the sums are scaled up to all of them.

    Args:
        graph: An open graph, its path, or edges in memory.
        samples: Take paths from this many sources only, drawn at random; all by default.
        sources: Take paths from these nodes only, by id.
        seed: Another seed, another sample.
        normalized: Divide by the number of pairs of other nodes; else undirected graphs
            count every pair once.
        weighted: Take the column ``weight`` for the lengths of edges; else paths of few
            edges are the shortest.
        options: How it is run: ``memory`` and ``num_threads``. The number of threads
            changes the order of sums, so the result up to rounding.

    Returns:
        ``value``: float64; null for a source that is the only one, of which nothing is
        known.

    Raises:
        ConfigError: ``samples`` is not in 1 to N, or both it and ``sources`` are given.
        InvalidGraphError: two nodes have more than 1.8e308 shortest paths between them; a
            length that is not above 0 and finite, or vanishes beside others in float64.
        UnknownNameError: a source is not in the graph.

    Complexity:
        O(S (N + E)) time for S sources, O(N) memory besides the graph; weighted
        O(S (N + E) log N), and 64 bytes a node and thread.

    References:
        Brandes, "A faster algorithm for betweenness centrality", J. Math. Sociol. 25(2),
        2001. Brandes, Pich, "Centrality estimation in large networks", Int. J. Bifurcation
        and Chaos 17(7), 2007.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1], [1, 2], num_nodes=3, directed=False)
        >>> gs.algorithms.betweenness(graph).table["value"].to_pylist()
        [0.0, 1.0, 0.0]
    """
    topology = Topology.of(graph)
    began = time.perf_counter()
    chosen = _choose_sources(topology, samples, sources, seed)
    with ThreadTeam(options.get("num_threads")) as team:
        if weighted and topology.has_weight:
            scores = _accumulate_by_length(topology, chosen, team)
        else:
            out, into = topology.rows("out"), topology.rows("in")
            scores = accumulate(out, into, chosen, team)
    scale, is_unknown = _scale(topology, chosen, normalized)
    value = np.ma.MaskedArray(scores * scale, is_unknown)
    return Result(
        source=lambda: topology.table({"value": value}),
        algorithm="betweenness",
        supersteps=len(chosen),
        seconds=time.perf_counter() - began,
    )


def accumulate(
    out: Csr, into: Csr, sources: npt.NDArray[np.int64], team: ThreadTeam
) -> Floats:
    """Sum the dependencies of the sources on every node, float64 ``[N]``.

    Args:
        out: Rows of out-neighbors.
        into: Rows of in-neighbors; ``out`` itself if undirected.
        sources: Numbers of the sources.
        team: Threads.

    Raises:
        InvalidGraphError: there are more shortest paths than a float64 can count.
    """
    # on a small graph a level has too little work for all threads: each takes sources of
    # its own, at the cost of its own arrays; on a large one all share a source
    if out.num_edges <= SMALL_EDGES:
        scores = _accumulate_small(out, sources, team)
    else:
        scores = np.zeros(out.num_nodes)
        accumulator = _Accumulator(out, into, scores, team)
        for source in sources.tolist():
            accumulator.add(source)
    _refuse_uncounted(scores)
    return scores


def _refuse_uncounted(scores: Floats) -> None:
    if np.isnan(scores).any():  # of a number of paths that is infinite
        raise InvalidGraphError(
            "two nodes have more than 1.8e308 shortest paths between them, which "
            "betweenness cannot count in 64-bit numbers; leave out what repeats (a grid, "
            "layers that are joined in full), or rank by closeness or pagerank"
        )


def _accumulate_by_length(
    topology: Topology, sources: npt.NDArray[np.int64], team: ThreadTeam
) -> Floats:
    """Sum the same along edges with lengths; each thread takes sources of its own.

    Raises:
        InvalidGraphError: lengths that are not above 0 and finite, or do not add up.
    """
    out = topology.rows("out", ("weight",))
    for _, piece in out.pieces("weight"):
        wrong = ~((piece > 0) & (piece < np.inf))
        if wrong.any():
            raise InvalidGraphError(
                f"betweenness needs lengths above 0, but {np.count_nonzero(wrong)} weights "
                f"are not, the first {piece[wrong][0]}; change them, or leave "
                "weighted=False to count edges"
            )
    shape = team.num_threads, out.num_nodes
    space = SearchSpace(
        search=length_search(*shape),
        paths=np.empty(shape),
        shares=np.empty(shape),
        scores=np.zeros(shape),
        refused=np.zeros(team.num_threads, dtype=np.int64),
    )
    rows = weighted_csr(out)
    team.run(accumulate_by_length, rows, sources, np.zeros(1, dtype=np.int64), space)
    if space.refused.any():
        what = "add up to more than float64 holds"
        if not (space.refused == OVERFLOWS).any():
            what = "are so different that small ones vanish beside large ones in float64"
        raise InvalidGraphError(
            f"the weights along shortest paths {what}; scale the weights down, or leave "
            "weighted=False to count edges"
        )
    scores: Floats = space.scores.sum(axis=0)
    _refuse_uncounted(scores)
    return scores


def _accumulate_small(out: Csr, sources: npt.NDArray[np.int64], team: ThreadTeam) -> Floats:
    shape = team.num_threads, out.num_nodes
    scores = np.zeros(shape)
    team.run(
        kernels.accumulate_sources,
        out.arrays,
        sources,
        np.zeros(1, dtype=np.int64),
        np.empty(shape, dtype=out.indices.dtype),
        np.full(shape, -1, dtype=np.int32),
        np.empty(shape),
        np.empty(shape),
        scores,
    )
    total: Floats = scores.sum(axis=0)
    return total


class _Accumulator:
    """Adds one source after the other; all threads work on one source."""

    def __init__(self, out: Csr, into: Csr, scores: Floats, team: ThreadTeam) -> None:
        self.out, self.into, self.scores, self.team = out, into, scores, team
        self.rows = out.arrays, into.arrays
        self.marks = empty_bits(out.num_nodes)
        self.counter = np.zeros(1, dtype=np.int64)

    def add(self, source: int) -> None:
        """Add the dependencies of one source."""
        levels = self._levels(source)
        paths = np.zeros(self.out.num_nodes)
        paths[source] = 1.0
        self._count_paths(levels, paths)
        self._sum_dependencies(levels, paths)

    def _levels(self, source: int) -> kernels.DagLevels:
        found = search(self.out, self.into, source, self.team)
        num_levels = int(found.distance.max()) + 1
        levels = kernels.DagLevels(
            order=np.empty(self.out.num_nodes, dtype=self.out.indices.dtype),
            starts=np.zeros(num_levels + 1, dtype=np.int64),
            out_edges=np.zeros(num_levels, dtype=np.int64),
            in_edges=np.zeros(num_levels, dtype=np.int64),
        )
        kernels.sort_by_level(
            found.distance,
            found.reached,
            *self.rows,
            levels,
            np.empty(num_levels, dtype=np.int64),
        )
        return levels

    def _count_paths(self, levels: kernels.DagLevels, paths: Floats) -> None:
        shared = *self.rows, levels, self.marks, paths
        level, (out_rows, in_rows) = 1, self.rows
        while True:
            level = kernels.count_paths(level, SERIAL_EDGES, *shared, self.counter)
            if level >= len(levels.starts) - 1:
                break
            # the smaller side walks its edges; the other one looks only at marked nodes
            here, above = _span(levels, level), _span(levels, level - 1)
            push_cost = kernels.PUSH_COST * int(levels.out_edges[level - 1])
            if push_cost < levels.in_edges[level]:
                kernel, rows, side, other = kernels.add_to_neighbors, out_rows, above, here
            else:
                kernel, rows, side, other = kernels.sum_neighbors, in_rows, here, above
            self._run(kernel, rows, levels.order, side, other, paths, paths)
            level += 1

    def _sum_dependencies(self, levels: kernels.DagLevels, paths: Floats) -> None:
        order, (out_rows, in_rows) = levels.order, self.rows
        sums, share = np.zeros(len(paths)), np.empty(len(paths))
        kept = paths, sums, share, self.scores
        # from the farthest level back: what depends on a node is known when all below it is
        level = len(levels.starts) - 2
        kernels.finish_level(order, *_span(levels, level), *kept)
        level -= 1
        while True:
            shared = *self.rows, levels, self.marks, *kept, self.counter
            level = kernels.sum_dependencies(level, SERIAL_EDGES, *shared)
            if level <= 0:
                break
            here, below = _span(levels, level), _span(levels, level + 1)
            push_cost = kernels.PUSH_COST * int(levels.in_edges[level + 1])
            if push_cost < levels.out_edges[level]:
                kernel, rows, side, other = kernels.add_to_neighbors, in_rows, below, here
            else:
                kernel, rows, side, other = kernels.sum_neighbors, out_rows, here, below
            self._run(kernel, rows, order, side, other, share, sums)
            kernels.finish_level(order, *here, *kept)
            level -= 1

    def _run(
        self,
        kernel: Any,
        rows: CsrArrays,
        order: npt.NDArray[Any],
        side: tuple[int, int],
        other: tuple[int, int],
        values: Floats,
        sums: Floats,
    ) -> None:
        """Let the nodes of one level look at their neighbors in another one."""
        kernels.mark_level(self.marks, order, *other, True)
        self.counter[0] = 0
        self.team.run(kernel, rows, order, *side, self.counter, self.marks, values, sums)
        kernels.mark_level(self.marks, order, *other, False)


def _span(levels: kernels.DagLevels, level: int) -> tuple[int, int]:
    return int(levels.starts[level]), int(levels.starts[level + 1])


def _choose_sources(
    topology: Topology, samples: int | None, sources: Sequence[Any] | None, seed: int
) -> npt.NDArray[np.int64]:
    num_nodes = topology.num_nodes
    if sources is not None:
        if samples is not None:
            raise ConfigError("samples and sources exclude each other; give one of them")
        return np.array([topology.number(node) for node in sources], dtype=np.int64)
    if samples is None:
        return np.arange(num_nodes, dtype=np.int64)
    if not 1 <= samples <= num_nodes:
        raise ConfigError(
            f"samples must lie in 1 to {num_nodes} (the nodes), got {samples}"
        )
    ranks = np.random.default_rng(seed).choice(num_nodes, samples, replace=False)
    by_rank = topology.by_rank
    return ranks if by_rank is None else by_rank[ranks].astype(np.int64)


def _scale(
    topology: Topology, chosen: npt.NDArray[np.int64], normalized: bool
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return factors ``[N]`` and which are unknown, as networkx 3.6 scales samples.

    A source sees the paths from all others only, so one source fewer than other nodes.
    """
    num_nodes, num_sources = topology.num_nodes, len(chosen)
    scale, is_unknown = np.ones(num_nodes), np.zeros(num_nodes, dtype=np.bool_)
    if num_nodes < 3 or num_sources == 0:
        return scale, is_unknown
    pairs = (num_nodes - 2) if normalized else (1 if topology.is_directed else 2)
    whole = 1 if normalized else num_nodes - 1
    if num_sources == num_nodes:
        scale[:] = whole / ((num_nodes - 1) * pairs)
        return scale, is_unknown
    scale[:] = whole / (num_sources * pairs)
    if num_sources > 1:
        scale[chosen] = whole / ((num_sources - 1) * pairs)
    else:
        is_unknown[chosen] = True
    return scale, is_unknown
