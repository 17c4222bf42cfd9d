"""How the runs of the quality table are measured: ranking, regions, classification, AUC.

A task takes the run and the graph of the data set, which is not what was trained on where
walks came between, and returns what the run reaches on test; what it reaches on valid,
which presets are tuned by, begins with ``valid_``.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.quality.walk_pairs import edges_of
from graphsys.core.types import EdgeType
from graphsys.embedding import evaluate, open_run, score
from graphsys.gnn.inference.trained_model import OpenedRun
from graphsys.storage import Graph

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float32]
RIDGE = 10.0
RATIOS = (0.1, 0.5, 0.9)
INVERSE_STRENGTHS = (1.0, 2.0, 4.0, 8.0, 16.0)
SHUFFLES = 5
REGIONS = ("africa", "americas", "asia", "europe", "oceania")
SPLITS = (("test", ""), ("valid", "valid_"))


def ranking(run: Path, graph: Graph) -> dict[str, float]:
    """Rank the test edges among all nodes, filtered; the raw MRR beside it."""
    del graph
    metrics = evaluate(run, split="test")["metrics"]
    names = ("mrr", "mr", "hits@1", "hits@3", "hits@10")
    valid = evaluate(run, split="valid")["metrics"]["mrr"]
    found = {name: metrics[name] for name in names}
    return found | {"mrr_unfiltered": metrics["unfiltered"]["mrr"], "valid_mrr": valid}


def regions(run: Path, graph: Graph) -> dict[str, float]:
    """Tell the region of a country from the four others: average precision over all pairs.

    Countries' own protocol, as RotatE's authors have it (Sun et al., ICLR 2019, appendix).
    """
    from sklearn.metrics import average_precision_score

    opened, (kind,) = open_run(run), graph.edge_types
    ids = graph.node_ids(kind.src_type).to_pylist()
    found = {}
    for split, prefix in SPLITS:
        src, dst = edges_of(graph, kind, split, None)
        heads = [ids[node] for node in src for _ in REGIONS]
        tails = [region for _ in src for region in REGIONS]
        truth = [ids[node] == region for node in dst for region in REGIONS]
        asked = {"head": heads, "relation": ["locatedin"] * len(heads), "tail": tails}
        found[f"{prefix}auc_pr"] = float(
            average_precision_score(truth, score(opened, asked))
        )
    return found


def classification(run: Path, graph: Graph) -> dict[str, float]:
    """Predict the labels of nodes from their rows; see :func:`label_metrics`."""
    return label_metrics(label_rows(open_run(run), graph), graph)


def label_rows(run: Any, graph: Graph) -> Rows:
    """Return the rows of nodes that labels are learned from, in the store's order."""
    (node_type,) = graph.node_types
    ids = graph.node_ids(node_type).to_pylist()
    rows: Rows = run.lookup(ids, node_type=run.model[0].edge_type.src_type)
    return rows


def label_metrics(rows: npt.NDArray[np.float32], graph: Graph) -> dict[str, float]:
    """Predict labels of nodes from rows in the store's order, as DeepWalk's authors did.

    One logistic regression a label on a share of the nodes; each other node gets as many
    labels as it has, the most probable ones (Perozzi, Al-Rfou, Skiena, KDD 2014, section
    5). Means over shuffles; see :func:`valid_label_scores` for those on valid.
    """
    chosen, on_valid = valid_label_scores(rows, graph)
    rows, truth = _unit(rows), _label_matrix(graph)
    metrics = {"inverse_regularization": chosen}
    metrics["valid_f1_micro"], metrics["valid_f1_macro"] = on_valid
    for ratio in RATIOS:
        scores = []
        for shuffle in range(SHUFFLES):
            order = np.random.default_rng(shuffle).permutation(len(rows))
            known, asked = np.split(order, [int(ratio * len(order))])
            scores.append(_label_scores(rows, truth, known, asked, chosen))
        micro, macro = np.mean(scores, axis=0)
        metrics[f"f1_micro@{ratio:.0%}"] = float(micro)
        metrics[f"f1_macro@{ratio:.0%}"] = float(macro)
    return metrics


