"""The largest flow between two nodes, and the largest matching of a bipartite graph."""

import math
import time
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError, InvalidGraphError
from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    NativeOptions,
    listed,
)
from graphsys.engine.algorithms.arguments import edges_by_rank, refuse_size
from graphsys.engine.edge_weights import refuse_capacities, refuse_infinite
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.algorithms.structure.max_flow import (
    Arcs,
    find_flow_levels,
    find_sides,
    push_along_levels,
)

_MOST_OF_PAIRS = math.isqrt(2**63 - 1)  # a pair of nodes is one int64
_MOST_OF_SCIPY = np.iinfo(np.int32).max
_ARCS = "arcs in both directions are made of them, in the order of ids"


def _flow_needs(facts: Facts) -> Need:
    columns = ("weight",) if facts.topology.has_weight else ()
    # while arcs are sorted; less is left of them when the flow is told
    per_entry = 145 if facts.topology.is_directed else 88
    made = per_entry * facts.edges + (4 * 8 + facts.ranked) * facts.nodes
    return Need(rows=("out",), columns=columns, bytes=made, copies=_ARCS)


@listed(
    needs=_flow_needs,
    answers=True,
    example=Example(parameters={"source": 0, "target": 1}),
)
def max_flow(
    graph: GraphLike, *, source: Any, target: Any, **options: Unpack[NativeOptions]
) -> Result:
    """The largest flow from a source to a target, edge by edge.

    An undirected edge has its capacity both ways, repeated edges add up, loops do nothing.
    Computed in float64. Of several largest flows it is one that ids decide: it is the same
    for every partitioning. ``min_cut`` tells which side of the smallest cut nodes are on.

    Args:
        graph: An open graph, its path, or edges in memory; the column ``weight`` holds the
            capacities of edges, not negative; 1 where there is none.
        source: Id of the node that it comes from.
        target: Id of the node that it goes to.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        A row per pair of nodes between which something flows, in the order of ids: ``id``,
        ``other``, and ``value``: what flows from the one to the other, float64 above 0.
        ``result``: the flow, which is the capacity of the smallest cut.

    Raises:
        ConfigError: source and target are the same.
        UnknownNameError: the graph has no such node.
        InvalidGraphError: a capacity that is negative, infinite or NaN; or all together are
            more than float64 holds; or more than 3.0e9 nodes.

    Complexity:
        O(N^2 E) time in theory, a few searches in practice, in one thread; 145 bytes an
        edge of a directed graph, 176 of an undirected one.

    References:
        Dinic, "Algorithm for solution of a problem of maximum flow in networks with power
        estimation", Soviet Mathematics Doklady 11, 1970.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges(
        ...     [0, 0, 1, 2], [1, 2, 3, 3], num_nodes=4, weight=[3.0, 1.0, 2.0, 5.0]
        ... )
        >>> done = gs.algorithms.max_flow(graph, source=0, target=3)
        >>> done.result, done.table["value"].to_pylist()
        (3.0, [2.0, 1.0, 2.0, 1.0])
    """
    began = time.perf_counter()
    topology = Topology.of(graph)
    ends = topology.number(source), topology.number(target)
    if ends[0] == ends[1]:
        raise ConfigError(f"source and target are both {source!r}; give two nodes")
    refuse_size(topology, "max_flow", _MOST_OF_PAIRS)
    refuse_infinite(topology, "max_flow")
    refuse_capacities(topology, "max_flow")
    rank, by_rank = topology.rank, topology.by_rank
    first, last = ends if rank is None else (int(rank[ends[0]]), int(rank[ends[1]]))
    arcs, src = _arcs(topology)
    capacity = arcs.room.copy()
    total, searches = _flow(arcs, first, last)
    flow = capacity - arcs.room
    chosen = np.flatnonzero(flow > 0)
    left, right = src[chosen], arcs.ends[chosen]
    if by_rank is not None:
        left, right = by_rank[left], by_rank[right]
    columns = {"id": topology.ids(left), "other": topology.ids(right)}
    return Result(
        source=pa.table({**columns, "value": flow[chosen]}),
        algorithm="max_flow",
        supersteps=searches,
        seconds=time.perf_counter() - began,
        result=total,
    )


