"""Shortest paths from a source by delta-stepping.

Kernels: kernels/cpu/algorithms/shortest_paths.py.
"""

import time
from dataclasses import dataclass
from typing import Any, Unpack
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.compiling import compile_first
from graphsys.core.errors import InvalidGraphError
from graphsys.core.threads import ThreadTeam
from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    NativeOptions,
    ProgramOptions,
    listed,
)
from graphsys.engine.algorithms.traversal import (
    Levels,
    find_parents,
    parent_ids,
    search,
)
from graphsys.engine.edge_weights import HOPS, refuse_overflow
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.algorithms import shortest_path_rows as row_kernels
from graphsys.kernels.cpu.algorithms import shortest_path_team as team_kernels
from graphsys.kernels.cpu.algorithms import shortest_path_windows as windows
from graphsys.kernels.cpu.algorithms import shortest_paths as kernels
from graphsys.kernels.cpu.algorithms.path_trees import find_path_tree
from graphsys.kernels.cpu.bits import Words, empty_bits
from graphsys.kernels.cpu.rows.csr import WeightedCsr
from graphsys.kernels.cpu.work_queue import PIECE_SIZE
from graphsys.storage.views import array_of

NUM_BINS = 4096
SERIAL_EDGES = 1 << 14  # a frontier of fewer edges is not worth waking another thread
TEAM_EDGES = 128  # a thread: many bins of so many are worth having all in one kernel
TEAM_NODES = 32  # a thread, in a frontier that is worth it
MOST_TEAM_NODES = 1 << 13
FIRST_LIMIT = 4.0  # bins; put off edges behind at first (see shortest_path_windows.py)
PULL_COST = 4  # an edge pulled costs so many passed over
POOL_SHARE = 4  # entries in the pool per node; more of them at once would be rebuilt
_WEIGHT = ("weight",)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightSummary:
    """What choosing the width of a bin needs.

    Attributes:
        mean: Mean of the finite weights; infinite where their sum is, in float64.
        least: Least weight; infinite if there is none.
        least_positive: Least positive weight; infinite if there is none.
        num_refused: How many are negative or NaN.
        num_senders: Nodes that have an edge.
    """

    mean: float
    least: float
    least_positive: float
    num_refused: int
    num_senders: int


_summaries: WeakKeyDictionary[Topology, WeightSummary] = WeakKeyDictionary()


def sssp_needs(facts: Facts) -> Need:
    """Return what a search from a source takes, by hops where there are no weights."""
    has_parents = bool(facts.options.get("parents"))
    variant = "parents" if has_parents else ""
    tree = tree_bytes(facts) if has_parents else 0.0
    if facts.topology.has_weight:
        pool = facts.threads * 4097 * 64 * 4
        return Need(
            rows=facts.both,
            in_place=True,
            columns=("weight",),
            bytes=max(34 * facts.nodes + pool, tree),
            variant=variant,
        )
    per_node = 22 * facts.nodes
    return Need(
        rows=facts.both,
        in_place=True,
        bytes=max(per_node, tree),
        kernels="traversal",
        variant=variant,
    )


def tree_bytes(facts: Facts) -> float:
    """Return what distances, parents and their ids take, all nodes being reached."""
    scratch = 4 + (8 if facts.nodes > np.iinfo(np.int32).max else 4)
    ids = (8 if facts.ranked else 0) + 2 * facts.id_bytes
    return (26 + max(facts.ranked + scratch, ids)) * facts.nodes


