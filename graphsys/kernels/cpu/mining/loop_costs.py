"""What a schedule would cost on a graph: loops and set operations, by sampled descents."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.mining.four_cycles import place_of
from graphsys.kernels.cpu.mining.sets import has
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Offsets = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]

NEEDED, REFUSED, ABOVE, BELOW = range(4)
"""Columns of the steps: words whose bits are the steps before."""


@lean_inline_jit
def _between(indices: Any, begin: Any, end: Any, image: Any, above: Any, below: Any) -> Any:
    """Return the piece of a sorted row between the nodes that bound it."""
    for k in range(len(image)):
        if above >> k & 1:
            begin = place_of(indices, begin, end, image[k] + 1)
        if below >> k & 1:
            end = place_of(indices, begin, end, image[k])
    return begin, end


@lean_inline_jit
def _charge(
    indptr: Any, indices: Any, steps: Any, bound: Any, image: Any, weight: Any, work: Any
) -> None:
    """Add what the sets read that are made when a step is bound, by its sampled nodes."""
    for step in range(bound + 1, len(steps)):
        operands = steps[step, NEEDED] | steps[step, REFUSED]
        if operands >> bound != 1 or operands == 1 << bound:
            continue  # the last of them is another, or it is the only one
        shortest, longest = np.int64(len(indices)), np.int64(0)
        for k in range(bound + 1):
            if steps[step, NEEDED] >> k & 1:
                begin, end = _between(
                    indices,
                    indptr[image[k]],
                    indptr[image[k] + 1],
                    image[: bound + 1],
                    steps[step, ABOVE],
                    steps[step, BELOW],
                )
                shortest, longest = min(shortest, end - begin), max(longest, end - begin)
        read = shortest + min(longest, 16 * shortest) + 4
        work[step] += weight * np.float64(read)


@lean_jit
def sample_trips(
    indptr: Offsets,
    indices: Numbers,
    steps: Offsets,
    num_samples: int,
    seed: np.uint64,
    image: Offsets,
    fits: Numbers,
    trips: npt.NDArray[np.float64],
    work: npt.NDArray[np.float64],
) -> None:
    """Descend at random from sampled edges, and weigh what is met by what it stands for.

    Args:
        indices: Neighbors, sorted in every row ``[2 M]``, M at least 1.
        steps: What a node of a step must fulfil ``[K, 4]``; the second is a neighbor.
        num_samples: Descents.
        seed: Of what is drawn.
        image: Scratch ``[K]``.
        fits: Scratch ``[D]``, D the largest degree.
        trips: Receives how often each step's loop would be run through ``[K]``.
        work: Receives the entries that the set operations of each step would read ``[K]``.
    """
    size = len(steps)
    for sample in range(num_samples):
        word = mix64(seed + np.uint64(sample))
        entry = np.int64(word % np.uint64(len(indices)))
        # The entry's row: an edge is drawn evenly, a node by its degree.
        low, high = np.int64(0), np.int64(len(indptr) - 1)
        while high - low > 1:
            middle = (low + high) >> 1
            if indptr[middle] <= entry:
                low = middle
            else:
                high = middle
        first, second = low, np.int64(indices[entry])
        weight = np.float64(len(indices)) / np.float64(num_samples)
        is_smaller = second < first
        if steps[1, BELOW if not is_smaller else ABOVE] & 1:
            continue
        image[0], image[1] = first, second
        trips[1] += weight
        _charge(indptr, indices, steps, 1, image, weight, work)
        for step in range(2, size):
            operands = steps[step, NEEDED] | steps[step, REFUSED]
            anchor, begin, end = -1, np.int64(0), np.int64(0)
            for k in range(step):
                if steps[step, NEEDED] >> k & 1:
                    b, e = _between(
                        indices,
                        indptr[image[k]],
                        indptr[image[k] + 1],
                        image[:step],
                        steps[step, ABOVE],
                        steps[step, BELOW],
                    )
                    if anchor < 0 or e - b < end - begin:
                        anchor, begin, end = k, b, e
            num = np.int64(0)
            for place in range(begin, end):
                w = np.int64(indices[place])
                good = True
                for k in range(step):
                    node = image[k]
                    if node == w:
                        good = False
                    elif k != anchor and operands >> k & 1:
                        found = has(indices, indptr[node], indptr[node + 1], w)
                        good = found == ((steps[step, NEEDED] >> k & 1) != 0)
                    if not good:
                        break
                if good:
                    fits[num] = w
                    num += 1
            if num == 0:
                break
            # One of `num` stands for all of them: Knuth's estimate of a tree's size.
            word = mix64(word + np.uint64(step))
            image[step] = np.int64(fits[np.int64(word % np.uint64(num))])
            weight *= np.float64(num)
            trips[step] += weight
            _charge(indptr, indices, steps, step, image, weight, work)
