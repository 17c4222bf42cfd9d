"""Breadth-first search: hops from a source, and optionally the tree.

Direction-optimizing (Beamer et al., SC 2012). O(N + E). Kernels:
kernels/cpu/algorithms/traversal.py.
"""

import time
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.events import count, ended, is_recording, launched, observe, span
from graphsys.core.row_trace import RowVisit
from graphsys.core.threads import ThreadTeam
from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    ProgramOptions,
    listed,
)
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.algorithms import traversal as kernels
from graphsys.kernels.cpu.bits import (
    Words,
    clear_bit,
    empty_bits,
    fill_bits,
    list_bits,
    set_bit,
)
from graphsys.kernels.cpu.simt.row_steps import find_trips
from graphsys.storage.views import array_of

SERIAL_EDGES = 1 << 15  # a level of fewer edges is not worth waking another thread
PUSH_AGAIN_SHARE = 18  # stop pulling once fewer than 1/18 of the nodes are found (GAPBS)
BUFFER = 1024
_BIT = 1
"""Bytes of a bitmap that a lookup of one node touches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Distances from one node.

    Attributes:
        distance: Hops, int32 ``[N]``, int64 from 2**31 nodes on; 0 where not reached.
        reached: Bitmap of the nodes reached.
        num_levels: Number of distinct distances.
    """

    distance: npt.NDArray[Any]
    reached: Words
    num_levels: int


def _bfs(facts: Facts) -> Need:
    per_node, variant = 20.0, ""
    if facts.options.get("parents"):
        variant = "parents"
        per_node = 22 + max(facts.ranked, (8 if facts.ranked else 0) + 2 * facts.id_bytes)
    total = per_node * facts.nodes
    return Need(rows=facts.both, in_place=True, bytes=total, variant=variant)


@listed(
    needs=_bfs,
    program="bfs:breadth_first",
    shown="smallest",
    tags=("BFS",),
    example=Example(parameters={"source": 0}),
    follower="paths:bfs",
)
def bfs(
    graph: GraphLike,
    *,
    source: Any,
    parents: bool = False,
    **options: Unpack[ProgramOptions],
) -> Result:
    """Hops from a source, along the edges' direction.

    Args:
        graph: An open graph, its path, or edges in memory.
        source: Id of the node to start from.
        parents: Add a column ``parent``: the id of the in-neighbor one hop closer, the
            first one in the order of ids; null for the source and where nothing leads.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: hops, int64, null where not reached.

    Raises:
        UnknownNameError: the graph has no such node.

    Complexity:
        O(N + E) time, O(N) memory besides the graph.

    References:
        Beamer, Asanovic, Patterson, "Direction-optimizing breadth-first search", SC 2012.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 0], [1, 2, 3], num_nodes=5)
        >>> gs.algorithms.bfs(graph, source=0).table["value"].to_pylist()
        [0, 1, 2, 1, None]
    """
    topology = Topology.of(graph)
    began = time.perf_counter()
    start = topology.number(source)
    out, into = topology.rows("out"), topology.rows("in")
    with ThreadTeam(options.get("num_threads")) as team:
        levels = search(out, into, start, team)
        columns = {}
        if parents:
            parent = find_parents(topology, levels, team)
            columns["parent"] = parent_ids(topology, parent, levels.reached, start)

    def table() -> pa.Table:
        hops = array_of(levels.distance.astype(np.int64), levels.reached)
        return topology.table({"value": hops, **columns})

    return Result(
        source=table,
        algorithm="bfs",
        supersteps=levels.num_levels,
        seconds=time.perf_counter() - began,
    )


def search(out: Csr, into: Csr, start: int, team: ThreadTeam) -> Levels:
    """Find the distances from the node numbered ``start``.

    Args:
        out: Rows of out-neighbors.
        into: Rows of in-neighbors; ``out`` itself if undirected.
        start: Number of the source.
        team: Threads.
    """
    return _Search(out, into, start, team).run()


