"""DGL's graphs as sources."""

from typing import Any

import numpy as np

from graphsys.core.deps import require_dgl
from graphsys.core.errors import InputError
from graphsys.core.types import EDGE, NODE, EdgeType
from graphsys.datasets.array_source import ArraySource, edge_chunk, half_of, node_chunk

dgl = require_dgl()


def source_of(graph: Any, *, undirected: bool = False) -> ArraySource:
    """Return DGL's graph as a source for ``gs.ingest``; see ``interop.dgl.from_dgl``."""
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


def _node_type(name: str) -> str:
    return NODE if name == "_N" else name


def _arrays(data: Any) -> dict[str, Any]:
    named = {dgl.ETYPE: "edge_type"}
    return {
        named.get(name, name): values.detach().cpu().numpy()
        for name, values in data.items()
        if name not in (dgl.NID, dgl.EID, dgl.NTYPE)
    }
