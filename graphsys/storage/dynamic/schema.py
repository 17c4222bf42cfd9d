"""Whether what is appended has the types and columns that a graph has."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import InputError, cut_list
from graphsys.core.types import EDGE, SIGNS, EdgeType
from graphsys.storage.manifest import EdgeTypeEntry, Manifest, NodeTypeEntry

_REMEDY = "an append changes no schema; ingest all again for that"
_NUMPY = {"float": "f4", "double": "f8", "int64": "i8", "uint64": "u8"}


def edge_type_of(manifest: Manifest, kind: EdgeType) -> str:
    """Return the name of the edge type that appended edges are of.

    Edges without a type are of the only one that there is.

    Raises:
        InputError: the graph has no such type.
    """
    for name, entry in manifest.edge_types.items():
        if entry.edge_type == kind:
            return name
    if kind == EDGE and len(manifest.edge_types) == 1:
        return next(iter(manifest.edge_types))
    known = cut_list(entry.edge_type for entry in manifest.edge_types.values())
    raise InputError(
        f"edges of type {kind}, but the graph has {known or 'none'}; {_REMEDY}"
    )


def node_type_of(manifest: Manifest, name: str) -> str:
    """Return a node type that the graph has.

    Raises:
        InputError: it has no such type.
    """
    if name in manifest.node_types:
        return name
    raise InputError(
        f"nodes of type {name!r}, but the graph has {cut_list(manifest.node_types)}; "
        f"{_REMEDY}"
    )


def check_edge_columns(name: str, entry: EdgeTypeEntry, given: Iterable[str]) -> None:
    """Refuse edges with other columns than the graph's.

    Raises:
        InputError: a column is missing, or new.
    """
    wanted = {*entry.columns, *(() if entry.relations is None else ("relation",))}
    columns = set(given)
    lacks_signs = wanted - columns == {"relation"} and "weight" in columns
    if lacks_signs and set(entry.relations or ()) <= set(SIGNS):
        raise InputError(
            f"edges of type {name!r} lack the column 'relation', which is the sign of the "
            "weight in this graph; pass --signed"
        )
    _check_names(f"edges of type {name!r}", wanted, columns)


def check_split(name: str, entry: EdgeTypeEntry, split: str) -> None:
    """Refuse edges of a split that the graph has not.

    Raises:
        InputError: it has others.
    """
    if split not in entry.num_edges:
        raise InputError(
            f"edges of type {name!r} in split {split!r}, but the graph has the splits "
            f"{cut_list(entry.num_edges) or 'none'}; {_REMEDY}"
        )


def check_node_columns(name: str, entry: NodeTypeEntry, given: Iterable[str]) -> None:
    """Refuse a table of nodes with other columns or features than the graph's.

    Raises:
        InputError: a column is missing, or new.
    """
    _check_names(f"nodes of type {name!r}", {*entry.columns, *entry.features}, set(given))


def as_stored(column: pa.Array, kind: pa.DataType, what: str) -> pa.Array:
    """Return a column with the type that the graph's has.

    Raises:
        InputError: its values do not fit.
    """
    try:
        return column if column.type == kind else column.cast(kind)
    except pa.ArrowException as err:
        found = "text" if pa.types.is_dictionary(column.type) else column.type
        raise InputError(
            f"{what} is {found}, in the graph {kind} "
            f"({' '.join(str(err).split())}); {_REMEDY}"
        ) from err


def weights_as_stored(values: npt.NDArray[Any], kind: str, name: str) -> npt.NDArray[Any]:
    """Return weights in the graph's dtype.

    Raises:
        InputError: it does not hold them exactly.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        stored = values.astype(_NUMPY[kind])
        is_same = np.array_equal(stored.astype(values.dtype), values, equal_nan=True)
    if not is_same:
        changed = np.flatnonzero(stored.astype(values.dtype) != values)
        raise InputError(
            f"weight {values[changed[0]]} of edge type {name!r} is not exact as {kind}, "
            f"which the graph's weights are; round it, or {_REMEDY}"
        )
    return stored


def _check_names(what: str, wanted: set[str], given: set[str]) -> None:
    if odd := sorted(given - wanted):
        has = f"the columns {cut_list(sorted(wanted))}" if wanted else "no columns"
        raise InputError(
            f"{what} have the column {odd[0]!r}, the graph's have {has}; {_REMEDY}"
        )
    if missing := sorted(wanted - given):
        raise InputError(
            f"{what} lack the column {missing[0]!r}, which the graph's have; {_REMEDY}"
        )
