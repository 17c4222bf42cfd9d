"""Whether a network can be used on another graph than the one it was trained on."""

from pathlib import Path

from graphsys.core.errors import ConfigError, cut_list
from graphsys.gnn.context import GnnContext
from graphsys.gnn.run import GnnRunState, Weights


def require_fitting(
    run: Path, state: GnnRunState, weights: Weights, context: GnnContext
) -> None:
    """Check that the network made for another graph takes a run's weights.

    It does where nodes have the same features and messages go along the same edge types:
    then what was learned is of no node in particular.

    Args:
        run: The run's folder.
        state: Its checkpoint.
        weights: Of the run.
        context: The network for the other graph, and what it reads.

    Raises:
        ConfigError: It does not.
        InvalidGraphError: Features of the other graph are not finite.
    """
    where, is_on_disk = context.graph.path, context.network.config.learned_rows == "disk"
    for name, shape in context.features.shapes.items():
        if not shape.dim and (is_on_disk or not shape.is_bag):
            raise ConfigError(
                f"the run {run} has a learned row for each node of type {name!r} it was "
                f"trained on, and none for those of {where}; expected node types with "
                "features, or the graph trained on; train a new run"
            )
    if list(context.task.classes) != state.classes:
        raise ConfigError(
            f"the graph {where} has classes {cut_list(context.task.classes)}, the run "
            f"{run} {cut_list(state.classes)}; expected the same"
        )
    own = {name: list(value.shape) for name, value in context.network.state_dict().items()}
    given = {name: list(value.shape) for name, value in weights.items()}
    if own != given:
        name = min(n for n in own.keys() | given.keys() if own.get(n) != given.get(n))
        raise ConfigError(
            f"the graph {where} does not fit the network of the run {run}: for it, {name} "
            f"would be {own.get(name, 'left out')}, it is {given.get(name, 'not there')}; "
            "expected the features and edge types of the graph trained on"
        )
    context.features.check()
