"""PyTorch Geometric: its loaders over our stores, its layers on our blocks, its graphs.

Needs the extra ``pyg``. What is a copy and what a view is said by each; nodes are known by
their numbers, which ``graph.lookup`` gives for ids.
"""

import os
from typing import Any

from graphsys.datasets.readers.pyg_graphs import source_of
from graphsys.facade.graph import Graph
from graphsys.facade.ingest import ingest
from graphsys.facade.to_pyg import to_data, to_hetero_data
from graphsys.interop.pyg_blocks import adjacency, bipartite, edge_index
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


def from_data(
    data: Any, path: str | os.PathLike[str], *, undirected: bool = False, **options: Any
) -> Graph:
    """Write PyG's Data or HeteroData as a store, and open it.

    Nodes have their places as ids, and keep that order (unless an option asks for another,
    or for partitions). ``x`` and other matrices of nodes become features,
    ``y`` the column ``label``, masks the column ``split`` (``val`` is ``valid``),
    ``edge_weight`` the weights, ``edge_time`` the times, ``edge_type`` the relations;
    ``edge_attr`` and other numbers per edge become columns. Tensors of the whole graph and
    what is no tensor are left out.

    Args:
        data: The graph.
        path: The new store's folder.
        undirected: Whether the edges, which are there in both directions, are stored as
            undirected ones: half as many, with the columns of the copy from the smaller
            place.
        **options: Of ``gs.ingest``: ``partitions``, ``overwrite`` and so on.

    Raises:
        InputError: Masks that overlap, arrays of the wrong length, or no edge_index.
    """
    options = {"order": "original", **options}
    return ingest(source_of(data, undirected=undirected), path, **options).graph
