"""The names of nodes: a column that they go by, instead of their ids."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.arrays import distinct
from graphsys.core.errors import ConfigError, cut_list
from graphsys.storage.lookup import lookup_ids
from graphsys.storage.reader import GraphReader

_SHOWN = 5  # nodes of one name that a message lists


def node_names(graph: GraphReader, column: str) -> dict[str, pa.ChunkedArray]:
    """Return the names of the nodes of each type that has them, ``[N]``.

    Args:
        graph: The graph.
        column: Of the nodes: texts or integers. A node without a text has its id as one.

    Returns:
        large_string or int64, by node type.

    Raises:
        ConfigError: No node type has such a column, or it is of numbers that are missing
            or no integers.
    """
    known = {it: list(graph.manifest.node_types[it].columns) for it in graph.node_types}
    if not any(column in columns for columns in known.values()):
        found = "; ".join(f"{it}: {cut_list(known[it], 20) or 'none'}" for it in known)
        raise ConfigError(
            f"name_column: got {column!r}, but nodes of {graph.path} have no such column; "
            f"there are, by node type: {found}"
        )
    return {it: _names_of(graph, it, column) for it in known if column in known[it]}


def _names_of(graph: GraphReader, node_type: str, column: str) -> pa.ChunkedArray:
    found, ids = graph.node_column(node_type, column), graph.node_ids(node_type)
    kind = found.type.value_type if pa.types.is_dictionary(found.type) else found.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        names = found.cast(pa.large_string())
        is_there = pc.fill_null(pc.not_equal(names, ""), False)
        if pc.all(is_there).as_py() is False:
            names = pc.if_else(is_there, names, ids.cast(pa.large_string()))
        return names
    if not pa.types.is_integer(kind):
        raise ConfigError(
            f"name_column: column {column!r} of node type {node_type!r} is of {kind}; "
            "expected texts or integers"
        )
    if found.null_count:
        first = ids.filter(found.is_null())[0].as_py()
        raise ConfigError(
            f"name_column: column {column!r} of node type {node_type!r} is empty for "
            f"{found.null_count} nodes, the first of id {first!r}; expected a number each"
        )
    return found.cast(pa.int64())


def lookup_names(
    graph: GraphReader, node_type: str, column: str, names: pa.ChunkedArray, asked: Any
) -> npt.NDArray[np.int64]:
    """Return the numbers of nodes given by their names, int64 ``[n]``.

    Args:
        graph: The graph.
        node_type: Their type.
        column: What the names are.
        names: Those of all nodes of the type.
        asked: Names ``[n]``.

    Raises:
        UnknownNameError: A node has no such name; the message names the first.
        ConfigError: Several have it; the message lists their ids.
    """
    numbers = lookup_ids(names, asked, f"{node_type!r} of {graph.path} by {column}")
    once = names.take(pa.array(distinct(numbers))).combine_chunks()
    is_asked = pc.is_in(names, value_set=once)
    if (pc.sum(is_asked).as_py() or 0) == len(once):
        return numbers
    counts = names.filter(is_asked).value_counts()
    name = counts.field("values").filter(pc.greater(counts.field("counts"), 1))[0]
    places = np.flatnonzero(pc.equal(names, name).to_numpy())
    ids = graph.ids_of(node_type, places).to_pylist()
    raise ConfigError(
        f"{column} {name.as_py()!r} is that of {len(ids)} nodes of type {node_type!r}, of "
        f"ids {cut_list(ids, _SHOWN)}; ask by an id, without name_column"
    )
