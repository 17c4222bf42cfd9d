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
    shares: torch.Tensor | None = None,
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
        shares: What each entry counts for of its row's neighbors ``[E]``; by default all
            entries of a row alike.

    Returns:
        The weights of entries ``[E]`` and of own nodes ``[D]``, float32.
    """
    loop = 1.0 if has_self else 0.0
    if rows.is_on_device:
        return _weigh_there(rows, src_degrees, dst_degrees, loop, shares)
    src_scale = (src_degrees + loop).clamp(min=1).rsqrt().numpy()
    dst_scale = (dst_degrees + loop).clamp(min=1).rsqrt().numpy()
    whole = dst_scale * dst_degrees.numpy()
    if shares is None:
        whole = whole / np.maximum(rows.degrees.numpy(), 1)
    weight = src_scale[rows.indices] * np.repeat(whole, np.diff(rows.indptr))
    if shares is not None:
        weight = weight * shares.numpy()
    rows.weight = torch.from_numpy(weight.astype(np.float32))
    rows.self_weight = torch.from_numpy((loop * dst_scale**2).astype(np.float32))
    return rows.weight, rows.self_weight


def _weigh_there(
    rows: SparseRows,
    src_degrees: torch.Tensor,
    dst_degrees: torch.Tensor,
    loop: float,
    shares: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Do the same with rows and degrees that are on a device."""
    entries: Any = rows.entries
    src_scale = (src_degrees + loop).clamp(min=1).rsqrt()
    dst_scale = (dst_degrees + loop).clamp(min=1).rsqrt()
    whole = dst_scale * dst_degrees
    if shares is None:
        whole = whole / rows.degrees.clamp(min=1)
    weight = src_scale.index_select(0, entries.indices)
    weight = weight * whole.index_select(0, entries.row_of)
    rows.weight = weight if shares is None else weight * shares
    rows.self_weight = loop * dst_scale.square()
    return rows.weight, rows.self_weight
