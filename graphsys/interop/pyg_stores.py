"""A store as PyG's feature store and graph store."""

from typing import Any

import numpy as np
import torch

from graphsys.core.deps import require
from graphsys.core.errors import ConfigError, unknown_name
from graphsys.core.types import EdgeType
from graphsys.facade.columns import (
    EdgeColumns,
    Ints,
    NodeColumns,
    Values,
    compressed,
    is_heterogeneous,
    relations,
)
from graphsys.storage.reader import GraphReader

pyg_data = require("torch_geometric.data", extra="pyg")


class GraphsysFeatureStore(pyg_data.FeatureStore):  # type: ignore[misc,name-defined]  # PyG is untyped
    """Features, labels and splits of nodes: ``x``, ``y``, ``train_mask`` and so on.

    ``x`` stays in the mapped files, and a batch's rows are gathered from there (float32,
    a copy); ``y`` and the masks are read into memory at first use. Columns of edges can be
    asked for (the group is the edge type), but are not among
    :meth:`get_all_tensor_attrs`, since PyG's loaders do not fetch them; see
    :class:`EdgeAttributes`.

    A graph with one type of nodes and one of edges is homogeneous: groups are None.

    Args:
        graph: An open graph.
        label: Column of the labels.
        split: Column of the splits.
        reverse: Whether directed edges are traveled both ways; as the sampler has it.

    Examples:
        >>> import graphsys as gs, numpy as np, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> _ = gs.ingest({"src": [0, 1, 2], "dst": [1, 2, 0]}, folder + "/g")
        >>> graph = gs.open(folder + "/g")
        >>> data = stores(graph)
        >>> [attr.size for attr in data[1].get_all_edge_attrs()]
        [(3, 3)]
    """

    def __init__(
        self,
        graph: GraphReader,
        *,
        label: str = "label",
        split: str = "split",
        reverse: bool = False,
    ) -> None:
        super().__init__()
        kinds = relations(graph, reverse=reverse)
        self.is_hetero = is_heterogeneous(graph, kinds)
        self._nodes = {
            (name if self.is_hetero else None): NodeColumns(
                graph, name, label=label, split=split
            )
            for name in graph.node_types
        }
        self._edges: dict[Any, EdgeColumns] = {
            (tuple(kind) if self.is_hetero else "edge"): EdgeColumns(graph, rows)
            for kind, rows in kinds.items()
        }

    def nodes_of(self, split: str, node_type: str | None = None) -> Any:
        """Return the nodes of a split as NodeLoader's ``input_nodes`` takes them.

        Args:
            split: ``train``, ``valid``, ``test`` or another.
            node_type: The type; by default the only one that has splits.

        Raises:
            UnknownNameError: There is no such split.
            ConfigError: Several types have it, and none was chosen.
        """
        name = "val_mask" if split == "valid" else f"{split}_mask"
        having = [each for each, nodes in self._nodes.items() if name in nodes.names]
        if node_type is not None and self.is_hetero:
            having = [each for each in having if each == node_type]
        if not having:
            known = {it for nodes in self._nodes.values() for it in nodes.names}
            raise unknown_name("split", name, {it for it in known if "_mask" in it})
        if len(having) > 1:
            raise ConfigError(
                f"split {split!r}: node types {', '.join(map(str, having))} have it; "
                "choose one with node_type"
            )
        found = torch.from_numpy(np.flatnonzero(self._nodes[having[0]].get(name)))
        return (having[0], found) if self.is_hetero else found

    def get_all_tensor_attrs(self) -> list[Any]:
        """Return the columns of nodes, as fresh objects (loaders change them)."""
        return [
            pyg_data.TensorAttr(group, name)
            for group, nodes in self._nodes.items()
            for name in nodes.names
        ]

    def _get_tensor(self, attr: Any) -> Any:
        columns = self._columns(attr.group_name)
        rows = len_of(columns)
        return torch.from_numpy(columns.get(attr.attr_name, _numbers(attr.index, rows)))

    def _get_tensor_size(self, attr: Any) -> tuple[int, ...]:
        columns = self._columns(attr.group_name)
        if isinstance(columns, NodeColumns):
            return columns.size(attr.attr_name)
        return columns.get(attr.attr_name).shape

    def _columns(self, group: Any) -> NodeColumns | EdgeColumns:
        key = tuple(group) if isinstance(group, tuple) else group
        known: dict[Any, Any] = {**self._nodes, **self._edges}
        if key not in known:
            raise unknown_name("group of features", str(group), map(str, known))
        found: NodeColumns | EdgeColumns = known[key]
        return found

    def _put_tensor(self, tensor: Any, attr: Any) -> bool:
        return False  # a store is only read

    def _remove_tensor(self, attr: Any) -> bool:
        return False


