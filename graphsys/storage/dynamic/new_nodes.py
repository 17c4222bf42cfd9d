"""The nodes that a delta brings: a partition of their own, behind all others."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError, InputError, cut_list
from graphsys.storage.dynamic.append_input import AppendedNodes
from graphsys.storage.dynamic.delta_transaction import DeltaTransaction
from graphsys.storage.dynamic.node_finder import NodeFinder
from graphsys.storage.dynamic.schema import as_stored
from graphsys.storage.manifest import (
    MAX_PARTITIONS,
    FileEntry,
    NodeTypeEntry,
    in_delta,
)
from graphsys.storage.reader import GraphReader
from graphsys.storage.scratch import Scratch
from graphsys.storage.source import NodeChunk
from graphsys.storage.write.node_tables import NodeTables
from graphsys.storage.write.row_store import as_arrow


def write_new_nodes(
    graph: GraphReader,
    finder: NodeFinder,
    given: AppendedNodes | None,
    transaction: DeltaTransaction,
    scratch: Scratch,
) -> NodeTypeEntry:
    """Write the new nodes of a type and return the manifest's entry of the type.

    All types share the append's scratch, which numbers its files.

    Raises:
        InputError: their columns or features are not those of the graph, or are missing.
        ConfigError: there is no room for another partition.
    """
    entry = graph.manifest.node_types[finder.node_type]
    ids = finder.new_ids
    if not len(ids):
        return entry
    if entry.num_partitions >= MAX_PARTITIONS:
        raise ConfigError(
            f"node type {finder.node_type!r} has {entry.num_partitions} partitions, the "
            f"most that there can be; run `graphsys compact {graph.path}` first"
        )
    numbering = _New(finder)
    tables = NodeTables(finder.node_type, scratch)
    _fill(tables, graph, finder, given, entry)
    tables.check_places(numbering)  # type: ignore[arg-type] # it has what is asked for
    part = _Partition(transaction, finder.node_type, entry.num_partitions)
    new = tables.write(numbering, part)  # type: ignore[arg-type] # as above
    features = {name: dict(it) for name, it in entry.features.items()}
    for it in features.values():
        if "stored_rows" in it:
            it["stored_rows"] += len(ids)
    return replace(
        entry,
        offsets=[*entry.offsets, entry.num_nodes + len(ids)],
        features=features,
        splits={
            split: entry.splits.get(split, 0) + new.splits.get(split, 0)
            for split in {**entry.splits, **new.splits}
        },
    )


@dataclass
class _New:
    """New nodes, numbered from 0, as far as tables of nodes ask."""

    finder: NodeFinder

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        return np.array([0, len(self.finder.new_ids)], dtype=np.int64)

    @property
    def num_nodes(self) -> int:
        return len(self.finder.new_ids)

    @property
    def id_type(self) -> str:
        return "large_string" if self.finder.is_string else "int64"

    def ids(self, part: int) -> pa.Array:
        del part
        return pa.array(self.finder.new_ids)


@dataclass
class _Partition:
    """Puts the files of a first partition where those of a delta's belong."""

    transaction: DeltaTransaction
    node_type: str
    part: int

    @property
    def generation(self) -> int:
        return self.transaction.generation

    def add_file(self, path: str, batch: pa.RecordBatch) -> FileEntry:
        folder = path.removesuffix("part-0.arrow")
        path = in_delta(f"{folder}part-{self.part}.arrow", self.transaction.number)
        return self.transaction.add_file(path, batch)


def _fill(
    tables: NodeTables,
    graph: GraphReader,
    finder: NodeFinder,
    given: AppendedNodes | None,
    entry: NodeTypeEntry,
) -> None:
    kinds = _column_types(graph, finder.node_type) if entry.columns else {}
    given = given or AppendedNodes()
    is_told = False
    for chunk, ids in zip(given.chunks, given.ids, strict=True):
        places = ids.settle() - finder.num_known
        if not chunk.columns and not chunk.features:  # some may be there already
            places = places[places >= 0]
            chunk = replace(chunk, ids=places)
            if entry.columns or entry.features:
                continue
        tables.add(_as_stored(chunk, finder.node_type, kinds, entry))
        tables.place(places, len(finder.new_ids))
        is_told = True
    if entry.features and not is_told:
        shown = cut_list(finder.new_ids[:6].tolist())
        raise InputError(
            f"node type {finder.node_type!r} has features, but there are none for "
            f"{len(finder.new_ids)} new nodes: {shown}; give a table of them"
        )
    if entry.columns and not is_told:
        nothing = {name: pa.nulls(1, kind) for name, kind in kinds.items()}
        tables.add(NodeChunk(ids=np.zeros(1), node_type=finder.node_type, columns=nothing))
        tables.place(np.zeros(1, dtype=np.int64), len(finder.new_ids))


def _as_stored(
    chunk: NodeChunk, node_type: str, kinds: dict[str, pa.DataType], entry: NodeTypeEntry
) -> NodeChunk:
    columns = {}
    for name, values in chunk.columns.items():
        what = f"column {name!r} of node type {node_type!r}"
        columns[name] = as_stored(as_arrow(values), kinds[name], what)
    for name, rows in chunk.features.items():
        wanted = entry.features[name]
        is_dense = isinstance(rows, np.ndarray)
        found: tuple[Any, int] = ("uint32", 0)
        if is_dense:
            found = rows.dtype.name, rows.shape[1]
        if found != (wanted["dtype"], wanted["dim"]):
            raise InputError(
                f"feature {name!r} of node type {node_type!r} is {found[0]}[{found[1]}], "
                f"in the graph {wanted['dtype']}[{wanted['dim']}]; give such rows"
            )
    return replace(chunk, columns=columns)


def _column_types(graph: GraphReader, node_type: str) -> dict[str, pa.DataType]:
    sizes = np.diff(graph.offsets(node_type))
    part = int(np.flatnonzero(sizes)[0])
    schema = graph.nodes(node_type, part).schema
    return {field.name: field.type for field in schema if field.name != "id"}
