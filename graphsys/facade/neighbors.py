"""The neighbors of one node, by ids."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.facade.edges import edge_names
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]


def neighbors(
    graph: GraphReader,
    node: Any,
    node_type: str | None,
    edge_type: str | None,
    direction: str,
) -> list[Any]:
    """Return the ids of a node's neighbors."""
    rows = _rows(graph, node, node_type, edge_type, direction)
    return [key for other, numbers in rows for key in _ids(graph, other, numbers)]


def degree(
    graph: GraphReader,
    node: Any,
    node_type: str | None,
    edge_type: str | None,
    direction: str,
) -> int:
    """Return how many there are."""
    rows = _rows(graph, node, node_type, edge_type, direction)
    return sum(len(numbers) for _, numbers in rows)


def _rows(
    graph: GraphReader,
    node: Any,
    node_type: str | None,
    edge_type: str | None,
    direction: str,
) -> Iterator[tuple[str, Ints]]:
    """Yield the neighbors' type and numbers, edge type by edge type."""
    if direction not in ("out", "in", "both"):
        raise ConfigError(f"direction: got {direction!r}, expected one of out, in, both")
    own = single_type(graph, node_type)
    number = int(graph.lookup(own, [node])[0])
    part = int(np.searchsorted(graph.offsets(own), number, side="right")) - 1
    local = number - int(graph.offsets(own)[part])
    for name in edge_names(graph, edge_type):
        kind = graph.edge_type(name)
        is_alike = not graph.is_directed_type(name) and kind.src_type == kind.dst_type
        sides = {"out": direction != "in", "in": direction != "out" and not is_alike}
        if is_alike or not graph.is_directed_type(name):
            sides = {"out": True, "in": not is_alike}
        for side, is_wanted in sides.items():
            end, other = (kind[0], kind[2]) if side == "out" else (kind[2], kind[0])
            if is_wanted and end == own:
                read = graph.out_index if side == "out" else graph.in_index
                index = read(name, part)
                row = slice(int(index.indptr[local]), int(index.indptr[local + 1]))
                yield other, index.indices[row].astype(np.int64)


def single_type(graph: GraphReader, node_type: str | None) -> str:
    """Return a node type, the only one if none is given."""
    if node_type is None and len(graph.node_types) != 1:
        raise ConfigError(
            f"the graph has node types {', '.join(graph.node_types)}; give one"
        )
    name = node_type or graph.node_types[0]
    graph.num_nodes_of(name)
    return name


def _ids(graph: GraphReader, node_type: str, numbers: Ints) -> list[Any]:
    found: list[Any] = graph.ids_of(node_type, numbers).to_pylist()
    return found
