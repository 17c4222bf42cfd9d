"""Paths between two nodes: the shortest, and the next ones after it."""

import heapq
import time
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from graphsys.core.errors import InvalidGraphError
from graphsys.core.threads import ThreadTeam
from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    NativeOptions,
    listed,
)
from graphsys.engine.algorithms.arguments import require_count
from graphsys.engine.algorithms.shortest_paths import (
    paths_from,
    refuse_weights,
    sssp_needs,
)
from graphsys.engine.edge_weights import refuse_negative
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import read_only
from graphsys.kernels.cpu.algorithms.detours import SearchState, find_detour
from graphsys.kernels.cpu.algorithms.path_heap import UNSEEN, PathHeap

Path = tuple[int, ...]
_ENDS = Example(parameters={"source": 0, "target": 1})
_NONE = read_only(np.empty(0, dtype=np.float64))  # as columns of rows are


def _path_needs(facts: Facts) -> Need:
    own = sssp_needs(facts)
    room = "shortest_paths" if facts.topology.has_weight else "traversal"
    scratch = 4 + (8 if facts.nodes > np.iinfo(np.int32).max else 4)
    tree = (26 + min(facts.ranked, 4) + scratch) * facts.nodes
    return Need(
        rows=own.rows,
        in_place=True,
        columns=own.columns,
        bytes=max(own.bytes, facts.ranked * facts.nodes, tree) + 8 * facts.nodes,
        kernels=room,
        variant="parents",
    )


@listed(needs=_path_needs, answers=True, example=_ENDS)
def shortest_path(
    graph: GraphLike, *, source: Any, target: Any, **options: Unpack[NativeOptions]
) -> Result:
    """The shortest path from a source to a target, node by node.

    Of several shortest paths it is one with the fewest edges; and, from the target back,
    each node is the first one in the order of ids that fits. It is the path that the
    parents of ``sssp`` tell.

    Args:
        graph: An open graph, its path, or edges in memory; the column ``weight`` holds the
            lengths of edges, which are 1 where there is none.
        source: Id of the node to start from.
        target: Id of the node to end at.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        A row per node of the path, the source first: ``id``, and ``value``: the distance
        from the source, float64. No rows where no path leads there. ``result``: the length
        of the path, None where there is none.

    Raises:
        UnknownNameError: the graph has no such node.
        InvalidGraphError: lengths that are negative or NaN, or add up beyond float64.

    Complexity:
        That of ``sssp``.

    References:
        Meyer, Sanders, "Delta-stepping: a parallelizable shortest path algorithm", J.
        Algorithms 49(1), 2003.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges(
        ...     [0, 1, 0], [1, 2, 2], num_nodes=3, weight=[1.5, 1.0, 4.0]
        ... )
        >>> done = gs.algorithms.shortest_path(graph, source=0, target=2)
        >>> done.table["id"].to_pylist(), done.result
        ([0, 1, 2], 2.5)
    """
    began = time.perf_counter()
    topology = Topology.of(graph)
    start, end = topology.number(source), topology.number(target)
    with ThreadTeam(options.get("num_threads")) as team:
        tree = paths_from(topology, start, team)
    found = []
    if tree.distance[end] < np.inf:
        found.append(end)
        while found[-1] != start:
            found.append(int(tree.parent[found[-1]]))
    nodes = np.array(found[::-1], dtype=np.int64)
    return Result(
        source=pa.table({"id": topology.ids(nodes), "value": tree.distance[nodes]}),
        algorithm="shortest_path",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=float(tree.distance[end]) if found else None,
    )


def _detour_needs(facts: Facts) -> Need:
    columns = ("weight",) if facts.topology.has_weight else ()
    # ranks are found before there is anything else
    per_node = max(7 * 8 + 2 + min(facts.ranked, 8), facts.ranked)
    return Need(rows=("out",), in_place=True, columns=columns, bytes=per_node * facts.nodes)


