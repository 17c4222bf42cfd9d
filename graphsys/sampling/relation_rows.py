"""Rows of one relation each, where an edge type has several (its column ``relation``)."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphsys.graph.csr import Csr
from graphsys.sampling.adjacency import REVERSED, PartitionedCsr, address, message_rows
from graphsys.storage.reader import GraphReader

_BETWEEN = "/"


def relation_rows(
    graph: GraphReader, edge_types: Sequence[str] = (), *, reverse: bool = True
) -> list[PartitionedCsr]:
    """Return the rows along which messages travel, each of one relation only.

    As :func:`~graphsys.sampling.message_rows`, but an edge type whose edges have relations
    gives rows for each of them, called ``TYPE/RELATION``. Those are copies in memory, 4
    bytes an entry (8 where there are 2**32 nodes), besides its other columns.

    Raises:
        UnknownNameError: There is no such edge type.
        ConfigError: The graph has no edge types.
    """
    found = []
    for rows in message_rows(graph, edge_types, reverse=reverse):
        names = graph.relations(rows.edge_type) or []
        found += [_only(rows, code, name) for code, name in enumerate(names)] or [rows]
    return found


def relation_name(rows_name: str) -> str:
    """Return the relation that rows are of, whichever way they run.

    Examples:
        >>> relation_name("also/bought:reversed")
        'also/bought'
    """
    return rows_name.removesuffix(REVERSED)


def relation_names(graph: GraphReader, edge_type: str) -> dict[str, int | None]:
    """Return the names of an edge type's relations, as rows have them, with their codes.

    The name of the edge type itself, without a code, where it has no relations.
    """
    names = graph.relations(edge_type) or []
    found: dict[str, int | None] = {
        edge_type + _BETWEEN + name: code for code, name in enumerate(names)
    }
    return found or {edge_type: None}


def _only(rows: PartitionedCsr, code: int, name: str) -> PartitionedCsr:
    """Return rows with the entries of one relation."""
    indexes, weights = [], []
    for part, index in enumerate(rows.indexes):
        is_kept = _column(index.relation, len(index.indices)) == code
        ends = np.concatenate([[0], np.cumsum(is_kept)])
        columns: dict[str, Any] = {
            field: None if column is None else column[is_kept]
            for field in ("indices", "weight", "relation", "time", "edge")
            for column in [getattr(index, field)]
        }
        indexes.append(Csr(indptr=ends[index.indptr.astype(np.int64)], **columns))
        if rows.has_weight:
            weights.append(rows.weights[part][is_kept])
    table, wide = address(indexes, weights)
    own = relation_name(rows.name)
    return dataclasses.replace(
        rows,
        name=own + _BETWEEN + name + rows.name.removeprefix(own),
        first_entry=np.cumsum([0, *(len(it.indices) for it in indexes)], dtype=np.int64),
        table=table,
        wide=wide,
        indexes=tuple(indexes),
        weights=tuple(weights),
    )


def _column(values: Any, count: int) -> Any:
    return np.zeros(count, dtype=np.int64) if values is None else values
