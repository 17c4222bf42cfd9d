"""Strong components, trees, forests and cores with NetworkX's names."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from graphsys.engine.algorithms import k_core as native_k_core
from graphsys.engine.algorithms.components import wcc
from graphsys.interop.networkx_calls import (
    no_direction,
    no_loops,
    no_multigraph,
    only_direction,
    some_nodes,
    takes,
)
from graphsys.kernels.cpu.algorithms.ordered import strong_components

# ruff: noqa: D103, N803  # documented by NetworkX, whose argument names these are


def strong_numbers(G: Any) -> tuple[Any, int]:
    """Return the strong component of every node, and how many there are.

    They are numbered against the edges: an edge leads to a number that is not larger.
    """
    indptr, indices = G.rows
    component = np.empty(len(G), dtype=np.int64)
    return component, strong_components(indptr, indices, component)


def _members(G: Any, component: Any, num_components: int) -> list[set[Any]]:
    members: list[set[Any]] = [set() for _ in range(num_components)]
    for node, number in zip(G.nodes, component.tolist(), strict=True):
        members[number].add(node)
    return members


@takes(only_direction)
def strongly_connected_components(G: Any) -> Iterator[set[Any]]:
    return iter(_members(G, *strong_numbers(G)))


@takes(only_direction)
def number_strongly_connected_components(G: Any) -> int:
    return strong_numbers(G)[1]


@takes(only_direction, some_nodes)
def is_strongly_connected(G: Any) -> bool:
    return strong_numbers(G)[1] == 1


def _attracting(G: Any) -> list[set[Any]]:
    component, num_components = strong_numbers(G)
    source, target = component[G.source], component[G.rows[1]]
    leads_on = np.zeros(num_components, dtype=np.bool_)
    leads_on[source[source != target]] = True
    members = _members(G, component, num_components)
    return [members[k] for k in np.flatnonzero(~leads_on).tolist()]


@takes(only_direction)
def attracting_components(G: Any) -> Iterator[set[Any]]:
    return iter(_attracting(G))


@takes(only_direction)
def number_attracting_components(G: Any) -> int:
    return len(_attracting(G))


@takes(only_direction)
def is_attracting_component(G: Any) -> bool:
    found = _attracting(G)
    return len(found) == 1 and len(found[0]) == len(G)


@takes()
def is_directed_acyclic_graph(G: Any) -> bool:
    if not G.is_directed() or G.num_loops:
        return False
    return strong_numbers(G)[1] == len(G)


@takes()
def isolates(G: Any) -> Iterator[Any]:
    return (G.nodes[k] for k in np.flatnonzero(G.degrees() == 0).tolist())


@takes()
def number_of_isolates(G: Any) -> int:
    return int(np.count_nonzero(G.degrees() == 0))


@takes(some_nodes)
def is_tree(G: Any) -> bool:
    return len(G) - 1 == len(G.edge_places()) and wcc.native(G.topology()).result == 1


@takes(some_nodes)
def is_forest(G: Any) -> bool:
    # no component has fewer edges than a tree: in all, none may have more
    return len(G) - int(wcc.native(G.topology()).result or 0) == len(G.edge_places())


@takes(only_direction, some_nodes)
def is_arborescence(G: Any) -> bool:
    return bool(is_tree(G)) and int(G.topology().in_degree.max()) <= 1


@takes(only_direction, some_nodes)
def is_branching(G: Any) -> bool:
    return bool(is_forest(G)) and int(G.topology().in_degree.max()) <= 1


def _kruskal(_: Any, arguments: dict[str, Any]) -> str | None:
    return None if arguments["algorithm"] == "kruskal" else "only the algorithm kruskal"


def _forest_places(G: Any, weight: str, sign: int) -> Any:
    """Return the places of the edges that Kruskal takes, as it takes them."""
    places = G.edge_places()
    values = G.values_of(weight)[places]
    if np.any(np.isnan(values)):
        raise NotImplementedError("NaN among the weights is left to NetworkX")
    values = values.astype(np.float64) if values.dtype.kind in "bu" else values
    places = places[np.argsort(sign * values, kind="stable")]
    places = places[G.source[places] != G.rows[1][places]]
    # ranks are different weights: one forest is the lightest, whoever looks for it
    ranks = np.arange(1, len(places) + 1, dtype=np.float64)
    ends = G.source[places], G.rows[1][places]
    matrix = sparse.csr_array((ranks, ends), shape=(len(G), len(G)))
    chosen = np.sort(sparse.csgraph.minimum_spanning_tree(matrix).data).astype(np.int64)
    return places[chosen - 1]


def _forest_edges(G: Any, weight: str, sign: int, data: bool) -> Iterator[Any]:
    for place in _forest_places(G, weight, sign).tolist():
        ends = G.nodes[G.source[place]], G.nodes[G.rows[1][place]]
        yield (*ends, G.data_at(place)) if data else ends


_SPANNED = (no_direction, no_multigraph, _kruskal)


@takes(*_SPANNED)
def minimum_spanning_edges(
    G: Any,
    algorithm: str = "kruskal",
    weight: str = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
) -> Iterator[Any]:
    return iter(list(_forest_edges(G, weight, 1, data)))


@takes(*_SPANNED)
def maximum_spanning_edges(
    G: Any,
    algorithm: str = "kruskal",
    weight: str = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
) -> Iterator[Any]:
    return iter(list(_forest_edges(G, weight, -1, data)))


@takes(*_SPANNED)
def minimum_spanning_tree(
    G: Any, weight: str = "weight", algorithm: str = "kruskal", ignore_nan: bool = False
) -> Any:
    return G.with_edges(_forest_edges(G, weight, 1, data=True))


@takes(*_SPANNED)
def maximum_spanning_tree(
    G: Any, weight: str = "weight", algorithm: str = "kruskal", ignore_nan: bool = False
) -> Any:
    return G.with_edges(_forest_edges(G, weight, -1, data=True))


_CORED = (no_direction, no_multigraph, no_loops, some_nodes)


def _cores(G: Any, choose: Callable[[Any], Any]) -> Any:
    """Return the subgraph of the nodes that are chosen by their core numbers."""
    numbers = native_k_core.native(G.topology()).table["value"].to_numpy()
    chosen = np.flatnonzero(choose(numbers)).tolist()
    return G.to_networkx().subgraph([G.nodes[k] for k in chosen]).copy()


@takes(*_CORED, without=("core_number",))
def k_core(G: Any, k: Any = None, core_number: Any = None) -> Any:
    return _cores(G, lambda core: core >= (core.max() if k is None else k))


@takes(*_CORED, without=("core_number",))
def k_shell(G: Any, k: Any = None, core_number: Any = None) -> Any:
    return _cores(G, lambda core: core == (core.max() if k is None else k))


@takes(*_CORED, without=("core_number",))
def k_crust(G: Any, k: Any = None, core_number: Any = None) -> Any:
    return _cores(G, lambda core: core <= (core.max() - 1 if k is None else k))


@takes(*_CORED, without=("core_number",))
def k_corona(G: Any, k: Any, core_number: Any = None) -> Any:
    def choose(core: Any) -> Any:
        is_near = core[G.rows[1]] >= k
        return (core == k) & (np.bincount(G.source[is_near], minlength=len(G)) == k)

    return _cores(G, choose)