class _Search:
    """The state between levels: a slice of the queue, or a bitmap."""

    def __init__(self, out: Csr, into: Csr, start: int, team: ThreadTeam) -> None:
        self.out, self.into, self.team = out, into, team
        num_nodes = out.num_nodes
        self.bounds = into.chunks()
        self.queue = np.empty(num_nodes, dtype=out.indices.dtype)
        self.buffers = np.empty((team.num_threads, BUFFER), dtype=out.indices.dtype)
        is_far = num_nodes > np.iinfo(np.int32).max
        self.distance: npt.NDArray[Any] = np.zeros(
            num_nodes, dtype=np.int64 if is_far else np.int32
        )
        self.seen = empty_bits(num_nodes)
        team.run(
            kernels.mark_without_edges,
            into.begins,
            into.ends,
            self.bounds,
            _counter(),
            self.seen,
        )
        self.unreachable = self.seen.copy()
        clear_bit(self.unreachable, start)
        set_bit(self.seen, start)
        self.queue[0] = start
        self.state = np.array([0, 1, out.degree(start), out.num_edges], dtype=np.int64)
        self.level = 0

    def run(self) -> Levels:
        out = self.out
        while True:
            first, began_ns = int(self.state[0]), time.perf_counter_ns()
            self.level = kernels.push_levels(
                out.begins,
                out.ends,
                out.indices,
                self.queue,
                self.state,
                self.seen,
                self.distance,
                self.level,
                SERIAL_EDGES,
            )
            begin, end, edges, left = self.state.tolist()
            _tell_levels(
                began_ns, out, self.queue, self.distance, first, begin, "push_levels"
            )
            if begin == end:
                break
            if edges > left // kernels.PULL_SHARE:
                self._pull()
            else:
                self._push()
        return Levels(
            distance=self.distance,
            reached=self.seen & ~self.unreachable,
            num_levels=self.level,
        )

    def _push(self) -> None:
        begin, end, edges, left = self.state.tolist()
        counters = np.array([0, end], dtype=np.int64)
        _tell_push(self.level, self.out, self.queue[begin:end], value_bytes=1)
        facts = {"number": self.level, "phase": "", "mode": "push"}
        self.level += 1
        with span("superstep", **facts, senders=end - begin, messages=edges) as told:
            found = self.team.run(
                kernels.push_level,
                self.out.begins,
                self.out.ends,
                self.out.indices,
                self.queue,
                begin,
                end,
                counters,
                self.buffers,
                self.seen,
                self.distance,
                self.level,
            )
            told.add(changed=int(counters[1]) - end)
        self.state[:] = end, counters[1], sum(found), left - edges

    def _pull(self) -> None:
        """Pull until the frontier shrinks to few nodes; leave it in the queue."""
        begin, end, edges, left = self.state.tolist()
        num_nodes = self.out.num_nodes
        frontier, found = empty_bits(num_nodes), empty_bits(num_nodes)
        fill_bits(frontier, self.queue, begin, end)
        num_before, num_found = 0, end - begin
        while num_found and (
            num_found >= num_before or num_found > num_nodes // PUSH_AGAIN_SHARE
        ):
            _tell_search(self.level, self.into, self.seen, frontier)
            facts = {"number": self.level, "phase": "", "mode": "pull"}
            self.level += 1
            with span("superstep", **facts, senders=num_found) as told:
                counts = self.team.run(
                    kernels.pull_level,
                    self.into.begins,
                    self.into.ends,
                    self.into.indices,
                    self.bounds,
                    _counter(),
                    frontier,
                    found,
                    self.seen,
                    self.distance,
                    self.level,
                )
                told.add(changed=sum(counts))
            num_before, num_found = num_found, sum(counts)
            frontier, found = found, frontier
        # the edges left are not counted while pulling: push until they grow again
        end = list_bits(frontier, self.queue)
        self.state[:] = 0, end, 1, max(left - edges, kernels.PULL_SHARE)