@listed(needs=_detour_needs, answers=True, example=_ENDS)
def k_shortest_paths(
    graph: GraphLike,
    *,
    source: Any,
    target: Any,
    k: int = 3,
    **options: Unpack[NativeOptions],
) -> Result:
    """The k shortest paths from a source to a target, none of which repeats a node.

    Paths differ if their nodes do: of repeated edges the shortest counts. Paths of equal
    length are ordered by their numbers of edges, then by the ids of their nodes; which of
    them are told, where there are more than ``k``, is the same for every partitioning.

    Args:
        graph: An open graph, its path, or edges in memory; the column ``weight`` holds the
            lengths of edges, which are 1 where there is none.
        source: Id of the node to start from.
        target: Id of the node to end at.
        k: How many paths to tell at most.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        A row per node of every path: ``path``: 1, 2, ..., the shortest first; ``id``; and
        ``value``: the distance from the source along it, float64. ``result``: how many
        paths there are, ``k`` at most.

    Raises:
        ConfigError: ``k`` is not at least 1.
        UnknownNameError: the graph has no such node.
        InvalidGraphError: lengths that are negative or NaN, or add up beyond float64.

    Complexity:
        O(k L) searches of O((N + E) log N) in one thread, L the nodes of a path; a search
        ends at the target. 58 bytes a node besides the graph.

    References:
        Yen, "Finding the K shortest loopless paths in a network", Management Science 17,
        1971. Lawler, "A procedure for computing the K best solutions to discrete
        optimization problems", Management Science 18, 1972.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges(
        ...     [0, 1, 0], [1, 2, 2], num_nodes=3, weight=[1.5, 1.0, 4.0]
        ... )
        >>> done = gs.algorithms.k_shortest_paths(graph, source=0, target=2)
        >>> done.table["path"].to_pylist(), done.table["id"].to_pylist()
        ([1, 1, 1, 2, 2], [0, 1, 2, 0, 2])
    """
    began = time.perf_counter()
    require_count("k", k)
    topology = Topology.of(graph)
    ends = topology.number(source), topology.number(target)
    with ThreadTeam(options.get("num_threads")) as team:
        refuse_weights(topology, team)
    paths = _Detours(topology, *ends).best(k)
    # a path that is too long for float64 is not found, and would be the last one
    if len(paths) < k and refuse_negative(topology, "k_shortest_paths") == np.inf:
        raise InvalidGraphError(
            "the weights along a path may add up to more than float64 holds; scale the "
            "weights down"
        )
    nodes = np.array([node for path, _ in paths for node in path], dtype=np.int64)
    places = np.repeat(np.arange(1, len(paths) + 1), [len(path) for path, _ in paths])
    values = np.array([far for _, lengths in paths for far in lengths], dtype=np.float64)
    columns = {"path": places, "id": topology.ids(nodes), "value": values}
    return Result(
        source=pa.table(columns),
        algorithm="k_shortest_paths",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=len(paths),
    )


class _Detours:
    """Searches between two nodes, each of which leaves what the last ones found."""

    def __init__(self, topology: Topology, start: int, end: int) -> None:
        self.start, self.end = start, end
        columns = ("weight",) if topology.has_weight else ()
        self.out = topology.rows("out", columns)
        self.is_weighted = "weight" in self.out.columns
        rank, num_nodes = topology.rank, self.out.num_nodes
        self.rank = self.out.indices[:0] if rank is None else rank
        self.path = np.empty(num_nodes, dtype=np.int64)
        self.state = SearchState(
            heap=PathHeap(
                distance=np.empty(num_nodes),
                edges=np.empty(num_nodes, dtype=np.int64),
                place=np.full(num_nodes, UNSEEN, dtype=np.int64),
                nodes=np.empty(num_nodes, dtype=np.int64),
            ),
            parent=np.empty(num_nodes, dtype=np.int64),
            found=np.empty(num_nodes, dtype=np.int64),
            is_barred=np.zeros(num_nodes, dtype=np.bool_),
            is_closed=np.zeros(num_nodes, dtype=np.bool_),
        )

    def best(self, k: int) -> list[tuple[Path, list[float]]]:
        """Return paths and the distances along them, the best first."""
        waiting: list[Any] = []
        self._offer(waiting, (self.start,), [0.0], set())
        chosen: list[tuple[Path, list[float]]] = []
        while waiting and len(chosen) < k:
            *_, path, lengths, branch, closed = heapq.heappop(waiting)
            chosen.append((path, lengths))
            # Lawler: what leaves this path before its branch was offered with its parent
            for place in range(branch, len(path) - 1):
                following = {path[place + 1]}
                shut = following | closed if place == branch else following
                self._offer(waiting, path[: place + 1], lengths[: place + 1], shut)
        return chosen

    def _offer(
        self, waiting: list[Any], root: Path, lengths: list[float], closed: set[int]
    ) -> None:
        """Put the best path into a heap that begins so and goes on to none of some."""
        state, first = self.state, root[-1]
        barred, shut = np.array(root[:-1], np.int64), np.array(sorted(closed), np.int64)
        state.is_barred[barred] = state.is_closed[shut] = True
        weighted = self.is_weighted
        count = find_detour(
            self.out.begins,
            self.out.ends,
            self.out.indices,
            self.out.begins_of("weight") if weighted else self.out.begins,
            self.out.columns["weight"] if weighted else _NONE,
            first,
            self.end,
            lengths[-1],
            self.rank,
            state,
            self.path,
        )
        state.is_barred[barred] = state.is_closed[shut] = False
        if not count:
            return
        rest = self.path[:count][::-1]
        path = root[:-1] + tuple(rest.tolist())
        far = lengths[:-1] + state.heap.distance[rest].tolist()
        order = path if not len(self.rank) else tuple(self.rank[list(path)].tolist())
        entry = far[-1], len(path), order, path, far, len(root) - 1, closed
        heapq.heappush(waiting, entry)
