"""Work that threads deal out among themselves, each its own first.

What a thread found lies in its caches. So lists of work are made of pieces that name who
wrote them, and threads take chunks of their own pieces, then of others'.
"""

from typing import Any

import numpy as np

from graphsys.kernels.cpu.atomics import atomic_add
from graphsys.kernels.jit import lean_inline_jit

PIECE_SIZE = 8
"""Numbers of a piece: a line of memory, which nothing else is in."""
_NEXT = 0
_END = 1
_OWNER = 2


@lean_inline_jit
def write_piece(pieces: Any, piece: Any, begin: Any, end: Any, owner: Any) -> None:
    """Note that a stretch of the list is a thread's.

    Args:
        pieces: The pieces, int64 ``[P, PIECE_SIZE]``.
        piece: Number of the piece.
        begin: First place in the list.
        end: The first place that is not in it.
        owner: Number of the thread.
    """
    pieces[piece, _NEXT] = begin
    pieces[piece, _END] = end
    pieces[piece, _OWNER] = owner


@lean_inline_jit
def is_turn(pieces: Any, piece: Any, thread: Any, owns: Any) -> bool:
    """Return whether a piece is the thread's, or another's where ``owns`` is false."""
    is_its: bool = (pieces[piece, _OWNER] == thread) == owns
    return is_its


@lean_inline_jit
def end_of(pieces: Any, piece: Any) -> np.int64:
    """Return the first place that is not in a piece."""
    end: np.int64 = pieces[piece, _END]
    return end


@lean_inline_jit
def claim(pieces: Any, piece: Any, chunk: Any) -> np.int64:
    """Take the next places of a piece, ``chunk`` at most; the end where none are left."""
    end: np.int64 = pieces[piece, _END]
    # Looked at first: adding to the counter of an empty piece would take its line of memory
    # from the others each time, and could run on without bound.
    if pieces[piece, _NEXT] >= end:
        return end
    # Another may have taken the last in between: then the sum lies behind the end.
    first: np.int64 = atomic_add(pieces[piece], _NEXT, chunk)
    return min(first, end)
