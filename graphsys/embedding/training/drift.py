"""How far the rows of nodes moved between two runs: the drift of a retraining."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.embedding.data.id_join import match_ids
from graphsys.embedding.embeddings import Embeddings

_BLOCK = 1 << 14
_PERCENTILES = (50, 90, 99)


def drift(
    old: str | Path | Embeddings,
    new: str | Path | Embeddings,
    *,
    node_type: str | None = None,
    align: bool = False,
) -> dict[str, dict[str, Any]]:
    """Measure how far the rows of nodes that both runs have are apart.

    The distance of two rows is 1 - cos of their angle: 0 for rows in the same direction,
    1 for a zero row beside another, 2 for opposite ones. The graphs may have other
    partitions and orders; nodes are matched by the user's ids.

    Args:
        old: A run or its folder.
        new: A later one, of the same dimension.
        node_type: The node type; all that both runs have by default.
        align: Turn the old rows before, by the orthogonal matrix that brings them nearest
            to the new ones (Procrustes; Schoenemann, "A generalized solution of the
            orthogonal Procrustes problem", 1966): two independent trainings differ by a
            rotation that means nothing.

    Returns:
        For every node type ``nodes`` (matched), ``new_nodes`` (of the new run alone),
        ``mean``, ``p50``, ``p90``, ``p99`` and ``max`` of the distances (None without
        nodes), and ``aligned``.

    Raises:
        ConfigError: The dimensions differ, the ids are of two kinds, or the runs have no
            such node type in common.
    """
    before = old if isinstance(old, Embeddings) else Embeddings(old)
    after = new if isinstance(new, Embeddings) else Embeddings(new)
    common = [name for name in after.node_types if name in before.node_types]
    chosen = common if node_type is None else [n for n in common if n == node_type]
    if not chosen:
        wanted = "node type" if node_type is None else f"node type {node_type!r}"
        raise ConfigError(
            f"the runs {before.path} and {after.path} have no {wanted} in common; they "
            f"have {', '.join(before.node_types)} and {', '.join(after.node_types)}"
        )
    return {name: _drift_of(before, after, name, align=align) for name in chosen}


def _drift_of(
    before: Embeddings, after: Embeddings, node_type: str, *, align: bool
) -> dict[str, Any]:
    turn = _procrustes(before, after, node_type) if align else None
    pieces = [np.empty(0, dtype=np.float64)]
    for x, y in _pairs(before, after, node_type):
        pieces.append(_distances(x if turn is None else x @ turn, y))
    found = np.concatenate(pieces)
    facts: dict[str, Any] = {
        "nodes": len(found),
        "new_nodes": after.graph.num_nodes_of(node_type) - len(found),
        "mean": float(found.mean()) if len(found) else None,
    }
    for percent in _PERCENTILES:
        value = float(np.percentile(found, percent)) if len(found) else None
        facts[f"p{percent}"] = value
    facts["max"] = float(found.max()) if len(found) else None
    return facts | {"aligned": align}


def _pairs(
    before: Embeddings, after: Embeddings, node_type: str
) -> Iterator[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
    """Yield old and new rows of matched nodes, float64 ``[n, D]`` each, in blocks."""
    for part in range(after.graph.num_partitions(node_type)):
        rows = after.rows(node_type, part)
        for match in match_ids(after.graph, before.graph, node_type, part):
            others = before.rows(node_type, match.part)
            if rows.shape[1] != others.shape[1]:
                raise ConfigError(
                    f"the rows of node type {node_type!r} have dim {others.shape[1]} in "
                    f"{before.path} and {rows.shape[1]} in {after.path}; only runs of "
                    "one dim can be compared"
                )
            for begin in range(0, len(match.here), _BLOCK):
                piece = slice(begin, begin + _BLOCK)
                old_rows = np.asarray(others[match.there[piece]], dtype=np.float64)
                yield old_rows, np.asarray(rows[match.here[piece]], dtype=np.float64)


def _procrustes(
    before: Embeddings, after: Embeddings, node_type: str
) -> npt.NDArray[np.float64] | None:
    """Return the orthogonal Q that minimizes ``|X Q - Y|``, float64 ``[D, D]``."""
    product: npt.NDArray[np.float64] | None = None
    for x, y in _pairs(before, after, node_type):
        product = x.T @ y if product is None else product + x.T @ y
    if product is None:
        return None
    left, _, right = np.linalg.svd(product)
    turn: npt.NDArray[np.float64] = left @ right
    return turn


def _distances(
    x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    inner = np.einsum("ij,ij->i", x, y)
    cosine = np.divide(inner, lengths, out=np.zeros_like(inner), where=lengths > 0)
    distances: npt.NDArray[np.float64] = np.clip(1.0 - cosine, 0.0, 2.0)
    distances[(x == y).all(axis=1)] = 0.0  # exactly, whatever rounding says
    return distances
