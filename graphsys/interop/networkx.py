"""The NetworkX backend: ``nx.pagerank(G, backend="graphsys")``.

NetworkX finds it by the entry points ``networkx.backends`` (this module) and
``networkx.backend_info`` (:mod:`graphsys.interop.networkx_info`). Graphs are converted
once and kept by NetworkX's cache; functions are NetworkX's in name, arguments, results
and errors. A call that a function does not take exactly as NetworkX means it is refused
by :func:`can_run`, and NetworkX runs its own function.
"""

from typing import Any

from graphsys.interop import (
    networkx_centrality,
    networkx_cuts,
    networkx_degrees,
    networkx_distances,
    networkx_paths,
    networkx_search,
    networkx_structure,
    networkx_trees,
)
from graphsys.interop.networkx_calls import SMALL_GRAPH
from graphsys.interop.networkx_graph import (
    ConvertedGraph,
    convert_from_nx,
    convert_to_nx,
)
from graphsys.interop.networkx_info import CHEAP, FUNCTIONS

__all__ = ["can_run", "convert_from_nx", "convert_to_nx", "should_run"]

_ROOMS = (
    networkx_centrality,
    networkx_cuts,
    networkx_degrees,
    networkx_distances,
    networkx_paths,
    networkx_search,
    networkx_structure,
    networkx_trees,
)
for _room in _ROOMS:
    for _name, _function in vars(_room).items():
        if _name in FUNCTIONS and hasattr(_function, "refusal"):
            globals()[_name] = _function


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Tell NetworkX whether we take a call: True, or why not."""
    reason = globals()[name].refusal(*args, **kwargs)
    return True if reason is None else str(reason)


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Tell NetworkX whether we are likely faster, where it may choose: True, or why not."""
    graph = args[0] if args else kwargs["G"]
    if isinstance(graph, ConvertedGraph):
        return True
    if len(graph) < SMALL_GRAPH:
        return f"fewer than {SMALL_GRAPH} nodes: NetworkX is quicker than a conversion"
    kept = (getattr(graph, "__networkx_cache__", None) or {}).get("backends", {})
    if name in CHEAP and "graphsys" not in kept:
        return "the graph is not converted yet, and NetworkX is quicker than that"
    return True
