"""What a graph answers by itself: neighbors, parts of it, other libraries' graphs."""

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

Direction = Literal["out", "in", "both"]


def _answers() -> Any:
    """Return the module that knows other libraries; it loads when it is asked."""
    return importlib.import_module("graphsys.interop.in_hand")


def _views() -> Any:
    """Return the module of views, which stands upon the reader."""
    return importlib.import_module("graphsys.storage.dynamic.timed_view")


class InHand:
    """Questions to a graph; nodes are given and told by the user's ids."""

    def neighbors(
        self,
        node: Any,
        *,
        node_type: str | None = None,
        edge_type: str | None = None,
        direction: Direction = "out",
    ) -> list[Any]:
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
        found: list[Any] = _answers().neighbors(self, node, node_type, edge_type, direction)
        return found

    def degree(
        self,
        node: Any,
        *,
        node_type: str | None = None,
        edge_type: str | None = None,
        direction: Direction = "out",
    ) -> int:
        """Return how many neighbors a node has; see :meth:`neighbors`."""
        return int(_answers().degree(self, node, node_type, edge_type, direction))

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
        chunks: Iterator[pa.Table] = _answers().edge_chunks(self, edge_type, split)
        return chunks

    def subgraph(
        self,
        nodes: Sequence[Any] | Mapping[str, Sequence[Any]],
        out: str | os.PathLike[str] | None = None,
    ) -> Any:
        """Return the graph of some nodes and of the edges between them.

        Args:
            nodes: Ids, or such by type where there are several types.
            out: Where its store goes; without it, it goes when nobody uses the graph.

        Raises:
            UnknownNameError: There is no such node or type.
            ConfigError: Ids of no type, though there are several.
            OutputExistsError: ``out`` exists.
        """
        return _answers().subgraph(self, nodes, out)

    def sample(
        self, num_nodes: int, *, seed: int = 0, out: str | os.PathLike[str] | None = None
    ) -> Any:
        """Return the graph of nodes drawn uniformly; see :meth:`subgraph`.

        Raises:
            ConfigError: Not at least 1 node.
        """
        return _answers().sample(self, num_nodes, seed, out)

    def append(self, data: Any = None, **options: Any) -> Any:
        """Add edges and nodes to the store and remove edges, as one delta.

        This graph goes on showing what it showed; the report's is the graph as it is now.

        Args:
            data: New edges: paths, arrays, a table, another library's graph.
            **options: ``nodes``, ``edges``, ``delete`` and others of
                :func:`graphsys.datasets.append`.

        Returns:
            An ``AppendReport``.

        Raises:
            InputError: Data cannot be read or do not fit the graph.
            StoreBusyError: Another process writes to the graph.
        """
        return importlib.import_module("graphsys.datasets.append").append(
            self, data, **options
        )

    def at(self, time: Any) -> Any:
        """Return the graph as it was at a time: edges not younger and not deleted by then.

        All nodes are there. A deletion that has no time counts at all times.

        Args:
            time: In the unit of the edges' column ``time``; or, where :meth:`time_unit`
                tells one, an ISO date or time such as ``"2024-05-01"`` (its midnight, UTC),
                a ``datetime``, or numpy's or pandas' time.

        Raises:
            ConfigError: No edges have a time, or a date meets times without a unit.
        """
        return _views().view_at(self, time)

    def between(self, first: Any, end: Any) -> Any:
        """Return what came from ``first`` on, and before ``end``, and was there at the end.

        Args:
            first: First time that is shown, as :meth:`at` takes it; None for all before.
            end: First later time that is not; None for all after.

        Raises:
            ConfigError: No edges have a time, or a date meets times without a unit.
        """
        return _views().view_between(self, first, end)

    def rolling(self, window: Any, step: Any = None) -> Iterator[Any]:
        """Yield views of one span of time after the other; see :meth:`between`.

        Args:
            window: How long each is; the first begins at the first edge's time. An integer
                in the unit of the times; or, where one is known, a ``timedelta`` or text
                such as ``"7d"``, ``"12h"``, ``"30min"``.
            step: From the begin of one to that of the next; ``window`` by default.

        Raises:
            ConfigError: No edges have a time, or a length is not above 0.
        """
        views: Iterator[Any] = _views().rolling(self, window, step)
        return views

    def edge_index(self, edge_type: str | None = None) -> Any:
        """Return training edges as a torch tensor int64 ``[2, E]`` of nodes' numbers.

        Undirected edges within a type are there in both ways.

        Raises:
            ConfigError: There are several edge types and none was given.
        """
        return _answers().edge_index(self, edge_type)

    def to_scipy(self, edge_type: str | None = None) -> Any:
        """Return training edges as a SciPy CSR array ``[N_src, N_dst]`` of weights.

        Rows and columns are nodes' numbers; edges without weights count 1 each.

        Raises:
            ConfigError: There are several edge types and none was given.
        """
        return _answers().to_scipy(self, edge_type)

    def to_pandas(self, edge_type: str | None = None, split: str | None = None) -> Any:
        """Return edges as a pandas data frame; see :meth:`edge_chunks`."""
        return _answers().to_pandas(self, edge_type, split)

    def to_polars(self, edge_type: str | None = None, split: str | None = None) -> Any:
        """Return edges as a Polars data frame; see :meth:`edge_chunks`."""
        return _answers().to_polars(self, edge_type, split)

    def to_networkx(self, split: str | None = None) -> Any:
        """Return a NetworkX graph: ids as nodes (with their type, if there are several).

        It is a multigraph; columns of nodes and edges are attributes.
        """
        return _answers().to_networkx(self, split)

    def to_pyg(self) -> Any:
        """Return PyG's Data, or HeteroData of several types; see ``interop.pyg``."""
        return _answers().to_pyg(self)

    def to_dgl(self) -> Any:
        """Return DGL's graph; see :func:`graphsys.interop.dgl.to_dgl`."""
        return _answers().to_dgl(self)

    def _repr_html_(self) -> str:
        return str(_answers().to_html(self))
