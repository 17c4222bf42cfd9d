"""Nodes drawn as negatives: uniformly or by weight, known neighbors left out.

By weight: from an alias table.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.rows.row_table import (
    below,
    has_neighbor,
)
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Ints = npt.NDArray[np.int64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ATTEMPTS = 16


@lean_inline_jit
def _draw(size: Any, threshold: Any, other: Any, word: Any) -> Any:
    place = np.int64(((word >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))
    if len(threshold):
        fraction = np.float64(word & np.uint64(0xFFFFFFFF)) * 2.0**-32
        if fraction >= threshold[place]:
            place = other[place]
    return place


@lean_jit
def draw_nodes(
    offsets: Ints,
    table: npt.NDArray[np.uint64],
    wide: npt.NDArray[np.uint8],
    seeds: Ints,
    is_excluding: bool,
    num_candidates: int,
    threshold: npt.NDArray[np.float32],
    other: Ints,
    key: np.uint64,
    out: Ints,
) -> None:
    """Draw nodes for each seed.

    Args:
        offsets: First numbers of the partitions of the seeds' type ``[P + 1]``.
        table: Addresses of the seeds' rows (see ``row_table``).
        wide: Their dtypes.
        seeds: Numbers of nodes ``[n]``.
        is_excluding: Draw again what is a neighbor of the seed, up to 15 times; then it
            stays.
        num_candidates: Nodes to draw from, 0 to this minus 1, below 2**32.
        threshold: Of the alias method ``[num_candidates]``; empty: uniformly.
        other: Of the alias method.
        key: Of these draws.
        out: Receives numbers ``[n, k]``.
    """
    for j in range(out.shape[0]):
        own = mix64(key ^ mix64(np.uint64(j)))
        for q in range(out.shape[1]):
            for attempt in range(_ATTEMPTS):
                # Each draw has attempts of its own: what one repeats does not shift the
                # others.
                number = np.uint64(q * _ATTEMPTS + attempt)
                word = mix64(own + number * _GOLDEN)
                chosen = _draw(num_candidates, threshold, other, word)
                out[j, q] = chosen
                if not is_excluding:
                    break
                if not has_neighbor(offsets, table, wide, seeds[j], chosen):
                    break


@lean_jit
def draw_alike(
    offsets: Ints,
    table: npt.NDArray[np.uint64],
    wide: npt.NDArray[np.uint8],
    seeds: Ints,
    is_excluding: bool,
    positives: Ints,
    codes: Ints,
    begins: Ints,
    members: Ints,
    key: np.uint64,
    out: Ints,
) -> None:
    """Draw nodes of the positives' groups, neither them nor neighbors of the seeds.

    What is one of those is drawn again, up to 15 times; then it stays.

    Args:
        offsets: As for :func:`draw_nodes`, as all that is not named here.
        table: Addresses.
        wide: Dtypes.
        seeds: Numbers of nodes ``[n]``.
        is_excluding: Whether neighbors of the seed are drawn again.
        positives: Numbers of candidates ``[n]``.
        codes: Group of each candidate.
        begins: Where each group begins in ``members``, and the end of the last.
        members: Candidates, group by group.
        key: Of these draws.
        out: Receives numbers ``[n, k]``.
    """
    for j in range(out.shape[0]):
        own = mix64(key ^ mix64(np.uint64(j)))
        first = begins[codes[positives[j]]]
        size = begins[codes[positives[j]] + 1] - first
        for q in range(out.shape[1]):
            for attempt in range(_ATTEMPTS):
                chosen = members[first + below(own, q * _ATTEMPTS + attempt, size)]
                out[j, q] = chosen
                if chosen == positives[j]:
                    continue
                if not is_excluding:
                    break
                if not has_neighbor(offsets, table, wide, seeds[j], chosen):
                    break
