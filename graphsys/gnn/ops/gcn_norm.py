"""Weights of messages from the degrees of the whole graph, for sampled rows too."""

from typing import Any

import numpy as np
import torch

from graphsys.gnn.ops.adjacency import SparseRows


def weigh(
    rows: SparseRows,
    src_degrees: torch.Tensor,
    dst_degrees: torch.Tensor,
    *,
    has_self: bool = True,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Give rows the weights of a graph convolution.

    Entry (u, v) gets ``1 / sqrt(d_u d_v)``, the degrees with the self-loop if there is one.
    Where a row holds a sample of its neighbors, entries count for those left out, so that
    the sum is what the whole row's would be on average.

    Args:
        rows: Receives ``weight`` and ``self_weight``.
        src_degrees: Degrees of the sources in the whole graph, float32 ``[S]``.
        dst_degrees: Degrees of the rows' own nodes ``[D]``.
        has_self: Whether each node counts as its own neighbor (GCN).

    Returns:
        The weights of entries ``[E]`` and of own nodes ``[D]``, float32.
    """
    loop = 1.0 if has_self else 0.0
    if rows.is_on_device:
        return _weigh_there(rows, src_degrees, dst_degrees, loop)
    src_scale = (src_degrees + loop).clamp(min=1).rsqrt().numpy()
    dst_scale = (dst_degrees + loop).clamp(min=1).rsqrt().numpy()
    found = rows.degrees.numpy()
    share = dst_scale * dst_degrees.numpy() / np.maximum(found, 1)
    weight = src_scale[rows.indices] * np.repeat(share, np.diff(rows.indptr))
    rows.weight = torch.from_numpy(weight.astype(np.float32))
    rows.self_weight = torch.from_numpy((loop * dst_scale**2).astype(np.float32))
    return rows.weight, rows.self_weight


def _weigh_there(
    rows: SparseRows, src_degrees: torch.Tensor, dst_degrees: torch.Tensor, loop: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Do the same with rows and degrees that are on a device."""
    entries: Any = rows.entries
    src_scale = (src_degrees + loop).clamp(min=1).rsqrt()
    dst_scale = (dst_degrees + loop).clamp(min=1).rsqrt()
    share = dst_scale * dst_degrees / rows.degrees.clamp(min=1)
    weight = src_scale.index_select(0, entries.indices)
    rows.weight = weight * share.index_select(0, entries.row_of)
    rows.self_weight = loop * dst_scale.square()
    return rows.weight, rows.self_weight