def valid_label_scores(rows: Rows, graph: Graph) -> tuple[float, tuple[float, float]]:
    """Learn and ask within the half of a shuffle of its own, 5 to 5.

    That is where the strength of regularization is chosen, by the sum of both: theirs is of
    rows whose lengths word2vec makes, ours have length 1.

    Returns:
        The inverse of the strength; micro-F1 and macro-F1.
    """
    rows, truth = _unit(rows), _label_matrix(graph)
    half = np.random.default_rng(SHUFFLES).permutation(len(rows))[: len(rows) // 2]
    known, asked = np.array_split(half, 2)
    tried = {it: _label_scores(rows, truth, known, asked, it) for it in INVERSE_STRENGTHS}
    chosen = max(tried, key=lambda it: sum(tried[it]))
    return chosen, tried[chosen]


def content_metrics(run: OpenedRun) -> dict[str, float]:
    """Tell by nodes' rows which bag of words is whose; of any network, however trained.

    A ridge regression on half of the nodes maps counts of words to rows of length 1. Of the
    other half each row is asked for its own words among those of all others, by cosine.
    """
    node_type = run.node_type
    rows = _unit(run.output(node_type=node_type))
    nodes = np.arange(len(rows), dtype=np.int64)
    bags = run.context.features.gather({node_type: nodes})[node_type]
    lengths = np.diff(bags.begins.numpy(), append=len(bags.values))
    shape = len(rows), int(bags.values.max()) + 1
    words: Rows = np.zeros(shape, dtype=np.float32)
    np.add.at(words, (np.repeat(nodes, lengths), bags.values.numpy()), 1)
    known, asked = np.array_split(np.random.default_rng(0).permutation(len(rows)), 2)
    mean_words, mean_row = words[known].mean(axis=0), rows[known].mean(axis=0)
    given, wanted = words[known] - mean_words, rows[known] - mean_row
    square = given.T @ given + RIDGE * np.eye(shape[1], dtype=np.float32)
    mapped = (words[asked] - mean_words) @ np.linalg.solve(square, given.T @ wanted)
    mapped /= np.maximum(np.linalg.norm(mapped, axis=1, keepdims=True), 1e-12)
    ranks = []
    for part in np.array_split(np.arange(len(asked)), 20):
        scores = (rows[asked[part]] - mean_row) @ mapped.T
        own = scores[np.arange(len(part)), part][:, None]
        ranks.append(1 + (scores > own).sum(axis=1) + ((scores == own).sum(axis=1) - 1) / 2)
    rank = np.concatenate(ranks)
    return {
        "content_mrr": float((1 / rank).mean()),
        "content_hits@10": float((rank <= 10).mean()),
    }


def _unit(rows: Rows) -> Rows:
    unit: Rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return unit


def _label_scores(
    rows: npt.NDArray[np.float32],
    truth: npt.NDArray[np.int64],
    known: Any,
    asked: Any,
    inverse_strength: float,
) -> tuple[float, float]:
    """Return F1, micro and macro, of labels learnt from some nodes and asked of others."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.multiclass import OneVsRestClassifier

    seen = np.flatnonzero(truth[known].any(axis=0))
    model = OneVsRestClassifier(LogisticRegression(solver="liblinear", C=inverse_strength))
    model.fit(rows[known], truth[known][:, seen])
    best = seen[np.argsort(-model.predict_proba(rows[asked]), axis=1)]
    guess = np.zeros_like(truth[asked])
    for row, choice, count in zip(guess, best, truth[asked].sum(axis=1), strict=True):
        row[choice[:count]] = 1
    micro, macro = (
        float(f1_score(truth[asked], guess, average=how, zero_division=0))
        for how in ("micro", "macro")
    )
    return micro, macro


def _label_matrix(graph: Graph) -> npt.NDArray[np.int64]:
    """Return who has which label, int64 ``[N, L]``, in the order of the store."""
    (node_type,) = graph.node_types
    lists = [
        labels.as_py() or []
        for part in range(graph.num_partitions(node_type))
        for labels in graph.nodes(node_type, part)["labels"]
    ]
    matrix = np.zeros((len(lists), max(max(it, default=0) for it in lists) + 1), np.int64)
    for node, labels in enumerate(lists):
        matrix[node, labels] = 1
    return matrix[:, matrix.sum(axis=0) > 0]


def auc(run: Path, graph: Graph) -> dict[str, float]:
    """Tell test edges from the negatives that come with the data, relation by relation.

    The area under the ROC curve, averaged over the relations (Cen et al., KDD 2019).
    """
    from sklearn.metrics import roc_auc_score

    opened, (kind,) = open_run(run), graph.edge_types
    found = {}
    for split, prefix in SPLITS:
        areas = []
        for code, name in enumerate(graph.relations(kind) or []):
            scores, truth = [], []
            for side, label in ((split, 1), (f"{split}_negative", 0)):
                scores.append(_both_ways(opened, graph, kind, side, code, name))
                truth.append(np.full(len(scores[-1]), label))
            areas.append(roc_auc_score(np.concatenate(truth), np.concatenate(scores)))
        found[f"{prefix}roc_auc"] = float(np.mean(areas))
    return found


def _both_ways(
    opened: Any, graph: Graph, kind: EdgeType, split: str, code: int, name: str
) -> Floats:
    """Return the mean scores of a split's pairs, asked from either end."""
    ids = graph.node_ids(kind.src_type).to_pylist()
    ends = [[ids[node] for node in end] for end in edges_of(graph, kind, split, code)]
    asked = {"relation": [name] * len(ends[0])}
    return np.mean(
        [
            score(opened, asked | {"head": head, "tail": tail})
            for head, tail in (ends, ends[::-1])
        ],
        axis=0,
    )


TASKS = {
    "ranking": ranking,
    "regions": regions,
    "classification": classification,
    "auc": auc,
}
