"""PyTorch Geometric: its loaders over our stores, its layers on our blocks, its graphs.

Needs the extra ``pyg``. What is a copy and what a view is said by each; nodes are known by
their numbers, which ``graph.lookup`` gives for ids.
"""

from graphsys.interop.pyg_blocks import adjacency, bipartite, edge_index
from graphsys.interop.pyg_data import from_data, source_of, to_data, to_hetero_data
from graphsys.interop.pyg_sampler import GraphsysSampler
from graphsys.interop.pyg_stores import (
    EdgeAttributes,
    GraphsysFeatureStore,
    GraphsysGraphStore,
    stores,
)

__all__ = [
    "EdgeAttributes",
    "GraphsysFeatureStore",
    "GraphsysGraphStore",
    "GraphsysSampler",
    "adjacency",
    "bipartite",
    "edge_index",
    "from_data",
    "source_of",
    "stores",
    "to_data",
    "to_hetero_data",
]
