"""Matches of a pattern drawn neighbor by neighbor, each with the number it stands for.

The first edge is drawn from all; every further node from all that fit to those before, so
that a match stands for the product of how many there were to choose from. The last step is
counted, not drawn. Iyer et al., "ASAP: fast, approximate graph pattern mining at scale",
OSDI 2018, draws edges so; here candidates are intersected first, which varies less.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.atomics import atomic_add
from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.mining.squares import place_of
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Offsets = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

SAMPLES_A_CHUNK = 256


@lean_jit
def draw_matches(
    thread: int,
    indptr: Offsets,
    indices: Numbers,
    owners: Numbers,
    needed: Offsets,
    refused: Offsets,
    key: np.uint64,
    first_chunk: int,
    counter: Offsets,
    candidates: Numbers,
    images: Offsets,
    sums: Floats,
) -> None:
    """Sum up, chunk by chunk, what drawn matches stand for, and its squares.

    Args:
        thread: Number of this thread.
        indptr: Row offsets ``[N + 1]``.
        indices: Neighbors, sorted in every row.
        owners: Node of every entry ``[2 M]``.
        needed: Bits of the steps before that a step has an edge with ``[K]``.
        refused: Bits of the steps before that it must not have an edge with ``[K]``.
        key: Of the draws.
        first_chunk: Number of the first chunk: draws depend on the chunk, not the thread.
        counter: Next chunk.
        candidates: Scratch ``[T, D]``, D the largest degree.
        images: Scratch ``[T, K]``.
        sums: Receives sum and sum of squares ``[C, 2]``.
    """
    fits, image = candidates[thread], images[thread]
    while True:
        chunk = atomic_add(counter, 0, 1)
        if chunk >= len(sums):
            break
        total, squares = 0.0, 0.0
        state = mix64(key ^ mix64(np.uint64(first_chunk + chunk)))
        for _ in range(SAMPLES_A_CHUNK):
            weight = np.float64(len(indices))
            state = mix64(state)
            e = np.int64(state % np.uint64(len(indices)))
            image[0], image[1] = owners[e], indices[e]
            for step in range(2, len(needed)):
                num = _list_fitting(indptr, indices, needed, refused, step, image, fits)
                weight *= num
                if num == 0 or step == len(needed) - 1:
                    break
                state = mix64(state)
                image[step] = fits[np.int64(state % np.uint64(num))]
            total += weight
            squares += weight * weight
        sums[chunk, 0], sums[chunk, 1] = total, squares


@lean_inline_jit
def _list_fitting(
    indptr: Any,
    indices: Any,
    needed: Any,
    refused: Any,
    step: Any,
    image: Any,
    fits: Any,
) -> Any:
    """List the nodes that a step can be, given those before; return how many."""
    anchor = -1
    for before in range(step):
        if needed[step] >> before & 1:
            node = image[before]
            degree = indptr[node + 1] - indptr[node]
            if anchor < 0 or degree < indptr[image[anchor] + 1] - indptr[image[anchor]]:
                anchor = before
    num = np.int64(0)
    for e in range(indptr[image[anchor]], indptr[image[anchor] + 1]):
        w = np.int64(indices[e])
        good = True
        for before in range(step):
            if image[before] == w:
                good = False
                break
            if before == anchor:
                continue
            is_needed = needed[step] >> before & 1
            if is_needed or refused[step] >> before & 1:
                node = image[before]
                end = indptr[node + 1]
                place = place_of(indices, indptr[node], end, w)
                has = place < end and np.int64(indices[place]) == w
                if has != (is_needed != 0):
                    good = False
                    break
        if good:
            fits[num] = w
            num += 1
    return num
