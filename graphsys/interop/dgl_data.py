"""A store as DGL's graph storage."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from graphsys.core.deps import require_dgl
from graphsys.core.errors import unknown_name
from graphsys.facade.columns import EdgeColumns, NodeColumns, relations
from graphsys.facade.to_dgl import NAMES, shown_in_dgl
from graphsys.storage.reader import GraphReader

dgl = require_dgl()


class GraphsysFeatureStorage(dgl.storages.FeatureStorage):  # type: ignore[misc,name-defined]  # untyped
    """One column of nodes or edges, fetched row by row from the store.

    Args:
        columns: The columns of a node type or of an edge type.
        name: Which, as :mod:`graphsys.facade.columns` calls it.
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
        graph: GraphReader,
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
                shown_in_dgl(it): GraphsysFeatureStorage(edges, it) for it in edges.names
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
