"""What a network is trained for: seeds of an epoch, the loss of a batch, metrics."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import nn
from torch.nn import functional

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.labels import TRAIN, NodeLabels, read_labels
from graphsys.gnn.data.loader import Batch, Trim, shuffled_batches
from graphsys.gnn.part_specs import TASKS, TaskSpec
from graphsys.gnn.process_group import ProcessGroup, current_process_group
from graphsys.gnn.tasks.output import Output
from graphsys.metrics.areas import f1, roc_auc_of
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Seeds = Sequence[Mapping[str, Ints]]


class Task(Protocol):
    """A task.

    Attributes:
        node_type: Of the rows that are wanted.
        num_out: Features of the network's output.
        classes: Names of classes; empty where there are none.
        units: Mean and deviation of labels that are numbers; else empty.
        metric: Name of the metric that is watched; more of it is better.
        trim: Takes entries out of a sample that would give the answer away, or None.
        process_group: The processes that train together; seeds are this one's share.
        decoder: Makes scores of pairs of output rows; None where nodes are learned.
    """

    node_type: str
    num_out: int
    classes: list[Any]
    units: Sequence[float]
    metric: str
    trim: Trim | None
    process_group: ProcessGroup
    decoder: nn.Module | None

    @property
    def relations(self) -> Collection[str]:
        """Names of the relations that nodes have rows of, where they have several."""

    def seeds(self, epoch: int) -> Seeds:
        """Return the seeds of every batch of an epoch."""

    def loss(self, rows: Mapping[str, torch.Tensor], batch: Batch) -> torch.Tensor:
        """Return the mean loss of a batch, given its output by type."""

    def num_terms(self, batch: Batch) -> int:
        """Return over how many terms of all processes a batch's loss is the mean."""

    def watch(self, output: Output) -> tuple[float, float] | None:
        """Return loss and metric of the watched split, or None where there is none.

        A task that has ``known_splits``, names of those that there are, has the settings
        refused that need another.
        """

    def measure(self, split: str, output: Output) -> dict[str, Any]:
        """Return the metrics of a split.

        Raises:
            UnknownNameError: There is no such split.
        """

    def answers(self, found: Floats, relation: str | None) -> dict[str, Any]:
        """Return what is predicted from the network's output for nodes ``[n, num_out]``.

        Args:
            found: The output.
            relation: The relation asked about, where nodes have rows of several.

        Returns:
            Columns of a table, of n values each.

        Raises:
            ConfigError: A relation is missing.
            UnknownNameError: There is no such relation.
        """


class FirstBatches(Sequence[Mapping[str, Ints]]):
    """The first batches of an epoch; others are never made.

    Args:
        seeds: Those of all batches.
        count: How many at most.
    """

    def __init__(self, seeds: Seeds, count: int) -> None:
        self._seeds, self._count = seeds, count

    def __len__(self) -> int:
        return min(self._count, len(self._seeds))

    @overload
    def __getitem__(self, number: int) -> Mapping[str, Ints]: ...
    @overload
    def __getitem__(self, number: slice) -> Seeds: ...
    def __getitem__(self, number: int | slice) -> Any:
        if isinstance(number, slice):
            return [self[k] for k in range(*number.indices(len(self)))]
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self._seeds[number]


