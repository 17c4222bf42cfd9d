"""How the runs of the quality table are measured: ranking, classification, AUC."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.embedding import evaluate, open_run, score

RATIOS = (0.1, 0.5, 0.9)
SHUFFLES = 5


def ranking(run: Path) -> dict[str, float]:
    """Rank the test edges among all nodes, filtered; the raw MRR beside it."""
    metrics = evaluate(run, split="test")["metrics"]
    names = ("mrr", "mr", "hits@1", "hits@3", "hits@10")
    valid = evaluate(run, split="valid")["metrics"]["mrr"]
    found = {name: metrics[name] for name in names}
    return found | {"mrr_unfiltered": metrics["unfiltered"]["mrr"], "valid_mrr": valid}


def classification(run: Path) -> dict[str, float]:
    """Predict the labels of nodes from their rows, as DeepWalk's authors did.

    One logistic regression a label on a share of the nodes; each other node gets as many
    labels as it has, the most probable ones (Perozzi, Al-Rfou, Skiena, KDD 2014, section
    5). Means over shuffles.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.multiclass import OneVsRestClassifier

    opened = open_run(run)
    (node_type,) = opened.node_types
    rows = opened.take(node_type, np.arange(opened.graph.num_nodes))
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    truth = _label_matrix(opened.graph, node_type)
    metrics: dict[str, float] = {}
    for ratio in RATIOS:
        scores = []
        for shuffle in range(SHUFFLES):
            order = np.random.default_rng(shuffle).permutation(len(rows))
            known, asked = np.split(order, [int(ratio * len(order))])
            model = OneVsRestClassifier(LogisticRegression(solver="liblinear", C=10.0))
            model.fit(rows[known], truth[known])
            guess = np.zeros_like(truth)
            guess[:, model.classes_] = 0
            chances = np.zeros(truth[asked].shape)
            chances[:, model.classes_] = model.predict_proba(rows[asked])
            best = np.argsort(-chances, axis=1)
            for row, (choice, count) in zip(
                asked, zip(best, truth[asked].sum(1), strict=True), strict=True
            ):
                guess[row, choice[:count]] = 1
            scores.append(
                [
                    f1_score(truth[asked], guess[asked], average=how, zero_division=0)
                    for how in ("micro", "macro")
                ]
            )
        micro, macro = np.mean(scores, axis=0)
        metrics[f"f1_micro@{ratio:.0%}"] = float(micro)
        metrics[f"f1_macro@{ratio:.0%}"] = float(macro)
    return metrics


def _label_matrix(graph: Any, node_type: str) -> npt.NDArray[np.int64]:
    """Return who has which label, int64 ``[N, L]``, in the order of the store."""
    lists = [
        labels.as_py() or []
        for part in range(graph.num_partitions(node_type))
        for labels in graph.nodes(node_type, part)["labels"]
    ]
    matrix = np.zeros((len(lists), max(max(it, default=0) for it in lists) + 1), np.int64)
    for node, labels in enumerate(lists):
        matrix[node, labels] = 1
    return matrix[:, matrix.sum(axis=0) > 0]


def auc(run: Path) -> dict[str, float]:
    """Tell test edges from the negatives that come with the data, relation by relation.

    The area under the ROC curve, averaged over the relations (Cen et al., KDD 2019).
    """
    from sklearn.metrics import roc_auc_score

    opened = open_run(run)
    areas = []
    for relations in opened.model:
        kind = relations.edge_type
        for code, name in enumerate(relations.relations):
            scores, truth = [], []
            for split, label in (("test", 1), ("test_negative", 0)):
                src, dst = _edges_of(opened.graph, kind, split, code)
                one_way = {"head": src, "relation": [name] * len(src), "tail": dst}
                other_way = one_way | {"head": dst, "tail": src}
                scores.append((score(opened, one_way) + score(opened, other_way)) / 2)
                truth.append(np.full(len(src), label))
            areas.append(roc_auc_score(np.concatenate(truth), np.concatenate(scores)))
    return {"roc_auc": float(np.mean(areas))}


def _edges_of(graph: Any, kind: Any, split: str, code: int) -> tuple[list[Any], list[Any]]:
    """Return the user's ids of both ends of a relation's edges."""
    ends: tuple[list[Any], list[Any]] = ([], [])
    ids = [graph.node_ids(name).to_pylist() for name in (kind.src_type, kind.dst_type)]
    offsets = [graph.offsets(name) for name in (kind.src_type, kind.dst_type)]
    for i, j in np.argwhere(graph.bucket_counts(kind, split)):
        bucket = graph.bucket(kind, int(i), int(j), split)
        chosen = slice(None) if bucket.relation is None else bucket.relation == code
        for side, part in enumerate((i, j)):
            numbers = (bucket.src, bucket.dst)[side][chosen].astype(np.int64)
            ends[side].extend(ids[side][n + int(offsets[side][part])] for n in numbers)
    return ends


TASKS = {"ranking": ranking, "classification": classification, "auc": auc}