def _sssp(
    topology: Topology,
    *,
    source: Any,
    parents: bool = False,
    **options: Unpack[NativeOptions],
) -> Result:
    """Compute it where no length is negative."""
    began = time.perf_counter()
    start = topology.number(source)
    columns = {}
    with ThreadTeam(options.get("num_threads")) as team:
        out = _weighted_rows(topology)
        if out is None:
            levels = search(topology.rows("out"), topology.rows("in"), start, team)
            distance = levels.distance.astype(np.float64)
            reached, rounds = levels.reached, levels.num_levels
            if parents:
                parent = find_parents(topology, levels, team)
                columns["parent"] = parent_ids(topology, parent, reached, start)
        else:
            summary = _summary(topology, out, team)
            delta = choose_delta(summary, out.num_edges)
            into = topology.rows("in", _WEIGHT)
            distance, reached, rounds = delta_stepping(
                out, into, start, delta, summary.least, team
            )
            _refuse_overflow(out, summary, distance)
            if parents:
                parent = path_tree(topology, out, start, distance)
                columns["parent"] = parent_ids(topology, parent, reached, start)

    def table() -> pa.Table:
        return topology.table({"value": array_of(distance, reached), **columns})

    return Result(
        source=table,
        algorithm="sssp",
        supersteps=rounds,
        seconds=time.perf_counter() - began,
    )


@listed(
    native=_sssp,
    needs=sssp_needs,
    program="sssp:shortest_paths",
    shown="smallest",
    tags=("SSSP",),
    example=Example(parameters={"source": 0}),
    follower="paths:sssp",
)
def sssp(
    graph: GraphLike,
    *,
    source: Any,
    parents: bool = False,
    negative_weights: bool = False,
    **options: Unpack[ProgramOptions],
) -> None:
    """Distances from a source: the lengths of the shortest paths.

    Args:
        graph: An open graph, its path, or edges in memory; the column ``weight`` holds the
            lengths of edges, which are 1 where there is none.
        source: Id of the node to start from.
        parents: Add a column ``parent``: the id of the node before this one on a shortest
            path, of those with the fewest edges the first one in the order of ids; null
            for the source and where nothing leads.
        negative_weights: Allow negative lengths; only the vertex program does.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: distance, float64, null where not reached.

    Raises:
        UnknownNameError: the graph has no such node.
        InvalidGraphError: lengths that are NaN or, unless allowed, negative; a negative
            cycle.

    Complexity:
        O(N + E) time on random graphs and lengths, O(N) memory besides the graph; parents
        take a second pass over the edges, in one thread.

    References:
        Meyer, Sanders, "Delta-stepping: a parallelizable shortest path algorithm", J.
        Algorithms 49(1), 2003. Bellman, "On a routing problem", 1958 (the program).

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges(
        ...     [0, 1, 0], [1, 2, 2], num_nodes=3, weight=[1.5, 1.0, 4.0]
        ... )
        >>> gs.algorithms.sssp(graph, source=0).table["value"].to_pylist()
        [0.0, 1.5, 2.5]
    """


