"""Appending to a store: a delta beside what is there, at the cost of what is new.

What is new is held in memory, numbered, sorted and written into ``deltas/<k>/`` of the
current generation; nothing that is there is read as a whole or written again. Deletions
come first: they mean edges that the store had before.
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import InputError
from graphsys.core.types import number_dtype
from graphsys.storage.delta_entry import DeltaEntry
from graphsys.storage.deltas.edges import TRAVELLING
from graphsys.storage.deltas.order import edge_order
from graphsys.storage.dynamic.append_input import AppendedEdges, AppendInput
from graphsys.storage.dynamic.deletions import Deletions, check_policy
from graphsys.storage.dynamic.delta_transaction import DeltaTransaction
from graphsys.storage.dynamic.new_nodes import write_new_nodes
from graphsys.storage.dynamic.schema import as_stored, weights_as_stored
from graphsys.storage.manifest import (
    DELTA_FORMAT_VERSION,
    MANIFEST_NAME,
    EdgeTypeEntry,
    Manifest,
    NodeTypeEntry,
    added_file,
    removed_file,
)
from graphsys.storage.reader import G, GraphReader
from graphsys.storage.source import Source
from graphsys.storage.transaction import disk_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendReport(Generic[G]):
    """What came of an append.

    Attributes:
        graph: The graph with the delta, open.
        num_added: Edges added.
        num_removed: Edges removed.
        missing_deletes: Deletions of what was not there.
        bytes_written: Bytes of the delta's files and of the manifest.
        seconds: Wall time of the whole append.
    """

    graph: G
    num_added: int
    num_removed: int
    missing_deletes: int
    bytes_written: int
    seconds: float


def append(
    path: str | os.PathLike[str],
    source: Source | None,
    *,
    deletes: Sequence[Source] = (),
    missing_deletes: str = "error",
) -> AppendReport[GraphReader]:
    """Add nodes and edges to a store, and remove edges, as one delta.

    Args:
        path: The graph's folder.
        source: New edges and nodes, with the types and columns that the graph has; held in
            memory. None where there are only deletions.
        deletes: Edges to remove, before the others are added: all copies of (src, dst), in
            every split; with a relation only those that have it; with a time, at which it
            is deleted, only those that are not younger.
        missing_deletes: "error" to refuse deletions of what is not there, "count" to leave
            them out.

    Returns:
        Counts and the graph as it is now, open.

    Raises:
        InvalidGraphError: there is no graph.
        InputError: a source is malformed, changes the schema, lists a node that is there,
            or deletes what is not.
        StoreBusyError: another process writes to the graph.
        StorageFullError: the disk is full; the graph stays as it was.
    """
    check_policy(missing_deletes)
    began = time.perf_counter()
    with DeltaTransaction(path) as transaction, disk_errors(Path(path)):
        with GraphReader(path) as graph:
            writer = _DeltaWriter(graph, transaction)
            for each in deletes:
                writer.deletions.read(each)
            if source is not None:
                writer.given.read(source)
            manifest = writer.write(source.name if source else "", missing_deletes)
        if manifest is not None:
            transaction.commit(manifest)
    size, entry = sum(entry.bytes for entry in transaction.files), writer.entry
    if manifest is not None:
        size += (Path(path) / MANIFEST_NAME).stat().st_size
    return AppendReport(
        graph=GraphReader(path),
        num_added=_total(entry.added),
        num_removed=_total(entry.removed),
        missing_deletes=writer.deletions.num_missing,
        bytes_written=size,
        seconds=time.perf_counter() - began,
    )


class _DeltaWriter:
    """Writes the files of one delta and makes the manifest that lists them."""

    def __init__(self, graph: GraphReader, transaction: DeltaTransaction) -> None:
        self._graph, self._transaction = graph, transaction
        self.given = AppendInput(graph, transaction)
        self.deletions = Deletions(graph, self.given)
        self.entry = DeltaEntry(number=transaction.number)

    def write(self, source: str, missing_deletes: str) -> Manifest | None:
        """Write everything that was read; None where it comes to nothing."""
        old = self._graph.manifest
        self.entry = replace(self.entry, source=source)
        # Found before anything new is numbered: deletions mean edges that the store had
        # before.
        removed = list(self.deletions.find())
        if missing_deletes == "error":
            self.deletions.require_all()
        self.given.settle()
        node_types = dict(old.node_types)
        for name, finder in self.given.finders.items():
            given = self.given.nodes.get(name)
            node_types[name] = write_new_nodes(
                self._graph, finder, given, self._transaction, self.given.scratch
            )
            self._note_nodes(name, old.node_types[name], node_types[name])
        edge_types = dict(old.edge_types)
        for name, split, found in removed:
            entry = edge_types[name]
            sizes = [node_types[it].num_nodes for it in (entry.src_type, entry.dst_type)]
            path = removed_file(old.generation, self.entry.number, name, split)
            self._transaction.add_file(path, found.batch(*sizes))
            edge_types[name] = _counted(entry, split, -len(found.src))
            self.entry.removed.setdefault(name, {})[split] = len(found.src)
        for (name, split), edges in self.given.edges.items():
            entry = self._with_relations(name, edge_types[name], edges)
            count = self._write_edges(name, split, edges, entry, node_types)
            edge_types[name] = _counted(entry, split, count)
            self.entry.added.setdefault(name, {})[split] = count
        if not (self.entry.added or self.entry.removed or self.entry.partitions):
            # Deletions of what is not there were asked to be counted: then nothing is to be
            # written.
            if self.deletions.num_missing:
                return None
            raise InputError(
                f"nothing to append to {self._graph.path}: no edges, no nodes that it has "
                "not, and nothing to delete"
            )
        return replace(
            old,
            node_types=node_types,
            edge_types=edge_types,
            deltas=[*old.deltas, self.entry],
            files=sorted(
                [*old.files, *self._transaction.files], key=lambda entry: entry.path
            ),
            format_version=max(DELTA_FORMAT_VERSION, old.format_version),
        )

    def _note_nodes(self, name: str, old: NodeTypeEntry, new: NodeTypeEntry) -> None:
        if new.num_partitions == old.num_partitions:
            return
        self.entry.partitions[name] = new.num_partitions - 1
        gains = {k: v - old.splits.get(k, 0) for k, v in new.splits.items()}
        if gains := {k: v for k, v in gains.items() if v}:
            self.entry.node_splits[name] = gains

    def _with_relations(
        self, name: str, entry: EdgeTypeEntry, edges: AppendedEdges
    ) -> EdgeTypeEntry:
        known = entry.relations
        if known is None:
            return entry
        new = sorted(set(edges.log.relation_names or ()) - set(known))
        if new:
            self.entry.relations[name] = self.entry.relations.get(name, 0) + len(new)
        return replace(entry, relations=[*known, *new])

    def _write_edges(
        self,
        name: str,
        split: str,
        edges: AppendedEdges,
        entry: EdgeTypeEntry,
        node_types: Mapping[str, NodeTypeEntry],
    ) -> int:
        src, dst = edges.numbers()
        if not entry.directed and entry.src_type == entry.dst_type:
            # An undirected edge is stored once, seen from its smaller end.
            src, dst = np.minimum(src, dst), np.maximum(src, dst)
        columns = edges.columns()
        record = columns.pop("record", None)
        if "relation" in columns:
            codes = {it: k for k, it in enumerate(entry.relations or ())}
            own = [codes[it] for it in edges.log.relation_names or ()]
            wide = len(codes) > 2**16
            # The log numbers relations as it met them, the store as it lists them.
            recode = np.array(own, dtype=np.uint32 if wide else np.uint16)
            columns["relation"] = recode[columns["relation"]]
        if "weight" in columns:
            kind = entry.columns["weight"]
            columns["weight"] = weights_as_stored(columns["weight"], kind, name)
        order = edge_order(src, dst, columns.get("relation"))
        kinds = [
            number_dtype(node_types[it].num_nodes)
            for it in (entry.src_type, entry.dst_type)
        ]
        arrays: dict[str, Any] = {
            "src": pa.array(src[order].astype(kinds[0])),
            "dst": pa.array(dst[order].astype(kinds[1])),
        }
        for key in TRAVELLING:
            if key in columns:
                arrays[key] = _as_column(key, columns[key][order], entry)
        if edges.log.rows is not None and record is not None:
            for key, values in edges.log.rows.take(record[order]).items():
                what = f"column {key!r} of edge type {name!r}"
                kind_of = self._column_type(name, key, values)
                arrays[key] = as_stored(values, kind_of, what)
        batch = pa.record_batch(list(arrays.values()), list(arrays))
        generation, number = self._transaction.generation, self.entry.number
        self._transaction.add_file(added_file(generation, number, name, split), batch)
        return len(src)

    def _column_type(self, name: str, column: str, given: pa.Array) -> pa.DataType:
        """Return the Arrow type that a further column of edges has in the graph."""
        stated = self._graph.manifest.edge_types[name].columns[column]
        if str(given.type) == stated:
            return given.type
        for split in self._graph.splits(name):
            for i, j in self._graph.buckets(name, split):
                bucket = self._graph.bucket(name, i, j, split)
                return bucket.columns[column].type
        return pa.type_for_alias(stated)


def _as_column(name: str, values: npt.NDArray[Any], entry: EdgeTypeEntry) -> pa.Array:
    if name != "relation":
        return pa.array(values)
    texts = pa.array(entry.relations, type=pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(values), texts)


def _counted(entry: EdgeTypeEntry, split: str, gain: int) -> EdgeTypeEntry:
    return replace(
        entry, num_edges={**entry.num_edges, split: entry.num_edges[split] + gain}
    )


def _total(counts: Mapping[str, Mapping[str, int]]) -> int:
    return sum(sum(by_split.values()) for by_split in counts.values())
