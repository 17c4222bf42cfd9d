"""Which node has an id, where its type is not given."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.storage.reader import GraphReader


def find_node(graph: GraphReader, node: Any, node_types: Sequence[str]) -> tuple[str, int]:
    """Return the one of some types that has a node, and the node's number in it.

    Args:
        graph: An open graph.
        node: The user's id.
        node_types: Where it is looked for.

    Raises:
        UnknownNameError: None has it.
        ConfigError: Several have it.
    """
    numbers: dict[str, int] = {}
    for name in node_types:
        with suppress(UnknownNameError):
            numbers[name] = int(graph.lookup(name, [node])[0])
    if not numbers:
        raise UnknownNameError(
            f"node {node!r} is not in the graph {graph.path} (node types "
            f"{', '.join(node_types)})"
        )
    if len(numbers) > 1:
        raise ConfigError(
            f"node {node!r} is of several types ({', '.join(numbers)}); give node_type"
        )
    return next(iter(numbers.items()))
