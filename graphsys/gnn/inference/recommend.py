"""The best links of nodes that are no edges yet: recommendations."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from graphsys.core.errors import ConfigError
from graphsys.core.progress import IN_NOTEBOOKS, Progress
from graphsys.core.types import known_splits as known_splits_of
from graphsys.datasets.temporary import GraphLike
from graphsys.gnn.inference.memory_check import require_room
from graphsys.gnn.inference.node_rows import NetworkOutput
from graphsys.gnn.inference.trained_model import OpenedRun, open_run
from graphsys.gnn.tasks.link_ranking import Ends, Scores

Ints = npt.NDArray[np.int64]
Known = Literal["drop", "mark", "keep"]
_AT_A_TIME = 256
_ANSWER_BYTES = 160  # its columns, and these of all answers joined


def recommend(
    run: str | Path | OpenedRun,
    nodes: Sequence[Any] | None = None,
    k: int = 10,
    *,
    known: Known = "drop",
    known_splits: str = "all",
    relation: str | None = None,
    graph: GraphLike | None = None,
    device: str = "cpu",
    memory: int | str | None = None,
    progress: Progress = IN_NOTEBOOKS,
) -> pa.Table:
    """Find the nodes that each node's links should lead to: items for users.

    Args:
        run: A run of task ``link_prediction`` or ``recommendation``, or its folder.
        nodes: The users' ids; all nodes that links lead from by default.
        k: Answers for each.
        known: What to do with answers that are edges already: ``drop`` them, ``mark``
            them in a column ``known``, or ``keep`` them unmarked.
        known_splits: The splits whose edges these are: "all", or some ("train,valid").
        relation: Which links, of model gatne.
        graph: The graph trained on, if it is not where it was.
        device: Where to compute, ``cpu`` or ``cuda``; an opened run has its own.
        memory: Budget of anonymous memory of the process, as ``"4GB"`` or in bytes; an
            opened run has its own.
        progress: Receives a stage per layer, and one of the answers.

    Returns:
        As :func:`graphsys.embedding.predict`: columns ``query`` (place of the node),
        ``rank`` (from 1), ``head``, ``relation``, ``tail``, ``score`` (float64) and, with
        ``mark``, ``known``; in the order of the nodes, best first, ties by the order of
        the store. A node is no answer to itself.

    Raises:
        ConfigError: ``k``, ``known`` or ``known_splits`` is wrong, the run's task has no
            links, or a relation is missing.
        UnknownNameError: A node or the relation is not in the graph.
        BudgetError: The budget is too small; the message names one that works.
    """
    if k < 1:
        raise ConfigError(f"k: got {k}, expected an int >= 1")
    if known not in get_args(Known):
        raise ConfigError(
            f"known: got {known!r}, expected one of {', '.join(get_args(Known))}"
        )
    opened = open_run(run, graph=graph, device=device, memory=memory)
    rows = NetworkOutput(opened, relation, progress)
    asked = rows.most_asked if nodes is None else len(nodes)
    require_room(opened, "recommending", asked * min(k, rows.most_asked) * _ANSWER_BYTES)
    ends = rows.ends()
    if nodes is None:
        heads = np.arange(len(ends.src))
    else:
        heads = opened.graph.lookup(ends.src_type, nodes).astype(np.int64)
    splits = known_splits_of(opened.graph.splits(ends.edge_type), known_splits)
    pairs = ends.known(splits).tocsr()
    progress.stage("recommend", len(heads), "nodes")
    parts = []
    for begin in range(0, len(heads), _AT_A_TIME):
        some = heads[begin : begin + _AT_A_TIME]
        parts.append(_best(ends, rows.links.scores, pairs, some, k, known))
        parts[-1]["query"] += begin
        progress.advance(len(some))
    progress.close()
    return _table(opened, ends, heads, parts, relation or ends.edge_type, known)


@torch.no_grad()
def _best(
    ends: Ends, score: Scores, pairs: Any, heads: Ints, k: int, known: Known
) -> dict[str, Any]:
    """Return the best answers to some nodes, one after the other, as columns."""
    scores = score(ends.src[torch.from_numpy(heads)], ends.dst).cpu().numpy()
    own = pairs[heads]
    row, column = own.nonzero()
    if known == "drop":
        scores[row, column] = -np.inf
    if ends.src_type == ends.dst_type:
        scores[np.arange(len(heads)), heads] = -np.inf
    last = max(scores.shape[1] - k, 0)
    least = np.partition(scores, last, axis=1)[:, last, None]  # the k-th best
    query, tail = np.nonzero((scores >= least) & (scores > -np.inf))
    value = scores[query, tail]
    order = np.lexsort((tail, -value, query))  # the number decides among equals
    query, tail, value = query[order], tail[order], value[order]
    begins = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=len(heads)))])
    rank = np.arange(len(query)) - begins[query] + 1
    kept = rank <= k
    query, tail = query[kept], tail[kept]
    is_known = np.asarray(own[query, tail]).ravel() > 0 if len(query) else query > 0
    found = {"query": query, "rank": rank[kept], "tail": tail, "known": is_known}
    return found | {"score": value[kept].astype(np.float64)}


def _table(
    run: OpenedRun,
    ends: Ends,
    heads: Ints,
    parts: list[dict[str, Any]],
    relation: str,
    known: Known,
) -> pa.Table:
    """Turn numbers into ids, a row per answer."""
    none = {
        "query": np.int64,
        "rank": np.int64,
        "tail": np.int64,
        "score": np.float64,
        "known": np.bool_,
    }
    found = {
        name: np.concatenate([np.empty(0, dtype=kind), *(part[name] for part in parts)])
        for name, kind in none.items()
    }
    src, dst = (run.graph.node_ids(name) for name in (ends.src_type, ends.dst_type))
    columns = {
        "query": found["query"],
        "rank": found["rank"],
        "head": src.take(pa.array(heads[found["query"]])),
        "relation": pa.repeat(pa.scalar(relation), len(found["query"])),
        "tail": dst.take(pa.array(found["tail"])),
        "score": found["score"],
    }
    return pa.table(columns | ({"known": found["known"]} if known == "mark" else {}))