def epoch_seeds(task: Task, config: GnnConfig, epoch: int) -> Seeds:
    """Return the seeds of the batches of an epoch that are trained."""
    seeds = task.seeds(epoch)
    return FirstBatches(seeds, config.epoch_batches) if config.epoch_batches else seeds


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What a run learned of the labels of the graph that it was trained on.

    Attributes:
        node_type: Whose labels they were.
        classes: Names of the classes.
        is_multi: Whether a node may have several.
    """

    node_type: str
    classes: Sequence[Any]
    is_multi: bool

    def labels(self, num_nodes: int) -> NodeLabels:
        """Return those of another graph: its nodes have none."""
        return NodeLabels(
            node_type=self.node_type,
            classes=[*self.classes],
            begins=np.zeros(num_nodes + 1, dtype=np.int64),
            codes=np.empty(0, dtype=np.int64),
            splits={TRAIN: np.empty(0, dtype=np.int64)},
            is_multi=self.is_multi,
        )


class NodeSeeds:
    """Seeds of a task over the training nodes of one type.

    Args:
        config: The settings.
        node_type: Of the nodes.
        nodes: Their numbers ``[n]``.
    """

    units: Sequence[float] = ()
    relations: Collection[str] = ()

    def __init__(self, config: GnnConfig, node_type: str, nodes: Ints) -> None:
        self.node_type, self._nodes, self._config = node_type, nodes, config
        self.trim: Trim | None = None
        self.decoder: nn.Module | None = None
        self.process_group = current_process_group()

    def seeds(self, epoch: int) -> Seeds:
        """Return the seeds of every batch of an epoch."""
        config, nodes = self._config, self._nodes
        if config.is_full_batch:
            return [{self.node_type: self.process_group.share(nodes)}]
        cut = shuffled_batches(nodes, config.batch_size, config.seed, "nodes", epoch)
        kind, group = self.node_type, self.process_group
        return [{kind: group.share_at(part, kind, part)} for part in cut]

    def num_terms(self, batch: Batch) -> int:
        """Return how many nodes a batch of all processes has."""
        size = self._config.batch_size or len(self._nodes)
        return min(size, len(self._nodes) - batch.number * size)


class NodeClassification(NodeSeeds):
    """Classes of nodes: cross-entropy; with several classes a node, one by one.

    What is watched on valid is accuracy, of two classes the ROC-AUC if nodes of valid are
    of both, of several classes a node the micro F1.

    Args:
        graph: The graph.
        config: The settings.
        learned: What a run learned of the classes of another graph; those of this one are
            read where there is none.

    Raises:
        ConfigError: As :func:`read_labels`.
        InvalidGraphError: Nodes of a split have no label.
    """

    def __init__(
        self, graph: GraphReader, config: GnnConfig, learned: Learned | None = None
    ) -> None:
        self.labels: NodeLabels = (
            read_labels(graph, config)
            if learned is None
            else learned.labels(graph.num_nodes_of(learned.node_type))
        )
        super().__init__(config, self.labels.node_type, self.labels.require(TRAIN))
        self.classes = self.labels.classes
        self.num_out = len(self.classes)
        self._weights: torch.Tensor | None = None
        if config.class_weights == "balanced" and learned is None:
            counts = self.labels.counts(TRAIN)
            self._weights = balanced_weights(
                counts, len(self._nodes), is_multi=self.labels.is_multi
            )
        has_area = self.num_out == 2 and not self.is_watching_one_class
        self.metric = "roc_auc" if has_area else "accuracy"
        if self.labels.is_multi:
            self.metric = "f1_micro"

    def loss(self, rows: Mapping[str, torch.Tensor], batch: Batch) -> torch.Tensor:
        """Return the mean loss of a batch."""
        found = rows[self.node_type][batch.places[self.node_type]]
        target = torch.from_numpy(self.labels.of(batch.seeds[self.node_type]))
        return self._trained_loss(found, target.to(found.device))

    @property
    def known_splits(self) -> list[str]:
        """Names of the splits that have nodes."""
        return list(self.labels.splits)

    @property
    def is_watching_one_class(self) -> bool:
        """Whether the watched split has nodes of one of two classes: no area tells them."""
        nodes = self.labels.splits.get(self._config.eval_split)
        if nodes is None or self.num_out != 2 or self.labels.is_multi:
            return False
        return len(np.unique(self.labels.of(nodes))) == 1

    def watch(self, output: Output) -> tuple[float, float] | None:
        """Return loss and metric of the watched split, or None where it has no nodes."""
        nodes = self.labels.splits.get(self._config.eval_split)
        if nodes is None or not len(nodes):
            return None
        found = output(self.node_type, nodes)
        target = torch.from_numpy(self.labels.of(nodes))
        loss = float(self._loss(found, target))
        if self.metric == "accuracy":
            return loss, float((found.argmax(dim=1) == target).float().mean())
        if self.metric == "roc_auc":
            margin = (found[:, 1] - found[:, 0]).numpy()
            return loss, roc_auc_of(margin, target.numpy() == 1)
        chosen, wanted = found > 0, target > 0
        hits = float((chosen & wanted).sum())
        return loss, f1(hits, float(chosen.sum()), float(wanted.sum()))

    def measure(self, split: str, output: Output) -> dict[str, Any]:
        """Return the metrics of a split; see :func:`class_metrics`.

        Raises:
            UnknownNameError: There is no such split.
        """
        nodes = self.labels.require(split)
        scores = output(self.node_type, nodes)
        target = torch.from_numpy(self.labels.of(nodes))
        found = class_metrics(scores, target, is_multi=self.labels.is_multi)
        return found | {"num_nodes": len(nodes)}

    def answers(self, found: Floats, relation: str | None) -> dict[str, Any]:
        """Return ``prediction`` and ``probability`` of nodes; lists of several classes."""
        classes, scores = pa.array(self.classes), torch.from_numpy(found)
        if not self.labels.is_multi:
            best = torch.softmax(scores, dim=1).max(dim=1)
            return {
                "prediction": classes.take(pa.array(best.indices.numpy())),
                "probability": pa.array(best.values.numpy()),
            }
        chance = torch.sigmoid(scores).numpy()
        row, code = np.nonzero(chance > 0.5)
        begins = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(found)))])
        lists, offsets = pa.LargeListArray, pa.array(begins, pa.int64())
        return {
            "prediction": lists.from_arrays(offsets, classes.take(pa.array(code))),
            "probability": lists.from_arrays(offsets, pa.array(chance[row, code])),
        }

    def _loss(self, found: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if self.labels.is_multi:
            return functional.binary_cross_entropy_with_logits(found, target)
        return functional.cross_entropy(found, target)

    def _trained_loss(self, found: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss with the weights of classes and what smooths the targets.

        A mean over the nodes, whatever their weights: so that shares of processes and of
        accumulated batches add up to the loss of the whole.
        """
        weights, share = self._weights, self._config.label_smoothing
        if weights is None and not share:
            return self._loss(found, target)
        weights = None if weights is None else weights.to(found)
        if self.labels.is_multi:
            target = (1 - share) * target + share / 2
            return functional.binary_cross_entropy_with_logits(
                found, target, pos_weight=weights
            )
        losses = functional.cross_entropy(
            found, target, weights, reduction="none", label_smoothing=share
        )
        return losses.mean()