def _arcs(topology: Topology) -> tuple[Arcs, npt.NDArray[np.int64]]:
    """Return arcs between ranks of nodes, sorted, and where each begins ``[A]``."""
    src, dst, weight = edges_by_rank(topology)
    num_nodes = topology.num_nodes
    is_loop = src == dst
    src, dst, weight = src[~is_loop], dst[~is_loop], weight[~is_loop]
    keys = np.concatenate([src * num_nodes + dst, dst * num_nodes + src])
    del src, dst
    weight = np.concatenate([weight, np.zeros_like(weight)])
    order = np.lexsort((weight, keys))  # repeated edges are added up in one order
    keys, weight = keys[order], weight[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    room = np.add.reduceat(weight, firsts) if len(firsts) else weight
    keys = keys[firsts]
    begin, end = np.divmod(keys, max(num_nodes, 1))
    arcs = Arcs(
        begins=np.searchsorted(begin, np.arange(num_nodes + 1)),
        ends=end,
        back=np.searchsorted(keys, end * num_nodes + begin),
        room=room,
    )
    return arcs, begin


def _flow(arcs: Arcs, source: int, target: int) -> tuple[float, int]:
    """Push all that goes; return it, and how many searches it took."""
    level, queue, place, path = np.empty((4, len(arcs.begins) - 1), dtype=np.int64)
    total, searches = 0.0, 1
    while find_flow_levels(arcs, source, target, level, queue):
        total += push_along_levels(arcs, source, target, level, place, path)
        searches += 1
    return total, searches


def _matching_needs(facts: Facts) -> Need:
    made = 20 * facts.simple_entries + (64 + facts.ranked) * facts.nodes
    return Need(simple=True, bytes=made + facts.id_bytes * facts.nodes)


@listed(
    needs=_matching_needs,
    answers=True,
    example=Example(
        dataset="ksat", settings={"num_variables": 60}, needs="a bipartite graph"
    ),
)
def bipartite_matching(graph: GraphLike, **options: Unpack[NativeOptions]) -> Result:
    """As many pairs of neighbors as there can be in a bipartite graph, no node in two.

    Direction, loops and repeated edges do not count. Which side a node is on is found out.
    The matching is the same for every partitioning. ``matching`` takes any graph, and
    weights, and finds half of the largest possible at least.

    Args:
        graph: An open graph, its path, or edges in memory.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        ``value``: the partner's id, null for those left alone; ``side``: 0 or 1, 0 of the
        first node by id of every component. ``result``: the number of pairs.

    Raises:
        InvalidGraphError: the graph is not bipartite, or has 2^31 nodes, or as many
            edges both ways.

    Complexity:
        O(E sqrt N) time in one thread.

    References:
        Hopcroft, Karp, "An n^5/2 algorithm for maximum matchings in bipartite graphs", SIAM
        Journal on Computing 2(4), 1973; computed by SciPy.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 0, 1], [2, 3, 2], num_nodes=4)
        >>> gs.algorithms.bipartite_matching(graph).table["value"].to_pylist()
        [3, 2, 1, 0]
    """
    from scipy.sparse.csgraph import maximum_bipartite_matching

    began = time.perf_counter()
    topology = Topology.of(graph)
    by_rank, num_nodes = topology.by_rank, topology.num_nodes
    num_entries = topology.num_edges * (2 if topology.is_directed else 1)
    refuse_size(topology, "bipartite_matching", _MOST_OF_SCIPY, num_entries)
    rows = _rows_by_rank(topology)
    by_number = sides_of(
        topology, "bipartite_matching", "run matching, which takes any graph"
    )
    side = by_number if by_rank is None else by_number[by_rank]
    left, right = np.flatnonzero(side == 0), np.flatnonzero(side == 1)
    partner = np.full(num_nodes, -1, dtype=np.int64)
    if len(left) and len(right):
        between = rows[left][:, right]
        chosen = maximum_bipartite_matching(between, perm_type="column")
        found = np.flatnonzero(chosen >= 0)
        ends = left[found], right[chosen[found]]
        partner[ends[0]], partner[ends[1]] = ends[1], ends[0]
    if by_rank is not None:
        ranked, partner = partner, np.empty_like(partner)
        partner[by_rank] = np.where(ranked >= 0, by_rank[ranked].astype(np.int64), -1)
    is_matched = partner >= 0
    numbers = pa.array(np.maximum(partner, 0), mask=~is_matched)
    return Result(
        source=lambda: topology.table(
            {"value": topology.ids().take(numbers), "side": by_number.astype(np.int64)}
        ),
        algorithm="bipartite_matching",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=int(np.count_nonzero(is_matched)) // 2,
    )


def sides_of(topology: Topology, name: str, remedy: str) -> npt.NDArray[np.int8]:
    """Return the side of every node: 0 of the first one by id of every component.

    Args:
        topology: A bipartite graph; direction, loops and repeated edges do not count.
        name: Of the algorithm, for a message.
        remedy: What to do otherwise.

    Raises:
        InvalidGraphError: the graph is not bipartite.
    """
    rows, by_rank = topology.simple_in_place(), topology.by_rank
    side = np.full(rows.num_nodes, -1, dtype=np.int8)
    wrong = find_sides(
        rows.begins,
        rows.ends,
        rows.indices,
        rows.indices[:0] if by_rank is None else by_rank,
        side,
        np.empty(rows.num_nodes, dtype=rows.indices.dtype),
    )
    if wrong >= 0:
        found = topology.ids(np.array([wrong])).to_pylist()[0]
        raise InvalidGraphError(
            f"{name} needs a bipartite graph, and this one has a cycle of an odd number of "
            f"nodes near {found}; {remedy}"
        )
    return side


def _rows_by_rank(topology: Topology) -> Any:
    """Return the simple graph between ranks of nodes as a SciPy matrix."""
    from scipy.sparse import coo_array

    simple, rank, num_nodes = topology.simple(), topology.rank, topology.num_nodes
    src = np.repeat(np.arange(num_nodes, dtype=simple.indices.dtype), simple.degrees())
    dst = simple.indices
    if rank is not None:
        src, dst = rank[src], rank[dst]
    ones = np.ones(len(src), dtype=np.int8)
    rows = coo_array((ones, (src, dst)), shape=(num_nodes, num_nodes)).tocsr()
    rows.sort_indices()
    return rows
