"""Which nodes of a graph a node of a labeled pattern may be, tried one by one."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.loops import claimed_rows
from graphsys.kernels.cpu.mining.four_cycles import place_of
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Offsets = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]
Masks = npt.NDArray[np.uint8]

ANCHOR, LABEL, NODE, CHECKS = range(4)
"""Columns of the steps of :func:`find_images`."""


@lean_jit
def find_images(
    thread: int,
    indptr: Offsets,
    indices: Numbers,
    labels: Numbers,
    steps: Offsets,
    checks: Offsets,
    allowed: Masks,
    bounds: Offsets,
    counter: Offsets,
    frames: Offsets,
    found: Masks,
) -> None:
    """Mark the nodes that the pattern's node of the first step is in some match.

    A search ends at the first match, which marks the nodes of all steps; threads share the
    marks, which are only ever set.

    Args:
        indices: Neighbors, sorted in every row; one stands there once for each label.
        labels: Label of every entry ``[E]``.
        steps: For every step the step of a neighbor in the pattern, the label of the edge
            to it, the pattern's node, and where its checks end ``[K, 4]``.
        checks: Further edges of the steps to steps before: step, label ``[C, 2]``.
        allowed: Whether a node may be a node of the pattern ``[K, N]``.
        frames: Scratch ``[T, 2, K]``.
        found: Receives 1 for images ``[K, N]``.
    """
    image, cursor = frames[thread, 0], frames[thread, 1]
    first = steps[0, NODE]
    for v in claimed_rows(bounds, counter):
        # An earlier match may have marked it. A mark that another thread sets meanwhile is
        # missed: one search more, and the same marks.
        if not allowed[first, v] or found[first, v]:
            continue
        image[0] = v
        if _has_match(indptr, indices, labels, steps, checks, allowed, image, cursor):
            for step in range(len(steps)):
                found[steps[step, NODE], image[step]] = 1


@lean_inline_jit
def _has_match(
    indptr: Any,
    indices: Any,
    labels: Any,
    steps: Any,
    checks: Any,
    allowed: Any,
    image: Any,
    cursor: Any,
) -> bool:
    """Look for one match whose first node is given."""
    step, last = 1, len(steps) - 1
    cursor[1] = indptr[image[steps[1, ANCHOR]]]
    while step > 0:
        e = cursor[step]
        if e >= indptr[image[steps[step, ANCHOR]] + 1]:
            step -= 1
            continue
        cursor[step] = e + 1
        w = np.int64(indices[e])
        if labels[e] != steps[step, LABEL] or not allowed[steps[step, NODE], w]:
            continue
        fits = True
        for before in range(step):
            fits = fits and image[before] != w
        if not fits:
            continue
        for k in range(steps[step - 1, CHECKS], steps[step, CHECKS]):
            if not _has_edge(indptr, indices, labels, image[checks[k, 0]], w, checks[k, 1]):
                fits = False
                break
        if not fits:
            continue
        image[step] = w
        if step == last:
            return True
        step += 1
        cursor[step] = indptr[image[steps[step, ANCHOR]]]
    return False


@lean_inline_jit
def _has_edge(
    indptr: Any, indices: Any, labels: Any, one: Any, other: Any, label: Any
) -> bool:
    """Tell whether two nodes have an edge of a label."""
    if indptr[one + 1] - indptr[one] > indptr[other + 1] - indptr[other]:
        one, other = other, one
    end = indptr[one + 1]
    place = place_of(indices, indptr[one], end, other)
    while place < end and np.int64(indices[place]) == other:
        if labels[place] == label:
            return True
        place += 1
    return False