def path_tree(
    topology: Topology, out: Csr, start: int, distance: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Return the node before each one on a shortest path, of few edges and small ids.

    Args:
        topology: The graph.
        out: Its rows of out-neighbors with weights.
        start: Number of the source.
        distance: Distances from it, infinite where it does not reach ``[N]``.

    Returns:
        Numbers ``[N]``; those of the source and of nodes that are not reached say nothing.
    """
    rank, num_nodes = topology.rank, out.num_nodes
    is_far = num_nodes > np.iinfo(np.int32).max
    parent = np.zeros(num_nodes, dtype=np.int64)
    find_path_tree(
        out.begins,
        out.ends,
        out.indices,
        out.begins_of("weight"),
        out.columns["weight"],
        start,
        distance,
        out.indices[:0] if rank is None else rank,
        np.empty(num_nodes, dtype=out.indices.dtype),
        np.full(num_nodes, -1, dtype=np.int64 if is_far else np.int32),
        parent,
    )
    return parent


@dataclass(frozen=True, slots=True, kw_only=True)
class PathTree:
    """Shortest paths from a node.

    Attributes:
        distance: Distances, infinite where it does not reach ``[N]``.
        parent: The node before each one ``[N]``; of the source and of nodes that are not
            reached it says nothing.
    """

    distance: npt.NDArray[np.float64]
    parent: npt.NDArray[np.int64]


def paths_from(topology: Topology, start: int, team: ThreadTeam) -> PathTree:
    """Return the tree whose parents :func:`sssp` tells.

    Raises:
        InvalidGraphError: some weights are negative or NaN.
    """
    _ = topology.rank  # sorting ids takes most, so it comes before all else
    out = _weighted_rows(topology)
    distance, levels = _search_from(topology, out, start, team)
    if levels is not None:
        parent = find_parents(topology, levels, team)
    else:
        assert out is not None  # else it was searched by levels
        parent = path_tree(topology, out, start, distance)
    return PathTree(distance=distance, parent=parent)


def distances_from(
    topology: Topology, start: int, team: ThreadTeam
) -> npt.NDArray[np.float64]:
    """Return the distances from a node, infinite where it does not reach ``[N]``.

    Args:
        topology: The graph.
        start: Number of the node.
        team: Threads.

    Raises:
        InvalidGraphError: some weights are negative or NaN.
    """
    return _search_from(topology, _weighted_rows(topology), start, team)[0]


def _search_from(
    topology: Topology, out: Csr | None, start: int, team: ThreadTeam
) -> tuple[npt.NDArray[np.float64], Levels | None]:
    """Return distances, infinite where there is no path; and the levels of a search."""
    levels = None
    if out is None:
        levels = search(topology.rows("out"), topology.rows("in"), start, team)
        distance, reached = levels.distance.astype(np.float64), levels.reached
    else:
        summary = _summary(topology, out, team)
        delta = choose_delta(summary, out.num_edges)
        into = topology.rows("in", _WEIGHT)
        distance, reached, _ = delta_stepping(out, into, start, delta, summary.least, team)
        _refuse_overflow(out, summary, distance)
    bits = np.unpackbits(reached.view(np.uint8), bitorder="little")[: len(distance)]
    return np.where(bits, distance, np.inf), levels


def refuse_weights(
    topology: Topology, team: ThreadTeam, distance: npt.NDArray[np.float64] | None = None
) -> None:
    """Refuse weights that sssp does not take.

    Args:
        topology: The graph.
        team: Threads.
        distance: Distances, infinite where there is no path ``[N]``, to refuse paths too
            that float64 does not hold.

    Raises:
        InvalidGraphError: some are negative or NaN; a path is longer than float64 holds.
    """
    out = _weighted_rows(topology)
    if out is not None:
        summary = _summary(topology, out, team)
        if distance is not None:
            _refuse_overflow(out, summary, distance)


def _refuse_overflow(
    out: Csr, summary: WeightSummary, distance: npt.NDArray[np.float64]
) -> None:
    """Refuse paths that float64 does not hold; none is longer than all weights together."""
    if not np.isfinite(summary.mean):
        refuse_overflow(out, distance)


def choose_delta(summary: WeightSummary, num_edges: int) -> float:
    """Choose the width of a bin: mean weight over mean degree (Meyer and Sanders).

    It is never below the least weight: nodes of narrower bins cannot reach each other.
    """
    delta = summary.mean * summary.num_senders / max(num_edges, 1)
    if summary.least_positive < np.inf:
        delta = max(delta, summary.least_positive)
    return delta if delta > 1e-300 else 1.0


def delta_stepping(
    out: Csr,
    into: Csr,
    start: int,
    delta: float,
    least_weight: float,
    team: ThreadTeam,
) -> tuple[npt.NDArray[np.float64], Words, int]:
    """Return distances ``[N]``, the nodes reached as a bitmap, and the number of rounds.

    Args:
        out: Rows of out-neighbors with weights that are not negative.
        into: Rows of in-neighbors with weights; ``out`` itself if undirected.
        start: Number of the source.
        delta: Width of a bin, above 0; decides the time, not the result.
        least_weight: No weight is below it.
        team: Threads.
    """
    return _Stepping(out, into, start, delta, least_weight, team).run()


class _Stepping:
    """The state between frontiers."""

    def __init__(
        self,
        out: Csr,
        into: Csr,
        start: int,
        delta: float,
        least_weight: float,
        team: ThreadTeam,
    ) -> None:
        self.rows, self.in_rows, self.team = weighted_csr(out), weighted_csr(into), team
        self.chunks, self.in_chunks = out.chunks(), into.chunks()
        self.num_edges = out.num_edges
        self.nodes = _new_nodes(out)
        self.bins = _new_bins(out, team.num_threads)
        limit = FIRST_LIMIT if FIRST_LIMIT <= NUM_BINS else np.inf
        self.scale = np.array([1.0 / delta, limit, least_weight, np.inf])
        self.status = np.zeros(kernels.STATUS_SIZE, dtype=np.int64)
        self.width = FIRST_LIMIT
        self.settled_edges = 0
        self.meeting = np.zeros(team_kernels.TEAM_SIZE, dtype=np.int64)
        num_pieces = out.num_nodes // (kernels.ROOM - kernels.BLOCK) + team.num_threads + 1
        self.pieces = np.empty((num_pieces, PIECE_SIZE), dtype=np.int64)
        threads = team.num_threads
        self.middling = TEAM_EDGES * threads if threads > 1 else out.num_edges + 1
        self.state = self.nodes, self.bins, self.scale, self.status
        kernels.start_at(start, self.nodes, self.bins, self.status)

    def run(self) -> tuple[npt.NDArray[np.float64], Words, int]:
        while True:
            found = kernels.step_small_bins(
                self.rows, *self.state, SERIAL_EDGES, self.middling
            )
            if found == kernels.LARGE:
                self._relax_together()
                continue
            if found == kernels.MIDDLING and self._step_together() == team_kernels.UNFIT:
                continue
            if self.status[kernels.OVERFLOW]:
                windows.refill(*self.state)
            elif not self._go_on():
                break
        rounds = int(self.status[kernels.ROUNDS])
        return self.nodes.distance, self.nodes.entered, rounds

    def _step_together(self) -> int:
        """Go from bin to bin with all threads, while that is worth it."""
        arguments = (
            self.rows,
            *self.state,
            self.meeting,
            self.pieces,
            TEAM_NODES * self.team.num_threads,
            MOST_TEAM_NODES,
        )
        compile_first(team_kernels.step_bins, 0, *arguments)
        return int(self.team.run(team_kernels.step_bins, *arguments)[0])

    def _relax_together(self) -> None:
        """Gather what is left of the bin and relax the frontier, in all threads."""
        self.team.run(kernels.gather_bin, self.rows, *self.state)
        kernels.clear_queued(self.nodes, self.status)
        self.status[kernels.NEXT] = 0
        self.team.run(row_kernels.relax_frontier, self.rows, *self.state)

    def _go_on(self) -> bool:
        """Open the next window, or move the limit; tell whether there is anything left."""
        limit = self.scale[kernels.LIMIT]
        if limit == np.inf:
            return windows.next_window(*self.state)
        if not self.status[kernels.PUT_OFF]:
            return self._lift_limit()
        settled_edges = int(self.status[kernels.SETTLED_EDGES])
        left = self.num_edges - settled_edges
        if PULL_COST * left < settled_edges:
            self.scale[kernels.LIMIT] = np.inf
            self._pull()
            return True
        if settled_edges == self.settled_edges:  # an empty window: skip to the next node
            nearest = self._nearest()
            if nearest == np.inf:
                return self._lift_limit()
            new_limit = np.floor(nearest * self.scale[kernels.INVERSE]) + self.width
        else:
            new_limit = limit + self.width
        self.settled_edges = settled_edges
        self.width *= 2  # so that all passes over settled nodes cost as much as the last
        self.scale[kernels.LIMIT] = new_limit if new_limit < NUM_BINS else np.inf
        self._push_put_off(limit)
        return True

    def _lift_limit(self) -> bool:
        """Work through what waits: weights round, so nodes may wait in the limit's bin."""
        self.scale[kernels.LIMIT] = np.inf
        return True

    def _pull(self) -> None:
        bounds, counter = self.in_chunks, np.zeros(1, np.int64)
        self.team.run(windows.pull_unsettled, self.in_rows, *self.state, bounds, counter)

    def _nearest(self) -> float:
        """Return the least distance among the edges put off."""
        self.scale[kernels.NEAREST] = np.inf
        bounds, counter = self.chunks, np.zeros(1, np.int64)
        self.team.run(
            windows.find_nearest, self.rows, self.nodes, self.scale, bounds, counter
        )
        return float(self.scale[kernels.NEAREST])

    def _push_put_off(self, old_limit: float) -> None:
        bounds, counter = self.chunks, np.zeros(1, np.int64)
        self.team.run(
            windows.push_put_off, self.rows, *self.state, bounds, counter, old_limit
        )


def _weighted_rows(topology: Topology) -> Csr | None:
    """Return the out-rows with the column ``weight``; None where no edge has one."""
    if not topology.has_weight:
        return None
    rows = topology.rows("out", _WEIGHT)
    return rows if "weight" in rows.columns else None


def weighted_csr(rows: Csr) -> WeightedCsr:
    """Return rows with a column ``weight`` as kernels take them."""
    weights = rows.begins_of("weight"), rows.columns["weight"]
    return WeightedCsr(rows.begins, rows.ends, rows.indices, *weights)


def _new_nodes(out: Csr) -> kernels.Nodes:
    num_nodes, dtype = out.num_nodes, out.indices.dtype
    return kernels.Nodes(
        distance=np.full(num_nodes, np.inf),
        frontier=np.empty(num_nodes, dtype=dtype),
        bucket=np.empty(num_nodes, dtype=dtype),
        queued=empty_bits(num_nodes),
        entered=empty_bits(num_nodes),
        settled=empty_bits(num_nodes),
    )


def _new_bins(out: Csr, threads: int) -> kernels.Bins:
    num_blocks = POOL_SHARE * out.num_nodes // kernels.BLOCK + threads * (NUM_BINS + 1)
    return kernels.Bins(
        heads=np.full((threads, NUM_BINS + 1), -1, dtype=np.int64),
        fills=np.zeros((threads, NUM_BINS + 1), dtype=np.int64),
        free=np.full((threads, 8), -1, dtype=np.int64),
        following=np.empty(num_blocks, dtype=np.int64),
        items=np.empty(num_blocks * kernels.BLOCK, dtype=out.indices.dtype),
        light=np.empty(threads * kernels.ROOM, dtype=np.int64),
        sums=np.empty(threads * kernels.ROOM, dtype=np.float64),
    )


def _summary(topology: Topology, out: Csr, team: ThreadTeam) -> WeightSummary:
    """Check and summarize the weights; once per topology."""
    summary = _summaries.get(topology)
    if summary is None:
        threads = team.num_threads
        sums, refused = np.zeros((threads, 8)), np.zeros((threads, 8), dtype=np.int64)
        least, positive = np.full((2, threads, 8), np.inf)
        found = sums, least, positive, refused
        for _, weight in out.pieces("weight"):
            counter = np.zeros(1, dtype=np.int64)
            team.run(windows.summarize_weights, weight, counter, *found)
        summary = WeightSummary(
            mean=_total(sums) / max(out.num_edges, 1),
            least=float(least.min()),
            least_positive=float(positive.min()),
            num_refused=int(refused.sum()),
            num_senders=int(np.count_nonzero(out.begins != out.ends)),
        )
        _summaries[topology] = summary
    if summary.num_refused:
        raise _refusal(topology, out)
    return summary


def _total(sums: npt.NDArray[np.float64]) -> float:
    """Return the sum of the threads' sums, which may be infinite."""
    with np.errstate(over="ignore"):
        return float(sums.sum())


def _refusal(topology: Topology, out: Csr) -> InvalidGraphError:
    weight, begins = out.columns["weight"], out.begins_of("weight")
    places = np.concatenate(
        [first + np.flatnonzero(~(piece >= 0)) for first, piece in out.pieces("weight")]
    )
    src = np.searchsorted(begins, places, side="right") - 1
    dst = out.indices[places - begins[src] + out.begins[src]]
    if not topology.is_directed:  # each edge is there twice, a loop once
        is_first = src <= dst
        places, src, dst = places[is_first], src[is_first], dst[is_first]
    ends = topology.ids(np.array([src[0], dst[0]], dtype=np.int64)).to_pylist()
    return InvalidGraphError(
        f"sssp needs weights of 0 or more, but {len(places)} are negative or NaN, the "
        f"first {weight[places[0]]} on edge {ends[0]} -> {ends[1]}; change them, "
        f"or {HOPS}"
    )
