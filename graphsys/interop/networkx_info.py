"""What NetworkX reads when it is imported: the functions we offer. Loads nothing else."""

from typing import Any, Final

_HOPS = "hops only: weights are left to NetworkX"
_SIMPLE = "undirected graphs that are no multigraphs"

FUNCTIONS: Final[dict[str, str]] = {
    "adamic_adar_index": "graphs without self-loops; scores are exact to 1e-12",
    "ancestors": "",
    "average_clustering": f"{_SIMPLE}, without weights",
    "average_shortest_path_length": _HOPS,
    "betweenness_centrality": "exact and in hops: no k, weight and endpoints",
    "center": _HOPS,
    "closeness_centrality": _HOPS,
    "clustering": f"{_SIMPLE}, without weights",
    "connected_components": "",
    "core_number": "undirected graphs without self-loops",
    "degree_centrality": "",
    "descendants": "",
    "diameter": _HOPS,
    "eccentricity": _HOPS,
    "harmonic_centrality": f"all nodes; {_HOPS}",
    "in_degree_centrality": "",
    "is_connected": "",
    "is_weakly_connected": "",
    "jaccard_coefficient": "graphs without self-loops",
    "leiden_communities": "direction is ignored; no max_level",
    "node_connected_component": "",
    "number_connected_components": "",
    "number_weakly_connected_components": "",
    "out_degree_centrality": "",
    "pagerank": "no nstart and dangling",
    "periphery": _HOPS,
    "radius": _HOPS,
    "single_source_bellman_ford_path_length": "weights of 0 or more",
    "single_source_dijkstra_path_length": "weights of 0 or more, no functions",
    "single_source_shortest_path_length": "",
    "single_target_shortest_path_length": "",
    "transitivity": _SIMPLE,
    "triangles": _SIMPLE,
    "weakly_connected_components": "",
}
"""Functions by NetworkX's name, and which calls are taken (others: NetworkX's own)."""

CHEAP: Final = frozenset(
    {
        "ancestors",
        "connected_components",
        "degree_centrality",
        "descendants",
        "in_degree_centrality",
        "is_connected",
        "is_weakly_connected",
        "node_connected_component",
        "number_connected_components",
        "number_weakly_connected_components",
        "out_degree_centrality",
        "single_source_shortest_path_length",
        "single_target_shortest_path_length",
        "weakly_connected_components",
    }
)
"""Functions that take NetworkX less time than a conversion of the graph."""


def get_info() -> dict[str, Any]:
    """Return the entry of ``networkx.backend_info``."""
    return {
        "backend_name": "graphsys",
        "project": "graphsys",
        "package": "graphsys",
        "short_summary": "Native, multithreaded graph algorithms.",
        "functions": {
            name: {"additional_docs": f"Taken: {taken}."} if taken else {}
            for name, taken in FUNCTIONS.items()
        },
    }
