"""DGL 1.1.3: its graphs, its DataLoader over our stores, its layers on our blocks.

Needs the extra ``dgl``. What is a copy and what a view is said by each; nodes are known by
their numbers, which ``graph.lookup`` gives for ids.
"""

import os
from typing import Any

from graphsys.datasets.readers.dgl_graphs import source_of
from graphsys.facade.graph import Graph
from graphsys.facade.ingest import ingest
from graphsys.facade.to_dgl import to_dgl
from graphsys.interop.dgl_blocks import (
    GraphsysBlockSampler,
    block_from_dgl,
    block_to_dgl,
)
from graphsys.interop.dgl_data import (
    GraphsysFeatureStorage,
    GraphsysStorage,
)

__all__ = [
    "GraphsysBlockSampler",
    "GraphsysFeatureStorage",
    "GraphsysStorage",
    "block_from_dgl",
    "block_to_dgl",
    "from_dgl",
    "source_of",
    "to_dgl",
]


def from_dgl(
    graph: Any, path: str | os.PathLike[str], *, undirected: bool = False, **options: Any
) -> Graph:
    """Write DGL's graph as a store, and open it.

    Nodes have their places as ids, and keep that order (unless an option asks for another,
    or for partitions). Matrices of nodes become features, ``label`` stays, masks become the
    column ``split`` (``val`` is ``valid``); ``weight``, ``time`` and other numbers per edge
    become columns.

    Args:
        graph: A homogeneous or heterogeneous DGLGraph.
        path: The new store's folder.
        undirected: Whether the edges, which are there in both directions, are stored as
            undirected ones: half as many, with the columns of the copy from the smaller
            place.
        **options: Of ``gs.ingest``: ``partitions``, ``overwrite`` and so on.

    Raises:
        InputError: Masks that overlap, or arrays of more than two dimensions.
    """
    options = {"order": "original", **options}
    return ingest(source_of(graph, undirected=undirected), path, **options).graph
