"""The cheapest edges that keep some nodes connected."""

import time
from collections.abc import Iterable
from typing import Any, NamedTuple, Unpack

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
from graphsys.engine.algorithms.arguments import edges_by_rank
from graphsys.engine.edge_weights import refuse_capacities, refuse_infinite
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.algorithms.components import join_regions
from graphsys.kernels.cpu.algorithms.path_trees import mark_paths

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_MOST_ENTRIES = np.iinfo(np.int32).max
"""Of a graph that SciPy's searches take."""
_EDGES = "edges of both directions are made of them, in the order of ids"


class _Edges(NamedTuple):
    """Edges between ranks of nodes, both ways, the lightest of every pair, sorted."""

    keys: Ints
    src: Ints
    dst: Ints
    weight: Floats


def _steiner_needs(facts: Facts) -> Need:
    columns = ("weight",) if facts.topology.has_weight else ()
    made = 64 * _num_entries(facts.topology) + (72 + facts.ranked) * facts.nodes
    return Need(rows=("out",), columns=columns, bytes=made, copies=_EDGES)


@listed(
    needs=_steiner_needs,
    answers=True,
    example=Example(parameters={"terminals": [0, 1, 2]}),
)
def steiner_tree(
    graph: GraphLike, *, terminals: Iterable[Any], **options: Unpack[NativeOptions]
) -> Result:
    """A cheap tree that connects some nodes, over whichever others help.

    At most 2 - 2/K times as heavy as the lightest tree there is, which is hard to find; K
    terminals. Direction and loops do not count, of repeated edges the lightest does. Of
    equal ones ids decide: the tree is the same for every partitioning.

    Args:
        graph: An open graph, its path, or edges in memory; the column ``weight`` holds the
            weights of edges, not negative; 1 where there is none.
        terminals: Ids of the nodes to connect.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        A row per edge of the tree, in the order of ids: ``id``, ``other``, and ``value``:
        its weight, float64. ``result``: the weight of the tree.

    Raises:
        ConfigError: no terminals.
        UnknownNameError: the graph has no such node.
        InvalidGraphError: two terminals are not connected; a weight that is negative,
            infinite or NaN; all together are more than float64 holds; or there are 2^31
            nodes or edges both ways, which SciPy's search does not number.

    Complexity:
        O(E log N) time in one thread; 64 bytes an edge and direction.

    References:
        Mehlhorn, "A faster approximation algorithm for the Steiner problem in graphs",
        Information Processing Letters 27(3), 1988; the shortest paths are SciPy's.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2, 0], [3, 3, 3, 1], num_nodes=4)
        >>> done = gs.algorithms.steiner_tree(graph, terminals=[0, 1, 2])
        >>> done.result, done.table["other"].to_pylist()
        (3.0, [1, 3, 3])
    """
    began = time.perf_counter()
    topology = Topology.of(graph)
    chosen = sorted({_rank_of(topology, node) for node in terminals})
    if not chosen:
        raise ConfigError("terminals is empty, expected ids of nodes to connect")
    refuse_infinite(topology, "steiner_tree")
    refuse_capacities(topology, "steiner_tree", "weights")
    if max(_num_entries(topology), topology.num_nodes) > _MOST_ENTRIES:
        raise InvalidGraphError(
            f"steiner_tree takes at most {_MOST_ENTRIES} nodes, and edges both ways, but "
            f"there are {topology.num_nodes} and {_num_entries(topology)}; take a subgraph "
            "around the terminals"
        )
    left, right, weight = _tree(topology, np.array(chosen, dtype=np.int64))
    columns = {
        "id": topology.numbers.ids_at_ranks(left),
        "other": topology.numbers.ids_at_ranks(right),
    }
    return Result(
        source=pa.table({**columns, "value": weight}),
        algorithm="steiner_tree",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=float(weight.sum()),
    )


def _num_entries(topology: Topology) -> int:
    """Return how many entries rows of both directions have."""
    return topology.num_edges * (2 if topology.is_directed else 1)


def _rank_of(topology: Topology, node: Any) -> int:
    number = topology.number(node)
    return number if topology.rank is None else int(topology.rank[number])


def _tree(topology: Topology, terminals: Ints) -> tuple[Ints, Ints, Floats]:
    """Return the edges of the tree by ranks, sorted, the smaller rank first."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    edges, num_nodes = _edges(topology), topology.num_nodes
    indptr = np.searchsorted(edges.src, np.arange(num_nodes + 1))
    matrix = csr_array((edges.weight, edges.dst, indptr), shape=(num_nodes, num_nodes))
    distance, before, source = dijkstra(
        matrix, indices=terminals, min_only=True, return_predecessors=True
    )
    del matrix
    joined = _joined(topology, edges, distance, source, terminals)
    is_met = np.zeros(num_nodes, dtype=np.bool_)
    ends = np.concatenate([edges.src[joined], edges.dst[joined]])
    mark_paths(ends, before, is_met)
    is_met[terminals] = False  # where the paths begin
    later = np.flatnonzero(is_met)
    key = before[later].astype(np.int64) * num_nodes + later
    places = np.concatenate([joined, np.searchsorted(edges.keys, key)])
    left, right = edges.src[places], edges.dst[places]
    left, right = np.minimum(left, right), np.maximum(left, right)
    order = np.lexsort((right, left))
    return left[order], right[order], edges.weight[places[order]]


def _edges(topology: Topology) -> _Edges:
    src, dst, weight = edges_by_rank(topology)
    num_nodes = topology.num_nodes
    keys = src * num_nodes + dst
    if topology.is_directed:
        keys = np.concatenate([keys, dst * num_nodes + src])
        weight = np.concatenate([weight, weight])
    del src, dst
    order = np.lexsort((weight, keys))
    keys, weight = keys[order], weight[order]
    del order
    src, dst = np.divmod(keys, max(num_nodes, 1))
    is_first = (np.diff(keys, prepend=-1) != 0) & (src != dst)
    return _Edges(keys[is_first], src[is_first], dst[is_first], weight[is_first])


def _joined(
    topology: Topology,
    edges: _Edges,
    distance: Floats,
    source: npt.NDArray[Any],
    terminals: Ints,
) -> Ints:
    """Return the edges in the middle of the shortest paths between terminals.

    Raises:
        InvalidGraphError: there is no path between two.
    """
    regions = np.searchsorted(terminals, source).astype(np.int64)  # unreached: none
    is_between = edges.src < edges.dst
    is_between &= np.isfinite(distance[edges.src])
    is_between &= regions[edges.src] != regions[edges.dst]
    between = np.flatnonzero(is_between)
    left, right = edges.src[between], edges.dst[between]
    length = distance[left] + edges.weight[between] + distance[right]
    order = np.argsort(length, kind="stable")
    between = between[order]
    parent = np.arange(len(terminals))
    chosen = np.empty(len(terminals) - 1, dtype=np.int64)
    count = join_regions(
        regions[edges.src[between]], regions[edges.dst[between]], parent, chosen
    )
    if count < len(chosen):
        roots = parent
        while (parent[roots] != roots).any():
            roots = parent[roots]
        alone = int(np.flatnonzero(roots)[0])
        names = topology.numbers.ids_at_ranks(terminals[[0, alone]]).to_pylist()
        raise InvalidGraphError(
            f"the terminals {names[0]} and {names[1]} are not connected; leave one out"
        )
    return between[chosen]
