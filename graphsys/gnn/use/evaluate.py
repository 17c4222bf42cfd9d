"""How good a run is on held-out nodes or edges."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.progress import SILENT, Progress
from graphsys.gnn.tasks.link_prediction import LinkPrediction
from graphsys.gnn.tasks.multiplex_links import MultiplexLinks
from graphsys.gnn.tasks.regression import NodeRegression
from graphsys.gnn.use.trained_model import OpenedRun, open_run
from graphsys.storage.reader import Graph

Ints = npt.NDArray[np.int64]


def evaluate(
    run: str | Path | OpenedRun,
    *,
    split: str = "test",
    graph: Graph | None = None,
    device: str = "cpu",
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Measure a run on a split, from all neighbors of its nodes.

    Args:
        run: A run or its folder.
        split: The split.
        graph: The graph trained on, if it is not where it was.
        device: Where to compute, ``cpu`` or ``cuda``; an opened run has its own.
        progress: Receives a stage per layer.

    Returns:
        ``split`` and ``metrics``. Classes of nodes: ``accuracy``, ``f1_micro``,
        ``f1_macro``, ``loss``, ``num_nodes``, and ``roc_auc`` (of two classes, the second's
        score; with several classes a node their mean). Numbers of nodes: see
        :meth:`graphsys.gnn.tasks.regression.NodeRegression.measure`. Links: see
        :func:`graphsys.gnn.tasks.link_ranking.rank_pairs`, of model gatne
        :func:`graphsys.gnn.tasks.edge_metrics.tell_edges`; recommendations:
        :func:`graphsys.gnn.tasks.link_ranking.recommend_pairs`.

    Raises:
        UnknownNameError: There is no such split.
        ConfigError: There is no run, or its graph is gone.
    """
    opened = open_run(run, graph=graph, device=device)
    opened.require_same_graph()
    task = opened.context.task
    if isinstance(task, LinkPrediction | MultiplexLinks | NodeRegression):

        def output(node_type: str, nodes: Ints) -> torch.Tensor:
            found = opened.output(nodes, node_type=node_type, progress=progress)
            return torch.from_numpy(found)

        return {"split": split, "metrics": task.measure(split, output)}
    labels = opened.labels
    nodes = labels.require(split)
    scores = torch.from_numpy(opened.output(nodes, progress=progress))
    target = torch.from_numpy(labels.of(nodes))
    metrics = class_metrics(scores, target, is_multi=labels.is_multi)
    return {"split": split, "metrics": metrics | {"num_nodes": len(nodes)}}


def class_metrics(
    scores: torch.Tensor, target: torch.Tensor, *, is_multi: bool
) -> dict[str, float]:
    """Return the metrics of a classification.

    Args:
        scores: Logits ``[n, C]``.
        target: Classes ``[n]``, or with several a node 0 and 1 ``[n, C]``.
        is_multi: Whether a node may have several classes.
    """
    from torch.nn import functional
    from torchmetrics.functional import classification

    num_classes = scores.shape[1]
    if is_multi:
        whole = target.long()
        options: dict[str, Any] = {"num_labels": num_classes}
        loss = functional.binary_cross_entropy_with_logits(scores, target)
        chosen = torch.sigmoid(scores)
        exact = ((chosen > 0.5).long() == whole).all(dim=1).float().mean()
        found = {
            "accuracy": exact,
            "f1_micro": classification.multilabel_f1_score(
                chosen, whole, average="micro", **options
            ),
            "f1_macro": classification.multilabel_f1_score(
                chosen, whole, average="macro", **options
            ),
            "roc_auc": classification.multilabel_auroc(chosen, whole, **options),
        }
        return {name: float(value) for name, value in (found | {"loss": loss}).items()}
    loss = functional.cross_entropy(scores, target)
    options = {"num_classes": num_classes}
    found = {
        "accuracy": classification.multiclass_accuracy(
            scores, target, average="micro", **options
        ),
        "f1_micro": classification.multiclass_f1_score(
            scores, target, average="micro", **options
        ),
        "f1_macro": classification.multiclass_f1_score(
            scores, target, average="macro", **options
        ),
        "loss": loss,
    }
    if num_classes == 2:
        second = torch.softmax(scores, dim=1)[:, 1]
        found["roc_auc"] = classification.binary_auroc(second, target)
    return {name: float(value) for name, value in found.items()}
