"""A NetworkX graph as arrays: nodes numbered in the order of the graph.

The conversion copies: later changes of the NetworkX graph are not seen (NetworkX drops
its cache of converted graphs when a graph changes).
"""

from collections.abc import Hashable, Iterable, Iterator
from itertools import chain
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr, transpose
from graphsys.storage.node_numbers import NodeNumbers

Values = npt.NDArray[Any]


class ConvertedGraph:
    """What NetworkX hands to our functions.

    Attributes:
        nodes: The nodes in the graph's order; the place is the number.
        number: Number by node.
        num_loops: Self-loops, each counted once.
        rows: Row offsets ``[N + 1]`` and neighbors ``[E]`` in NetworkX's order.
        source: The node of every entry ``[E]``.
    """

    __networkx_backend__ = "graphsys"

    def __init__(self, graph: Any, *, keep: dict[str, Any], keep_all: bool) -> None:
        self.nodes: list[Hashable] = list(graph)
        self.number = dict(zip(self.nodes, range(len(self.nodes)), strict=True))
        self._is_directed = bool(graph.is_directed())
        self._is_multigraph = bool(graph.is_multigraph())
        self._graph_data = dict(graph.graph)
        self._node_data = {n: dict(d) for n, d in graph._node.items()} if keep_all else {}
        rows = graph._adj.values()
        ends: Iterator[Hashable]
        if self._is_multigraph:
            indptr = _offsets(sum(map(len, row.values())) for row in rows)
            ends = (v for row in rows for v, keys in row.items() for _ in keys)
        else:
            indptr = _offsets(map(len, rows))
            ends = chain.from_iterable(rows)
        self.rows = indptr, self._numbers_of(ends, int(indptr[-1]))
        self._values = {
            name: as_numbers([d.get(name, default) for d in _data_of(graph)], name)
            for name, default in keep.items()
        }
        self._edge_data = [dict(d) for d in _data_of(graph)] if keep_all else None
        self.source = np.repeat(np.arange(len(self.nodes)), np.diff(indptr))
        self._is_loop = self.source == self.rows[1]
        self.num_loops = int(np.count_nonzero(self._is_loop))
        self._topologies: dict[str | None, Topology] = {}

    def _numbers_of(self, ends: Iterator[Hashable], num: int) -> npt.NDArray[np.uint32]:
        numbers = map(self.number.__getitem__, ends)
        return np.fromiter(numbers, dtype=np.uint32, count=num)

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.nodes)

    def __contains__(self, node: object) -> bool:
        try:
            return node in self.number
        except TypeError:
            return False

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self._is_directed

    def is_multigraph(self) -> bool:
        """Whether edges may repeat."""
        return self._is_multigraph

    def number_of_nodes(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @property
    def num_entries(self) -> int:
        """Entries of all rows: an undirected edge counts twice."""
        return len(self.rows[1])

    def loops(self) -> npt.NDArray[np.int64]:
        """Return the self-loops of every node, int64 ``[N]``."""
        return np.bincount(self.source[self._is_loop], minlength=len(self))

    def degrees(self) -> npt.NDArray[np.int64]:
        """Return what ``G.degree`` is of every node, int64 ``[N]``: a loop counts twice."""
        others = self.loops()
        if self._is_directed:
            others = np.bincount(self.rows[1], minlength=len(self))
        return np.diff(self.rows[0]) + others

    def edge_places(self) -> npt.NDArray[np.int64]:
        """Return the entry of each edge, one of its two if undirected, as ``G.edges``."""
        if self._is_directed:
            return np.arange(self.num_entries)
        return np.flatnonzero(self.source <= self.rows[1])

    def values_of(self, name: str) -> Values:
        """Return an edge attribute in row order.

        Raises:
            NotImplementedError: the graph was converted without it, or it is no number.
        """
        if name not in self._values:
            if self._edge_data is None:
                raise NotImplementedError(
                    f"the graph was converted without edge attribute {name!r}; convert it "
                    "with edge_attrs, or call the function on the NetworkX graph"
                )
            self._values[name] = as_numbers([d.get(name, 1) for d in self._edge_data], name)
        return self._values[name]

    def topology(self, weight: str | None = None) -> Topology:
        """Return the graph as our algorithms see it; its ids are the nodes' numbers.

        Args:
            weight: Edge attribute to take as weight, or None for none.
        """
        if weight not in self._topologies:
            values = None if weight is None else self.values_of(weight)
            if values is not None and values.dtype != np.float32:
                values = values.astype(np.float64)
            rows = Csr(indptr=self.rows[0], indices=self.rows[1], weight=values)
            into = transpose(rows)
            # the rows of an undirected graph are symmetric: transposing sorts them
            out = transpose(into) if self._is_directed else into
            self._topologies[weight] = Topology(
                NodeNumbers.from_ids(None, len(self)),
                is_directed=self._is_directed,
                rows={"out": out, "in": into},
            )
        return self._topologies[weight]

    def with_edges(self, edges: Iterable[Any]) -> Any:
        """Return a NetworkX graph of the same nodes with these edges."""
        kind = {
            (False, False): nx.Graph,
            (False, True): nx.MultiGraph,
            (True, False): nx.DiGraph,
            (True, True): nx.MultiDiGraph,
        }[self._is_directed, self._is_multigraph]
        graph = kind(**self._graph_data)
        graph.add_nodes_from((node, self._node_data.get(node, {})) for node in self.nodes)
        graph.add_edges_from(edges)
        return graph

    def to_networkx(self) -> Any:
        """Return a NetworkX graph with the attributes that were converted."""
        graph = self.with_edges(())
        seen: set[tuple[int, int]] = set()
        loops = self._is_loop.tolist()
        pairs = zip(self.source.tolist(), self.rows[1].tolist(), strict=True)
        for place, (u, v) in enumerate(pairs):
            if not self._is_directed and (v, u) in seen and not loops[place]:
                continue  # the other half of an edge, or of several, added before
            seen.add((u, v))
            graph.add_edge(self.nodes[u], self.nodes[v], **self.data_at(place))
        return graph

    def data_at(self, place: int) -> dict[str, Any]:
        """Return the converted attributes of an entry's edge."""
        if self._edge_data is not None:
            return self._edge_data[place]
        return {name: column[place].item() for name, column in self._values.items()}


def as_numbers(values: list[Any], name: str) -> Values:
    """Return edge attributes as an array of integers or floats.

    Raises:
        NotImplementedError: they are something else, or integers beyond 64 bits.
    """
    if not values:
        return np.empty(0, dtype=np.float64)
    try:
        numbers = np.array(values)
    except ValueError:  # sequences of several lengths
        numbers = np.empty(0, dtype=object)
    if numbers.ndim != 1 or numbers.dtype.kind not in "buif":
        raise NotImplementedError(
            f"edge attribute {name!r} is not a plain number everywhere"
        )
    return numbers


def convert_from_nx(
    graph: Any,
    edge_attrs: dict[str, Any] | None = None,
    node_attrs: dict[str, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    preserve_all_attrs: bool = False,
    name: str | None = None,
    graph_name: str | None = None,
) -> ConvertedGraph:
    """Convert a NetworkX graph; called by NetworkX, arguments as it defines them.

    Raises:
        NotImplementedError: an attribute that is not numeric.
    """
    del node_attrs, preserve_graph_attrs, name, graph_name  # nothing here depends on them
    if isinstance(graph, ConvertedGraph):
        return graph
    keep_all = preserve_edge_attrs or preserve_node_attrs or preserve_all_attrs
    keep = {} if preserve_edge_attrs else edge_attrs or {}
    return ConvertedGraph(graph, keep=keep, keep_all=keep_all)


def convert_to_nx(value: Any, *, name: str | None = None) -> Any:
    """Convert our graph back; other results pass unchanged."""
    del name
    return value.to_networkx() if isinstance(value, ConvertedGraph) else value


def _offsets(lengths: Iterator[int]) -> npt.NDArray[np.int64]:
    counts = np.fromiter(lengths, dtype=np.int64)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _data_of(graph: Any) -> Iterator[dict[str, Any]]:
    for row in graph._adj.values():
        if graph.is_multigraph():
            for keys in row.values():
                yield from keys.values()
        else:
            yield from row.values()
