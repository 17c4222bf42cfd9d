"""Matches of a pattern drawn neighbor by neighbor, each with the number it stands for.

The first edge is drawn from all; every further node from all that fit to those before, so
that a match stands for the product of how many there were to choose from. The last step is
counted, not drawn. Iyer et al., "ASAP: fast, approximate graph pattern mining at scale",
OSDI 2018, draws edges so; here candidates are intersected first, which varies less.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.cpu.mining.matches import has_kinds, list_fitting
from graphsys.kernels.jit import lean_jit

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
    steps: Offsets,
    tests: Offsets,
    kinds: Offsets,
    wanted: Offsets,
    labels: Numbers,
    key: np.uint64,
    first_chunk: int,
    counter: Offsets,
    candidates: Numbers,
    images: Offsets,
    sums: Floats,
) -> None:
    """Sum up, chunk by chunk, what drawn matches stand for, and its squares.

    Args:
        indices: Neighbors, sorted in every row.
        owners: Node of every entry ``[2 M]``.
        steps: What a node of a step must fulfil, as in ``matches.py``, but with nothing it
            must be above: all automorphic matches are drawn ``[K, 3]``.
        tests: What edges of steps must fulfil, as in ``matches.py``, like the next three.
        kinds: What the edge of every entry is.
        wanted: Label of the node of every step.
        labels: Labels of nodes.
        key: Of the draws.
        first_chunk: Number of the first chunk: draws depend on the chunk, not the thread.
        candidates: Scratch ``[T, K, D]``, D the largest degree.
        images: Scratch ``[T, K]``.
        sums: Receives sum and sum of squares ``[C, 2]``.
    """
    fits, image = candidates[thread], images[thread]
    for chunk in claimed_range(0, len(sums), 1, counter):
        total, squares = 0.0, 0.0
        state = mix64(key ^ mix64(np.uint64(first_chunk + chunk)))
        for _ in range(SAMPLES_A_CHUNK):
            weight = np.float64(len(indices))
            state = mix64(state)
            e = np.int64(state % np.uint64(len(indices)))
            image[0], image[1] = owners[e], indices[e]
            good = True
            for step in range(min(len(wanted), 2)):
                if wanted[step] >= 0 and labels[image[step]] != wanted[step]:
                    good = False
            if good and len(tests):
                good = has_kinds(indptr, indices, tests, kinds, 1, image, image[1])
            if not good:
                continue
            for step in range(2, len(steps)):
                num = list_fitting(
                    indptr, indices, steps, tests, kinds, wanted, labels, step, image, fits
                )
                weight *= num
                if num == 0 or step == len(steps) - 1:
                    break
                state = mix64(state)
                image[step] = fits[step, np.int64(state % np.uint64(num))]
            total += weight
            squares += weight * weight
        sums[chunk, 0], sums[chunk, 1] = total, squares
