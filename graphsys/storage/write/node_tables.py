"""Columns and features of the nodes of one type, from the source's order to numbers."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.arrays import distinct
from graphsys.core.caller_warnings import note
from graphsys.core.errors import InputError, cut_list
from graphsys.storage import manifest as names
from graphsys.storage.ids.id_mapping import NodeNumbering
from graphsys.storage.manifest import NodeTypeEntry
from graphsys.storage.scratch import AppendFile, Scratch
from graphsys.storage.source import NodeChunk
from graphsys.storage.transaction import Transaction
from graphsys.storage.write.feature_encoding import GIVEN, narrow, parse_forms, share_rows
from graphsys.storage.write.row_store import RowStore, as_arrow

_FEATURE_DTYPES = ("float32", "float16", "int8")


class NodeTables:
    """Spills node columns and features, then writes them by partition.

    Args:
        node_type: Name of the type.
        scratch: Where they wait.
        features_as: How dense features are stored (``feature_forms``).
    """

    def __init__(self, node_type: str, scratch: Scratch, features_as: str = GIVEN) -> None:
        self.node_type = node_type
        self._scratch = scratch
        self._form, self._is_sharing = parse_forms(features_as)
        self._stored: dict[str, int] = {}  # rows by feature, in shared files counted once
        self._shared: set[str] = set()
        self._columns: RowStore | None = None
        self._bags: RowStore | None = None
        self._features: dict[str, tuple[AppendFile, np.dtype[Any], int]] = {}
        self._schema: frozenset[str] | None = None
        self._num_rows = 0
        self._row_of: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._num_placed = 0
        self._twice: list[npt.NDArray[np.int64]] = []
        self._is_partial = False

    def add(self, chunk: NodeChunk) -> None:
        """Append the columns and features of a chunk.

        Raises:
            InputError: lengths, names or dtypes that do not go together.
        """
        length = len(chunk.ids)
        self._is_partial |= chunk.is_partial
        features = dict(chunk.features)
        if self._form != GIVEN:
            features = narrow(features, self._form, self.node_type, self._num_rows)
        everything = {**chunk.columns, **features}
        for name, values in everything.items():
            if len(values) != length:
                raise InputError(
                    f"{name!r} of node type {self.node_type!r} has {len(values)} rows "
                    f"for {length} nodes"
                )
        if self._schema is None:
            self._schema = frozenset(everything)
        if self._schema != frozenset(everything):
            odd = sorted(self._schema ^ set(everything))[0]
            raise InputError(
                f"{odd!r} of node type {self.node_type!r} is given for some nodes' tables "
                "and not for the rest"
            )
        if "id" in everything:
            raise InputError(
                f"node type {self.node_type!r}: a column cannot be called 'id'"
            )
        if chunk.columns:
            self._columns = self._columns or RowStore(self._scratch, "node-columns")
            self._columns.append({k: as_arrow(v) for k, v in chunk.columns.items()})
        bags = {k: v for k, v in features.items() if not isinstance(v, np.ndarray)}
        if bags:
            self._bags = self._bags or RowStore(self._scratch, "bags")
            self._bags.append({k: as_arrow(v) for k, v in bags.items()})
        for name, values in features.items():
            if isinstance(values, np.ndarray):
                self._add_dense(name, values)
        self._num_rows += length

    def _add_dense(self, name: str, values: npt.NDArray[Any]) -> None:
        where = f"feature {name!r} of node type {self.node_type!r}"
        has_shape = values.ndim == 2 and values.shape[1] > 0
        if values.dtype.name not in _FEATURE_DTYPES or not has_shape:
            raise InputError(
                f"{where} is {values.dtype.name} {list(values.shape)}, expected "
                f"{', '.join(_FEATURE_DTYPES)} [nodes, dim]"
            )
        if name not in self._features:
            file = self._scratch.file("features")
            self._features[name] = (file, values.dtype, values.shape[1])
        file, dtype, dim = self._features[name]
        if (values.dtype, values.shape[1]) != (dtype, dim):
            raise InputError(
                f"{where} has rows of {values.shape[1]} {values.dtype.name}, before of "
                f"{dim} {dtype.name}"
            )
        file.append(values)

    def place(self, numbers: npt.NDArray[Any], num_nodes: int) -> None:
        """Learn the numbers of the next chunk of rows, in the order of :meth:`add`."""
        if not len(self._row_of):
            self._row_of = self._scratch.array(num_nodes, np.int64)
            self._row_of[:] = -1
        rows = self._num_placed + np.arange(len(numbers))
        is_known = self._row_of[numbers] >= 0
        self._row_of[numbers] = rows
        is_known |= self._row_of[numbers] != rows
        if is_known.any():
            self._twice.append(distinct(numbers[is_known]).astype(np.int64))
        self._num_placed += len(numbers)

    def check_places(self, numbering: NodeNumbering) -> None:
        """Check that no node was placed twice.

        Raises:
            InputError: one was.
        """
        if self._twice:
            twice = _ids_of(numbering, distinct(np.concatenate(self._twice)))
            raise InputError(
                f"node type {self.node_type!r} lists {len(twice)} nodes more than once: "
                f"{cut_list(_shown(twice))}; keep one row of each"
            )

    def check_missing(self, numbering: NodeNumbering, how: str) -> None:
        """Say how many nodes that edges name are in no table, or refuse them.

        Raises:
            InputError: there are some, and ``how`` is "refuse".
        """
        if self._is_partial or self._num_placed == numbering.num_nodes:
            return
        without = np.flatnonzero(self._row_of < 0)
        shown = cut_list(_shown(_ids_of(numbering, without[:6])))
        what = (
            f"{len(without)} nodes of type {self.node_type!r} that edges name are in no "
            f"table of nodes ({shown})"
        )
        if how == "refuse":
            raise InputError(
                f"{what}; list them, or pass --missing-nodes drop to leave out their "
                "edges, or make to have them without columns"
            )
        if not self._feature_entries():
            note(
                f"{what}: they are made, without columns; pass --missing-nodes drop to "
                "leave out their edges, refuse to have none"
            )

    def write(self, numbering: NodeNumbering, transaction: Transaction) -> NodeTypeEntry:
        """Write node tables and features and return the manifest's entry.

        Raises:
            InputError: features are missing for some nodes.
        """
        if self._columns:
            self._columns.finish()
        if self._bags:
            self._bags.finish()
        self._check_complete(numbering)
        columns: dict[str, str] = {}
        splits: dict[str, int] = {}
        for part in range(len(numbering.offsets) - 1):
            begin, end = int(numbering.offsets[part]), int(numbering.offsets[part + 1])
            if begin == end:
                continue
            rows = self._row_of[begin:end] if len(self._row_of) else None
            arrays = {"id": numbering.ids(part)}
            if self._columns and rows is not None:
                arrays.update(self._columns.take(rows))
            batch = pa.record_batch(list(arrays.values()), names=list(arrays))
            columns = {field.name: str(field.type) for field in batch.schema}
            path = names.node_file(transaction.generation, self.node_type, part)
            transaction.add_file(path, batch)
            _count_splits(arrays.get("split"), splits)
            if rows is not None:
                self._write_features(transaction, part, rows)
        columns.pop("id", None)
        return NodeTypeEntry(
            id_type=numbering.id_type,
            offsets=numbering.offsets.tolist(),
            columns=columns,
            features=self._feature_entries(),
            splits=splits,
        )

    def _feature_entries(self) -> dict[str, dict[str, Any]]:
        entries: dict[str, dict[str, Any]] = {
            name: {"dim": dim, "dtype": dtype.name}
            for name, (_, dtype, dim) in self._features.items()
        }
        for name in self._shared:
            entries[name]["stored_rows"] = self._stored[name]
        if self._bags:
            entries.update(
                {name: {"dim": 0, "dtype": "uint32"} for name in self._bags.schema.names}
            )
        return entries

    def _check_complete(self, numbering: NodeNumbering) -> None:
        if not self._feature_entries() or self._num_placed == numbering.num_nodes:
            return
        without = np.flatnonzero(self._row_of < 0)
        if len(without):
            shown = cut_list(_shown(_ids_of(numbering, without[:6])))
            raise InputError(
                f"node type {self.node_type!r} has features for {self._num_rows} of "
                f"{numbering.num_nodes} nodes; missing for {shown}; list them, "
                "or pass --missing-nodes drop to leave out their edges"
            )

    def _write_features(
        self, transaction: Transaction, part: int, rows: npt.NDArray[np.int64]
    ) -> None:
        for name, (file, dtype, dim) in self._features.items():
            source = file.mapped(dtype).reshape(-1, dim)
            taken = self._scratch.array(len(rows) * dim, dtype)
            matrix = taken.reshape(len(rows), dim)
            np.take(source, rows, axis=0, out=matrix, mode="clip")  # no copy of the result
            shared = share_rows(matrix, self._scratch) if self._is_sharing else None
            if shared is not None:
                self._shared.add(name)
            stored = len(rows) if shared is None else len(shared.dictionary)
            self._stored[name] = self._stored.get(name, 0) + stored
            lists = pa.FixedSizeListArray.from_arrays(pa.array(taken), dim)
            self._write_feature(
                transaction, part, name, lists if shared is None else shared
            )
        for name, array in (self._bags.take(rows) if self._bags else {}).items():
            self._write_feature(
                transaction, part, name, array.cast(pa.large_list(pa.uint32()))
            )

    def _write_feature(
        self, transaction: Transaction, part: int, name: str, values: pa.Array
    ) -> None:
        path = names.feature_file(transaction.generation, self.node_type, name, part)
        transaction.add_file(path, pa.record_batch([values], names=[name]))


def _shown(ids: list[Any]) -> list[Any]:
    """Return ids as messages have them: escape sequences in names reach no terminal."""
    return [it if not isinstance(it, str) or it.isprintable() else repr(it) for it in ids]


def _ids_of(numbering: NodeNumbering, numbers: npt.NDArray[Any]) -> list[Any]:
    parts = np.searchsorted(numbering.offsets, numbers, side="right") - 1
    return [
        numbering.ids(int(part))[int(number - numbering.offsets[part])].as_py()
        for part, number in zip(parts[:20], numbers[:20], strict=True)
    ] + list(numbers[20:])


def _count_splits(column: pa.Array | None, splits: dict[str, int]) -> None:
    if column is None:
        return
    for entry in column.value_counts().to_pylist():
        if entry["values"] is not None:
            key = str(entry["values"])
            splits[key] = splits.get(key, 0) + entry["counts"]
