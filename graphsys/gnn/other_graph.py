"""Whether a network can be used on another graph than the one it was trained on."""

from typing import TYPE_CHECKING

from graphsys.core.errors import ConfigError, cut_list
from graphsys.gnn.run import Weights
from graphsys.gnn.trainer import Parts

if TYPE_CHECKING:
    from graphsys.gnn.opened import OpenedRun


def require_fitting(opened: "OpenedRun", parts: Parts, weights: Weights) -> None:
    """Check that the network made for another graph takes a run's weights.

    It does where nodes have the same features and messages go along the same edge types:
    then what was learned is of no node in particular.

    Args:
        opened: The run, with the other graph.
        parts: The network for that graph, and its inputs.
        weights: Of the run.

    Raises:
        ConfigError: It does not.
        InvalidGraphError: Features of the other graph are not finite.
    """
    graph, run = opened.graph.path, opened.path
    is_on_disk = opened.config.learned_rows == "disk"
    for name, shape in parts.inputs.shapes.items():
        if not shape.dim and (is_on_disk or not shape.is_bag):
            raise ConfigError(
                f"the run {run} has a learned row for each node of type {name!r} it was "
                f"trained on, and none for those of {graph}; expected node types with "
                "features, or the graph trained on; train a new run"
            )
    if list(parts.objective.classes) != opened.state.classes:
        raise ConfigError(
            f"the graph {graph} has classes {cut_list(parts.objective.classes)}, the run "
            f"{run} {cut_list(opened.state.classes)}; expected the same"
        )
    own = {name: list(value.shape) for name, value in parts.network.state_dict().items()}
    given = {name: list(value.shape) for name, value in weights.items()}
    if own != given:
        name = min(n for n in own.keys() | given.keys() if own.get(n) != given.get(n))
        raise ConfigError(
            f"the graph {graph} does not fit the network of the run {run}: for it, {name} "
            f"would be {own.get(name, 'left out')}, it is {given.get(name, 'not there')}; "
            "expected the features and edge types of the graph trained on"
        )
    parts.inputs.check()
