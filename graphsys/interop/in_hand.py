"""The answers behind the methods of :class:`graphsys.storage.in_hand.InHand`."""

import html
import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.arrays import distinct
from graphsys.core.deps import require
from graphsys.core.errors import ConfigError
from graphsys.core.types import EdgeType
from graphsys.datasets.temporary import temporary_graph
from graphsys.storage.ingest.ingest import ingest
from graphsys.storage.reader import Graph
from graphsys.storage.source import EdgeChunk, NodeChunk, Source
from graphsys.storage.write.times import typed

Ints = npt.NDArray[np.int64]


def neighbors(
    graph: Graph, node: Any, node_type: str | None, edge_type: str | None, direction: str
) -> list[Any]:
    """Return the ids of a node's neighbors."""
    rows = _rows(graph, node, node_type, edge_type, direction)
    return [key for other, numbers in rows for key in _ids(graph, other, numbers)]


def degree(
    graph: Graph, node: Any, node_type: str | None, edge_type: str | None, direction: str
) -> int:
    """Return how many there are."""
    rows = _rows(graph, node, node_type, edge_type, direction)
    return sum(len(numbers) for _, numbers in rows)


def _rows(
    graph: Graph, node: Any, node_type: str | None, edge_type: str | None, direction: str
) -> Iterator[tuple[str, Ints]]:
    """Yield the neighbors' type and numbers, edge type by edge type."""
    if direction not in ("out", "in", "both"):
        raise ConfigError(f"direction: got {direction!r}, expected one of out, in, both")
    own = _the_type(graph, node_type)
    number = int(graph.lookup(own, [node])[0])
    part = int(np.searchsorted(graph.offsets(own), number, side="right")) - 1
    local = number - int(graph.offsets(own)[part])
    for name in _names(graph, edge_type):
        kind = graph.edge_type(name)
        is_alike = not graph.is_directed_type(name) and kind.src_type == kind.dst_type
        sides = {"out": direction != "in", "in": direction != "out" and not is_alike}
        if is_alike or not graph.is_directed_type(name):
            sides = {"out": True, "in": not is_alike}
        for side, is_wanted in sides.items():
            end, other = (kind[0], kind[2]) if side == "out" else (kind[2], kind[0])
            if is_wanted and end == own:
                read = graph.out_index if side == "out" else graph.in_index
                index = read(name, part)
                row = slice(int(index.indptr[local]), int(index.indptr[local + 1]))
                yield other, index.indices[row].astype(np.int64)


def edge_chunks(
    graph: Graph, edge_type: str | None, split: str | None, *, is_dated: bool = True
) -> Iterator[pa.Table]:
    """Yield the edges bucket by bucket; times as timestamps where they have a unit."""
    for name in _names(graph, edge_type):
        kind, relations = graph.edge_type(name), graph.relations(name)
        for src, dst, bucket in _buckets(graph, name, split):
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
            yield pa.table({**columns, **bucket.columns})


def _buckets(
    graph: Graph, name: str, split: str | None
) -> Iterator[tuple[Ints, Ints, Any]]:
    """Yield numbers of both ends and the bucket."""
    kind = graph.edge_type(name)
    first, other = graph.offsets(kind.src_type), graph.offsets(kind.dst_type)
    for i, j in graph.buckets(name, split):
        bucket = graph.bucket(name, i, j, split)
        yield bucket.src + first[i], bucket.dst + other[j], bucket


def subgraph(graph: Graph, nodes: Any, out: Any) -> Graph:
    """Return the graph of some nodes."""
    if not isinstance(nodes, Mapping):
        nodes = {_the_type(graph, None): nodes}
    chosen = {name: graph.lookup(name, list(ids)) for name, ids in nodes.items()}
    found = {name: distinct(n).astype(np.int64) for name, n in chosen.items()}
    return _stored(_Part(graph, found), out)


def sample(graph: Graph, num_nodes: int, seed: int, out: Any) -> Graph:
    """Return the graph of nodes drawn uniformly."""
    if num_nodes < 1:
        raise ConfigError(f"num_nodes: got {num_nodes}, expected an int >= 1")
    rng, total = np.random.default_rng(seed), graph.num_nodes
    drawn = np.sort(rng.choice(total, min(num_nodes, total), replace=False))
    found, first = {}, 0
    for name in graph.node_types:
        size = graph.num_nodes_of(name)
        found[name] = drawn[(drawn >= first) & (drawn < first + size)] - first
        first += size
    return _stored(_Part(graph, found), out)


def _stored(source: Source, out: Any) -> Graph:
    return temporary_graph(source) if out is None else ingest(source, Path(out)).graph


