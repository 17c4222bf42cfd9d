"""Numbers of nodes: a network's output is one, compared by its square."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch.nn import functional

from graphsys.core.errors import ConfigError, InvalidGraphError, cut_list
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.labels import TRAIN, labeled_type, read_splits
from graphsys.gnn.data.loader import Batch
from graphsys.gnn.data.split_names import unknown_split
from graphsys.gnn.part_specs import TASKS, TaskSpec
from graphsys.gnn.tasks.output import Output
from graphsys.gnn.tasks.task import Learned, NodeSeeds
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]


class NodeRegression(NodeSeeds):
    """A number per node, learned in units of the training nodes' deviation from their mean.

    What is watched is R2, so that more is better; the loss is the mean square in those
    units.

    Attributes:
        values: The labels by node, float32 ``[N]``; NaN where there is none.
        splits: Numbers of the nodes of each split.
        units: Mean of the training nodes, and their standard deviation; 1 if they are all
            the same.

    Args:
        graph: The graph.
        config: The settings.
        learned: What a run learned of another graph, if no numbers of this are to be read.

    Raises:
        ConfigError: A column that holds no numbers, no training nodes.
        InvalidGraphError: Nodes of a split have no finite label.
    """

    metric = "r2"

    def __init__(
        self, graph: GraphReader, config: GnnConfig, learned: Learned | None = None
    ) -> None:
        self.num_out, self.classes = 1, list[Any]()
        if learned is not None:
            super().__init__(config, learned.node_type, np.empty(0, dtype=np.int64))
            return
        node_type = labeled_type(graph, config)
        self.values = _read_values(graph, node_type, config)
        self.splits = read_splits(graph, node_type, config)
        for split, nodes in self.splits.items():
            if len(bad := nodes[~np.isfinite(self.values[nodes])]):
                ids = graph.ids_of(node_type, bad[:6]).to_pylist()
                raise InvalidGraphError(
                    f"{len(bad)} of {len(nodes)} nodes of split {split!r} have no "
                    f"{config.label!r} that is finite and fits float32: {cut_list(ids)}"
                    f"{' ...' if len(bad) > 6 else ''}; mend them or take them out of the "
                    "split"
                )
        super().__init__(config, node_type, self.splits[TRAIN])
        train = self.values[self.splits[TRAIN]].astype(np.float64)
        self.units = (float(train.mean()), float(train.std()) or 1.0)

    def loss(self, rows: Mapping[str, torch.Tensor], batch: Batch) -> torch.Tensor:
        """Return the mean square of a batch, in units of the deviation."""
        found = rows[self.node_type][batch.places[self.node_type]][:, 0]
        target = self._target(batch.seeds[self.node_type])
        return functional.mse_loss(found, target.to(found.device))

    @property
    def known_splits(self) -> list[str]:
        """Names of the splits that have nodes."""
        return list(self.splits)

    def watch(self, output: Output) -> tuple[float, float] | None:
        """Return loss and R2, NaN without one, of the watched split; None without nodes."""
        split = self._config.eval_split
        if not len(self.splits.get(split, ())):
            return None
        found = self.measure(split, output)
        square = (found["rmse"] / self.units[1]) ** 2
        return square, found["r2"] if self.is_told(split) else math.nan

    def is_told(self, split: str) -> bool:
        """Whether R2 says something of a split: its nodes differ in their labels."""
        return len(np.unique(self.values[self.splits[split]])) > 1

    def measure(self, split: str, output: Output) -> dict[str, Any]:
        """Return ``mae``, ``rmse`` and ``r2`` of a split, in the labels' units.

        ``r2`` compares with the spread of labels; it is None where they have none.

        Raises:
            UnknownNameError: There is no such split.
        """
        from torchmetrics.functional import regression

        if split not in self.splits:
            raise unknown_split(split, self.splits, of_edges=False)
        nodes = self.splits[split]
        found = torch.from_numpy(self.in_units(output(self.node_type, nodes).numpy()))
        wanted = torch.from_numpy(self.values[nodes])
        square = regression.mean_squared_error(found, wanted)
        is_told = self.is_told(split)
        return {
            "mae": float(regression.mean_absolute_error(found, wanted)),
            "rmse": float(square.sqrt()),
            "r2": float(regression.r2_score(found, wanted)) if is_told else None,
            "num_nodes": len(nodes),
        }

    def answers(
        self, found: npt.NDArray[np.float32], relation: str | None
    ) -> dict[str, Any]:
        """Return ``prediction``, in the labels' units."""
        return {"prediction": pa.array(self.in_units(found))}

    def in_units(self, output: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return a network's output ``[n, 1]`` in the labels' units ``[n]``."""
        mean, scale = self.units
        return (output[:, 0] * scale + mean).astype(np.float32)

    def _target(self, nodes: Ints) -> torch.Tensor:
        mean, scale = self.units
        found = (self.values[nodes] - mean) / scale
        return torch.from_numpy(found.astype(np.float32))


def _read_values(
    graph: GraphReader, node_type: str, config: GnnConfig
) -> npt.NDArray[np.float32]:
    labels = graph.node_column(node_type, config.label)
    if not (pa.types.is_integer(labels.type) or pa.types.is_floating(labels.type)):
        raise ConfigError(
            f"task regression: column {config.label!r} of node type {node_type!r} is "
            f"{labels.type}, expected numbers"
        )
    found: npt.NDArray[np.float64] = labels.cast(pa.float64()).to_numpy()
    with np.errstate(over="ignore"):  # what becomes infinite is refused
        return found.astype(np.float32)


TASKS.add(TaskSpec(name="regression", make=NodeRegression, has_labels=True))
