"""Softmax within rows and GATv2's scores on a device: twins of ``ops.cpu``."""

from typing import Any, Final

import torch

from graphsys.gnn.ops.adjacency import PIECE, SparseRows
from graphsys.gnn.ops.cuda.launch import (
    FLAT,
    blocks,
    entries_of,
    extras_of,
    launch,
    room,
    tile,
)
from graphsys.gnn.ops.cuda.sums import add_extras, sum_values

_SHARES: Final = 1024  # programs that sum the gradient of GATv2's vector


def softmax(rows: SparseRows, scores: torch.Tensor) -> torch.Tensor:
    """Return the shares of entries in their rows ``[E, H]``."""
    from graphsys.kernels.cuda.gnn import softmax

    entries = entries_of(rows)
    scores, heads = scores.contiguous(), scores.shape[1]
    out = room(tuple(scores.shape), scores)
    highest, total = (room((rows.num_dst, heads), scores) for _ in range(2))
    block, columns = tile(heads, out)
    # Rows longer than PIECE are cut: a first program takes the row's begin, extras the
    # rest, and a second kernel joins what they found.
    parts, begin, row = extras_of(entries, (2, heads), out)
    grid = (rows.num_dst + entries.num_extras, blocks(heads, columns))
    launch(
        softmax.softmax_pieces,
        grid,
        rows.indptr,
        scores,
        highest,
        total,
        parts,
        begin,
        row,
        rows.num_dst,
        HEADS=heads,
        PIECE=PIECE,
        BLOCK_E=block,
        BLOCK_H=columns,
        num_warps=1,
    )
    if parts is not None:
        launch(
            softmax.softmax_extras,
            (entries.num_extras, grid[1]),
            highest,
            total,
            parts,
            begin,
            row,
            rows.num_dst,
            HEADS=heads,
            BLOCK_H=columns,
            num_warps=1,
        )
    launch(
        softmax.softmax_entries,
        (blocks(out.numel(), FLAT),),
        entries.row_of,
        scores,
        highest,
        total,
        out,
        rows.num_edges,
        HEADS=heads,
        BLOCK=FLAT,
        num_warps=4,
    )
    return out


def softmax_gradient(
    rows: SparseRows, shares: torch.Tensor, grad: torch.Tensor
) -> torch.Tensor:
    """Return the gradient of the scores, given that of the shares."""
    from graphsys.kernels.cuda.gnn import softmax

    entries = entries_of(rows)
    grad = grad.contiguous()
    out = torch.empty_like(shares)
    # The gradient of a softmax needs one sum a row, which no entry knows alone.
    total = sum_values(entries, shares * grad)
    launch(
        softmax.softmax_gradient,
        (blocks(out.numel(), FLAT),),
        entries.row_of,
        shares,
        grad,
        total,
        out,
        rows.num_edges,
        HEADS=shares.shape[1],
        BLOCK=FLAT,
        num_warps=4,
    )
    return out


def attend_ends(
    rows: SparseRows,
    x: torch.Tensor,
    y: torch.Tensor,
    attention: torch.Tensor,
    slope: float,
) -> torch.Tensor:
    """Return GATv2's scores ``[E, H]``."""
    from graphsys.kernels.cuda.gnn import ends

    x, y = x.contiguous(), y.contiguous()
    heads, size = x.shape[1:]
    out = room((rows.num_edges, heads), x)
    block, columns = tile(size, out, 2)
    launch(
        ends.attend_ends,
        (blocks(rows.num_edges, block), heads),
        entries_of(rows).row_of,
        rows.indices,
        x,
        y,
        attention.contiguous(),
        out,
        slope,
        rows.num_edges,
        HEADS=heads,
        SIZE=size,
        BLOCK_E=block,
        BLOCK_F=columns,
        num_warps=1,
    )
    return out


def attend_gradients(
    rows: SparseRows,
    x: torch.Tensor,
    y: torch.Tensor,
    attention: torch.Tensor,
    slope: float,
    grad: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of ``x``, ``y`` and ``attention``, given that of the scores."""
    from graphsys.kernels.cuda.gnn import ends

    x, y, grad, attention = (t.contiguous() for t in (x, y, grad, attention))
    heads, size = attention.shape
    width = heads * size
    block, columns = tile(width, x, 4)  # both ends, the gradient, the sum
    options: Any = {
        "HEADS": heads,
        "SIZE": size,
        "BLOCK_E": block,
        "BLOCK_F": columns,
        "num_warps": 1,
    }
    found = []
    # Once by rows of destinations and once by those of sources: who owns a row writes it
    # alone, so that sums need no atomics and come out alike each time.
    for entries, other, own in ((rows.transposed, y, x), (rows.entries, x, y)):
        each: Any = entries
        out = room(tuple(own.shape), own)
        parts, begin, row = extras_of(each, (width,), out)
        launch(
            ends.attend_pieces,
            (each.num_rows + each.num_extras, blocks(width, columns)),
            each.indptr,
            each.indices,
            each.entry,
            other,
            own,
            attention,
            grad,
            out,
            parts,
            begin,
            row,
            slope,
            each.num_rows,
            HAS_ENTRY=each.entry is not None,
            PIECE=PIECE,
            **options,
        )
        add_extras(each, out, parts, width)
        found.append(out)
    share = max(blocks(rows.num_edges, _SHARES), block)
    shares = blocks(rows.num_edges, share)
    vectors = room((shares, heads, size), x)
    launch(
        ends.attend_vector,
        (shares, blocks(width, columns)),
        entries_of(rows).row_of,
        rows.indices,
        x,
        y,
        grad,
        vectors,
        slope,
        rows.num_edges,
        share,
        **options,
    )
    return found[0], found[1], vectors.sum(dim=0)
