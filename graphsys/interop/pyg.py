"""PyTorch Geometric: its loaders over our stores, its layers on our blocks, its graphs.

Needs the extra ``pyg``. What is a copy and what a view is said by each; nodes are known by
their numbers, which ``graph.lookup`` gives for ids.
"""

import os
import warnings
from typing import Any

import numpy as np
import torch

from graphsys.core.errors import ConfigError
from graphsys.datasets.readers.pyg_graphs import source_of
from graphsys.facade.graph import Graph
from graphsys.facade.ingest import ingest
from graphsys.facade.to_pyg import to_data, to_hetero_data
from graphsys.interop.pyg_sampler import GraphsysSampler
from graphsys.interop.pyg_stores import (
    EdgeAttributes,
    GraphsysFeatureStore,
    GraphsysGraphStore,
    stores,
)
from graphsys.sampling import Block

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


def edge_index(block: Block) -> torch.Tensor:
    """Return a block's entries as PyG's ``edge_index``: int64 ``[2, E]``, a copy."""
    col = np.repeat(np.arange(block.num_dst), np.diff(block.indptr))
    return torch.from_numpy(np.stack([block.indices.astype(np.int64), col]))


def adjacency(block: Block) -> torch.Tensor:
    """Return a block as a torch CSR matrix ``[D, S]``, which PyG takes for ``edge_index``.

    Row offsets are a view of the block; the indices are copied to int64, the values are the
    weights (a view) or ones. PyG's sums and means then run as sparse products.
    """
    weight = np.ones(block.num_edges, np.float32) if block.weight is None else block.weight
    with warnings.catch_warnings():  # torch calls its CSR support beta, once a process
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(block.indptr),
            torch.from_numpy(block.indices.astype(np.int64)),
            torch.from_numpy(weight),
            size=(block.num_dst, block.num_src),
            check_invariants=False,  # blocks keep them
        )


def bipartite(
    block: Block, x: torch.Tensor, x_dst: torch.Tensor | None = None
) -> tuple[tuple[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return ``((x, x_dst), edge_index)``, the arguments of any PyG layer for two sides.

    Args:
        block: A hop.
        x: Rows of the sources ``[S, F]``.
        x_dst: Rows of the destinations ``[D, F']``; by default the first D of ``x``, which
            they are where both ends are of one type (a view).

    Raises:
        ConfigError: Rows that do not fit the block.

    Examples:
        ``x = conv(*pyg.bipartite(block, x))`` for every block of a sample.
    """
    x_dst = x[: block.num_dst] if x_dst is None else x_dst
    if len(x) != block.num_src or len(x_dst) != block.num_dst:
        raise ConfigError(
            f"x has {len(x)} rows and x_dst {len(x_dst)}, expected {block.num_src} and "
            f"{block.num_dst} as the block has"
        )
    return (x, x_dst), edge_index(block)
