"""All algorithms in one list: ``gs.algorithms.bfs(graph, source=3)``.

Each is a function with its parameters and a docstring; ``graphsys run bfs --help`` shows
the same. Its file holds what users read, the loop, and what that takes in memory. Kernels
are in ``kernels/cpu/algorithms``, vertex programs in ``engine/programs``.
"""

from collections.abc import Mapping
from typing import Final, NoReturn

from graphsys.core.errors import unknown_name
from graphsys.engine.algorithms import algorithm as _algorithm
from graphsys.engine.algorithms.algorithm import Algorithm
from graphsys.engine.algorithms.all_pairs import apsp
from graphsys.engine.algorithms.betweenness import betweenness
from graphsys.engine.algorithms.centrality import eigenvector, hits, katz
from graphsys.engine.algorithms.choices import belief_propagation, coloring, matching, mis
from graphsys.engine.algorithms.communities import cdlp, clustering, label_propagation
from graphsys.engine.algorithms.components import wcc
from graphsys.engine.algorithms.degrees import degree_assortativity, degree_statistics
from graphsys.engine.algorithms.distances import closeness, diameter, harmonic
from graphsys.engine.algorithms.k_core import k_core
from graphsys.engine.algorithms.leiden import leiden
from graphsys.engine.algorithms.pagerank import pagerank, personalized_pagerank
from graphsys.engine.algorithms.paths import min_cut, mst
from graphsys.engine.algorithms.routes import k_shortest_paths, shortest_path
from graphsys.engine.algorithms.satisfiability import survey_propagation
from graphsys.engine.algorithms.shortest_paths import sssp
from graphsys.engine.algorithms.similarity import adamic_adar, jaccard, resource_allocation
from graphsys.engine.algorithms.strong_components import scc
from graphsys.engine.algorithms.structure.acyclic import (
    find_cycle,
    longest_path,
    topological_order,
)
from graphsys.engine.algorithms.structure.cliques import maximal_cliques
from graphsys.engine.algorithms.structure.cut_points import (
    articulation_points,
    biconnected_components,
    bridges,
)
from graphsys.engine.algorithms.structure.flow import bipartite_matching, max_flow
from graphsys.engine.algorithms.structure.projection import bipartite_projection
from graphsys.engine.algorithms.structure.steiner import steiner_tree
from graphsys.engine.algorithms.traversal import bfs
from graphsys.engine.algorithms.triangles import lcc, triangle_count
from graphsys.engine.algorithms.walks import random_walks

ALGORITHMS: Final[Mapping[str, Algorithm]] = _algorithm.ALGORITHMS
"""What is behind each, by name."""

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "adamic_adar",
    "apsp",
    "articulation_points",
    "belief_propagation",
    "betweenness",
    "bfs",
    "biconnected_components",
    "bipartite_matching",
    "bipartite_projection",
    "bridges",
    "cdlp",
    "closeness",
    "clustering",
    "coloring",
    "degree_assortativity",
    "degree_statistics",
    "diameter",
    "eigenvector",
    "find_cycle",
    "get",
    "harmonic",
    "hits",
    "jaccard",
    "k_core",
    "k_shortest_paths",
    "katz",
    "label_propagation",
    "lcc",
    "leiden",
    "longest_path",
    "matching",
    "max_flow",
    "maximal_cliques",
    "min_cut",
    "mis",
    "mst",
    "pagerank",
    "personalized_pagerank",
    "random_walks",
    "resource_allocation",
    "scc",
    "shortest_path",
    "sssp",
    "steiner_tree",
    "survey_propagation",
    "topological_order",
    "triangle_count",
    "wcc",
]


def get(name: str) -> Algorithm:
    """Return what is behind an algorithm.

    Raises:
        UnknownNameError: there is none; the message suggests the nearest.
    """
    if name not in ALGORITHMS:
        raise unknown_name("algorithm", name, ALGORITHMS)
    return ALGORITHMS[name]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"gs.algorithms has no algorithm {name!r}")


def __dir__() -> list[str]:
    return sorted(ALGORITHMS)
