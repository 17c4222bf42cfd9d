"""What is said when a loss is no number: which rows are bad, by the user's ids."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.storage.reader import GraphReader

Part = tuple[str, int]
_SHOWN = 3
_BLOCK = 1 << 14


def bad_rows(rows: npt.NDArray[Any], limit: int = _SHOWN) -> tuple[list[int], int]:
    """Find rows with a value that is not finite.

    Args:
        rows: Floats ``[N, D]``.
        limit: How many to name.

    Returns:
        The first ones, and how many there are.
    """
    first: list[int] = []
    total = 0
    for begin in range(0, len(rows), _BLOCK):
        block = np.asarray(rows[begin : begin + _BLOCK], dtype=np.float32)
        bad = np.flatnonzero(~np.isfinite(block).all(axis=1)) + begin
        first += bad[: limit - len(first)].tolist()
        total += len(bad)
    return first, total


def largest_row(rows: npt.NDArray[Any]) -> tuple[int, float]:
    """Return the row with the largest absolute value, and that value."""
    best = (0, 0.0)
    for begin in range(0, len(rows), _BLOCK):
        block = np.abs(np.asarray(rows[begin : begin + _BLOCK], dtype=np.float32))
        at = int(block.max(axis=1, initial=0.0).argmax())
        value = float(block[at].max(initial=0.0))
        if value > best[1]:
            best = (begin + at, value)
    return best


def describe_rows(graph: GraphReader, rows: Mapping[Part, npt.NDArray[Any]]) -> str:
    """Say which rows of some partitions are not finite, or which is the largest.

    Args:
        graph: Knows the ids.
        rows: Floats ``[N, D]`` of every partition in question.
    """
    texts = []
    for part, values in rows.items():
        first, total = bad_rows(values)
        if total:
            more = f" and {total - len(first)} more" if total > len(first) else ""
            texts.append(
                f"{', '.join(_names(graph, part, values, first))}{more} of type {part[0]!r}"
            )
    if texts:
        return f"rows that are not finite: {'; '.join(texts)}"
    part = max(rows, key=lambda p: largest_row(rows[p])[1])
    at, value = largest_row(rows[part])
    (name,) = _names(graph, part, rows[part], [at])
    return (
        f"all rows are finite, the largest is {name} of type {part[0]!r} with {value:.3g}"
    )


def _names(
    graph: GraphReader, part: Part, values: npt.NDArray[Any], rows: list[int]
) -> list[str]:
    """Name rows by the ids of their nodes, or as features where they are of features."""
    column = graph.nodes(*part).column("id")
    if len(column) != len(values):
        return [f"feature {row}" for row in rows]
    return [repr(column[row].as_py()) for row in rows]
