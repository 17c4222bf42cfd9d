"""The graph of some nodes of a graph, as a store of its own."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.arrays import distinct
from graphsys.core.errors import ConfigError
from graphsys.core.types import EdgeType
from graphsys.datasets.temporary import temporary_graph
from graphsys.facade.edges import edge_chunks, edge_names, edges_by_bucket
from graphsys.facade.neighbors import single_type
from graphsys.storage.ingest.ingest import ingest
from graphsys.storage.reader import GraphReader
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

Ints = npt.NDArray[np.int64]


def subgraph(graph: GraphReader, nodes: Any, out: Any) -> GraphReader:
    """Return the graph of some nodes."""
    if not isinstance(nodes, Mapping):
        nodes = {single_type(graph, None): nodes}
    chosen = {name: graph.lookup(name, list(ids)) for name, ids in nodes.items()}
    found = {name: distinct(n).astype(np.int64) for name, n in chosen.items()}
    return _stored(_Part(graph, found), out)


def sample(graph: GraphReader, num_nodes: int, seed: int, out: Any) -> GraphReader:
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


def _stored(source: Source, out: Any) -> GraphReader:
    return temporary_graph(source) if out is None else ingest(source, Path(out)).graph


class _Part(Source):
    """Some nodes of a graph, with all that they have, and the edges between them."""

    def __init__(self, graph: GraphReader, nodes: Mapping[str, Ints]) -> None:
        kinds = [
            name for name in edge_names(graph, None) if self._is_within(graph, name, nodes)
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
    def _is_within(graph: GraphReader, name: str, nodes: Mapping[str, Ints]) -> bool:
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
        buckets = edges_by_bucket(self._graph, name, split)
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


def _plain(ids: Any) -> Any:
    """Return a column of ids as sources give them."""
    whole = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    return whole.to_numpy() if pa.types.is_integer(whole.type) else whole
