"""Kernels of message passing on a device: Triton's, on tensors that are there.

The twin of :mod:`graphsys.gnn.ops.cpu`. Results are float32, float64 for float64;
tensors of 16 bits are read as they are.
"""

import torch

from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.ops.cuda.attention import attend_ends as attend_ends
from graphsys.gnn.ops.cuda.attention import attend_gradients as attend_gradients
from graphsys.gnn.ops.cuda.attention import softmax as softmax
from graphsys.gnn.ops.cuda.attention import softmax_gradient as softmax_gradient
from graphsys.gnn.ops.cuda.launch import FLAT, blocks, entries_of, launch, room, tile
from graphsys.gnn.ops.cuda.sums import max_gradient as max_gradient
from graphsys.gnn.ops.cuda.sums import max_rows as max_rows
from graphsys.gnn.ops.cuda.sums import sum_rows as sum_rows
from graphsys.gnn.ops.cuda.sums import sum_values as sum_values


def widened(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor as kernels take it: these widen what they read."""
    return x


def dot_ends(rows: SparseRows, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the inner products of both ends ``[E, H]``, ends being ``[.., H, F]``."""
    from graphsys.kernels.cuda.gnn import ends

    x, y = x.contiguous(), y.contiguous()
    heads, size = x.shape[1:]
    out = room((rows.num_edges, heads), x)
    block, columns = tile(size, out, 2)
    launch(
        ends.dot_ends,
        (blocks(rows.num_edges, block), heads),
        entries_of(rows).row_of,
        rows.indices,
        x,
        y,
        out,
        rows.num_edges,
        HEADS=heads,
        SIZE=size,
        BLOCK_E=block,
        BLOCK_F=columns,
        num_warps=1,
    )
    return out


def add_ends(rows: SparseRows, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the sums of a number of each end ``[E, H]``."""
    from graphsys.kernels.cuda.gnn import ends

    x, y, heads = x.contiguous(), y.contiguous(), x.shape[1]
    out = room((rows.num_edges, heads), x)
    launch(
        ends.add_ends,
        (blocks(out.numel(), FLAT),),
        entries_of(rows).row_of,
        rows.indices,
        x,
        y,
        out,
        rows.num_edges,
        HEADS=heads,
        BLOCK=FLAT,
        num_warps=4,
    )
    return out
