"""A store as DGL's graph or as its graph storage, and DGL's graphs as stores."""

import os
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from graphsys.core.errors import InputError, unknown_name
from graphsys.core.types import EDGE, NODE, EdgeType
from graphsys.datasets import ingest
from graphsys.interop.array_source import ArraySource, edge_chunk, half_of, node_chunk
from graphsys.interop.columns import EdgeColumns, NodeColumns, compressed, relations
from graphsys.interop.dgl_package import dgl
from graphsys.storage.reader import Graph

NAMES = {"x": "feat", "y": "label"}  # of PyG's columns in DGL


def to_dgl(
    graph: Graph,
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
            made.edges[tuple(kind)].data[_shown(column)] = _tensor(edges.get(column))
    return made


def source_of(graph: Any, *, undirected: bool = False) -> ArraySource:
    """Return DGL's graph as a source for ``gs.ingest``; see :func:`from_dgl`."""
    if not isinstance(graph, dgl.DGLGraph):
        raise InputError(f"got {type(graph).__name__}, expected a DGLGraph")
    whole: list[Any] = []
    for name in graph.ntypes:
        data = graph.nodes[name].data
        whole.append(node_chunk(_node_type(name), graph.num_nodes(name), _arrays(data)))
    for each in graph.canonical_etypes:
        kind = EdgeType(_node_type(each[0]), each[1], _node_type(each[2]))
        kind = EDGE if each == ("_N", "_E", "_N") else kind
        ends = graph.edges(etype=each, order="eid")
        src, dst = (end.cpu().numpy().astype(np.int64) for end in ends)
        columns = _arrays(graph.edges[each].data)
        if undirected:
            kept = half_of(kind, src, dst)
            src, dst = src[kept], dst[kept]
            columns = {name: values[kept] for name, values in columns.items()}
        whole.append(edge_chunk(kind, src, dst, columns))
    return ArraySource("DGLGraph", whole, is_directed=not undirected)


def from_dgl(
    graph: Any, path: str | os.PathLike[str], *, undirected: bool = False, **options: Any
) -> Graph:
    """Write DGL's graph as a store, and open it.

    Nodes have their places as ids, and keep that order (unless an option asks for another,
    or for partitions). Matrices of nodes become features, ``label`` stays, masks become the
    column ``split`` (``val`` is ``valid``); ``weight``, ``time`` and other numbers per edge
    become columns.

    Args:
        graph: A homogeneous or heterogeneous DGLGraph.
        path: The new store's folder.
        undirected: Whether the edges, which are there in both directions, are stored as
            undirected ones: half as many, with the columns of the copy from the smaller
            place.
        **options: Of ``gs.ingest``: ``partitions``, ``overwrite`` and so on.

    Raises:
        InputError: Masks that overlap, or arrays of more than two dimensions.
    """
    options = {"order": "original", **options}
    ingest(source_of(graph, undirected=undirected), path, **options)
    return Graph(path)


class GraphsysFeatureStorage(dgl.storages.FeatureStorage):  # type: ignore[misc,name-defined]  # untyped
    """One column of nodes or edges, fetched row by row from the store.

    Args:
        columns: The columns of a node type or of an edge type.
        name: Which, as :mod:`graphsys.interop.columns` calls it.
    """

    def __init__(self, columns: NodeColumns | EdgeColumns, name: str) -> None:
        self._columns, self._name = columns, name

    def fetch(
        self, indices: Any, device: Any, pin_memory: bool | None = False, **kwargs: Any
    ) -> torch.Tensor:
        """Return the rows of nodes, or of edges by ``dgl.EID``; a copy."""
        del kwargs
        numbers = indices.cpu().numpy().astype(np.int64, copy=False)
        rows = torch.from_numpy(self._columns.get(self._name, numbers))
        if pin_memory:
            rows = rows.pin_memory()
        return rows.to(device, non_blocking=bool(pin_memory))


class GraphsysStorage:
    """What DGL's DataLoader takes as a graph: columns to prefetch, straight from the store.

    Nodes have ``feat``, ``label`` and masks, edges ``weight``, ``time`` and other numbers.

    Args:
        graph: An open graph.
        label: Column of the labels.
        split: Column of the splits.
        reverse: As the sampler has it.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        label: str = "label",
        split: str = "split",
        reverse: bool = False,
    ) -> None:
        self.device = torch.device("cpu")
        self.ntypes = graph.node_types
        self._nodes: dict[str, dict[str, GraphsysFeatureStorage]] = {}
        for name in graph.node_types:
            nodes = NodeColumns(graph, name, label=label, split=split)
            self._nodes[name] = {
                NAMES.get(it, it): GraphsysFeatureStorage(nodes, it) for it in nodes.names
            }
        self._edges: dict[Any, dict[str, GraphsysFeatureStorage]] = {}
        for kind, rows in relations(graph, reverse=reverse).items():
            edges = EdgeColumns(graph, rows)
            self._edges[tuple(kind)] = {
                _shown(it): GraphsysFeatureStorage(edges, it) for it in edges.names
            }
        self.canonical_etypes = list(self._edges)

    def get_node_storage(self, key: str, ntype: Any = None) -> GraphsysFeatureStorage:
        """Return a column of nodes.

        Raises:
            UnknownNameError: There is no such type or column.
        """
        return _found(self._nodes, ntype, key, "node type")

    def get_edge_storage(self, key: str, etype: Any = None) -> GraphsysFeatureStorage:
        """Return a column of edges.

        Raises:
            UnknownNameError: There is no such type or column.
        """
        return _found(self._edges, etype, key, "edge type")


def _found(
    known: Mapping[Any, Mapping[str, GraphsysFeatureStorage]],
    kind: Any,
    key: str,
    what: str,
) -> GraphsysFeatureStorage:
    if kind is None and len(known) == 1:
        (kind,) = known
    if kind not in known:
        raise unknown_name(what, str(kind), map(str, known))
    if key not in known[kind]:
        raise unknown_name(f"column of {what} {kind}", key, known[kind])
    return known[kind][key]


def _shown(column: str) -> str:
    if column == "edge_type":
        return dgl.ETYPE  # type: ignore[no-any-return]  # DGL has no types
    return column if column == "edge_attr" else column.removeprefix("edge_")


def _node_type(name: str) -> str:
    return NODE if name == "_N" else name


def _arrays(data: Any) -> dict[str, Any]:
    named = {dgl.ETYPE: "edge_type"}
    return {
        named.get(name, name): values.detach().cpu().numpy()
        for name, values in data.items()
        if name not in (dgl.NID, dgl.EID, dgl.NTYPE)
    }


def _tensor(values: Any) -> torch.Tensor:
    with warnings.catch_warnings():  # mapped files are read-only, and DGL never writes
        warnings.filterwarnings("ignore", message="The given NumPy array is not writ")
        return torch.from_numpy(values)
