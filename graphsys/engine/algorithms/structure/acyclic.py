"""Graphs without cycles: their order and longest path; or a cycle that there is."""

import time
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import InvalidGraphError
from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    NativeOptions,
    listed,
)
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.algorithms.structure import acyclic as kernels

Ints = npt.NDArray[np.int64]
_NONE = np.empty(0, dtype=np.float64)
_SHOWN = 6
"""Nodes of a cycle that a message names."""
_ACYCLIC = Example(
    dataset="ksat",
    settings={"num_variables": 60},
    needs="directed edges without a cycle",
)


def _order_needs(facts: Facts) -> Need:
    # a graph with a cycle is refused by its name, for which its other rows are walked
    per_node = 3 * 8 + 2 * 8 + 8 + facts.ranked
    return Need(rows=facts.both, in_place=True, bytes=per_node * facts.nodes)


@listed(needs=_order_needs, shown="smallest", example=_ACYCLIC)
def topological_order(graph: GraphLike, **options: Unpack[NativeOptions]) -> Result:
    """An order of the nodes in which every edge leads on; of graphs without cycles.

    First come the nodes that nothing leads to, then those behind paths of one edge, and so
    on: a level is the number of edges on the longest path that ends there. Within a level
    ids decide.

    Args:
        graph: An open graph, its path, or edges in memory; directed.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        ``value``: the place in the order, from 0 on; and ``level``, both int64.
        ``supersteps``: how many levels there are.

    Raises:
        InvalidGraphError: the graph has a cycle, which the message names; or edges without
            a direction.

    Complexity:
        O(N + E) time in one thread, and sorting the nodes; 48 bytes a node.

    References:
        Kahn, "Topological sorting of large networks", CACM 5(11), 1962.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([2, 2, 0], [0, 1, 1], num_nodes=3)
        >>> gs.algorithms.topological_order(graph).table["value"].to_pylist()
        [1, 2, 0]
    """
    began = time.perf_counter()
    topology = Topology.of(graph)
    _, level = _levels(topology, "topological_order")
    order = np.lexsort((_rank(topology), level))
    places = np.empty_like(level)
    places[order] = np.arange(len(order))
    return Result(
        source=lambda: topology.table({"value": places, "level": level}),
        algorithm="topological_order",
        supersteps=int(level.max(initial=-1)) + 1,
        seconds=time.perf_counter() - began,
    )


def _longest_needs(facts: Facts) -> Need:
    columns = ("weight",) if facts.topology.has_weight else ()
    per_node = 3 * 8 + 2 * 8 + 2 * 8 + facts.ranked
    return Need(
        rows=facts.both, in_place=True, columns=columns, bytes=per_node * facts.nodes
    )


@listed(needs=_longest_needs, answers=True, example=_ACYCLIC)
def longest_path(graph: GraphLike, **options: Unpack[NativeOptions]) -> Result:
    """The longest path of a graph without cycles, node by node: its critical path.

    Of several it is the one whose last node comes first in the order of ids; and, from
    there back, each node is the first one that fits. A path begins anew where lengths
    below 0 have used up what came before.

    Args:
        graph: An open graph, its path, or edges in memory; directed. The column ``weight``
            holds the lengths of edges, which are 1 where there is none.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        A row per node of the path, the first one first: ``id``, and ``value``: the length
        of the path up to it, float64. ``result``: the length of the path; None of a graph
        without nodes.

    Raises:
        InvalidGraphError: the graph has a cycle, which the message names; edges without a
            direction; a length that is NaN or infinite, or a path that float64 does not
            hold.

    Complexity:
        O(N + E) time in one thread, 56 bytes a node.

    References:
        Kelley, Walker, "Critical-path planning and scheduling", Eastern Joint Computer
        Conference, 1959.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges(
        ...     [0, 1, 0], [1, 2, 2], num_nodes=3, weight=[1.5, 1.0, 4.0]
        ... )
        >>> done = gs.algorithms.longest_path(graph)
        >>> done.table["id"].to_pylist(), done.result
        ([0, 2], 4.0)
    """
    began = time.perf_counter()
    topology = Topology.of(graph)
    queue, _ = _levels(topology, "longest_path")
    longest, parent = longest_lengths(topology, queue)
    nodes: list[int] = []
    if len(longest):
        rank = _rank(topology)
        ends = np.flatnonzero(longest == longest.max())
        node = int(ends[np.argmin(rank[ends])])
        while node >= 0:
            nodes.append(node)
            node = int(parent[node])
    path = np.array(nodes[::-1], dtype=np.int64)
    return Result(
        source=pa.table({"id": topology.ids(path), "value": longest[path]}),
        algorithm="longest_path",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=float(longest[path[-1]]) if nodes else None,
    )


def longest_lengths(
    topology: Topology, queue: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.float64], Ints]:
    """Return the length of the longest path to every node, and the node before, or -1.

    Args:
        topology: The graph.
        queue: Its nodes, none before one that leads to it ``[N]``.

    Raises:
        InvalidGraphError: a length that is NaN or infinite, or such a path.
    """
    columns = ("weight",) if topology.has_weight else ()
    out = topology.rows("out", columns)
    is_weighted = "weight" in out.columns
    if is_weighted:
        for _, piece in out.pieces("weight"):
            _refuse_weights(piece)
    longest = np.zeros(out.num_nodes)
    parent = np.full(out.num_nodes, -1, dtype=np.int64)
    kernels.longest_lengths(
        out.begins,
        out.ends,
        out.indices,
        out.begins_of("weight") if is_weighted else out.begins,
        out.columns["weight"] if is_weighted else _NONE,
        _rank(topology),
        queue,
        longest,
        parent,
    )
    if longest.max(initial=0.0) == np.inf:
        raise InvalidGraphError(
            "the weights along a longest path add up to more than float64 holds; scale the "
            "weights down"
        )
    return longest, parent