class _Part(Source):
    """Some nodes of a graph, with all that they have, and the edges between them."""

    def __init__(self, graph: Graph, nodes: Mapping[str, Ints]) -> None:
        kinds = [
            name for name in _names(graph, None) if self._is_within(graph, name, nodes)
        ]
        if len({graph.is_directed_type(name) for name in kinds}) > 1:
            raise ConfigError(
                f"edge types {', '.join(kinds)}: directed and undirected ones; give nodes "
                "of fewer types"
            )
        self.name, self._graph, self._nodes = f"a part of {graph.path}", graph, nodes
        self._kinds = kinds
        self.is_directed = not kinds or graph.is_directed_type(kinds[0])

    @staticmethod
    def _is_within(graph: Graph, name: str, nodes: Mapping[str, Ints]) -> bool:
        kind = graph.edge_type(name)
        return kind.src_type in nodes and kind.dst_type in nodes

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield nodes partition by partition, then edges bucket by bucket."""
        graph = self._graph
        for name, numbers in self._nodes.items():
            offsets = graph.offsets(name)
            for part in range(len(offsets) - 1):
                own = numbers[(numbers >= offsets[part]) & (numbers < offsets[part + 1])]
                if not len(own):
                    continue
                local = own - offsets[part]
                table = graph.nodes(name, part).take(pa.array(local)).combine_chunks()
                features = {
                    key: self._rows(graph.features(name, part, key), local)
                    for key in graph.feature_names(name)
                }
                columns = {c: table.column(c) for c in table.column_names if c != "id"}
                yield NodeChunk(
                    ids=_plain(table.column("id")),
                    node_type=name,
                    columns=columns,
                    features=features,
                )
        for name in self._kinds:
            for split in graph.splits(name):
                yield from self._edges(name, graph.edge_type(name), split)

    def _edges(self, name: str, kind: EdgeType, split: str) -> Iterator[EdgeChunk]:
        inside = {
            end: np.isin(np.arange(self._graph.num_nodes_of(end)), self._nodes[end])
            for end in (kind.src_type, kind.dst_type)
        }
        buckets = _buckets(self._graph, name, split)
        tables = edge_chunks(self._graph, name, split)
        for (src, dst, _), table in zip(buckets, tables, strict=True):
            is_kept = inside[kind.src_type][src] & inside[kind.dst_type][dst]
            kept = table.filter(pa.array(is_kept)).drop_columns(["edge_type"])
            columns = {c: kept.column(c) for c in kept.column_names[2:]}
            yield EdgeChunk(
                src=_plain(kept.column("src")),
                dst=_plain(kept.column("dst")),
                edge_type=kind,
                split=split,
                columns=columns,
            )

    @staticmethod
    def _rows(rows: Any, local: Ints) -> Any:
        return rows[local] if isinstance(rows, np.ndarray) else rows.take(pa.array(local))


def edge_index(graph: Graph, edge_type: str | None) -> Any:
    """Return edges as a tensor."""
    import torch

    src, dst, _ = _ends(graph, _only(graph, edge_type))
    return torch.from_numpy(np.stack([src, dst]).astype(np.int64))


def to_scipy(graph: Graph, edge_type: str | None) -> Any:
    """Return edges as a CSR array."""
    from scipy.sparse import coo_array

    name = _only(graph, edge_type)
    kind, (src, dst, weight) = graph.edge_type(name), _ends(graph, name)
    shape = (graph.num_nodes_of(kind.src_type), graph.num_nodes_of(kind.dst_type))
    values = np.ones(len(src)) if weight is None else weight
    return coo_array((values, (src, dst)), shape=shape).tocsr()


def _ends(graph: Graph, name: str) -> tuple[Ints, Ints, npt.NDArray[Any] | None]:
    """Return both ends of all training edges, undirected ones both ways, and weights."""
    found = list(_buckets(graph, name, None))
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


def _whole(graph: Graph, edge_type: str | None, split: str | None) -> pa.Table:
    chunks = list(edge_chunks(graph, edge_type, split))
    if not chunks:
        return pa.table({"src": [], "dst": [], "edge_type": []})
    return pa.concat_tables(chunks, promote_options="permissive")


def to_pandas(graph: Graph, edge_type: str | None, split: str | None) -> Any:
    """Return edges as a pandas data frame."""
    require("pandas", extra="all")
    return _whole(graph, edge_type, split).to_pandas()


def to_polars(graph: Graph, edge_type: str | None, split: str | None) -> Any:
    """Return edges as a Polars data frame."""
    return require("polars", extra="all").from_arrow(_whole(graph, edge_type, split))


def to_networkx(graph: Graph, split: str | None) -> Any:
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
    for name in _names(graph, None):
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


def to_pyg(graph: Graph) -> Any:
    """Return PyG's Data or HeteroData."""
    pyg = importlib.import_module("graphsys.interop.pyg")
    is_plain = len(graph.node_types) == 1 == len(graph.edge_types)
    return pyg.to_data(graph) if is_plain else pyg.to_hetero_data(graph)


def to_dgl(graph: Graph) -> Any:
    """Return DGL's graph."""
    return importlib.import_module("graphsys.interop.dgl").to_dgl(graph)


def to_html(graph: Graph) -> str:
    """Return what a notebook shows: types and how many there are."""
    rows = [("nodes", name, graph.num_nodes_of(name)) for name in graph.node_types]
    rows += [("edges", name, graph.num_edges_of(name)) for name in _names(graph, None)]
    lines = "".join(
        f"<tr><td>{what}</td><td>{html.escape(name)}</td><td>{count:,}</td></tr>"
        for what, name, count in rows
    )
    return f"<table><caption>{html.escape(str(graph.path))}</caption>{lines}</table>"


def _names(graph: Graph, edge_type: str | None) -> Sequence[str]:
    if edge_type is not None:
        return [graph.edge_type_name(edge_type)]
    return list(graph.manifest.edge_types)


def _only(graph: Graph, edge_type: str | None) -> str:
    names = _names(graph, edge_type)
    if len(names) != 1:
        raise ConfigError(f"edge_type: {', '.join(names) or 'none'}; give one of them")
    return names[0]


def _the_type(graph: Graph, node_type: str | None) -> str:
    if node_type is None and len(graph.node_types) != 1:
        raise ConfigError(
            f"the graph has node types {', '.join(graph.node_types)}; give one"
        )
    name = node_type or graph.node_types[0]
    graph.num_nodes_of(name)
    return name


def _ids(graph: Graph, node_type: str, numbers: Ints) -> list[Any]:
    found: list[Any] = graph.ids_of(node_type, numbers).to_pylist()
    return found


def _plain(ids: Any) -> Any:
    """Return a column of ids as sources give them."""
    whole = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    return whole.to_numpy() if pa.types.is_integer(whole.type) else whole
