"""NetworkX graphs: nodes with their attributes, edges with theirs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from graphsys.core.errors import InputError, cut_list
from graphsys.core.types import EDGE, MAX_USER_ID
from graphsys.datasets.base import ReadOptions
from graphsys.datasets.columns import graph_column
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

CHUNK_EDGES: Final = 1 << 18
_NAMED: Final = (str, int, float, np.integer)


class NetworkXSource(Source):
    """The nodes and edges of a NetworkX graph of any of its four classes.

    Nodes are integers or strings, all of one kind. An attribute is a column where any
    node or edge has it, null where it is missing; ``weight`` is had by all edges or none.
    An attribute ``id`` is called ``edge_id`` or ``node_id``.

    Args:
        graph: The graph.
        options: Its ``edge_type`` and ``ids`` count; the graph says whether it is directed.
    """

    def __init__(self, graph: Any, options: ReadOptions) -> None:
        self.name = f"NetworkX {type(graph).__name__}"
        self.is_directed = bool(graph.is_directed()) and not options.is_undirected
        self._graph = graph
        self._edge_type = options.edge_type or EDGE
        if self._edge_type.src_type != self._edge_type.dst_type:
            raise InputError(f"{self.name}: has one type of nodes, got {self._edge_type}")
        self._is_text = self._has_names(options.ids)

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield all nodes, then the edges."""
        nodes = self._graph.nodes(data=True)
        if not len(nodes):
            raise InputError(f"{self.name}: the graph has no nodes, expected at least one")
        columns = self._columns("node", [attributes for _, attributes in nodes])
        yield NodeChunk(
            ids=self._ids([node for node, _ in nodes]),
            node_type=self._edge_type.src_type,
            columns=columns,
        )
        edges = list(self._graph.edges(data=True))
        attributes = self._columns("edge", [found for _, _, found in edges])
        src = self._ids([edge[0] for edge in edges])
        dst = self._ids([edge[1] for edge in edges])
        for first in range(0, len(edges), CHUNK_EDGES):
            part = slice(first, first + CHUNK_EDGES)
            yield EdgeChunk(
                src=src[part],
                dst=dst[part],
                edge_type=self._edge_type,
                columns={name: values[part] for name, values in attributes.items()},
            )

    def _has_names(self, ids: str) -> bool:
        """Tell whether ids are strings."""
        kinds = {type(node) for node in self._graph}
        is_integer = all(issubclass(kind, (int, np.integer)) for kind in kinds)
        is_text = all(issubclass(kind, str) for kind in kinds)
        can_be_text = all(issubclass(kind, _NAMED) for kind in kinds)
        if ids == "string" and can_be_text:
            return True
        if (
            bool in kinds
            or not (is_integer or is_text)
            or (ids == "int" and not is_integer)
        ):
            names = cut_list(sorted(kind.__name__ for kind in kinds))
            advice = "pass ids='string' (--ids string), or " if can_be_text else ""
            raise InputError(
                f"{self.name}: nodes are of type {names}, expected all integers or all "
                f"strings; {advice}rename them with networkx.relabel_nodes(graph, str)"
            )
        return ids == "string" or not is_integer

    def _ids(self, nodes: Sequence[Any]) -> Any:
        if self._is_text:
            return pa.array(
                [str(node) for node in nodes], type=pa.string()
            ).dictionary_encode()
        if wrong := [node for node in nodes if not 0 <= node <= MAX_USER_ID]:
            raise InputError(
                f"{self.name}: found {wrong[0]} as an id, expected an integer from 0 to "
                "2**63 - 1; --ids string takes it as a name"
            )
        return np.array(nodes, dtype=np.int64)

    def _columns(self, kind: str, rows: Sequence[Mapping[Any, Any]]) -> dict[str, Any]:
        """Turn attributes into columns."""
        names = dict.fromkeys(name for row in rows for name in row)
        if "id" in names:  # of a GEXF or Pajek file: the edge's own, or the node's number
            rows = [_renamed(row, f"{kind}_id") for row in rows]
            names = dict.fromkeys(f"{kind}_id" if it == "id" else it for it in names)
        columns: dict[str, Any] = {}
        for name in names:
            where = f"{self.name}: {kind} attribute {name!r}"
            if not isinstance(name, str) or name in ("src", "dst"):
                raise InputError(f"{where}: expected a name other than src and dst")
            if kind == "edge" and name == "weight":
                missing = sum(name not in row for row in rows)
                if missing:
                    raise InputError(
                        f"{where}: {missing} of {len(rows)} edges have none, expected "
                        "all or none "
                        "(NetworkX takes 1 there)"
                    )
            try:
                values = pa.array([row.get(name) for row in rows])
            except (pa.ArrowException, OverflowError) as err:
                what = " ".join(str(err).split())
                raise InputError(f"{where}: values of several types ({what})") from err
            columns[name] = graph_column(name, values, where) if kind == "edge" else values
        return columns


def _renamed(row: Mapping[Any, Any], name: str) -> dict[Any, Any]:
    """Call the attribute ``id`` otherwise: the column of ids has that name."""
    return {(name if key == "id" else key): value for key, value in row.items()}
