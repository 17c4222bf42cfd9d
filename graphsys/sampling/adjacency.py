"""Rows of neighbors as samplers read them: mapped index files, reached by address."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.core.errors import ConfigError, InvalidGraphError, unknown_name
from graphsys.core.types import EdgeType
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.rows.row_table import INDICES, INDPTR, TIME, WEIGHT
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
Side = Literal["in", "out"]
REVERSED = ":reversed"


@dataclass(frozen=True, kw_only=True)
class PartitionedCsr:
    """The neighbors of all nodes of a type, over the training edges of one edge type.

    A row belongs to the node that messages arrive at; its entries are where they come
    from. Nothing is copied: the arrays of ``indexes`` are views of the mapped files.

    Attributes:
        name: The edge type's name; ends in ``:reversed`` where messages run against the
            edges.
        edge_type: The edge type.
        node_type: Whose rows these are.
        neighbor_type: Whose numbers the entries are.
        offsets: First number of every partition, and the number of nodes ``[P + 1]``.
        num_neighbors: Nodes of the neighbors' type.
        first_entry: Entries of all partitions before each, and of all ``[P + 1]``.
        table: Addresses of indptr, indices, weights and times, uint64 ``[P, 4]``.
        wide: Whether those are int64 (float64), else uint32 (float32), ``[P, 4]``.
        indexes: The rows themselves, partition by partition.
    """

    name: str
    edge_type: EdgeType
    node_type: str
    neighbor_type: str
    offsets: Ints
    num_neighbors: int
    first_entry: Ints
    table: npt.NDArray[np.uint64]
    wide: npt.NDArray[np.uint8]
    indexes: tuple[Csr, ...]
    weights: tuple[npt.NDArray[Any], ...]

    @property
    def num_nodes(self) -> int:
        """Number of rows."""
        return int(self.offsets[-1])

    @property
    def num_entries(self) -> int:
        """Number of entries of all rows."""
        return int(self.first_entry[-1])

    @property
    def has_weight(self) -> bool:
        """Whether edges have weights."""
        return bool(self.weights)

    @property
    def has_time(self) -> bool:
        """Whether edges have times."""
        filled = [index for index in self.indexes if len(index.indices)]
        return bool(filled) and all(index.time is not None for index in filled)

    def degrees(self) -> Ints:
        """Return the length of every row, int64 ``[N]``."""
        return np.concatenate(
            [np.diff(index.indptr.astype(np.int64)) for index in self.indexes]
            or [np.empty(0, dtype=np.int64)]
        )

    def column(self, name: str, entries: Ints) -> npt.NDArray[Any]:
        """Return a column of edges given by the positions of their entries.

        Args:
            name: ``weight``, ``time``, ``relation``, or ``edge`` (the edge's position in
                the sequence of buckets, for any further column).
            entries: Positions in the sequence of index files, as blocks have them ``[E]``.

        Returns:
            The values ``[E]``, a copy.

        Raises:
            UnknownNameError: The edges have no such column.
        """
        names = ("weight", "time", "relation", "edge")
        filled = [index for index in self.indexes if len(index.indices)]
        if name not in names or any(getattr(index, name) is None for index in filled):
            known = [it for it in names if any(getattr(i, it) is not None for i in filled)]
            raise unknown_name(f"column of edges {self.name!r}", name, known)
        columns = [getattr(index, name) for index in self.indexes]
        dtypes = [getattr(index, name).dtype for index in filled]
        dtype = np.result_type(*dtypes) if dtypes else np.dtype("f4")
        values = np.empty(len(entries), dtype=dtype)
        parts = np.searchsorted(self.first_entry, entries, side="right") - 1
        for part in distinct(parts):
            chosen = parts == part
            values[chosen] = columns[part][entries[chosen] - self.first_entry[part]]
        return values


def rows_of(
    graph: GraphReader, edge_type: EdgeType | str, side: Side = "in"
) -> PartitionedCsr:
    """Return the rows of one end of an edge type's edges.

    Args:
        graph: An open graph.
        edge_type: The edge type or its name.
        side: ``in``: rows of destinations, which list sources; ``out``: of sources.

    Raises:
        UnknownNameError: There is no such edge type.
        InvalidGraphError: Weights that are no numbers of 32 or 64 bits.
    """
    name = graph.edge_type_name(edge_type)
    kind = graph.edge_type(name)
    own, other = (kind.dst_type, kind.src_type) if side == "in" else (kind[0], kind[2])
    read = graph.in_index if side == "in" else graph.out_index
    offsets, joined = graph.offsets(own), graph.joined_index(name, side)
    if joined is None:
        indexes = tuple(read(name, part) for part in range(graph.num_partitions(own)))
    else:
        indexes, offsets = (joined,), offsets[[0, -1]]
    weights = _weights(name, indexes)
    table, wide = address(indexes, weights)
    sizes = [len(index.indices) for index in indexes]
    is_symmetric = not graph.is_directed_type(name) and own == other
    return PartitionedCsr(
        name=name if side == "in" or is_symmetric else name + REVERSED,
        edge_type=kind,
        node_type=own,
        neighbor_type=other,
        offsets=offsets,
        num_neighbors=graph.num_nodes_of(other),
        first_entry=np.cumsum([0, *sizes], dtype=np.int64),
        table=table,
        wide=wide,
        indexes=indexes,
        weights=weights,
    )


def message_rows(
    graph: GraphReader, edge_types: Sequence[str] = (), *, reverse: bool = True
) -> list[PartitionedCsr]:
    """Return the rows along which messages travel, relation by relation.

    An undirected edge type within one node type has one relation. Any other has one
    along its edges and, with ``reverse``, one against them; undirected edges between two
    types have both in any case.

    Args:
        graph: An open graph.
        edge_types: Names of edge types; all by default.
        reverse: Whether directed edges are traveled both ways.

    Raises:
        UnknownNameError: There is no such edge type.
        ConfigError: The graph has no edge types.
    """
    names = list(edge_types) or [graph.edge_type_name(kind) for kind in graph.edge_types]
    if not names:
        raise ConfigError(
            f"the graph {graph.path} has no edges; there is nothing to sample"
        )
    found = []
    for name in names:
        kind, is_directed = graph.edge_type(name), graph.is_directed_type(name)
        found.append(rows_of(graph, name, "in"))
        is_symmetric = not is_directed and kind.src_type == kind.dst_type
        if not is_symmetric and (reverse or not is_directed):
            found.append(rows_of(graph, name, "out"))
    return found


def address(
    indexes: Sequence[Csr], weights: Sequence[npt.NDArray[Any]]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8]]:
    """Return where arrays of indexes are, and which are wide (:class:`PartitionedCsr`).

    Args:
        indexes: The rows of each partition; they are to outlive the addresses.
        weights: Their weights; none where edges have none.
    """
    table = np.zeros((len(indexes), 4), dtype=np.uint64)
    wide = np.zeros((len(indexes), 4), dtype=np.uint8)
    for part, index in enumerate(indexes):
        arrays = {INDPTR: index.indptr, INDICES: index.indices}
        if weights:
            arrays[WEIGHT] = weights[part]
        if index.time is not None:
            arrays[TIME] = index.time
        for column, array in arrays.items():
            table[part, column] = array.ctypes.data
            wide[part, column] = array.dtype.itemsize == 8
    return table, wide


def _weights(name: str, indexes: Sequence[Csr]) -> tuple[npt.NDArray[Any], ...]:
    if not any(index.weight is not None for index in indexes):
        return ()
    found = []
    for index in indexes:
        weight = np.empty(0, "f4") if index.weight is None else index.weight
        if weight.dtype.kind not in "iuf":
            raise InvalidGraphError(
                f"weights of edges {name!r} are {weight.dtype}, expected numbers"
            )
        if weight.dtype not in (np.float32, np.float64):
            weight = weight.astype(np.float64)
        found.append(weight)
    return tuple(found)
