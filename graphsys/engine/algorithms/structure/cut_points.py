"""Nodes and edges without which a graph falls apart, and the blocks between them."""

import time
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.engine.algorithms.algorithm import GraphLike, NativeOptions, listed
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Allocate
from graphsys.kernels.cpu.algorithms.structure.acyclic import peel_leaves
from graphsys.kernels.cpu.algorithms.structure.cut_points import BlockState, find_blocks
from graphsys.storage.scratch import ScratchArrays

Ints = npt.NDArray[np.int64]
Rows = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Blocks of a graph.

    Attributes:
        members: Numbers of the nodes of block after block ``[M]``.
        bounds: Where each begins, and the end ``[B + 1]``.
        is_bridge: Whether it is a single edge, not repeated ``[B]``.
    """

    members: npt.NDArray[Any]
    bounds: Ints
    is_bridge: npt.NDArray[np.bool_]


def _needs(facts: Facts, per_block: float, per_member: float) -> Need:
    """Tell what finding blocks takes, or sorting them after, whichever is more."""
    blocks = _num_blocks(facts)
    members = facts.nodes + blocks
    # a search writes five arrays of nodes, and of members and blocks what there are; these
    # are copied when it ends
    finding = 34 * facts.nodes + 18 * blocks + 8 * members
    sorting = per_block * blocks + per_member * members + 4 * facts.nodes
    bytes_ = max(finding, sorting, facts.ranked * facts.nodes)
    return Need(rows=facts.both, in_place=True, bytes=bytes_)


def _num_blocks(facts: Facts) -> int:
    """Return how many blocks there are: counted; without a budget guessed.

    The guess is what trees at the rim have, each edge of which is a block, and a tenth.
    """
    topology = facts.topology
    if facts.is_stated:
        return len(blocks_of(topology, ScratchArrays().zeros).is_bridge)
    if topology.is_directed:
        degree = topology.out_degree + topology.in_degree
        return int(np.count_nonzero(degree == 1)) * 11 // 10
    rows = topology.rows("out")
    left = np.empty(rows.num_nodes, dtype=np.int64)
    queue = np.empty(rows.num_nodes, dtype=rows.indices.dtype)
    peeled = rows.num_nodes - peel_leaves(rows.begins, rows.ends, rows.indices, left, queue)
    return peeled * 11 // 10


def blocks_of(topology: Topology, allocate: Allocate = np.empty) -> Blocks:
    """Find the blocks, as searched from the first node on."""
    out = topology.rows("out")
    none = out.begins[:0], out.ends[:0], out.indices[:0]
    into = topology.rows("in").arrays if topology.is_directed else none
    return blocks_of_rows((out.begins, out.ends, out.indices), into, allocate)


def blocks_of_rows(out: Rows, into: Rows, allocate: Allocate = np.empty) -> Blocks:
    """Find the blocks in the order in which a search completes them.

    Args:
        out: Where each row of out-neighbors begins and ends, and the neighbors.
        into: The same of in-neighbors; of length 0 where there is no direction.
        allocate: Makes the arrays of the search.

    Returns:
        Blocks; the last member of each is the node that the others were found from.
    """
    num_nodes, dtype = len(out[0]), out[2].dtype
    state = BlockState(
        number=allocate(num_nodes, np.int64),
        low=allocate(num_nodes, np.int64),
        path=allocate(num_nodes, dtype),
        place=allocate(num_nodes, np.int64),
        skipped=allocate(num_nodes, np.bool_),
        waiting=allocate(num_nodes, dtype),
        members=allocate(2 * num_nodes, dtype),
        bounds=allocate(num_nodes + 1, np.int64),
        is_bridge=allocate(num_nodes, np.bool_),
    )
    state.number[:] = 0
    count = find_blocks(*out, *into, state)
    bounds = state.bounds[: count + 1].copy()
    return Blocks(
        members=state.members[: bounds[-1]].copy(),
        bounds=bounds,
        is_bridge=state.is_bridge[:count].copy(),
    )


def _point_needs(facts: Facts) -> Need:
    return _needs(facts, 0, 0)


@listed(needs=_point_needs, answers=True)
def articulation_points(graph: GraphLike, **options: Unpack[NativeOptions]) -> Result:
    """Nodes without which their component falls apart.

    Direction, loops and repeated edges do not count.

    Args:
        graph: An open graph, its path, or edges in memory.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        ``value``: whether the node is one. ``result``: their number.

    Complexity:
        O(N + E) time in one thread.

    References:
        Hopcroft, Tarjan, "Algorithm 447: efficient algorithms for graph manipulation", CACM
        16(6), 1973.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1], [1, 2], num_nodes=3)
        >>> gs.algorithms.articulation_points(graph).table["value"].to_pylist()
        [False, True, False]
    """
    began = time.perf_counter()
    topology = Topology.of(graph)
    found = blocks_of(topology)
    is_cut = np.bincount(found.members, minlength=topology.num_nodes) > 1
    return Result(
        source=lambda: topology.table({"value": is_cut}),
        algorithm="articulation_points",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=int(np.count_nonzero(is_cut)),
    )


def _bridge_needs(facts: Facts) -> Need:
    return _needs(facts, 96 + 2 * facts.id_bytes, 8)


@listed(needs=_bridge_needs, answers=True)
def bridges(graph: GraphLike, **options: Unpack[NativeOptions]) -> Result:
    """Edges without which their component falls apart.

    Direction and loops do not count. A repeated edge is no bridge, nor are two between the
    same nodes in opposite directions: one of them is left.

    Args:
        graph: An open graph, its path, or edges in memory.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        A row per bridge: ``id`` and ``other``, the smaller id first, in the order of ids.
        ``result``: their number.

    Complexity:
        O(N + E) time in one thread, and sorting the bridges.

    References:
        Hopcroft, Tarjan, "Algorithm 447: efficient algorithms for graph manipulation", CACM
        16(6), 1973.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2, 2], [1, 2, 0, 3], num_nodes=4)
        >>> gs.algorithms.bridges(graph).table.to_pylist()
        [{'id': 2, 'other': 3}]
    """
    began = time.perf_counter()
    topology = Topology.of(graph)
    found = blocks_of(topology)
    first = found.bounds[:-1][found.is_bridge]
    ends = found.members[np.stack([first, first + 1])].astype(np.int64)
    rank = topology.rank
    ranks = ends if rank is None else rank[ends].astype(np.int64)
    ends = np.where(ranks[0] < ranks[1], ends, ends[::-1])
    ranks = np.sort(ranks, axis=0)
    left, right = ends[:, np.lexsort((ranks[1], ranks[0]))]
    return Result(
        source=pa.table({"id": topology.ids(left), "other": topology.ids(right)}),
        algorithm="bridges",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=len(left),
    )


def _component_needs(facts: Facts) -> Need:
    return _needs(facts, 40, 48 + facts.id_bytes)


@listed(needs=_component_needs, answers=True)
def biconnected_components(graph: GraphLike, **options: Unpack[NativeOptions]) -> Result:
    """Largest parts that stay connected when any one of their nodes goes.

    Two of them share one node at most, an articulation point. Every edge lies in one; nodes
    without edges to others lie in none. Direction, loops and repeated edges do not count.

    Args:
        graph: An open graph, its path, or edges in memory.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        A row per node and component: ``id``, and ``value``: the component's number, int64,
        from 0 on in the order of the two smallest ids; component after component, by id.
        ``result``: their number.

    Complexity:
        O(N + E) time in one thread, and sorting the rows.

    References:
        Hopcroft, Tarjan, "Algorithm 447: efficient algorithms for graph manipulation", CACM
        16(6), 1973.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2, 2], [1, 2, 0, 3], num_nodes=4)
        >>> found = gs.algorithms.biconnected_components(graph).table
        >>> found["id"].to_pylist(), found["value"].to_pylist()
        ([0, 1, 2, 2, 3], [0, 0, 0, 1, 1])
    """
    began = time.perf_counter()
    topology = Topology.of(graph)
    found = blocks_of(topology)
    sizes = np.diff(found.bounds)
    rank = topology.rank
    ranks = found.members if rank is None else rank[found.members]
    order = np.lexsort((ranks, np.repeat(np.arange(len(sizes)), sizes)))
    members, ranks = found.members[order], ranks[order]
    # two components share one node at most: the two smallest ids tell them apart
    starts = found.bounds[:-1]
    by_place = np.lexsort((ranks[starts + 1], ranks[starts]))
    number = np.empty_like(by_place)
    number[by_place] = np.arange(len(by_place))
    values = np.repeat(number, sizes)
    order = np.argsort(values, kind="stable")
    members, values = members[order], values[order]
    return Result(
        source=lambda: pa.table({"id": topology.ids(members), "value": values}),
        algorithm="biconnected_components",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=len(sizes),
    )
