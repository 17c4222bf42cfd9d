"""A graph as algorithms see it: one numbering of all nodes, rows of neighbors."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import InvalidGraphError
from graphsys.core.types import EdgeType
from graphsys.datasets.temporary import graph_of
from graphsys.engine.columns import (
    edge_column_dtypes,
    node_column_dtypes,
    read_edge_column,
)
from graphsys.engine.united_rows import (
    Direction,
    IndexBlock,
    is_whole,
    map_rows,
    unite,
    why_copied,
    with_columns,
)
from graphsys.graph.csr import (
    COLUMNS,
    Allocate,
    Csr,
    csr_from_edges,
    row_lengths,
    transpose,
)
from graphsys.graph.simple_rows import MergedCsr, simple_undirected
from graphsys.storage.node_numbers import NodeNumbers
from graphsys.storage.reader import GraphReader

if TYPE_CHECKING:
    import os

_DEGREES_AT_A_TIME = 1 << 20


class Topology:
    """The training edges of a graph, all node and edge types united.

    Algorithms ask it for rows (:meth:`rows`, :meth:`csr`), for ids (:attr:`numbers`) and
    for nothing else, so that they run on stores and on edges in memory alike.

    Args:
        numbers: The nodes.
        is_directed: Whether any edge has a direction.
        graph: The store behind it, or None.
        rows: The rows by direction, where they are in memory already.
        allocate: Where arrays of all entries come from; may be files.
    """

    def __init__(
        self,
        numbers: NodeNumbers,
        *,
        is_directed: bool,
        graph: GraphReader | None = None,
        rows: dict[Direction, Csr] | None = None,
        allocate: Allocate = np.empty,
    ) -> None:
        self.numbers = numbers
        self.allocate = allocate
        self.is_directed = is_directed
        self.graph = graph
        self._rows: dict[Direction, Csr] = rows or {}
        self._mapped: dict[Direction, Csr] = {}
        self._simple: Csr | None = None
        self._is_simple: bool | None = None
        self.node_columns: dict[str, npt.NDArray[Any]] = {}
        self.row_blocks: dict[str, Any] = {}
        """Degrees and ranks as programs read them; kept from one run to the next."""
        self._blocks: dict[Direction, list[IndexBlock]] = {}

    @classmethod
    def of(
        cls, graph: "GraphReader | Topology | str | os.PathLike[str] | Any"
    ) -> "Topology":
        """Return the topology of a store, or of anything else that holds a graph.

        Args:
            graph: A topology, or what :func:`graphsys.datasets.temporary.graph_of` takes.
        """
        if isinstance(graph, Topology):
            return graph
        if not isinstance(graph, GraphReader):
            graph = graph_of(graph)
        return cls(NodeNumbers.of(graph), is_directed=graph.is_directed, graph=graph)

    @classmethod
    def from_edges(
        cls,
        src: npt.ArrayLike,
        dst: npt.ArrayLike,
        num_nodes: int,
        *,
        weight: npt.ArrayLike | None = None,
        directed: bool = True,
        ids: Any = None,
    ) -> "Topology":
        """Hold edges in memory.

        Args:
            src: Source numbers, integers ``[E]``.
            dst: Destination numbers ``[E]``.
            num_nodes: Number of nodes.
            weight: Weights ``[E]``.
            directed: False: every edge counts in both directions (given once).
            ids: Ids ``[N]``, integers or strings; 0, 1, ... by default.

        Raises:
            InvalidGraphError: arrays that do not fit each other, repeated ids.
        """
        ends = _plain(src, "src"), _plain(dst, "dst")
        weights = None if weight is None else _plain(weight, "weight")
        if weights is not None and weights.shape != ends[0].shape:
            raise InvalidGraphError(
                f"weight must be as long as src, got shapes {weights.shape} and "
                f"{ends[0].shape}"
            )
        if weights is not None and weights.dtype.kind not in "biuf":
            raise InvalidGraphError(f"weight must be numbers, got {weights.dtype}")
        if not directed:
            mirrored = ends[0] != ends[1]
            ends = (
                np.concatenate([ends[0], ends[1][mirrored]]),
                np.concatenate([ends[1], ends[0][mirrored]]),
            )
            if weights is not None:
                weights = np.concatenate([weights, weights[mirrored]])
        out = csr_from_edges(*ends, num_nodes, weight=weights)
        numbers = NodeNumbers.from_ids(ids, num_nodes)
        rows: dict[Direction, Csr] = {"out": out, "in": transpose(out) if directed else out}
        return cls(numbers, is_directed=directed, rows=rows)

    def __repr__(self) -> str:
        kind = "directed" if self.is_directed else "undirected"
        return f"Topology({self.num_nodes} nodes, {kind}, {self.numbers.where})"

    # ---- nodes: short cuts to the numbering

    @property
    def num_nodes(self) -> int:
        """Nodes of all types."""
        return self.numbers.num_nodes

    @property
    def rank(self) -> npt.NDArray[Any] | None:
        """See :attr:`NodeNumbers.rank`."""
        return self.numbers.rank

    @property
    def by_rank(self) -> npt.NDArray[Any] | None:
        """See :attr:`NodeNumbers.by_rank`."""
        return self.numbers.by_rank

    def number(self, node: Any, node_type: str | None = None) -> int:
        """See :meth:`NodeNumbers.number`."""
        return self.numbers.number(node, node_type)

    def ids(self, numbers: npt.NDArray[Any] | None = None) -> pa.ChunkedArray:
        """See :meth:`NodeNumbers.ids`."""
        return self.numbers.ids(numbers)

    def table(self, columns: Mapping[str, Any]) -> pa.Table:
        """See :meth:`NodeNumbers.table`."""
        return self.numbers.table(columns)

    # ---- edges

    @property
    def num_edges(self) -> int:
        """Entries of the out rows: an undirected edge counts twice, a loop once."""
        if self.graph is None:
            return self._rows["out"].num_edges
        return sum(len(block.index.indices) for block in self.blocks("out"))

    def csr(self, direction: Direction = "out") -> Csr:
        """Return the rows of a direction in memory; both are one object if undirected.

        A store of one node type, edge type and partition is viewed, not copied.
        """
        if not self.is_directed:
            direction = "out"
        if direction not in self._rows:
            blocks = self._joined(direction) or self.blocks(direction)
            self._rows[direction] = unite(blocks, self.num_nodes, self.allocate)
        return self._rows[direction]

    def rows(self, direction: Direction = "out", columns: Sequence[str] = ()) -> Csr:
        """Return the rows of a direction, where they lie if possible.

        The files of a store of one node type and edge type are mapped side by side; all
        else is what :meth:`csr` returns.

        Args:
            direction: The direction.
            columns: Columns that the rows shall have, where the edges have them.
        """
        direction = direction if self.is_directed else "out"
        if self.is_at_hand(direction) or not self.can_map(direction, columns):
            return self.csr(direction)
        blocks, rows = self.blocks(direction), self._mapped.get(direction)
        try:
            rows = map_rows(blocks) if rows is None else rows
            wanted = self._existing(columns)
            missing = [name for name in wanted if name not in rows.columns]
            self._mapped[direction] = rows = with_columns(rows, blocks, missing)
        except OSError:  # a compaction took the files away; the blocks still see them
            return self.csr(direction)
        return rows

    def can_map(self, direction: Direction, columns: Sequence[str] = ()) -> bool:
        """Whether the files of the rows of a direction can be mapped side by side."""
        return not self.why_copied(direction, columns)

    def why_copied(self, direction: Direction, columns: Sequence[str] = ()) -> str:
        """Return why :meth:`rows` copies the rows of a store; empty where it does not."""
        if self.graph is None or self.is_at_hand(direction):
            return ""
        columns = self._existing(columns)
        return why_copied(self.blocks(direction), self.num_nodes, columns)

    def _existing(self, columns: Sequence[str]) -> Sequence[str]:
        """Return those columns that edges have; of none it is not asked what they have."""
        return [name for name in columns if name in self.column_dtypes()]

    @cached_property
    def out_degree(self) -> npt.NDArray[np.int64]:
        """Entries of every out row, int64 ``[N]``."""
        return self._degrees("out")

    @cached_property
    def in_degree(self) -> npt.NDArray[np.int64]:
        """Entries of every in row, int64 ``[N]``."""
        return self._degrees("in") if self.is_directed else self.out_degree

    def node_column_dtypes(self) -> dict[str, np.dtype[Any]]:
        """Return what programs read of the columns of the nodes, by name."""
        return node_column_dtypes(self.numbers)

    def edge_column_dtypes(self) -> dict[str, np.dtype[Any]]:
        """Return what programs read of the further columns of the edges, by name."""
        return edge_column_dtypes(self.graph)

    def edge_column(
        self, name: str, dtype: np.dtype[Any], direction: Direction, allocate: Allocate
    ) -> npt.NDArray[Any]:
        """Return a further column of the edges in the order of :meth:`csr` ``[E]``."""
        assert self.graph is not None  # edges in memory have no further columns
        direction = direction if self.is_directed else "out"
        blocks = self._joined(direction) or self.blocks(direction)
        return read_edge_column(self.graph, name, dtype, blocks, self.num_nodes, allocate)

    def column_dtypes(self) -> dict[str, np.dtype[Any]]:
        """Return the dtypes of the edges' columns, as the rows of :meth:`csr` have them."""
        if self.graph is None:
            own = self._rows["out"].columns
            return {name: column.dtype for name, column in own.items()}
        found = {}
        for name in COLUMNS:
            columns = [getattr(block.index, name) for block in self.blocks("out")]
            dtypes = [column.dtype for column in columns if column is not None]
            if dtypes:
                found[name] = np.result_type(*dtypes)
        return found

    @property
    def has_weight(self) -> bool:
        """Whether any edge has a weight of its own."""
        if self.graph is None:
            return self._rows["out"].weight is not None
        return any("weight" in e.columns for e in self.graph.manifest.edge_types.values())

    def simple(self) -> Csr:
        """Return the simple undirected graph, symmetric rows in memory."""
        if self._simple is None:
            if not self.is_directed and self.is_at_hand("out"):
                self._simple = simple_undirected(self.csr(), allocate=self.allocate)
            else:
                self._simple = self.simple_rows().csr(allocate=self.allocate)
        return self._simple

    def simple_in_place(self) -> Csr:
        """Return the rows of :meth:`simple`, those of the files where they are simple."""
        if self._simple is None and not self.is_directed and self.graph is not None:
            rows = self.rows()
            if self._is_simple is None:
                self._is_simple = MergedCsr.of(rows).degrees().sum() == rows.num_edges
            if self._is_simple:
                return rows
        return self.simple()

    def simple_rows(self) -> MergedCsr:
        """Return what :meth:`simple` makes, to be merged while it is read."""
        if self._simple is not None:
            return MergedCsr.of(self._simple)
        into = self.rows("in") if self.is_directed else None
        return MergedCsr.of(self.rows("out"), into)

    @property
    def is_simple_at_hand(self) -> bool:
        """Whether :meth:`simple` was made before."""
        return self._simple is not None

    def simplified(self) -> "Topology":
        """Return the same nodes joined by the simple undirected graph."""
        rows: dict[Direction, Csr] = {"out": self.simple(), "in": self.simple()}
        return Topology(self.numbers, is_directed=False, rows=rows, allocate=self.allocate)

    def placed(self, allocate: Allocate) -> "Topology":
        """Return the same graph, whose arrays of all entries come from elsewhere."""
        return Topology(
            self.numbers,
            is_directed=self.is_directed,
            graph=self.graph,
            rows=dict(self._rows),
            allocate=allocate,
        )

    def is_at_hand(self, direction: Direction) -> bool:
        """Whether :meth:`csr` takes no memory: rows made before, or mapped as they are."""
        direction = direction if self.is_directed else "out"
        if self.graph is None or direction in self._rows:
            return True
        return is_whole(self._joined(direction) or self.blocks(direction), self.num_nodes)

    def _joined(self, direction: Direction) -> list[IndexBlock]:
        """Return the one block that a graph has merged from its deltas, or none."""
        graph = self.graph
        if graph is None or len(graph.edge_types) != 1 or len(graph.node_types) != 1:
            return []
        (kind,) = graph.edge_types
        index = graph.joined_index(kind, direction)
        if index is None:
            return []
        return [
            IndexBlock(
                edge_type=kind,
                side=direction,
                part=0,
                row_base=0,
                column_base=0,
                index=index,
            )
        ]

    def blocks(self, direction: Direction) -> list[IndexBlock]:
        """Return the rows of a store as they lie on disk, mapped, without copies.

        Raises:
            InvalidGraphError: the graph is in memory and has no blocks.
        """
        if self.graph is None:
            raise InvalidGraphError("edges held in memory have rows but no blocks")
        if not self.is_directed:
            direction = "out"
        if direction not in self._blocks:
            self._blocks[direction] = self._blocks_along(self.graph, direction)
        return self._blocks[direction]

    def _blocks_along(self, graph: GraphReader, direction: Direction) -> list[IndexBlock]:
        sides: tuple[Direction, Direction] = ("out", "in")
        found = []
        for edge_type in graph.edge_types:
            is_directed = graph.is_directed_type(edge_type)
            is_symmetric = not is_directed and edge_type.src_type == edge_type.dst_type
            for side in sides:
                if side == direction or (not is_directed and not is_symmetric):
                    found += self._blocks_of(edge_type, side)
                elif is_symmetric and side == "out":
                    found += self._blocks_of(edge_type, "out")
        return found

    def _blocks_of(self, edge_type: EdgeType, side: Direction) -> list[IndexBlock]:
        graph = self.graph
        assert graph is not None  # blocks() checked
        own, other = edge_type.src_type, edge_type.dst_type
        rows = graph.out_index if side == "out" else graph.in_index
        if side == "in":
            own, other = other, own
        offsets = graph.offsets(own) + self.numbers.base(own)
        return [
            IndexBlock(
                edge_type=edge_type,
                side=side,
                part=part,
                row_base=int(offsets[part]),
                column_base=self.numbers.base(other),
                index=rows(edge_type, part),
            )
            for part in range(graph.num_partitions(own))
        ]

    def _degrees(self, direction: Direction) -> npt.NDArray[np.int64]:
        degrees = np.zeros(self.num_nodes, dtype=np.int64)
        self.add_degrees(direction, degrees)
        return degrees

    def add_degrees(self, direction: Direction, degrees: npt.NDArray[Any]) -> None:
        """Add the entries of every row to ``degrees`` ``[N]``, without copies of them."""
        if self.graph is None:
            rows = self._rows[direction if self.is_directed else "out"]
            spans = [(0, rows.indptr)]
        else:
            spans = [(b.row_base, b.index.indptr) for b in self.blocks(direction)]
        for base, indptr in spans:
            for low in range(0, len(indptr) - 1, _DEGREES_AT_A_TIME):
                lengths = row_lengths(indptr[low : low + _DEGREES_AT_A_TIME + 1])
                own = degrees[base + low : base + low + len(lengths)]
                own += lengths.astype(degrees.dtype)


def _plain(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """Return values as an array that kernels take; of no values, integers.

    Raises:
        InvalidGraphError: values are masked.
    """
    is_masked = isinstance(values, np.ma.MaskedArray)
    masked = int(np.ma.count_masked(values)) if is_masked else 0  # type: ignore[no-untyped-call]
    if masked:
        raise InvalidGraphError(
            f"{name} has {masked} masked values, expected none; leave their edges out"
        )
    array = np.asarray(values)
    if not array.size and array.ndim == 1:
        return array.astype(np.int64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)