def find_parents(
    topology: Topology, levels: Levels, team: ThreadTeam
) -> npt.NDArray[np.int64]:
    """Return the first in-neighbor one hop closer, in the order of ids; 0 where none is."""
    into = topology.rows("in")
    rank = topology.rank
    parent = np.zeros(topology.num_nodes, dtype=np.int64)
    team.run(
        kernels.find_parents,
        into.begins,
        into.ends,
        into.indices,
        into.chunks(),
        _counter(),
        levels.reached,
        levels.distance,
        into.indices[:0] if rank is None else rank,
        parent,
    )
    return parent


def parent_ids(
    topology: Topology, parent: npt.NDArray[np.int64], reached: Words, start: int
) -> pa.ChunkedArray:
    """Return the ids of parents ``[N]``: null for the source and what is not reached."""
    known = reached.copy()
    clear_bit(known, start)
    return topology.ids().take(array_of(parent, known))


def _counter() -> npt.NDArray[np.int64]:
    return np.zeros(1, dtype=np.int64)


def _tell_push(
    superstep: int, rows: Csr, nodes: npt.NDArray[Any], value_bytes: int
) -> None:
    """Tell that some nodes look at all their neighbors."""
    if not is_recording():
        return
    starts = rows.begins[nodes].astype(np.int64)
    lengths = rows.ends[nodes].astype(np.int64) - starts
    count("edges", int(lengths.sum()), at_most=False)
    observe(
        "rows",
        lambda: [
            RowVisit(
                superstep=superstep,
                kind="push",
                lengths=lengths,
                starts=starts,
                indices=rows.indices,
                value_bytes=value_bytes,
            )
        ],
    )


def _tell_search(superstep: int, rows: Csr, seen: Words, senders: Words) -> None:
    """Tell that rows look for their first neighbor in a set; those ``seen`` do not."""

    def make() -> list[RowVisit]:
        trips = np.zeros(rows.num_nodes, dtype=np.int64)
        find_trips(rows.begins, rows.ends, rows.indices, seen, senders, trips)
        return [
            RowVisit(
                superstep=superstep,
                kind="pull",
                lengths=trips,
                starts=rows.begins,
                indices=rows.indices,
                value_bytes=_BIT,
            )
        ]

    count("edges", rows.num_edges, at_most=True)
    observe("rows", make)


def _tell_levels(
    began_ns: int,
    rows: Csr,
    queue: npt.NDArray[Any],
    distance: npt.NDArray[Any],
    begin: int,
    end: int,
    kernel: str,
) -> None:
    """Tell of levels that one call of a kernel has pushed, now that it is done.

    Args:
        began_ns: When the call began.
        rows: Rows of out-neighbors.
        queue: Nodes in the order of their levels.
        distance: Level of every node found ``[N]``.
        begin: Where the first level pushed begins in the queue.
        end: Where the last one ends.
        kernel: Name of what was called.
    """
    if not is_recording() or begin == end:
        return
    took = time.perf_counter_ns() - began_ns
    nodes = queue[begin:end].astype(np.int64)
    levels = distance[nodes]
    first, last = int(levels[0]), int(levels[-1])
    launched(kernel, began_ns, (took,), wall_ns=took, levels=last - first + 1)
    for level in range(first, last + 1):
        low, high = np.searchsorted(levels, [level, level + 1]).tolist()
        _tell_push(level, rows, nodes[low:high], _BIT)
        starts = rows.begins[nodes[low:high]].astype(np.int64)
        sent = int((rows.ends[nodes[low:high]].astype(np.int64) - starts).sum())
        # one call, several supersteps: only a lone one has a time of its own
        ended(
            "superstep",
            began_ns,
            took if first == last else None,
            number=level,
            phase="",
            mode="push",
            senders=high - low,
            messages=sent,
        )