def balanced_weights(counts: Ints, num_nodes: int, *, is_multi: bool) -> torch.Tensor:
    """Return weights by which each class counts as much as any other, float32 ``[C]``.

    A class without nodes has weight 1. As in King, Zeng, "Logistic regression in rare
    events data", Political Analysis 9(2), 2001.

    Args:
        counts: Training nodes of each class ``[C]``.
        num_nodes: Training nodes.
        is_multi: Whether a node may have several: then a weight is that of the nodes with
            the class beside those without it. Else the mean over the nodes is 1.
    """
    known = np.maximum(counts, 1)
    num_classes = max(int((counts > 0).sum()), 1)
    found = (num_nodes - counts) / known if is_multi else num_nodes / (num_classes * known)
    found[(counts == 0) | (found <= 0)] = 1.0
    return torch.from_numpy(found.astype(np.float32))


TASKS.add(
    TaskSpec(
        name="node_classification",
        make=NodeClassification,
        has_labels=True,
        has_times=True,
        has_classes=True,
    )
)


def class_metrics(
    scores: torch.Tensor, target: torch.Tensor, *, is_multi: bool
) -> dict[str, float]:
    """Return the metrics of a classification.

    ``roc_auc`` is the mean over the classes that some nodes have and others do not; it is
    left out where there is no such class.

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
        }
        # of a class that all nodes have, or none, no area says anything: not 0 either
        is_told = (whole == 1).any(dim=0) & (whole == 0).any(dim=0)
        areas = [
            classification.binary_auroc(chosen[:, k], whole[:, k])
            for k in torch.nonzero(is_told).flatten().tolist()
        ]
        if areas:
            found["roc_auc"] = torch.stack(areas).mean()
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
    # An area needs both classes.
    if num_classes == 2 and 0 < int(target.sum()) < len(target):
        second = torch.softmax(scores, dim=1)[:, 1]
        found["roc_auc"] = classification.binary_auroc(second, target)
    return {name: float(value) for name, value in found.items()}
