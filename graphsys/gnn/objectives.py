"""What a network is trained for: seeds of an epoch, the loss of a batch, metrics."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.labels import TRAIN, VALID, NodeLabels, read_labels
from graphsys.gnn.loader import Batch, Trim, shuffled_batches
from graphsys.gnn.output import Output
from graphsys.storage.reader import Graph

Ints = npt.NDArray[np.int64]
Seeds = Sequence[Mapping[str, Ints]]


class Objective(Protocol):
    """A task.

    Attributes:
        node_type: Of the rows that are wanted.
        num_out: Features of the network's output.
        classes: Names of classes; empty where there are none.
        metric: Name of the metric that is watched; more of it is better.
        trim: Takes entries out of a sample that would give the answer away, or None.
    """

    node_type: str
    num_out: int
    classes: list[Any]
    metric: str
    trim: Trim | None

    def seeds(self, epoch: int) -> Seeds:
        """Return the seeds of every batch of an epoch."""

    def loss(self, rows: Mapping[str, torch.Tensor], batch: Batch) -> torch.Tensor:
        """Return the mean loss of a batch, given its output by type."""

    def watch(self, output: Output) -> tuple[float, float] | None:
        """Return loss and metric on valid, or None where there is no valid."""


class NodeClassification:
    """Classes of nodes: cross-entropy; with several classes a node, one by one.

    What is watched on valid is accuracy, of two classes the ROC-AUC, of several classes a
    node the micro F1.

    Raises:
        ConfigError: As :func:`read_labels`.
        InvalidGraphError: Nodes of a split have no label.
    """

    def __init__(self, graph: Graph, config: GnnConfig) -> None:
        self.labels: NodeLabels = read_labels(graph, config)
        self.node_type, self.classes = self.labels.node_type, self.labels.classes
        self.num_out = len(self.classes)
        has_two = self.num_out == 2
        self.metric = "roc_auc" if has_two else "accuracy"
        if self.labels.is_multi:
            self.metric = "f1_micro"
        self.trim: Trim | None = None
        self._config = config

    def seeds(self, epoch: int) -> Seeds:
        """Return the seeds of every batch of an epoch."""
        nodes = self.labels.require(TRAIN)
        if self._config.is_full_batch:
            return [{self.node_type: nodes}]
        config = self._config
        cut = shuffled_batches(nodes, config.batch_size, config.seed, "nodes", epoch)
        return [{self.node_type: part} for part in cut]

    def loss(self, rows: Mapping[str, torch.Tensor], batch: Batch) -> torch.Tensor:
        """Return the mean loss of a batch."""
        found = rows[self.node_type][batch.places[self.node_type]]
        target = torch.from_numpy(self.labels.of(batch.seeds[self.node_type]))
        return self._loss(found, target)

    def watch(self, output: Output) -> tuple[float, float] | None:
        """Return loss and metric on valid, or None where there is no valid."""
        nodes = self.labels.splits.get(VALID)
        if nodes is None or not len(nodes):
            return None
        found = output(self.node_type, nodes)
        target = torch.from_numpy(self.labels.of(nodes))
        loss = float(self._loss(found, target))
        if self.metric == "accuracy":
            return loss, float((found.argmax(dim=1) == target).float().mean())
        if self.metric == "roc_auc":
            return loss, roc_auc((found[:, 1] - found[:, 0]).numpy(), target.numpy() == 1)
        chosen, wanted = found > 0, target > 0
        hits = float((chosen & wanted).sum())
        return loss, 2 * hits / max(float(chosen.sum() + wanted.sum()), 1.0)

    def _loss(self, found: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if self.labels.is_multi:
            return functional.binary_cross_entropy_with_logits(found, target)
        return functional.cross_entropy(found, target)


def roc_auc(scores: npt.NDArray[Any], is_positive: npt.NDArray[np.bool_]) -> float:
    """Return the chance that a positive scores above a negative, ties counting half.

    Examples:
        >>> roc_auc(np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, True, False, True]))
        0.875
    """
    from scipy.stats import rankdata

    num_positive = int(is_positive.sum())
    num_negative = len(scores) - num_positive
    if not num_positive or not num_negative:
        return 0.5
    ranks = rankdata(scores)[is_positive].sum() - num_positive * (num_positive + 1) / 2
    return float(ranks / (num_positive * num_negative))


def make_objective(graph: Graph, config: GnnConfig) -> Objective:
    """Return the task that a config names.

    Raises:
        ConfigError: The task does not fit the graph.
    """
    if config.task == "link_prediction":
        from graphsys.gnn.links import LinkPrediction

        return LinkPrediction(graph, config)
    return NodeClassification(graph, config)
