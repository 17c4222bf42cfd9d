"""Which of some ids a graph has, and the numbers that the others get."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.arrays import distinct
from graphsys.core.errors import InputError
from graphsys.storage.dynamic.delta_transaction import DeltaTransaction
from graphsys.storage.dynamic.id_table import (
    WORTH_A_TABLE,
    find_in_table,
    find_sorted,
    find_strings,
    make_table,
)
from graphsys.storage.ids.id_mapping import clean_ids
from graphsys.storage.ingest.graph_source import as_ids
from graphsys.storage.manifest import before_deltas, id_table_file
from graphsys.storage.reader import GraphReader


class NodeFinder:
    """Finds the nodes of one type.

    Args:
        graph: The graph as the transaction found it.
        node_type: The type.
        transaction: Where the table from ids to numbers goes, if there is none yet.

    Attributes:
        num_known: Nodes that the graph has.
        new_ids: Ids that it has not, ascending: the first gets number ``num_known``.
    """

    def __init__(
        self, graph: GraphReader, node_type: str, transaction: DeltaTransaction
    ) -> None:
        self._graph, self.node_type = graph, node_type
        self._transaction = transaction
        first = before_deltas(graph.manifest).node_types[node_type]
        self._num_first_parts = first.num_partitions
        self._num_first = first.num_nodes
        self._table: pa.RecordBatch | None = None
        self._later: dict[int, pa.ChunkedArray] = {}  # both ends of edges look there
        self.num_known = graph.num_nodes_of(node_type)
        self.is_string = graph.manifest.node_types[node_type].id_type != "int64"
        self.new_ids: Any = as_ids(pa.array([], self._id_type))

    @property
    def _id_type(self) -> pa.DataType:
        return pa.large_string() if self.is_string else pa.int64()

    def clean(self, ids: Any) -> Any:
        """Return ids as they are looked up: integers, or a dictionary of strings.

        Raises:
            InputError: they are no ids, or of another kind than the graph's.
        """
        found = clean_ids(ids, self.node_type)
        if len(found) and isinstance(found, np.ndarray) == self.is_string:
            kinds = ("strings", "integers") if self.is_string else ("integers", "strings")
            raise InputError(
                f"node type {self.node_type!r} has {kinds[0]} as ids in "
                f"{self._graph.path}, got {kinds[1]}; give the ids that the graph has "
                "(--ids says their kind)"
            )
        return found

    def find(self, ids: Any) -> npt.NDArray[np.int64]:
        """Return the numbers of clean ids, int64 ``[n]``; -1 for those not there."""
        if isinstance(ids, pa.DictionaryArray):
            numbers = self._find_strings(ids.dictionary)
            places = ids.indices.to_numpy(zero_copy_only=False)
            return numbers[places] if len(ids) else np.empty(0, dtype=np.int64)
        if not len(ids):
            return np.empty(0, dtype=np.int64)
        numbers = self._find_first(ids)
        for part in self._later_parts():
            missing = np.flatnonzero(numbers < 0)
            if not len(missing):
                break
            known = self._ids_of(part).to_numpy()
            places = find_sorted(known, ids[missing])
            base = int(self._graph.offsets(self.node_type)[part])
            numbers[missing] = np.where(places < 0, -1, places + base)
        return numbers

    def settle(self, unknown: list[Any]) -> None:
        """Learn all ids that were not found, so that they get numbers."""
        if not unknown:
            return
        if self.is_string:
            joined = pa.concat_arrays([it.cast(self._id_type) for it in unknown])
            values = pc.unique(joined)
            self.new_ids = values.take(pc.sort_indices(values))
        else:
            self.new_ids = distinct(np.concatenate(unknown).astype(np.int64))

    def number_new(self, ids: Any) -> npt.NDArray[np.int64]:
        """Return the numbers of ids that :meth:`settle` learned, int64 ``[n]``."""
        find = find_strings if self.is_string else find_sorted
        return self.num_known + find(self.new_ids, ids)

    def _later_parts(self) -> range:
        return range(self._num_first_parts, self._graph.num_partitions(self.node_type))

    def _ids_of(self, part: int) -> pa.ChunkedArray:
        """Return the ids of a partition that a delta brought, mapped once."""
        if part not in self._later:
            self._later[part] = self._graph.nodes(self.node_type, part).column("id")
        return self._later[part]

    def _find_strings(self, ids: pa.Array) -> npt.NDArray[np.int64]:
        numbers = self._find_first(ids)
        for part in self._later_parts():
            missing = np.flatnonzero(numbers < 0)
            if not len(missing):
                break
            column = self._ids_of(part)
            places = find_strings(column.combine_chunks(), ids.take(pa.array(missing)))
            base = int(self._graph.offsets(self.node_type)[part])
            numbers[missing] = np.where(places < 0, -1, places + base)
        return numbers

    def _find_first(self, ids: Any) -> npt.NDArray[np.int64]:
        """Find ids in the partitions that the generation was written with."""
        if not self._num_first or not len(ids):
            return np.full(len(ids), -1, dtype=np.int64)
        known = self._first_ids()
        if self._num_first >= WORTH_A_TABLE:
            if self._table is None:
                self._table = self._stored_table(known)
            return find_in_table(self._table, ids, known)
        if self.is_string:
            return find_strings(known.combine_chunks(), ids)
        values = known.to_numpy()
        order = np.argsort(values)
        places = find_sorted(values[order], ids)
        return np.where(places < 0, -1, order[np.maximum(places, 0)])

    def _first_ids(self) -> pa.ChunkedArray:
        parts = range(self._num_first_parts)
        tables = [self._graph.nodes(self.node_type, p).select(["id"]) for p in parts]
        return pa.concat_tables(tables).column("id")

    def _stored_table(self, known: pa.ChunkedArray) -> pa.RecordBatch:
        listed = {entry.path for entry in self._graph.manifest.files}
        generation = self._graph.generation
        for delta in self._graph.manifest.deltas:
            path = id_table_file(generation, delta.number, self.node_type)
            if path in listed:
                return self._graph.read_file(path)
        table = make_table(known)
        path = id_table_file(generation, self._transaction.number, self.node_type)
        self._transaction.add_file(path, table)
        return table
