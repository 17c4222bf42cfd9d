"""Reading a store: numpy views of memory-mapped Arrow files, without copies."""

import os
from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError, InvalidGraphError, unknown_name
from graphsys.core.types import Bucket, EdgeType
from graphsys.graph.csr import Csr
from graphsys.storage.deltas.changes import DeltaMerge
from graphsys.storage.deltas.merge_cache import MergeCache
from graphsys.storage.ids.mapped_gather import taken
from graphsys.storage.integrity import check_nodes, check_rows
from graphsys.storage.lookup import lookup_ids
from graphsys.storage.manifest import (
    EdgeTypeEntry,
    Manifest,
    NodeTypeEntry,
    before_deltas,
    feature_path,
    node_path,
)
from graphsys.storage.mapped_files import MappedFiles
from graphsys.storage.opening import check_files, pin_current
from graphsys.storage.remote.fetching import graph_folder
from graphsys.storage.stored_edges import EdgeReader, StoredEdges
from graphsys.storage.transaction import remove_superseded
from graphsys.storage.views import EdgeBucket, IdArray
from graphsys.storage.write.feature_encoding import split_rows

G = TypeVar("G", bound="GraphReader", covariant=True)
"""The graph that a report has: a reader, or what users read it with."""
Window = tuple[int | None, int | None]
"""First time that is shown, and first later time that is not; None for no bound."""


