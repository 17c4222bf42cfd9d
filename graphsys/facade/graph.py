"""The graph that users have in hand: a reader of its store, and what stands upon one.

Readers (:mod:`graphsys.storage.reader`) know files alone. Here are the questions that need
more: neighbors by ids, views of times, parts, appends, and other libraries' graphs.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.storage.dynamic.timed_view import TimedGraph, moment_of, windows
from graphsys.storage.reader import GraphReader

if TYPE_CHECKING:
    import dgl
    import networkx as nx
    import pandas as pd
    import polars as pl
    import scipy.sparse
    import torch
    import torch_geometric.data
    from matplotlib.axes import Axes

    from graphsys.datasets.base import ColumnNames
    from graphsys.storage.dynamic.append import AppendReport

AnyPath: TypeAlias = str | os.PathLike[str]
Direction = Literal["out", "in", "both"]
NodeKey: TypeAlias = int | str
"""The id of a node."""
NodeKeys: TypeAlias = Sequence[int] | Sequence[str] | npt.NDArray[Any]
Time: TypeAlias = int | str | date | datetime | np.datetime64
Length: TypeAlias = int | str | timedelta | np.timedelta64


class Graph(GraphReader):
    """A store opened for reading; its generation stays until :meth:`close`.

    Nodes are given and returned by the user's ids. See
    :class:`graphsys.storage.reader.GraphReader` for what it reads.

    Args:
        path: The graph's folder, or ``s3://...``: files are then copied when first mapped.

    Raises:
        InvalidGraphError: there is no graph.
        CorruptStoreError: the manifest or a file is missing, cut short or too new.
    """

    _reader: GraphReader

    @classmethod
    def of(cls, reader: GraphReader) -> "Graph":
        """Return the graph of a reader that is open, which it shares all files with."""
        if isinstance(reader, Graph):
            return reader
        made = object.__new__(GraphView if isinstance(reader, TimedGraph) else Graph)
        vars(made).update(vars(reader))
        made._reader = reader  # a temporary store goes with its reader
        return made

    def __enter__(self) -> "Graph":
        return self

    # ---- nodes and edges

    def neighbors(
        self,
        node: NodeKey,
        *,
        node_type: str | None = None,
        edge_type: str | None = None,
        direction: Direction = "out",
    ) -> list[NodeKey]:
        """Return the ids of a node's neighbors over training edges, once per edge.

        Args:
            node: Its id.
            node_type: Its type, needed where there are several.
            edge_type: The edges to follow; all by default.
            direction: Along the edges, against them, or both; undirected edges lead both
                ways.

        Raises:
            UnknownNameError: There is no such node or type.
            ConfigError: The type is not clear, or there is no such direction.
        """
        from graphsys.facade.neighbors import neighbors

        return neighbors(self, node, node_type, edge_type, direction)

    def named_by(self, column: str) -> "Graph":
        """Return this graph with a column of its nodes, such as their name, as their ids.

        What is asked of a run takes names and gives names then:
        ``gs.embedding.nearest("run", "Berlin", graph=gs.open("kg").named_by("name"))``.

        Args:
            column: The column: texts or integers. Node types without it keep their ids; a
                node without a text has its id as one. A name that several nodes have is
                given, and refused where it is asked for.

        Raises:
            ConfigError: No node type has such a column; the message lists those there are.
        """
        from graphsys.facade.node_names import node_names

        graph = self.by_ids()
        names = node_names(graph, column)
        made = object.__new__(_NamedView if isinstance(self, GraphView) else _NamedGraph)
        vars(made).update(vars(graph))
        made._graph, made._column, made._names = graph, column, names
        return made

    def degree(
        self,
        node: NodeKey,
        *,
        node_type: str | None = None,
        edge_type: str | None = None,
        direction: Direction = "out",
    ) -> int:
        """Return how many neighbors a node has; see :meth:`neighbors`."""
        from graphsys.facade.neighbors import degree

        return degree(self, node, node_type, edge_type, direction)

    def edge_chunks(
        self, edge_type: str | None = None, split: str | None = None
    ) -> Iterator[pa.Table]:
        """Yield the edges bucket by bucket, as stored.

        Args:
            edge_type: Their type; all by default.
            split: Their split; ``train``, or the only one, by default.

        Returns:
            Tables with ``src`` and ``dst`` (ids), ``edge_type``, and ``relation``,
            ``weight``, ``time`` and further columns where edges have them.
        """
        from graphsys.facade.edges import edge_chunks

        return edge_chunks(self, edge_type, split)

    # ---- parts, and what was at a time

    def subgraph(
        self, nodes: NodeKeys | Mapping[str, NodeKeys], out: AnyPath | None = None
    ) -> "Graph":
        """Return the graph of some nodes and of the edges between them.

        Args:
            nodes: Ids, or such by type where there are several types.
            out: Where its store goes; without it, it goes when nobody uses the graph.

        Raises:
            UnknownNameError: There is no such node or type.
            ConfigError: Ids of no type, though there are several.
            OutputExistsError: ``out`` exists.
        """
        from graphsys.facade.subgraph import subgraph

        return Graph.of(subgraph(self, nodes, out))

    def sample(
        self, num_nodes: int, *, seed: int = 0, out: AnyPath | None = None
    ) -> "Graph":
        """Return the graph of nodes drawn uniformly; see :meth:`subgraph`.

        Raises:
            ConfigError: Not at least 1 node.
        """
        from graphsys.facade.subgraph import sample

        return Graph.of(sample(self, num_nodes, seed, out))

    def at(self, time: Time) -> "Graph":
        """Return the graph as it was at a time: edges not younger and not deleted by then.

        All nodes are there. A deletion that has no time counts at all times.

        Args:
            time: In the unit of the edges' column ``time``; or, where :meth:`time_unit`
                tells one, an ISO date or time such as ``"2024-05-01"`` (its midnight, UTC),
                a ``datetime``, or numpy's or pandas' time.

        Raises:
            ConfigError: No edges have a time, or a date meets times without a unit.
        """
        return GraphView(self, None, moment_of(self, time, is_next=True))

    def between(self, first: Time | None, end: Time | None) -> "Graph":
        """Return what came from ``first`` on, and before ``end``, and was there at the end.

        Args:
            first: First time that is shown, as :meth:`at` takes it; None for all before.
            end: First later time that is not; None for all after.

        Raises:
            ConfigError: No edges have a time, or a date meets times without a unit.
        """
        bounds = (None if it is None else moment_of(self, it) for it in (first, end))
        return GraphView(self, *bounds)

    def rolling(self, window: Length, step: Length | None = None) -> Iterator["Graph"]:
        """Yield views of one span of time after the other; see :meth:`between`.

        Args:
            window: How long each is; the first begins at the first edge's time. An integer
                in the unit of the times; or, where one is known, a ``timedelta`` or text
                such as ``"7d"``, ``"12h"``, ``"30min"``.
            step: From the begin of one to that of the next; ``window`` by default.

        Raises:
            ConfigError: No edges have a time, or a length is not above 0.
        """
        spans = windows(self, window, step)
        return (GraphView(self, first, end) for first, end in spans)

    def append(
        self,
        data: object = None,
        *,
        nodes: Mapping[str, object] | None = None,
        edges: Mapping[tuple[str, str, str], object] | None = None,
        delete: object = None,
        missing_deletes: str = "error",
        format: str | None = None,
        ids: str = "auto",
        columns: "ColumnNames" = None,
        delete_columns: "ColumnNames" = None,
        separator: str | None = None,
        skip: int = 0,
        signed: bool = False,
        num_threads: int | None = None,
    ) -> "AppendReport[Graph]":
        """Add edges and nodes to the store and remove edges, as one delta.

        This graph goes on showing what it showed; the report's is the graph as it is now.

        Args:
            data: New edges: paths, arrays, a table, another library's graph.
            nodes: Table of new nodes of each type.
            edges: Table of new edges of each type, ``("user", "trusts", "user")``.
            delete: Edges to remove.
            missing_deletes: "error" to refuse deletions of what is not there, or "count".
            format: Format of files; None to guess it.
            ids: "auto" (the graph's kind), "int" or "string".
            columns: Names of the columns of ``data``; of ``nodes`` and ``edges`` by type.
            delete_columns: Names of the columns of ``delete``.
            separator: What separates columns in text.
            skip: Lines to leave out at the beginning of each text file.
            signed: The sign of a new edge's weight becomes its relation.
            num_threads: Threads that read ahead.

        Returns:
            Counts and the graph as it is now, open;
            :func:`graphsys.datasets.append.append` says more of the arguments.

        Raises:
            InputError: Data cannot be read or do not fit the graph.
            StoreBusyError: Another process writes to the graph.
        """
        from graphsys.datasets.append import append

        report = append(
            self,
            data,
            nodes=nodes,
            edges=edges,
            delete=delete,
            missing_deletes=missing_deletes,
            format=format,
            ids=ids,
            columns=columns,
            delete_columns=delete_columns,
            separator=separator,
            skip=skip,
            signed=signed,
            num_threads=num_threads,
        )
        return cast("AppendReport[Graph]", replace(report, graph=Graph.of(report.graph)))

    # ---- other libraries' graphs

    def edge_index(self, edge_type: str | None = None) -> "torch.Tensor":
        """Return training edges as a torch tensor int64 ``[2, E]`` of nodes' numbers.

        Undirected edges within a type are there in both ways.

        Raises:
            ConfigError: There are several edge types and none was given.
        """
        from graphsys.facade.edges import edge_index

        return edge_index(self, edge_type)

    def to_scipy(self, edge_type: str | None = None) -> "scipy.sparse.csr_array":
        """Return training edges as a SciPy CSR array ``[N_src, N_dst]`` of weights.

        Rows and columns are nodes' numbers; edges without weights count 1 each.

        Raises:
            ConfigError: There are several edge types and none was given.
        """
        from graphsys.facade.edges import to_scipy

        return to_scipy(self, edge_type)

    def to_pandas(
        self, edge_type: str | None = None, split: str | None = None
    ) -> "pd.DataFrame":
        """Return edges as a pandas data frame; see :meth:`edge_chunks`."""
        from graphsys.facade.edges import to_pandas

        return to_pandas(self, edge_type, split)

    def to_polars(
        self, edge_type: str | None = None, split: str | None = None
    ) -> "pl.DataFrame":
        """Return edges as a Polars data frame; see :meth:`edge_chunks`."""
        from graphsys.facade.edges import to_polars

        return to_polars(self, edge_type, split)

    def to_networkx(self, split: str | None = None) -> "nx.MultiGraph":
        """Return a NetworkX graph: ids as nodes (with their type, if there are several).

        It is a multigraph (a ``MultiDiGraph`` of directed edges); columns of nodes and
        edges are attributes.
        """
        from graphsys.facade.edges import to_networkx

        return to_networkx(self, split)

    def to_pyg(self) -> "torch_geometric.data.Data | torch_geometric.data.HeteroData":
        """Return PyG's Data, or HeteroData of several types; see ``interop.pyg``."""
        from graphsys.facade.to_pyg import to_data, to_hetero_data

        is_plain = len(self.node_types) == 1 == len(self.edge_types)
        return to_data(self) if is_plain else to_hetero_data(self)

    def to_dgl(self) -> "dgl.DGLGraph":
        """Return DGL's graph; see :func:`graphsys.interop.dgl.to_dgl`."""
        from graphsys.facade.to_dgl import to_dgl

        return to_dgl(self)

    def plot(
        self,
        values: object = None,
        *,
        names: bool | None = None,
        seed: int = 0,
        axes: "Axes | None" = None,
    ) -> "Axes":
        """Draw a graph of 2,000 nodes at most, by NetworkX and matplotlib (extra ``plot``).

        Args:
            values: What colors the nodes: a result of an algorithm (columns ``id`` and
                ``value``), or a mapping by the keys of :meth:`to_networkx`. Their types by
                default. Numbers get a scale, up to ten other values a legend.
            names: Whether to write ids; of 60 nodes at most by default.
            seed: Of the spring layout.
            axes: Where to draw; axes of a new figure by default.

        Returns:
            The axes; ``axes.figure.savefig("graph.png")`` keeps them.

        Raises:
            ConfigError: There are more nodes, or some have no value.
            MissingDependencyError: networkx or matplotlib is not installed.
        """
        from graphsys.facade.drawing import draw_graph

        return draw_graph(self, values, names=names, seed=seed, axes=axes)

    def _repr_html_(self) -> str:
        from graphsys.facade.edges import to_html

        return to_html(self)


class GraphView(TimedGraph, Graph):
    """A span of time of a graph; closing it closes nothing."""


class _NamedGraph(Graph):
    """A graph whose nodes go by a column of theirs; see :meth:`Graph.named_by`."""

    _graph: Graph
    _column: str
    _names: "dict[str, pa.ChunkedArray]"

    def by_ids(self) -> Graph:  # type: ignore[override]  # a reader's is itself
        """Return the graph whose nodes go by their ids."""
        return self._graph

    def node_ids(self, node_type: str) -> pa.ChunkedArray:
        """Return the names of a type in the order of their numbers."""
        found = self._names.get(node_type)
        return self._graph.node_ids(node_type) if found is None else found

    def part_ids(self, node_type: str, part: int) -> pa.ChunkedArray:
        """Return the names of a partition's nodes."""
        first, end = self.offsets(node_type)[part : part + 2].tolist()
        return self.node_ids(node_type).slice(first, end - first)

    def lookup(
        self, node_type: str, ids: Sequence[Any] | npt.NDArray[Any]
    ) -> npt.NDArray[np.int64]:
        """Return the numbers of nodes given by their names, int64 ``[n]``.

        Raises:
            UnknownNameError: A node has no such name; the message names the first.
            ConfigError: Several have it; the message lists their ids.
        """
        from graphsys.facade.node_names import lookup_names

        names = self._names.get(node_type)
        if names is None:
            return self._graph.lookup(node_type, ids).astype(np.int64)
        return lookup_names(self._graph, node_type, self._column, names, ids)


class _NamedView(_NamedGraph, GraphView):
    """A span of time of a graph whose nodes go by a column."""


def open_graph(path: AnyPath) -> Graph:
    """Open a graph for reading; see :class:`Graph`.

    Raises:
        ConfigError: ``path`` is no path.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ConfigError(
            f"path: got {path!r:.60}, expected the folder of a graph, as a str or a Path"
        )
    return Graph(path)
