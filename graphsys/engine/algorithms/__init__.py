"""All algorithms in one list: ``gs.algorithms.bfs(graph, source=3)``.

Each is a function with its parameters and a docstring; ``graphsys run bfs --help`` shows
the same. A file holds those of one kind, :mod:`algorithm` what is behind them.
"""

from collections.abc import Mapping
from typing import Final, NoReturn

from graphsys.core.errors import unknown_name
from graphsys.engine.algorithms import algorithm as _algorithm
from graphsys.engine.algorithms.algorithm import Algorithm
from graphsys.engine.algorithms.centrality import (
    betweenness,
    closeness,
    degree_assortativity,
    degree_statistics,
    eigenvector,
    harmonic,
    hits,
    katz,
    pagerank,
    personalized_pagerank,
)
from graphsys.engine.algorithms.choices import (
    belief_propagation,
    coloring,
    matching,
    mis,
    survey_propagation,
)
from graphsys.engine.algorithms.communities import (
    cdlp,
    clustering,
    label_propagation,
    lcc,
    leiden,
    triangle_count,
)
from graphsys.engine.algorithms.components import k_core, scc, wcc
from graphsys.engine.algorithms.paths import apsp, bfs, diameter, min_cut, mst, sssp
from graphsys.engine.algorithms.similarity import adamic_adar, jaccard, random_walks

ALGORITHMS: Final[Mapping[str, Algorithm]] = _algorithm.ALGORITHMS
"""What is behind each, by name."""

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "adamic_adar",
    "apsp",
    "belief_propagation",
    "betweenness",
    "bfs",
    "cdlp",
    "closeness",
    "clustering",
    "coloring",
    "degree_assortativity",
    "degree_statistics",
    "diameter",
    "eigenvector",
    "get",
    "harmonic",
    "hits",
    "jaccard",
    "k_core",
    "katz",
    "label_propagation",
    "lcc",
    "leiden",
    "matching",
    "min_cut",
    "mis",
    "mst",
    "pagerank",
    "personalized_pagerank",
    "random_walks",
    "scc",
    "sssp",
    "survey_propagation",
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
