"""Adjacency matrices of small graphs, for oracles from linear algebra."""

import networkx as nx
import numpy as np
import numpy.typing as npt

from tests.unit.engine.algorithms.small_graphs import SmallGraph


def adjacency(graph: SmallGraph) -> npt.NDArray[np.float64]:
    """Return how often each edge is stored, rows and columns in the order of the ids."""
    matrix: npt.NDArray[np.float64] = nx.to_numpy_array(
        graph.networkx(), nodelist=graph.ids, weight=None
    )
    return matrix
