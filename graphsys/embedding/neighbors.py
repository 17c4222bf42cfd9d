"""Nearest neighbours in the embedding space, exact, by faiss."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphsys.core.deps import require
from graphsys.core.errors import ConfigError
from graphsys.embedding.embeddings import Embeddings
from graphsys.kernels.cpu.embedding_math import normalise_rows
from graphsys.storage.reader import Graph

_BLOCK = 1 << 18


def nearest(
    run: str | Path | Embeddings,
    node: Any,
    k: int = 10,
    *,
    node_type: str | None = None,
    graph: Graph | None = None,
) -> pa.Table:
    """Find the nodes of the same type that are closest to a node.

    Closeness is the run's comparator: inner product, cosine, or minus the distance.

    Args:
        run: A run or its folder.
        node: The user's id of the node, which is not among the answers.
        k: How many to return.
        node_type: Type of the node, needed where several types have its id.
        graph: The graph trained on, if it is not where it was.

    Returns:
        Columns ``id`` and ``score``, best first, ties by the order of the store.

    Raises:
        ConfigError: ``k`` is below 1, or the type is not clear.
        UnknownNameError: There is no such node.
    """
    if k < 1:
        raise ConfigError(f"k: got {k}, expected an int >= 1")
    opened = run if isinstance(run, Embeddings) else Embeddings(run, graph=graph)
    faiss = require("faiss", extra="all")
    chosen, number = opened.find(node, node_type)
    comparator = opened.config.comparator
    is_distance = comparator in ("l2", "squared_l2")
    metric = faiss.METRIC_L2 if is_distance else faiss.METRIC_INNER_PRODUCT
    query = _prepare(opened.take(chosen, np.array([number])), comparator)
    offsets = opened.graph.offsets(chosen)
    scores, numbers = [], []
    for part in range(len(offsets) - 1):
        table = opened.rows(chosen, part)
        for begin in range(0, len(table), _BLOCK):
            rows = _prepare(table[begin : begin + _BLOCK], comparator)
            found, places = faiss.knn(query, rows, min(k + 1, len(rows)), metric=metric)
            scores.append(-found[0] if is_distance else found[0])
            numbers.append(places[0] + begin + offsets[part])
    score, place = np.concatenate(scores), np.concatenate(numbers)
    if comparator == "l2":
        score = -np.sqrt(np.maximum(-score, 0))
    order = np.lexsort((place, -score))
    order = order[place[order] != number][:k]
    ids = opened.ids(chosen, place[order].tolist())
    return pa.table({"id": ids, "score": pa.array(score[order].astype(np.float64))})


def _prepare(rows: Any, comparator: str) -> Any:
    rows = np.array(rows, dtype=np.float32, order="C")
    if comparator == "cos":
        normalise_rows(rows, rows, np.empty(len(rows), dtype=np.float32))
    return rows