def _refuse_weights(weight: npt.NDArray[Any]) -> None:
    wrong = ~np.isfinite(weight)
    if wrong.any():
        raise InvalidGraphError(
            "longest_path needs finite weights, but "
            f"{np.count_nonzero(wrong)} are not, the first {weight[wrong][0]}; change the "
            "weights, or leave the column out to count edges"
        )


def _cycle_needs(facts: Facts) -> Need:
    # a graph without a direction is peeled, then ranked, then walked
    per_node = 4 * 8 if facts.topology.is_directed else 12
    per_node += max(facts.ranked, 4 + 2 * 8)
    return Need(rows=facts.both, in_place=True, bytes=per_node * facts.nodes)


@listed(needs=_cycle_needs, answers=True)
def find_cycle(graph: GraphLike, **options: Unpack[NativeOptions]) -> Result:
    """A cycle of the graph, node by node, or none: whether there is one.

    Along the edges' direction. In an undirected graph a cycle takes no edge back: it is a
    loop, two of a repeated edge, or three nodes and more. Which one it is depends on ids
    alone, so that every partitioning gives the same.

    Args:
        graph: An open graph, its path, or edges in memory.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        A row per node of the cycle, in its order, the smallest id first: ``id``, and
        ``value``: 0, 1, ... No rows where there is none. ``result``: the number of nodes, 0
        where there is none.

    Complexity:
        O(N + E) time in one thread, 48 bytes a node.

    References:
        Kahn, "Topological sorting of large networks", CACM 5(11), 1962.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2, 3], [1, 2, 1, 0], num_nodes=4)
        >>> gs.algorithms.find_cycle(graph).table["id"].to_pylist()
        [1, 2]
    """
    began = time.perf_counter()
    topology = Topology.of(graph)
    if topology.is_directed:
        left, queue, level = _arrays(topology)
        out = topology.rows("out")
        found = kernels.find_levels(out.begins, out.ends, out.indices, left, queue, level)
        has_cycle, rows = found < out.num_nodes, topology.rows("in")
    else:
        rows = topology.rows("out")
        left = np.empty(rows.num_nodes, dtype=np.int64)
        queue = np.empty(rows.num_nodes, dtype=rows.indices.dtype)
        count = kernels.peel_leaves(rows.begins, rows.ends, rows.indices, left, queue)
        has_cycle = count > 0
    cycle = _cycle(topology, rows, left) if has_cycle else np.empty(0, dtype=np.int64)
    return Result(
        source=pa.table({"id": topology.ids(cycle), "value": np.arange(len(cycle))}),
        algorithm="find_cycle",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=len(cycle),
    )


def _levels(topology: Topology, name: str) -> tuple[npt.NDArray[Any], Ints]:
    """Return the nodes by rising level, and the level of each.

    Raises:
        InvalidGraphError: the graph has a cycle, or edges without a direction.
    """
    if not topology.is_directed and topology.num_edges:
        raise InvalidGraphError(
            f"{name} needs a directed graph, and this one is undirected: every edge leads "
            "back; ingest the edges as directed ones"
        )
    left, queue, level = _arrays(topology)
    out = topology.rows("out")
    found = kernels.find_levels(out.begins, out.ends, out.indices, left, queue, level)
    if found < out.num_nodes:
        cycle = _cycle(topology, topology.rows("in"), left)
        names = [str(it) for it in topology.ids(cycle[:_SHOWN]).to_pylist()]
        more = [f"... ({len(cycle)} nodes)"] if len(cycle) > _SHOWN else []
        raise InvalidGraphError(
            f"{name} needs a graph without cycles, and this one has "
            f"{' -> '.join([*names, *more, names[0]])}; delete one of these edges"
        )
    return queue, level


def _arrays(topology: Topology) -> tuple[Ints, npt.NDArray[Any], Ints]:
    """Return what :func:`find_levels` takes: edges that are left, a queue, levels."""
    left = topology.in_degree.astype(np.int64)
    queue = np.empty(len(left), dtype=topology.rows("out").indices.dtype)
    return left, queue, np.zeros(len(left), dtype=np.int64)


def _cycle(topology: Topology, rows: Csr, left: Ints) -> Ints:
    """Return a cycle among nodes that are left, along the edges, the smallest id first."""
    rank, num_nodes = _rank(topology), rows.num_nodes
    walk = np.empty(num_nodes, dtype=np.int64)
    first, last = kernels.walk_to_cycle(
        rows.begins,
        rows.ends,
        rows.indices,
        left,
        rank,
        topology.is_directed,
        np.full(num_nodes, -1, dtype=np.int64),
        walk,
    )
    cycle = walk[first:last]
    if topology.is_directed:  # it was walked against the edges
        cycle = cycle[::-1]
    return np.roll(cycle, -int(np.argmin(rank[cycle])))


def _rank(topology: Topology) -> npt.NDArray[Any]:
    return np.arange(topology.num_nodes) if topology.rank is None else topology.rank