class GraphsysGraphStore(pyg_data.GraphStore):  # type: ignore[misc,name-defined]  # PyG is untyped
    """The edges of every type in compressed columns (``csc``).

    They are copied to int64 when they are asked for, which loaders with our sampler never
    do. Entry k of an edge type is the edge that samplers call k.

    Args:
        graph: An open graph.
        reverse: Whether directed edges are traveled both ways; as the sampler has it.
    """

    def __init__(self, graph: GraphReader, *, reverse: bool = False) -> None:
        super().__init__()
        self._kinds = relations(graph, reverse=reverse)
        self.is_hetero = is_heterogeneous(graph, self._kinds)

    def get_all_edge_attrs(self) -> list[Any]:
        """Return the edge types with their sizes."""
        return [
            pyg_data.EdgeAttr(
                tuple(kind) if self.is_hetero else None,
                layout="csc",
                is_sorted=True,
                size=(rows.num_neighbors, rows.num_nodes),
            )
            for kind, rows in self._kinds.items()
        ]

    def _get_edge_index(self, edge_attr: Any) -> Any:
        if edge_attr.layout.value != "csc":
            return None
        kind = edge_attr.edge_type
        if kind is None and not self.is_hetero:
            (rows,) = self._kinds.values()
        elif kind is not None and EdgeType(*kind) in self._kinds:
            rows = self._kinds[EdgeType(*kind)]
        else:
            raise unknown_name("edge type", str(kind), map(str, self._kinds))
        indptr, indices = compressed(rows, np.int64)
        return torch.from_numpy(indices), torch.from_numpy(indptr)

    def _put_edge_index(self, edge_index: Any, edge_attr: Any) -> bool:
        return False  # a store is only read

    def _remove_edge_index(self, edge_attr: Any) -> bool:
        return False


def stores(
    graph: GraphReader, *, label: str = "label", split: str = "split", reverse: bool = False
) -> tuple[GraphsysFeatureStore, GraphsysGraphStore]:
    """Return the feature store and the graph store that PyG's loaders take as data."""
    features = GraphsysFeatureStore(graph, label=label, split=split, reverse=reverse)
    return features, GraphsysGraphStore(graph, reverse=reverse)


class EdgeAttributes:
    """A loader's ``transform`` that gives batches the columns of their edges, by ``e_id``.

    Args:
        graph: An open graph.
        names: Columns (``edge_weight``, ``edge_time``, ``edge_attr`` ...); by default all
            numeric ones.
        reverse: Whether directed edges are traveled both ways; as the sampler has it.

    Raises:
        UnknownNameError: No edge type has such a column.
    """

    def __init__(
        self, graph: GraphReader, names: tuple[str, ...] = (), *, reverse: bool = False
    ) -> None:
        kinds = relations(graph, reverse=reverse)
        self._is_hetero = is_heterogeneous(graph, kinds)
        self._columns = {
            tuple(kind): EdgeColumns(graph, rows) for kind, rows in kinds.items()
        }
        known = {name for columns in self._columns.values() for name in columns.names}
        for name in names:
            if name not in known:
                raise unknown_name("column of edges", name, known)
        self.names = names or tuple(sorted(known))

    def __call__(self, batch: Any) -> Any:
        """Return the batch, with the columns."""
        for kind, columns in self._columns.items():
            if self._is_hetero and kind not in batch.edge_types:
                continue
            part = batch[kind] if self._is_hetero else batch
            for name in self.names:
                if name in columns.names:
                    part[name] = torch.from_numpy(columns.get(name, part.e_id.numpy()))
        return batch


def len_of(columns: NodeColumns | EdgeColumns) -> int:
    """Return how many rows a column has."""
    return columns.num_nodes if isinstance(columns, NodeColumns) else columns.num_entries


def _numbers(index: Any, length: int) -> Ints | None:
    """Return the numbers that an index of PyG's means; None for all."""
    if index is None:
        return None
    if isinstance(index, torch.Tensor):
        index = index.cpu().numpy()
    if isinstance(index, slice):
        return np.arange(length)[index]
    numbers: Values = np.atleast_1d(index)
    return np.flatnonzero(numbers) if numbers.dtype == np.bool_ else numbers
