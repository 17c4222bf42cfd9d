"""What ranking reaches without learning: chance, and the popularity of nodes."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.core.types import EdgeType
from graphsys.datasets.temporary import GraphLike, graph_of
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.data.buckets import read_bucket
from graphsys.embedding.data.filtered_queries import Queries, held_out_queries
from graphsys.embedding.data.held_out import held_out_edges, with_split
from graphsys.embedding.model import relation_sets
from graphsys.metrics.ranking import ranking_metrics
from graphsys.storage.reader import GraphReader

Ranks = npt.NDArray[np.float64]


def baselines(graph: GraphLike, split: str = "test") -> dict[str, dict[str, Any]]:
    """Rank the edges of a split without a model, by the protocol of ``evaluate``.

    ``random`` orders the candidates at random; its metrics are exact expectations.
    ``popularity`` orders them by how many training edges of the query's relation they
    answer.

    Args:
        graph: The graph: open, its path, or an object that holds one.
        split: The split of the edges.

    Returns:
        ``{"random": metrics, "popularity": metrics}``.

    Raises:
        ConfigError: No edge type has edges in the split.
    """
    chance: tuple[list[Ranks], list[Ranks]] = ([], [])
    popular: tuple[list[Ranks], list[Ranks]] = ([], [])
    graph = graph_of(graph)
    chosen = with_split(graph, relation_sets(graph, EmbeddingConfig()), split)
    for edges in held_out_edges(graph, chosen, split):
        for asks_for_dst in (True, False):
            kind = edges.relations.edge_type
            num_nodes = graph.num_nodes_of(kind.dst_type if asks_for_dst else kind.src_type)
            counts_of = _training_counts(graph, kind, asks_for_dst, num_nodes)
            for queries in held_out_queries(graph, edges, asks_for_dst=asks_for_dst):
                others = queries.known_end - queries.known_begin - 1
                chance[0].append(num_nodes - others.astype(np.float64))
                chance[1].append(np.full(len(others), num_nodes, dtype=np.float64))
                filtered, raw = _popularity(queries, counts_of, num_nodes)
                popular[0].append(filtered)
                popular[1].append(raw)
    expected: dict[str, Any] = dict(_expected(np.concatenate(chance[0])))
    expected["unfiltered"] = _expected(np.concatenate(chance[1]))
    return {"random": expected, "popularity": ranking_metrics(*popular)}


def _expected(num_candidates: Ranks) -> dict[str, float]:
    """Return the expected metrics of ranks uniform over 1..n."""
    longest = int(num_candidates.max())
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, longest + 1))])
    mrr = harmonic[num_candidates.astype(np.int64)] / num_candidates
    hits = {
        f"hits@{k}": float(np.mean(np.minimum(k, num_candidates) / num_candidates))
        for k in (1, 3, 10)
    }
    return {"mrr": float(mrr.mean()), "mr": float(np.mean((num_candidates + 1) / 2))} | hits


def _popularity(
    queries: Queries, counts_of: dict[int, npt.NDArray[np.int64]], num_nodes: int
) -> tuple[Ranks, Ranks]:
    """Return filtered and raw ranks by the number of training edges answered."""
    filtered = np.empty(len(queries.node), dtype=np.float64)
    raw = np.empty(len(queries.node), dtype=np.float64)
    for relation in distinct(queries.relation):
        counts = counts_of.get(int(relation), np.zeros(num_nodes, dtype=np.int64))
        ordered = np.sort(counts)
        for q in np.flatnonzero(queries.relation == relation):
            own = counts[queries.target[q]]
            above = num_nodes - int(np.searchsorted(ordered, own, side="right"))
            level = num_nodes - int(np.searchsorted(ordered, own)) - above - 1
            known = queries.known[queries.known_begin[q] : queries.known_end[q]]
            known_counts = counts[known[known != queries.target[q]]]
            raw[q] = 1 + above + level / 2
            filtered[q] = (
                raw[q] - np.sum(known_counts > own) - np.sum(known_counts == own) / 2
            )
    return filtered, raw


def _training_counts(
    graph: GraphReader, kind: EdgeType, asks_for_dst: bool, num_nodes: int
) -> dict[int, npt.NDArray[np.int64]]:
    """Count, per relation, how often each node is the answer of a training edge."""
    totals: dict[int, npt.NDArray[np.int64]] = {}
    offsets = graph.offsets(kind.dst_type if asks_for_dst else kind.src_type)
    for i, j in np.argwhere(graph.bucket_counts(kind)):
        bucket = read_bucket(graph, kind, int(i), int(j))
        answer = (bucket.dst if asks_for_dst else bucket.src).astype(np.int64)
        answer += offsets[j if asks_for_dst else i]
        codes = (
            bucket.relation if bucket.relation is not None else np.zeros(len(answer), int)
        )
        for code in distinct(codes):
            found = np.bincount(answer[codes == code], minlength=num_nodes)
            totals[int(code)] = totals.get(int(code), 0) + found
    return totals
