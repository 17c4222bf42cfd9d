"""Sums, means and maxima of rows on a device; see :mod:`graphsys.gnn.ops.cpu`."""

from typing import Any, Final

import torch

from graphsys.core.events import count
from graphsys.gnn.ops.adjacency import PIECE, DeviceEntries, SparseRows
from graphsys.gnn.ops.cuda.launch import blocks, entries_of, extras_of, launch, room, tile

_OWN: Final = object()


def sum_rows(
    entries: DeviceEntries,
    weight: torch.Tensor | None,
    x: torch.Tensor,
    *,
    is_mean: bool = False,
) -> torch.Tensor:
    """Return the weighted sums, or means, of the rows of ``x`` that entries name."""
    heads = x.shape[1] if x.dim() == 3 else 1
    return _sum(entries, x, weight=weight, heads=heads, is_mean=is_mean)


def sum_values(entries: DeviceEntries, values: torch.Tensor) -> torch.Tensor:
    """Return the sums of the values of each row's entries ``[R, H]``, values ``[E, H]``."""
    return _sum(entries, values, indices=entries.entry)


def _sum(
    entries: DeviceEntries,
    x: torch.Tensor,
    *,
    indices: Any = _OWN,
    weight: torch.Tensor | None = None,
    winner: torch.Tensor | None = None,
    heads: int = 1,
    is_mean: bool = False,
) -> torch.Tensor:
    from graphsys.kernels.cuda.gnn import sums

    # None means something: values in order. So the default is an object of its own.
    indices = entries.indices if indices is _OWN else indices
    x = x.contiguous()
    out = room((entries.num_rows, *x.shape[1:]), x)
    width = out[:1].numel() if len(out) else x[:1].numel()
    if not width:
        return out
    rows, columns = tile(width, out)
    parts, begin, row = extras_of(entries, (width,), out)
    _told("sum_pieces", entries, x, width, out)
    launch(
        sums.sum_pieces,
        (entries.num_rows + entries.num_extras, blocks(width, columns)),
        entries.indptr,
        indices,
        entries.entry,
        None if weight is None else weight.contiguous(),
        winner,
        x,
        out,
        parts,
        begin,
        row,
        entries.num_rows,
        WIDTH=width,
        HEADS=heads,
        HAS_INDICES=indices is not None,
        HAS_ENTRY=entries.entry is not None,
        HAS_WEIGHT=weight is not None,
        HAS_WINNER=winner is not None,
        IS_MEAN=is_mean,
        PIECE=PIECE,
        BLOCK_E=rows,
        BLOCK_F=columns,
        num_warps=1,
    )
    add_extras(entries, out, parts, width)
    return out


def add_extras(
    entries: DeviceEntries, out: torch.Tensor, parts: torch.Tensor | None, width: int
) -> None:
    """Add what extras found, if there are any, to the sums of their rows."""
    from graphsys.kernels.cuda.gnn import sums

    if parts is None:
        return
    rows, columns = tile(width, out)
    launch(
        sums.add_extras,
        (entries.num_extras, blocks(width, columns)),
        out,
        parts,
        *entries.extras,
        entries.num_rows,
        WIDTH=width,
        BLOCK_E=rows,
        BLOCK_F=columns,
        num_warps=1,
    )


def _told(
    kernel: str, entries: DeviceEntries, x: torch.Tensor, width: int, out: torch.Tensor
) -> None:
    num_edges = len(entries.indices)
    count(
        "kernel_work",
        2 * num_edges * width,
        kernel=kernel,
        bytes=num_edges * (width * x.element_size() + 4) + out.nbytes,
    )


def max_rows(rows: SparseRows, x: torch.Tensor) -> tuple[torch.Tensor, Any]:
    """Return the maxima of rows by feature, and the entries that have them."""
    from graphsys.kernels.cuda.gnn import sums

    entries = entries_of(rows)
    x, width = x.contiguous(), x.shape[1]
    out = room((rows.num_dst, width), x)
    winner = torch.empty_like(out, dtype=torch.int32)
    if not width:
        return out, winner
    block, columns = tile(width, out)
    parts, begin, row = extras_of(entries, (width,), out)
    # Extras have a winner each beside their maximum, since the gradient goes to one entry.
    found = None if parts is None else torch.empty_like(parts, dtype=torch.int32)
    grid = (rows.num_dst + entries.num_extras, blocks(width, columns))
    launch(
        sums.max_pieces,
        grid,
        rows.indptr,
        rows.indices,
        x,
        out,
        winner,
        parts,
        found,
        begin,
        row,
        rows.num_dst,
        WIDTH=width,
        PIECE=PIECE,
        BLOCK_E=block,
        BLOCK_F=columns,
        num_warps=1,
    )
    if parts is not None:
        launch(
            sums.max_extras,
            (entries.num_extras, grid[1]),
            out,
            winner,
            parts,
            found,
            begin,
            row,
            rows.num_dst,
            WIDTH=width,
            BLOCK_F=columns,
            num_warps=1,
        )
    return out, winner


def max_gradient(rows: SparseRows, winner: Any, grad: torch.Tensor) -> torch.Tensor:
    """Return the gradient of ``x``, given that of the maxima ``[R, F]``."""
    return _sum(rows.transposed, grad, winner=winner)  # type: ignore[arg-type]