class GraphReader:
    """A store opened for reading; its generation stays until :meth:`close`.

    It knows the store's files; :class:`graphsys.Graph` is one that answers more.

    Opening checks that every listed file is there with its size and its Arrow footer.
    Whoever maps a file first compares its checksum and checks its bounds (``first_look``).

    Args:
        path: The graph's folder, or ``s3://...``: files are then copied when first mapped.

    Raises:
        InvalidGraphError: there is no graph.
        CorruptStoreError: the manifest or a file is missing, cut short or too new.
    """

    window: Window | None = None
    """The span of time of a view (``timed_view``); None where all is shown."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = graph_folder(path)
        self.manifest, self._pin = pin_current(self.path)
        self.whole_manifest = self.manifest
        first = before_deltas(self.manifest)
        self._files = MappedFiles(self.path, self.manifest, first)
        self._num_first = {k: it.num_partitions for k, it in first.node_types.items()}
        self._kept: MergeCache | None = None
        if self.manifest.deltas:
            self._kept = MergeCache(self.path, self.manifest, self._files)
        self._edges = self._edge_reader(self.manifest, first, None, self._kept)
        self._whole_edges = self._edges
        try:
            check_files(self.path, self.manifest.files)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "GraphReader":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Graph({str(self.path)!r}, {self.num_nodes} nodes, {self.num_edges} edges)"

    def close(self) -> None:
        """Let the generation go; arrays in use stay valid.

        The last reader of a generation that has been replaced removes its files.
        """
        self._pin.release()
        remove_superseded(self.path, self.generation)

    # ---- what there is

    @property
    def generation(self) -> int:
        """Number of the generation that is open."""
        return self.manifest.generation

    @property
    def num_nodes(self) -> int:
        """Nodes of all types."""
        return sum(entry.num_nodes for entry in self.manifest.node_types.values())

    @property
    def num_edges(self) -> int:
        """Stored training edges of all types; an undirected edge counts once."""
        return sum(self.num_edges_of(kind) for kind in self.edge_types)

    @property
    def is_directed(self) -> bool:
        """Whether any edge type is directed (an edgeless graph is)."""
        entries = self.manifest.edge_types.values()
        return not entries or any(entry.directed for entry in entries)

    @property
    def node_types(self) -> list[str]:
        """Names of the node types."""
        return list(self.manifest.node_types)

    @property
    def edge_types(self) -> list[EdgeType]:
        """All edge types."""
        return [entry.edge_type for entry in self.manifest.edge_types.values()]

    def num_nodes_of(self, node_type: str) -> int:
        """Return the number of nodes of a type."""
        return self._node_entry(node_type).num_nodes

    def num_edges_of(self, edge_type: EdgeType | str, split: str | None = None) -> int:
        """Return the stored edges of a type in a split (``train`` or the only one)."""
        counts = self._edge_entry(edge_type).num_edges
        return counts.get(split or self.default_split(edge_type), 0)

    def default_split(self, edge_type: EdgeType | str) -> str:
        """Return ``train``, or the only split of an edge type that has one other."""
        return self._edge_entry(edge_type).counting_split

    def num_partitions(self, node_type: str) -> int:
        """Return the number of partitions of a node type."""
        return self._node_entry(node_type).num_partitions

    def offsets(self, node_type: str) -> npt.NDArray[np.int64]:
        """Return every partition's first number, and the number of nodes, ``[P + 1]``."""
        return np.asarray(self._node_entry(node_type).offsets, dtype=np.int64)

    def edge_type_name(self, edge_type: EdgeType | str) -> str:
        """Return the name under which the manifest lists an edge type."""
        if isinstance(edge_type, str):
            self._edge_entry(edge_type)
            return edge_type
        for name, entry in self.manifest.edge_types.items():
            if entry.edge_type == edge_type:
                return name
        raise unknown_name("edge type", str(edge_type), map(str, self.edge_types))

    def edge_type(self, name: str) -> EdgeType:
        """Return the edge type that the manifest lists as ``name``."""
        return self._edge_entry(name).edge_type

    def is_directed_type(self, edge_type: EdgeType | str) -> bool:
        """Return whether the edges of a type have a direction."""
        return self._edge_entry(edge_type).directed

    def splits(self, edge_type: EdgeType | str) -> list[str]:
        """Return the splits of an edge type."""
        return list(self._edge_entry(edge_type).num_edges)

    def relations(self, edge_type: EdgeType | str) -> list[str] | None:
        """Return the names behind the codes of the column ``relation``, or None."""
        return self._edge_entry(edge_type).relations

    def time_unit(self, edge_type: EdgeType | str | None = None) -> str:
        """Return the unit of the edges' times: d, s, ms, us, ns, or "" where none is known.

        Args:
            edge_type: One edge type; else the unit that all edges with times share.

        Raises:
            ConfigError: Edge types have different units and none was given.
        """
        if edge_type is not None:
            return self._edge_entry(edge_type).time_unit
        timed = {k: v for k, v in self.manifest.edge_types.items() if "time" in v.columns}
        units = {entry.time_unit for entry in timed.values()}
        if len(units) > 1:
            stated = ", ".join(f"{k} {v.time_unit or '-'}" for k, v in timed.items())
            raise ConfigError(f"edge types have times in different units: {stated}")
        return units.pop() if units else ""

    # ---- nodes

    def nodes(self, node_type: str, part: int) -> pa.Table:
        """Return the node table of a partition: ``id`` and further columns, mapped."""
        self._check_part(node_type, part)
        path = node_path(self.manifest, node_type, part)
        entry, size = self._node_entry(node_type), self._size(node_type, part)
        kind = pa.int64() if entry.id_type == "int64" else pa.large_string()
        if not self._files.is_listed(path, size):
            return pa.table({"id": pa.array([], type=kind)})
        with self._files.reading(
            path, partial(check_nodes, size=size, id_type=kind)
        ) as batch:
            return pa.Table.from_batches([batch])

    def node_ids(self, node_type: str) -> pa.ChunkedArray:
        """Return the ids of a type in the order of their numbers, mapped."""
        num_parts = self.num_partitions(node_type)

        def read(part: int) -> pa.ChunkedArray:
            return self.nodes(node_type, part).column("id")

        first, new = self._num_first[node_type], None
        if self._kept is not None:
            new = self._kept.new_ids(node_type, first, read)
        columns = [read(part) for part in range(num_parts if new is None else first)]
        chunks = [chunk for column in columns for chunk in column.chunks]
        if new is not None:
            chunks.append(new)
        return pa.chunked_array(chunks, type=columns[0].type if columns else None)

    def by_ids(self) -> Self:
        """Return the graph whose nodes go by their ids: this one, unless it is named."""
        return self

    def part_ids(self, node_type: str, part: int) -> pa.ChunkedArray:
        """Return the ids of a partition's nodes, mapped."""
        return self.nodes(node_type, part).column("id")

    def node_column(self, node_type: str, name: str) -> pa.ChunkedArray:
        """Return a column of all nodes of a type, in the order of their numbers.

        Raises:
            ConfigError: There is no such column.
        """
        known = self._node_entry(node_type).columns
        if name not in known:
            raise ConfigError(
                f"node type {node_type!r} has no column {name!r}; known: "
                f"{', '.join(known) or 'none'}"
            )
        parts = range(self.num_partitions(node_type))
        tables = [self.nodes(node_type, part) for part in parts]
        return pa.chunked_array(
            [c for t in tables if t.num_rows for c in t.column(name).chunks]
        )

    def ids_of(self, node_type: str, numbers: npt.ArrayLike) -> pa.Array:
        """Return the ids of nodes given by their numbers ``[n]``; reads no others."""
        return taken(self.node_ids(node_type), numbers)

    def lookup(self, node_type: str, ids: Sequence[Any] | npt.NDArray[Any]) -> IdArray:
        """Return the numbers of nodes given by their ids.

        Args:
            node_type: Their type.
            ids: Integers or strings ``[n]``.

        Returns:
            Numbers, int64 ``[n]``.

        Raises:
            UnknownNameError: an id is not in the graph; the message names the first.
        """
        return lookup_ids(self.node_ids(node_type), ids, f"{node_type!r} of {self.path}")

    def feature_names(self, node_type: str) -> list[str]:
        """Return the names of the features of a node type."""
        return list(self._node_entry(node_type).features)

    def features(self, node_type: str, part: int, name: str) -> npt.NDArray[Any] | pa.Array:
        """Return a partition's features, mapped; a copy where rows are shared.

        Returns:
            ``[n, d]`` in the stored dtype, or for bags an Arrow ``LargeListArray`` of
            uint32 with n lists.
        """
        rows, places = self.feature_rows(node_type, part, name)
        return rows if places is None else rows[places]

    def feature_rows(
        self, node_type: str, part: int, name: str
    ) -> tuple[npt.NDArray[Any] | pa.Array, npt.NDArray[np.uint32] | None]:
        """Return a partition's features as they lie in the file, mapped.

        Returns:
            As :meth:`features`, and None; or, where rows are shared, the distinct ones
            ``[k, d]`` and which of them each node has, uint32 ``[n]``.
        """
        self._check_part(node_type, part)
        feature = self._node_entry(node_type).features.get(name)
        if feature is None:
            raise unknown_name("feature", name, self.feature_names(node_type))
        path = feature_path(self.manifest, node_type, name, part)
        size = self._size(node_type, part)
        if not self._files.is_listed(path, size):
            if feature["dim"] == 0:
                return pa.array([], type=pa.large_list(pa.uint32())), None
            return np.empty((0, feature["dim"]), dtype=feature["dtype"]), None
        with self._files.reading(path, partial(check_rows, size=size)) as batch:
            column = batch.column(0)
            if feature["dim"] == 0:
                return column, None
            return split_rows(column, feature["dim"])

    # ---- edges

    def bucket_counts(
        self, edge_type: EdgeType | str, split: str | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the edges of every bucket, int64 ``[P_src, P_dst]``."""
        name, split = self.edge_type_name(edge_type), split or self.default_split(edge_type)
        return self._edges.bucket_counts(name, split)

    def buckets(self, edge_type: EdgeType | str, split: str | None = None) -> list[Bucket]:
        """Return the buckets that hold edges, by (source, destination) partition."""
        filled = np.argwhere(self.bucket_counts(edge_type, split))
        return [Bucket(i, j) for i, j in filled.tolist()]

    def bucket(
        self, edge_type: EdgeType | str, i: int, j: int, split: str | None = None
    ) -> EdgeBucket:
        """Return the edges from partition ``i`` to ``j``; empty where there are none.

        Args:
            edge_type: The edge type or its name.
            i: Partition of the sources.
            j: Partition of the destinations.
            split: A split; ``train`` (or the only one) by default.
        """
        entry = self._edge_entry(edge_type)
        self._check_part(entry.src_type, i)
        self._check_part(entry.dst_type, j)
        name, split = self.edge_type_name(edge_type), split or self.default_split(edge_type)
        if split not in entry.num_edges and entry.num_edges:
            raise unknown_name(f"split of edge type {name!r}", split, entry.num_edges)
        return self._edges.bucket(name, i, j, split)

    def out_index(self, edge_type: EdgeType | str, part: int) -> Csr:
        """Return the out-neighbors (CSR) of a partition's nodes over the training edges.

        For undirected edges the symmetric index: all neighbors.
        """
        return self._index(edge_type, "out", part)

    def in_index(self, edge_type: EdgeType | str, part: int) -> Csr:
        """Return the in-neighbors (CSC) of a partition's nodes over the training edges.

        For undirected edges the symmetric index, the same as :meth:`out_index`.
        """
        entry = self._edge_entry(edge_type)
        is_symmetric = not entry.directed and entry.src_type == entry.dst_type
        direction = "out" if is_symmetric else "in"
        return self._index(edge_type, direction, part)

    def joined_index(self, edge_type: EdgeType | str, direction: str) -> Csr | None:
        """Return the rows of all partitions, where they were merged as one, or None.

        So are those of a graph whose first generation has one partition and whose deltas
        brought new nodes.
        """
        is_symmetric = not self.is_directed_type(edge_type)
        kind = self._edge_entry(edge_type)
        if is_symmetric and kind.src_type == kind.dst_type:
            direction = "out"
        return self._edges.joined(self.edge_type_name(edge_type), direction)

    def _index(self, edge_type: EdgeType | str, direction: str, part: int) -> Csr:
        entry = self._edge_entry(edge_type)
        self._check_part(entry.src_type if direction == "out" else entry.dst_type, part)
        return self._edges.index(self.edge_type_name(edge_type), direction, part)

    # ---- helpers

    @property
    def fingerprint(self) -> str:
        """A hash of the content: equal for equal stores, different after a change."""
        return self.manifest.fingerprint

    def read_file(self, path: str) -> pa.RecordBatch:
        """Return what a listed file holds, mapped; its checksum is all that is checked."""
        return self._files.batch(path, lambda batch: None)

    def _edge_reader(
        self,
        manifest: Manifest,
        first: Manifest,
        until: int | None,
        kept: MergeCache | None = None,
    ) -> EdgeReader:
        """Return who reads edges: from the files alone, or with what deltas changed."""
        stored = StoredEdges(first, self._files)
        if not manifest.deltas:
            return stored
        return DeltaMerge(self.path, manifest, stored, self._files.batch, until, kept)

    def _node_entry(self, node_type: str) -> NodeTypeEntry:
        entry = self.manifest.node_types.get(node_type)
        if entry is None:
            raise unknown_name("node type", node_type, self.node_types)
        return entry

    def _edge_entry(self, edge_type: EdgeType | str) -> EdgeTypeEntry:
        entries = self.manifest.edge_types
        if isinstance(edge_type, str):
            if edge_type not in entries:
                raise unknown_name("edge type", edge_type, entries)
            return entries[edge_type]
        return entries[self.edge_type_name(edge_type)]

    def _size(self, node_type: str, part: int) -> int:
        """Return the number of nodes of a partition."""
        offsets = self._node_entry(node_type).offsets
        return offsets[part + 1] - offsets[part]

    def _check_part(self, node_type: str, part: int) -> None:
        num_partitions = self.num_partitions(node_type)
        if not 0 <= part < num_partitions:
            raise InvalidGraphError(
                f"node type {node_type!r} has partitions 0 to {num_partitions - 1}, "
                f"got {part}"
            )


def open_graph(path: str | os.PathLike[str]) -> GraphReader:
    """Open a graph for reading; see :class:`GraphReader`."""
    return GraphReader(path)
