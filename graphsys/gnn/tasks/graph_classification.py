"""Classes of whole graphs: cross-entropy of the scores of a batch of graphs."""

from typing import Any

from graphsys.core.errors import ConfigError
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.labels import labeled_type
from graphsys.gnn.part_specs import TASKS, TaskSpec
from graphsys.gnn.tasks.output import Output
from graphsys.gnn.tasks.task import Learned, NodeClassification
from graphsys.storage.reader import GraphReader


class GraphClassification(NodeClassification):
    """Classes of graphs, which are nodes of a type of their own.

    What is watched is the accuracy, with several classes a graph the micro F1. With
    ``folds`` the graphs of fold ``fold`` are test and all others train; there is no valid.

    Args:
        graph: The graph.
        config: The settings.
        learned: As of :class:`NodeClassification`.

    Raises:
        ConfigError: As :class:`NodeClassification`; and neither splits nor folds.
    """

    is_watching_one_class = False  # accuracy is watched, which says something of one, too

    def __init__(
        self, graph: GraphReader, config: GnnConfig, learned: Learned | None = None
    ) -> None:
        if learned is None:
            _require_held_out(graph, config)
        super().__init__(graph, config, learned)
        self.metric = "f1_micro" if self.labels.is_multi else "accuracy"

    def measure(self, split: str, output: Output) -> dict[str, Any]:
        """Return the metrics of a split; see :func:`class_metrics`.

        Raises:
            UnknownNameError: There is no such split.
        """
        found = super().measure(split, output)
        return {"num_graphs" if k == "num_nodes" else k: v for k, v in found.items()}


def _require_held_out(graph: GraphReader, config: GnnConfig) -> None:
    node_type = labeled_type(graph, config)
    columns = graph.manifest.node_types[node_type].columns
    if not config.folds and config.split not in columns:
        raise ConfigError(
            f"task {config.task}: node type {node_type!r} has no column "
            f"{config.split!r} that says train, valid or test; set folds=10 and fold=0 "
            "to 9 to hold a tenth out, or ingest such a column"
        )


TASKS.add(
    TaskSpec(
        name="graph_classification",
        make=GraphClassification,
        has_labels=True,
        is_of_graphs=True,
        has_classes=True,
    )
)
