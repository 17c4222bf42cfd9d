"""What an append is given: read once, checked against the graph, nodes found."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import InputError
from graphsys.storage.dynamic.delta_transaction import DeltaTransaction
from graphsys.storage.dynamic.node_finder import NodeFinder
from graphsys.storage.dynamic.schema import (
    check_edge_columns,
    check_node_columns,
    check_split,
    edge_type_of,
    node_type_of,
)
from graphsys.storage.reader import GraphReader
from graphsys.storage.scratch import Scratch
from graphsys.storage.source import EdgeChunk, NodeChunk, Source
from graphsys.storage.write.edge_log import EdgeLog, EdgeRecord

_MEMORY = 1 << 62  # an append is held in memory; nothing of it is spilled


@dataclass
class _Ids:
    """Ids as they came, and the number of each, -1 until it is settled."""

    finder: NodeFinder
    ids: Any
    numbers: npt.NDArray[np.int64]

    def settle(self) -> npt.NDArray[np.int64]:
        missing = np.flatnonzero(self.numbers < 0)
        if len(missing):
            self.numbers[missing] = self.finder.number_new(_picked(self.ids, missing))
        return self.numbers


@dataclass
class AppendedEdges:
    """Edges of one type and split.

    Attributes:
        log: Their columns.
        records: Where those of each chunk are.
        ends: Sources and destinations of each chunk.
    """

    log: EdgeLog
    records: list[EdgeRecord] = field(default_factory=list)
    ends: list[tuple[_Ids, _Ids]] = field(default_factory=list)

    def numbers(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the numbers of sources and destinations, after all ids were settled."""
        pairs = [(src.settle(), dst.settle()) for src, dst in self.ends]
        return (
            np.concatenate([src for src, _ in pairs]),
            np.concatenate([dst for _, dst in pairs]),
        )

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return weights, times, codes of relations and rows of further columns."""
        dtypes = self.log.dtypes(coalesce=False)
        pieces = [self.log.read(record, dtypes) for record in self.records]
        return {name: np.concatenate([piece[name] for piece in pieces]) for name in dtypes}


@dataclass
class AppendedNodes:
    """Rows of nodes of one type, all new."""

    chunks: list[NodeChunk] = field(default_factory=list)
    ids: list[_Ids] = field(default_factory=list)


class AppendInput:
    """Reads a source and finds the nodes that it names.

    Args:
        graph: The graph as the transaction found it.
        transaction: Where the new delta goes.

    Attributes:
        finders: By node type; of the types that are named.
        edges: By the name of the edge type and by split.
        nodes: By node type.
    """

    def __init__(self, graph: GraphReader, transaction: DeltaTransaction) -> None:
        self._graph, self._transaction = graph, transaction
        self.scratch = Scratch(transaction.scratch_dir, _MEMORY)
        self.finders: dict[str, NodeFinder] = {}
        self.edges: dict[tuple[str, str], AppendedEdges] = {}
        self.nodes: dict[str, AppendedNodes] = {}
        self._logs: dict[str, EdgeLog] = {}

    def read(self, source: Source) -> None:
        """Read all chunks of a source.

        Raises:
            InputError: it is malformed, or its types and columns are not the graph's.
        """
        if not source.is_directed and self._graph.is_directed and self._graph.edge_types:
            raise InputError(
                f"{source.name} has undirected edges, the graph {self._graph.path} "
                "directed ones; give both directions of each"
            )
        for chunk in source.chunks():
            if isinstance(chunk, NodeChunk):
                self._add_nodes(chunk)
            else:
                self._add_edges(chunk, source.allows_nan)

    def settle(self) -> None:
        """Number the nodes that the graph has not."""
        unknown: dict[str, list[Any]] = {name: [] for name in self.finders}
        sides = [it for edges in self.edges.values() for it in edges.ends]
        lists = [it for pair in sides for it in pair]
        lists += [it for nodes in self.nodes.values() for it in nodes.ids]
        for given in lists:
            missing = np.flatnonzero(given.numbers < 0)
            if len(missing):
                unknown[given.finder.node_type].append(_picked(given.ids, missing))
        for name, finder in self.finders.items():
            finder.settle(unknown[name])
        for log in self._logs.values():
            log.finish()

    def finder(self, node_type: str) -> NodeFinder:
        """Return who finds the nodes of a type."""
        if node_type not in self.finders:
            self.finders[node_type] = NodeFinder(self._graph, node_type, self._transaction)
        return self.finders[node_type]

    def _ids(self, node_type: str, ids: Any) -> _Ids:
        finder = self.finder(node_type)
        clean = finder.clean(ids)
        return _Ids(finder, clean, finder.find(clean))

    def _add_edges(self, chunk: EdgeChunk, allows_nan: bool) -> None:
        manifest = self._graph.manifest
        name = edge_type_of(manifest, chunk.edge_type)
        entry = manifest.edge_types[name]
        if not len(chunk.src):
            return
        check_edge_columns(name, entry, chunk.columns)
        check_split(name, entry, chunk.split)
        if name not in self._logs:
            self._logs[name] = EdgeLog(
                entry.edge_type,
                self.scratch,
                allows_nan=allows_nan,
                time_unit=entry.time_unit,
            )
        log = self._logs[name]
        edges = self.edges.setdefault((name, chunk.split), AppendedEdges(log))
        edges.records.append(log.add(chunk))
        ends = self._ids(entry.src_type, chunk.src), self._ids(entry.dst_type, chunk.dst)
        edges.ends.append(ends)

    def _add_nodes(self, chunk: NodeChunk) -> None:
        name = node_type_of(self._graph.manifest, chunk.node_type)
        if not len(chunk.ids):
            return
        given = [*chunk.columns, *chunk.features]
        ids = self._ids(name, chunk.ids)
        if given:
            check_node_columns(name, self._graph.manifest.node_types[name], given)
            self._refuse_known(name, ids)
        nodes = self.nodes.setdefault(name, AppendedNodes())
        nodes.chunks.append(chunk)
        nodes.ids.append(ids)

    def _refuse_known(self, name: str, ids: _Ids) -> None:
        known = np.flatnonzero(ids.numbers >= 0)
        if len(known):
            first = _picked(ids.ids, known[:1])[0]
            shown = first.as_py() if isinstance(first, pa.Scalar) else int(first)
            more = f" and {len(known) - 1} more" if len(known) > 1 else ""
            raise InputError(
                f"node {shown!r}{more} of type {name!r} is in {self._graph.path} already; "
                "an append has rows of new nodes only"
            )


def _picked(ids: Any, places: npt.NDArray[Any]) -> Any:
    """Return some ids: integers, or Arrow strings without a dictionary."""
    if isinstance(ids, np.ndarray):
        return ids[places]
    return ids.take(pa.array(places)).dictionary_decode()
