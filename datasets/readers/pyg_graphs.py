"""PyG's Data and HeteroData as sources."""

from collections.abc import Callable
from typing import Any

import torch

from graphsys.core.deps import require
from graphsys.core.errors import InputError
from graphsys.core.types import EDGE, NODE, EdgeType
from graphsys.datasets.array_source import (
    ArraySource,
    Values,
    edge_chunk,
    half_of,
    node_chunk,
)

pyg_data = require("torch_geometric.data", extra="pyg")


def source_of(data: Any, *, undirected: bool = False) -> ArraySource:
    """Return Data or HeteroData as a source; see ``interop.pyg.from_data``."""
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
