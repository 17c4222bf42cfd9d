"""What is learned beside links from the same rows: which content a node's row is of."""

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional

from graphsys.core.errors import ConfigError
from graphsys.core.rng import draw_key
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.features import InputShape
from graphsys.gnn.data.loader import Batch
from graphsys.gnn.models.model import Model, Tensors, key_of
from graphsys.gnn.part_specs import SIDE_TASKS, SideTaskSpec
from graphsys.gnn.tasks.link_prediction import LinkPrediction
from graphsys.gnn.tasks.task import Task

TASK = "task"
"""What reports call the loss that a side task stands beside."""


class Content(nn.Module):
    """Tells nodes' rows by their own features from those of a batch's other nodes.

    The score of a row and of features is the cosine of the row and of a linear map of
    them, over the temperature. Of all nodes of a type in a batch the row is to choose its
    features, and the features their row: the mean of both cross-entropies, over all nodes.

    Args:
        config: ``temperature``, and ``dim`` of a bag's row.
        shapes: Input of the node types, each with features.
        num_out: Features of a row.

    References:
        Badrinath et al., "OmniSage: large scale, multi-entity heterogeneous graph
        representation learning", KDD 2025, for the task; van den Oord et al.,
        "Representation learning with contrastive predictive coding", arXiv:1807.03748,
        2018, for the loss. Both ways as in Radford et al. (CLIP), ICML 2021.
    """

    def __init__(
        self, config: GnnConfig, shapes: Mapping[str, InputShape], num_out: int
    ) -> None:
        super().__init__()
        self.temperature = config.temperature
        self.maps = nn.ModuleDict(
            {
                key_of(n): nn.Linear(it.dim or config.dim, num_out)
                for n, it in shapes.items()
            }
        )

    def forward(
        self, rows: Mapping[str, torch.Tensor], inputs: Mapping[str, torch.Tensor]
    ) -> torch.Tensor:
        """Return the mean loss of distinct nodes.

        Args:
            rows: Of nodes by type, float32 ``[n, num_out]``.
            inputs: Of the same nodes, float32 ``[n, F]``.
        """
        losses, count = [], 0
        for name, own in rows.items():
            mapped = functional.normalize(self.maps[key_of(name)](inputs[name]), dim=1)
            scores = functional.normalize(own, dim=1) @ mapped.T / self.temperature
            places = torch.arange(len(own), device=own.device)
            losses += [
                functional.cross_entropy(each, places, reduction="sum")
                for each in (scores, scores.T)
            ]
            count += 2 * len(own)
        return torch.stack(losses).sum() / max(count, 1)


def add_side_tasks(
    network: Model, config: GnnConfig, shapes: Mapping[str, InputShape], task: Task
) -> None:
    """Give a network what the side tasks of a config learn.

    Its own weights are those that it has without.

    Raises:
        ConfigError: No end of the pairs has features, or the task has no pairs.
    """
    if not config.side_tasks:
        return
    if not isinstance(task, LinkPrediction):
        raise ConfigError(
            f"task: got {config.task} with side_tasks {', '.join(config.side_tasks)}, "
            "expected link_prediction, or a task that inherits LinkPrediction"
        )
    ends = list(dict.fromkeys((task.pairs.src_type, task.pairs.dst_type)))
    known = {n: shapes[n] for n in ends if n in shapes}
    known = {n: shape for n, shape in known.items() if shape.dim or shape.is_bag}
    if not known:
        raise ConfigError(
            f"side_tasks: got {', '.join(config.side_tasks)}, but nodes of type "
            f"{' and '.join(map(repr, ends))} have no features that are read; expected "
            "some of either (features names them), or no side_tasks"
        )
    torch.manual_seed(int(draw_key(config.seed, "side tasks")) >> 1)
    for name in config.side_tasks:
        made = SIDE_TASKS.get(name).make(config, known, network.num_out)
        network.side_tasks[key_of(name)] = made
    network.side_types = tuple(known)


def side_losses(
    network: Model, rows: Mapping[str, torch.Tensor], batch: Batch, count: int
) -> Tensors:
    """Return the loss of each side task of a network, by name.

    Args:
        network: The network, which has read the batch.
        rows: Its output by type.
        batch: The batch.
        count: Pairs of the batch. So many seeds of a type come first: sources, and where
            those are of another type destinations; the others are mostly negatives.
    """
    if not len(network.side_tasks):
        return {}
    inputs, network.inputs = network.inputs, {}
    own_rows, own_inputs = {}, {}
    for name in network.side_types:
        chosen = torch.unique(batch.places[name][:count])
        own_rows[name] = rows[name].index_select(0, chosen)
        own_inputs[name] = inputs[name].index_select(0, chosen)
    return {
        name: network.side_tasks[key_of(name)](own_rows, own_inputs)
        for name in network.config.side_tasks
    }


SIDE_TASKS.add(SideTaskSpec(name="content", make=Content))
