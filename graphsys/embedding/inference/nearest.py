"""Nearest neighbors in the embedding space by faiss: exact, or through an index."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.deps import require
from graphsys.core.errors import ConfigError
from graphsys.core.memory import require_budget, resident_bytes, stated_budget
from graphsys.datasets.temporary import GraphLike
from graphsys.embedding.inference.ann_index import (
    IndexKind,
    index_bytes,
    open_index,
    prepare,
    require_kind,
)
from graphsys.embedding.rows.trained_rows import TrainedEmbedding
from graphsys.embedding.spec.comparators import ComparatorSpec, comparator_of
from graphsys.graph.slices import WHOLE, Slice

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
BLOCK = 1 << 18
"""How many rows are looked at together, at most."""
_LEAST_BLOCK = 1 << 10
_COPIES = 3  # of a row: as read, as compared, of unit length
_FOUND_BYTES = 32  # of a row: its score and number
_LOADED_BYTES = 12 << 20  # threads, what a library takes at its first use


def nearest(
    run: str | Path | TrainedEmbedding,
    node: Any,
    k: int = 10,
    *,
    node_type: str | None = None,
    index: IndexKind = "exact",
    index_path: str | Path | None = None,
    graph: GraphLike | None = None,
    memory: int | str | None = None,
) -> pa.Table:
    """Find the nodes of the same type that are closest to a node.

    Closeness is the run's comparator: inner product, cosine, or minus the distance; a
    bias says how likely a node is an answer, not where it lies, and is left out.

    Args:
        run: A run or its folder.
        node: The user's id of the node, which is not among the answers.
        k: How many to return.
        node_type: Type of the node, needed where several types have its id.
        index: ``exact`` looks at every row; ``hnsw`` and ``ivf`` search an index (see
            :func:`graphsys.embedding.build_index`), which is built if there is none of
            the run's last checkpoint, and may miss some of the closest.
        index_path: The index's file, by default in the run's folder.
        graph: The graph trained on, if it is not where it was.
        memory: Budget of anonymous memory of the process, as ``"4GB"`` or in bytes.

    Returns:
        Columns ``id`` and ``score``, best first, ties by the order of the store; ``name``
        too, where the nodes have such a column (OpenKE's do).

    Raises:
        ConfigError: ``k`` is below 1, the type is not clear, or there is no such index.
        UnknownNameError: There is no such node.
        BudgetError: The budget is too small; the message names one that works.
    """
    if k < 1:
        raise ConfigError(f"k: got {k}, expected an int >= 1")
    require_kind(index)
    budget = stated_budget(memory)
    opened = (
        run if isinstance(run, TrainedEmbedding) else TrainedEmbedding(run, graph=graph)
    )
    chosen, number = opened.find(node, node_type)
    rows = prepare(opened.take(chosen, np.array([number])), opened.config)
    if index == "exact":
        block = _block_within(opened, chosen, budget)
        scores, numbers = search_rows(opened, chosen, rows, k + 1, block)
    else:
        needed = index_bytes(opened, index, chosen) if budget is not None else 0
        require_budget(f"an index of kind {index}", needed, budget)
        found = open_index(opened, index, node_type=chosen, path=index_path)
        scores, numbers = found.search(rows, k + 1)
    is_other = (numbers[0] != number) & (numbers[0] >= 0)
    return answers(opened, chosen, k, scores[0][is_other], numbers[0][is_other])


def answers(
    run: TrainedEmbedding, node_type: str, k: int, scores: Floats, numbers: Ints
) -> pa.Table:
    """Return the table of the best among some nodes; see :func:`nearest`.

    Args:
        run: The run.
        node_type: Their type.
        k: How many to return.
        scores: As :func:`search_rows` has them ``[n]``.
        numbers: Their numbers ``[n]``.
    """
    order = np.lexsort((numbers, -scores))[:k]
    best = numbers[order].tolist()
    score = _as_score(scores[order], comparator_of(run.config.comparator))
    columns = {"id": run.ids(node_type, best), "score": pa.array(score)}
    names = run.names(node_type, best)
    return pa.table(columns if names is None else columns | {"name": names})


def _block_within(run: TrainedEmbedding, node_type: str, budget: int | None) -> int:
    """Return how many rows are looked at together within a budget.

    Raises:
        BudgetError: It is not enough for a few.
    """
    if budget is None:
        return BLOCK
    if not comparator_of(run.config.comparator).is_pairwise:
        require("faiss", extra="all")  # it has memory of its own
    row_bytes = _COPIES * 4 * run.dim_of(node_type) + _FOUND_BYTES
    beside = resident_bytes() + _LOADED_BYTES
    block = min(max((budget - beside) // row_bytes, _LEAST_BLOCK), BLOCK)
    block = min(block, run.graph.num_nodes_of(node_type))
    require_budget("looking for neighbors", beside + block * row_bytes, budget)
    return int(block)


def search_rows(
    run: TrainedEmbedding,
    node_type: str,
    queries: Floats,
    k: int,
    block: int,
    share: Slice = WHOLE,
) -> tuple[Floats, Ints]:
    """Return the best of every block of the tables, in no order.

    Args:
        run: The run.
        node_type: The type.
        queries: Prepared rows ``[Q, D]``.
        k: How many to find in a block.
        block: Rows of a block.
        share: Whose rows are looked at.

    Returns:
        Scores (of distances minus the square) and numbers, ``[Q, n]``.
    """
    comparator = comparator_of(run.config.comparator)
    search = _search_pairs if comparator.is_pairwise else _search_block
    offsets = run.graph.offsets(node_type)
    none = np.empty((len(queries), 0), dtype=np.float32)
    scores, numbers = [none], [none.astype(np.int64)]
    for part, first, end in share.partitions(offsets):
        table = run.blocks(node_type, part)
        for begin in range(first, end, block):
            rows = prepare(table[begin : min(begin + block, end)], run.config)
            found, places = search(comparator, queries, rows, min(k, len(rows)))
            scores.append(found)
            numbers.append(places + begin + offsets[part])
    return np.concatenate(scores, axis=1), np.concatenate(numbers, axis=1)


def _search_block(
    comparator: ComparatorSpec, queries: Floats, rows: Floats, k: int
) -> tuple[Floats, Ints]:
    faiss = require("faiss", extra="all")
    is_distance = comparator.is_distance
    metric = faiss.METRIC_L2 if is_distance else faiss.METRIC_INNER_PRODUCT
    found, places = faiss.knn(queries, rows, k, metric=metric)
    return (-found if is_distance else found), places


def _search_pairs(
    comparator: ComparatorSpec, queries: Floats, rows: Floats, k: int
) -> tuple[Floats, Ints]:
    scores = comparator.score_all(queries, rows, False)
    places = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, places, axis=1), places


def _as_score(scores: Floats, comparator: ComparatorSpec) -> npt.NDArray[np.float64]:
    """Turn what faiss computes into the run's score: of ``l2`` it has the square."""
    values = scores.astype(np.float64)
    return -np.sqrt(np.maximum(-values, 0)) if comparator.is_root else values
