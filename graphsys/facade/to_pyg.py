"""A store as PyG's Data or HeteroData in memory."""

from typing import Any

import numpy as np
import torch

from graphsys.core.deps import require
from graphsys.core.errors import ConfigError
from graphsys.facade.columns import (
    EdgeColumns,
    NodeColumns,
    compressed,
    is_heterogeneous,
    relations,
)
from graphsys.sampling import PartitionedCsr
from graphsys.storage.reader import GraphReader

pyg_data = require("torch_geometric.data", extra="pyg")


def to_data(
    graph: GraphReader, *, label: str = "label", split: str = "split", reverse: bool = False
) -> Any:
    """Return a graph with one type of nodes and one of edges as PyG's Data.

    Everything is a copy in memory: ``x`` float32, ``edge_index`` int64 sorted by
    destination, which undirected edges are in both ways; ``y``, ``train_mask``,
    ``val_mask``, ``test_mask``, ``edge_weight`` and other numeric columns where they exist.
    Edge k is what samplers call k, so loaders over Data with :class:`GraphsysSampler` fetch
    columns of edges.

    Raises:
        ConfigError: The graph has several types.
    """
    kinds = relations(graph, reverse=reverse)
    if is_heterogeneous(graph, kinds):
        raise ConfigError(
            f"{graph.path} has node types {', '.join(graph.node_types)} and edges "
            f"{', '.join(map(str, kinds))}, expected one of each; use to_hetero_data"
        )
    (rows,) = kinds.values()
    data = pyg_data.Data(edge_index=_edge_index(rows))
    _fill_nodes(data, NodeColumns(graph, graph.node_types[0], label=label, split=split))
    _fill_edges(data, EdgeColumns(graph, rows))
    return data


def to_hetero_data(
    graph: GraphReader, *, label: str = "label", split: str = "split", reverse: bool = False
) -> Any:
    """Return any graph as PyG's HeteroData: :func:`to_data`'s columns type by type.

    Everything is a copy in memory.
    """
    data = pyg_data.HeteroData()
    for name in graph.node_types:
        _fill_nodes(data[name], NodeColumns(graph, name, label=label, split=split))
    for kind, rows in relations(graph, reverse=reverse).items():
        data[tuple(kind)].edge_index = _edge_index(rows)
        _fill_edges(data[tuple(kind)], EdgeColumns(graph, rows))
    return data


def _edge_index(rows: PartitionedCsr) -> torch.Tensor:
    indptr, indices = compressed(rows, np.int64)
    col = np.repeat(np.arange(rows.num_nodes), np.diff(indptr))
    return torch.from_numpy(np.stack([indices, col]))


def _fill_nodes(part: Any, columns: NodeColumns) -> None:
    for name in columns.names:
        part[name] = torch.from_numpy(columns.get(name))
    part.num_nodes = columns.num_nodes


def _fill_edges(part: Any, columns: EdgeColumns) -> None:
    for name in columns.names:
        part[name] = torch.from_numpy(columns.get(name))
