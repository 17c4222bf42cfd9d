"""Blocks as PyG's layers take them: a pair of inputs, and where messages go."""

import warnings

import numpy as np
import torch

from graphsys.core.errors import ConfigError
from graphsys.sampling import Block


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
