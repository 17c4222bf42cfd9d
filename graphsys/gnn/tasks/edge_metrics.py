"""How well scores tell the edges of a split from pairs that are none, by relation."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError, unknown_name
from graphsys.core.types import true_splits
from graphsys.gnn.data.positive_pairs import read_pairs
from graphsys.metrics.areas import pair_metrics
from graphsys.sampling import NegativeSampler, rows_of
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[Any]
Scores = Callable[[str, Ints], Floats]
_MEANS = ("roc_auc", "pr_auc", "f1")


def tell_edges(
    graph: GraphReader,
    relations: Mapping[str, tuple[str, int | None]],
    split: str,
    scores: Scores,
    *,
    seed: int,
) -> dict[str, Any]:
    """Tell the edges of a split from pairs that are none.

    Those pairs are the split ``..._negative`` of the same relation; where that is empty, as
    many are drawn: with the same first nodes, and second ones that are no neighbors in
    training, drawn uniformly.

    Args:
        graph: An open graph.
        relations: Edge type and code of each relation; without a code it is the whole type.
        split: The split.
        scores: Given a relation and pairs ``[n, 2]``, returns their scores ``[n]``.
        seed: Of drawn pairs.

    Returns:
        ``roc_auc``, ``pr_auc`` and ``f1`` of
        :func:`graphsys.metrics.areas.pair_metrics`, means over relations
        that have edges in the split; ``num_edges``; all of them of each under
        ``relations``.

    Raises:
        UnknownNameError: There is no such split.
        ConfigError: It has no edges.
    """
    types = dict.fromkeys(edge_type for edge_type, _ in relations.values())
    known = true_splits(dict.fromkeys(s for kind in types for s in graph.splits(kind)))
    if split not in known:
        raise unknown_name("split", split, known)
    found: dict[str, Any] = {}
    for name, (edge_type, code) in relations.items():
        edges = _pairs(graph, edge_type, split, code)
        if not len(edges):
            continue
        others = _pairs(graph, edge_type, f"{split}_negative", code)
        if not len(others):
            sampler = NegativeSampler(
                rows_of(graph, edge_type, "out"), is_excluding=True, seed=seed
            )
            drawn = sampler.draw(edges[:, 0], 1, batch=code or 0)
            others = np.stack([edges[:, 0], drawn[:, 0]], axis=1)
        metrics = pair_metrics(scores(name, edges), scores(name, others))
        found[name] = {**metrics, "num_edges": len(edges)}
    if not found:
        raise ConfigError(f"split {split!r} of edges {', '.join(types)} is empty")
    means = {key: float(np.mean([it[key] for it in found.values()])) for key in _MEANS}
    total = sum(it["num_edges"] for it in found.values())
    return {**means, "num_edges": total, "relations": found}


def _pairs(graph: GraphReader, edge_type: str, split: str, code: int | None) -> Ints:
    if split not in graph.splits(edge_type):
        return np.empty((0, 2), dtype=np.int64)
    return read_pairs(graph, edge_type, split, relation=code)
