"""A store as PyG's Data or HeteroData in memory, and either as a store."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from graphsys.core.deps import require
from graphsys.core.errors import ConfigError, InputError
from graphsys.core.types import EDGE, NODE, EdgeType
from graphsys.datasets import ingest
from graphsys.interop.array_source import ArraySource, edge_chunk, half_of, node_chunk
from graphsys.interop.columns import (
    EdgeColumns,
    NodeColumns,
    Values,
    compressed,
    is_heterogeneous,
    relations,
)
from graphsys.sampling import NeighborRows
from graphsys.storage.reader import Graph

pyg_data = require("torch_geometric.data", extra="pyg")


def to_data(
    graph: Graph, *, label: str = "label", split: str = "split", reverse: bool = False
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
    graph: Graph, *, label: str = "label", split: str = "split", reverse: bool = False
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


def source_of(data: Any, *, undirected: bool = False) -> ArraySource:
    """Return Data or HeteroData as a source for ``gs.ingest``; see :func:`from_data`."""
    if isinstance(data, pyg_data.HeteroData):
        nodes = {name: data[name] for name in data.node_types}
        edges = {EdgeType(*kind): data[kind] for kind in data.edge_types}
    elif isinstance(data, pyg_data.Data):
        nodes, edges = {NODE: data}, {EDGE: data}
    else:
        raise InputError(f"got {type(data).__name__}, expected PyG's Data or HeteroData")
    whole: list[Any] = [
        node_chunk(name, int(part.num_nodes), _arrays(part, _is_of_nodes))
        for name, part in nodes.items()
    ]
    for kind, part in edges.items():
        if getattr(part, "edge_index", None) is None:
            raise InputError(
                f"edges {kind} have no edge_index; adj_t can be turned into one with "
                "torch_geometric.utils.to_edge_index"
            )
        src, dst = part.edge_index.cpu().numpy()
        columns = _arrays(part, lambda part, name: part.is_edge_attr(name))
        if undirected:
            kept = half_of(kind, src, dst)
            src, dst = src[kept], dst[kept]
            columns = {name: values[kept] for name, values in columns.items()}
        whole.append(edge_chunk(kind, src, dst, columns))
    return ArraySource(f"PyG {type(data).__name__}", whole, is_directed=not undirected)


def from_data(
    data: Any, path: str | os.PathLike[str], *, undirected: bool = False, **options: Any
) -> Graph:
    """Write PyG's Data or HeteroData as a store, and open it.

    Nodes have their places as ids, and keep that order (unless an option asks for another,
    or for partitions). ``x`` and other matrices of nodes become features,
    ``y`` the column ``label``, masks the column ``split`` (``val`` is ``valid``),
    ``edge_weight`` the weights, ``edge_time`` the times, ``edge_type`` the relations;
    ``edge_attr`` and other numbers per edge become columns. Tensors of the whole graph and
    what is no tensor are left out.

    Args:
        data: The graph.
        path: The new store's folder.
        undirected: Whether the edges, which are there in both directions, are stored as
            undirected ones: half as many, with the columns of the copy from the smaller
            place.
        **options: Of ``gs.ingest``: ``partitions``, ``overwrite`` and so on.

    Raises:
        InputError: Masks that overlap, arrays of the wrong length, or no edge_index.
    """
    options = {"order": "original", **options}
    ingest(source_of(data, undirected=undirected), path, **options)
    return Graph(path)


def _edge_index(rows: NeighborRows) -> torch.Tensor:
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


def _arrays(part: Any, is_wanted: Callable[[Any, str], bool]) -> dict[str, Values]:
    return {
        name: values.detach().cpu().numpy()
        for name, values in part.to_dict().items()
        if isinstance(values, torch.Tensor)
        and name not in ("edge_index", "num_nodes", "edge_label_index")
        and is_wanted(part, name)
    }


def _is_of_nodes(part: Any, name: str) -> bool:
    # these are of nodes whatever their length, which is then told to be wrong
    return name in ("x", "y") or name.endswith("_mask") or bool(part.is_node_attr(name))
