"""A store as DGL's graph."""

import warnings
from typing import Any

import numpy as np
import torch

from graphsys.core.deps import require_dgl
from graphsys.facade.columns import EdgeColumns, NodeColumns, compressed, relations
from graphsys.storage.reader import GraphReader

dgl = require_dgl()

NAMES = {"x": "feat", "y": "label"}  # of PyG's columns in DGL


def to_dgl(
    graph: GraphReader,
    *,
    idtype: torch.dtype | None = None,
    label: str = "label",
    split: str = "split",
    reverse: bool = False,
) -> Any:
    """Return a graph as DGL's, with types called as in the store.

    With int32 ids and one partition the rows are views of the mapped files; else they are
    copies, as are ``feat`` (float32), ``label``, ``train_mask``, ``val_mask``,
    ``test_mask``, ``weight``, ``time`` and other numeric columns. Undirected edges are
    there in both directions. Edge k is what samplers call k.

    Args:
        graph: An open graph.
        idtype: torch.int32 or torch.int64; by default int32 where it suffices.
        label: Column of the labels.
        split: Column of the splits.
        reverse: Whether directed edges are traveled both ways; edges against a type are
            of type ``(dst, rev_NAME, src)``.

    Raises:
        ConfigError: A graph too large for the ids.
    """
    kinds = relations(graph, reverse=reverse)
    largest = max(
        max(rows.num_entries, rows.num_nodes, rows.num_neighbors) for rows in kinds.values()
    )
    if idtype is None:
        idtype = torch.int32 if largest < 2**31 else torch.int64
    dtype = np.int32 if idtype == torch.int32 else np.int64
    arrays = {}
    for kind, rows in kinds.items():
        indptr, indices = map(_tensor, compressed(rows, dtype))
        arrays[tuple(kind)] = ("csc", (indptr, indices, torch.empty(0, dtype=idtype)))
    counts = {name: graph.num_nodes_of(name) for name in graph.node_types}
    made = dgl.heterograph(arrays, num_nodes_dict=counts)
    for name in graph.node_types:
        nodes = NodeColumns(graph, name, label=label, split=split)
        for column in nodes.names:
            shown = NAMES.get(column, column)
            made.nodes[name].data[shown] = torch.from_numpy(nodes.get(column))
    for kind, rows in kinds.items():
        edges = EdgeColumns(graph, rows)
        for column in edges.names:
            made.edges[tuple(kind)].data[shown_in_dgl(column)] = _tensor(edges.get(column))
    return made


def shown_in_dgl(column: str) -> str:
    """Return the name that a column of edges has in DGL."""
    if column == "edge_type":
        return dgl.ETYPE  # type: ignore[no-any-return]  # DGL has no types
    return column if column == "edge_attr" else column.removeprefix("edge_")


def _tensor(values: Any) -> torch.Tensor:
    with warnings.catch_warnings():  # mapped files are read-only, and DGL never writes
        warnings.filterwarnings("ignore", message="The given NumPy array is not writ")
        return torch.from_numpy(values)
