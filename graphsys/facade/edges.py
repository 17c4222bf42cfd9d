"""Edges as tables, matrices and tensors, and as graphs and frames of other libraries."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.deps import require
from graphsys.core.errors import ConfigError
from graphsys.core.notebook.tables import html_table
from graphsys.storage.reader import GraphReader
from graphsys.storage.views import EdgeBucket
from graphsys.storage.write.times import typed

if TYPE_CHECKING:
    import torch

Ints = npt.NDArray[np.int64]
_ROWS: Final = ("relation", "weight", "time")


def edge_chunks(
    graph: GraphReader, edge_type: str | None, split: str | None, *, is_dated: bool = True
) -> Iterator[pa.Table]:
    """Yield the edges bucket by bucket; times as timestamps where they have a unit."""
    for name in edge_names(graph, edge_type):
        for src, dst, bucket in edges_by_bucket(graph, name, split):
            yield _table(graph, name, src, dst, bucket, is_dated=is_dated)


def _table(
    graph: GraphReader,
    name: str,
    src: Ints,
    dst: Ints,
    bucket: EdgeBucket,
    *,
    is_dated: bool,
) -> pa.Table:
    """Return the edges of a bucket, whose ends have the numbers ``src`` and ``dst``."""
    kind, relations = graph.edge_type(name), graph.relations(name)
    columns = {
        "src": graph.ids_of(kind.src_type, src),
        "dst": graph.ids_of(kind.dst_type, dst),
        "edge_type": pa.array([name]).take(pa.array(np.zeros(len(src), np.int8))),
    }
    if bucket.relation is not None and relations is not None:
        codes = pa.array(bucket.relation)
        columns["relation"] = pa.array(relations, pa.string()).take(codes)
    if bucket.weight is not None:
        columns["weight"] = pa.array(bucket.weight)
    if bucket.time is not None:
        unit = graph.time_unit(name) if is_dated else ""
        columns["time"] = typed(bucket.time, unit)
    return pa.table({**columns, **bucket.columns})


def _no_edges(graph: GraphReader, name: str) -> pa.Table:
    """Return no edges with the columns that edges of the type have, in any split."""
    none = np.empty(0, dtype=np.int64)
    further = {*graph.manifest.edge_types[name].columns} - set(_ROWS)
    buckets = (
        graph.bucket(name, i, j, split)
        for split in graph.splits(name)
        for i, j in np.ndindex(graph.bucket_counts(name, split).shape)
    )
    filled = (it for it in buckets if further <= set(it.columns))
    bucket = next(filled, graph.bucket(name, 0, 0))
    columns = {key: values.slice(0, 0) for key, values in bucket.columns.items()}
    rows = {
        key: values[:0] for key in _ROWS if (values := getattr(bucket, key)) is not None
    }
    bucket = EdgeBucket(src=none, dst=none, columns=columns, **rows)
    return _table(graph, name, none, none, bucket, is_dated=True)


def edges_by_bucket(
    graph: GraphReader, name: str, split: str | None
) -> Iterator[tuple[Ints, Ints, EdgeBucket]]:
    """Yield numbers of both ends and the bucket."""
    kind = graph.edge_type(name)
    first, other = graph.offsets(kind.src_type), graph.offsets(kind.dst_type)
    for i, j in graph.buckets(name, split):
        bucket = graph.bucket(name, i, j, split)
        yield bucket.src + first[i], bucket.dst + other[j], bucket


def edge_index(graph: GraphReader, edge_type: str | None) -> "torch.Tensor":
    """Return edges as a tensor."""
    import torch

    src, dst, _ = _ends(graph, _only(graph, edge_type))
    return torch.from_numpy(np.stack([src, dst]).astype(np.int64))


def to_scipy(graph: GraphReader, edge_type: str | None) -> Any:
    """Return edges as a CSR array."""
    from scipy.sparse import coo_array

    name = _only(graph, edge_type)
    kind, (src, dst, weight) = graph.edge_type(name), _ends(graph, name)
    shape = (graph.num_nodes_of(kind.src_type), graph.num_nodes_of(kind.dst_type))
    values = np.ones(len(src)) if weight is None else weight
    return coo_array((values, (src, dst)), shape=shape).tocsr()


def _ends(graph: GraphReader, name: str) -> tuple[Ints, Ints, npt.NDArray[Any] | None]:
    """Return both ends of all training edges, undirected ones both ways, and weights."""
    found = list(edges_by_bucket(graph, name, None))
    none = np.empty(0, dtype=np.int64)
    src = np.concatenate([none, *(s for s, _, _ in found)])
    dst = np.concatenate([none, *(d for _, d, _ in found)])
    weights = [b.weight for _, _, b in found if b.weight is not None]
    weight = np.concatenate(weights) if weights else None
    kind = graph.edge_type(name)
    if not graph.is_directed_type(name) and kind.src_type == kind.dst_type:
        back = src != dst
        src, dst = np.concatenate([src, dst[back]]), np.concatenate([dst, src[back]])
        weight = None if weight is None else np.concatenate([weight, weight[back]])
    return src, dst, weight


def _whole(graph: GraphReader, edge_type: str | None, split: str | None) -> pa.Table:
    tables: list[pa.Table] = []
    for name in edge_names(graph, edge_type):
        tables += list(edge_chunks(graph, name, split)) or [_no_edges(graph, name)]
    if not tables:
        return pa.table({"src": [], "dst": [], "edge_type": []})
    return pa.concat_tables(tables, promote_options="permissive")


def to_pandas(graph: GraphReader, edge_type: str | None, split: str | None) -> Any:
    """Return edges as a pandas data frame."""
    require("pandas", extra="all")
    return _whole(graph, edge_type, split).to_pandas()


def to_polars(graph: GraphReader, edge_type: str | None, split: str | None) -> Any:
    """Return edges as a Polars data frame."""
    return require("polars", extra="all").from_arrow(_whole(graph, edge_type, split))


def to_networkx(graph: GraphReader, split: str | None) -> Any:
    """Return a NetworkX multigraph."""
    nx = require("networkx", extra="all")
    has_types = len(graph.node_types) > 1

    def key(node_type: str, node: Any) -> Any:
        return (node_type, node) if has_types else node

    made = nx.MultiDiGraph() if graph.is_directed else nx.MultiGraph()
    for name in graph.node_types:
        for part in range(graph.num_partitions(name)):
            for row in graph.nodes(name, part).to_pylist():
                made.add_node(key(name, row.pop("id")), **row)
    for name in edge_names(graph, None):
        kind = graph.edge_type(name)
        for table in edge_chunks(graph, name, split, is_dated=False):
            for row in table.to_pylist():
                ends = (
                    key(kind.src_type, row.pop("src")),
                    key(kind.dst_type, row.pop("dst")),
                )
                made.add_edge(*ends, **row)
                if graph.is_directed and not graph.is_directed_type(name):
                    made.add_edge(*ends[::-1], **row)
    return made


def to_html(graph: GraphReader) -> str:
    """Return what a notebook shows: types and how many there are."""
    rows = [("nodes", name, graph.num_nodes_of(name)) for name in graph.node_types]
    rows += [("edges", name, graph.num_edges_of(name)) for name in edge_names(graph, None)]
    return html_table(str(graph.path), rows)


def edge_names(graph: GraphReader, edge_type: str | None) -> Sequence[str]:
    """Return an edge type's name, or those of all."""
    if edge_type is not None:
        return [graph.edge_type_name(edge_type)]
    return list(graph.manifest.edge_types)


def _only(graph: GraphReader, edge_type: str | None) -> str:
    names = edge_names(graph, edge_type)
    if len(names) != 1:
        raise ConfigError(f"edge_type: {', '.join(names) or 'none'}; give one of them")
    return names[0]
