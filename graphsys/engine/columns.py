"""Columns of a store's nodes and edges as programs read them: numbers, codes of texts."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import InvalidGraphError
from graphsys.core.types import EdgeType
from graphsys.engine.united_rows import IndexBlock, is_whole, unite
from graphsys.graph.csr import COLUMNS, Allocate, Csr
from graphsys.storage.node_numbers import NodeNumbers
from graphsys.storage.reader import GraphReader

CODES = np.dtype(np.int32)
"""Dtype of the codes of texts; -1 is null."""

_FLOATS = {"halffloat": np.float32, "float": np.float32, "double": np.float64}
_WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
_TEXTS = ("string", "large_string", "dictionary<values=string", "dictionary<values=large_")
_TIMES = ("timestamp", "date")


def node_column_dtypes(numbers: NodeNumbers) -> dict[str, np.dtype[Any]]:
    """Return what programs read of each column of the nodes; lists are none of them.

    Texts are read as codes, times as int64 in the column's unit.
    """
    return _agreed(numbers.column_types().values())


def edge_column_dtypes(graph: GraphReader | None) -> dict[str, np.dtype[Any]]:
    """Return what programs read of the further columns of the edges, as of nodes'."""
    if graph is None:
        return {}
    types = (entry.columns for entry in graph.manifest.edge_types.values())
    known = _agreed(types)
    return {name: dtype for name, dtype in known.items() if name not in COLUMNS}


def _agreed(types_of: Iterable[Mapping[str, str]]) -> dict[str, np.dtype[Any]]:
    """Return the dtypes of columns that have one wherever they are."""
    found: dict[str, np.dtype[Any]] = {}
    mixed = set()
    for types in types_of:
        for name, text in types.items():
            dtype = _dtype_of(text)
            if dtype is None:
                continue
            other = found.setdefault(name, dtype)
            if other != dtype:
                mixed.add(name)
    return {name: dtype for name, dtype in found.items() if name not in mixed}


def _dtype_of(text: str) -> np.dtype[Any] | None:
    if text in _FLOATS:
        return np.dtype(_FLOATS[text])
    if text in _WHOLE:
        return np.dtype(text)
    if text.startswith(_TIMES):
        return np.dtype(np.int64)
    return CODES if text.startswith(_TEXTS) else None


def read_node_column(
    numbers: NodeNumbers, name: str, dtype: np.dtype[Any], values: npt.NDArray[Any]
) -> None:
    """Write a column of all nodes into an array.

    Args:
        numbers: The nodes.
        name: A column of :func:`node_column_dtypes`.
        dtype: Its dtype there.
        values: Receives the column ``[N]``: NaN where floats are null, -1 where texts are;
            otherwise the place of a text among the column's distinct ones in order.

    Raises:
        InvalidGraphError: integers, times or booleans are null.
    """
    where = f"column {name!r} of the nodes of {numbers.where}"
    bounds = numbers.bases.tolist()
    parts = [values[low:high] for low, high in itertools.pairwise(bounds)]
    _read(where, dtype, numbers.columns(name), parts)


def read_edge_column(
    graph: GraphReader,
    name: str,
    dtype: np.dtype[Any],
    blocks: Sequence[IndexBlock],
    num_nodes: int,
    allocate: Allocate,
) -> npt.NDArray[Any]:
    """Return a further column of the edges, an entry of rows after the other.

    Args:
        graph: The store.
        name: A column of :func:`edge_column_dtypes`.
        dtype: Its dtype there.
        blocks: The rows of a direction, as they are united.
        num_nodes: Nodes of all types.
        allocate: Where arrays of all entries come from.

    Returns:
        Values ``[E]`` in the order of :func:`graphsys.engine.united_rows.unite`; null as in
        :func:`read_node_column`.

    Raises:
        InvalidGraphError: integers, times or booleans are null.

    Complexity:
        O(E) time; the column once more in the order of the buckets, and the rows once more
        where they are united.
    """
    kinds = list(graph.edge_types)
    columns = [_in_buckets(graph, kind, name) for kind in kinds]
    lengths = [graph.num_edges_of(kind, graph.default_split(kind)) for kind in kinds]
    parts = [np.empty(length, dtype) for length in lengths]
    _read(f"column {name!r} of the edges of {graph.path}", dtype, columns, parts)
    by_kind = dict(zip(kinds, parts, strict=True))

    def of(block: IndexBlock) -> npt.NDArray[Any]:
        index, own = block.index, by_kind[block.edge_type]
        if index.edge is None:  # the type has no further columns: all of them null
            return np.resize(own, len(index.indices))
        found: npt.NDArray[Any] = own[index.edge]
        return found

    if is_whole(blocks, num_nodes):
        return of(blocks[0])
    carried = [
        replace(
            it, index=Csr(indptr=it.index.indptr, indices=it.index.indices, time=of(it))
        )
        for it in blocks
    ]
    united = unite(carried, num_nodes, allocate)
    assert united.time is not None
    return united.time


def _in_buckets(graph: GraphReader, kind: EdgeType, name: str) -> pa.ChunkedArray | None:
    """Return a column of an edge type in the sequence of buckets; None without it."""
    entry = graph.manifest.edge_types[graph.edge_type_name(kind)]
    if name not in entry.columns:
        return None
    buckets = (graph.bucket(kind, i, j) for i, j in graph.buckets(kind))
    return pa.chunked_array(
        [it.columns[name] for it in buckets], None if graph.buckets(kind) else pa.null()
    )


def _read(
    where: str,
    dtype: np.dtype[Any],
    columns: Sequence[pa.ChunkedArray | None],
    parts: Sequence[npt.NDArray[Any]],
) -> None:
    """Write columns, one of each type, into arrays; see :func:`read_node_column`."""
    is_text = any(_is_text(column.type) for column in columns if column is not None)
    known = _distinct(columns) if is_text else None
    for column, part in zip(columns, parts, strict=True):
        if column is None:
            _fill_null(where, dtype, part)
            continue
        low = 0
        for chunk in column.chunks:
            own = part[low : low + len(chunk)]
            low += len(chunk)
            if known is not None:
                own[:] = _codes(chunk, known)
                continue
            _fill(where, dtype, chunk, own)


def _fill(where: str, dtype: np.dtype[Any], chunk: Any, own: Any) -> None:
    if pa.types.is_temporal(chunk.type):
        days = pa.types.is_date32(chunk.type)
        chunk = chunk.cast(pa.int32()).cast(pa.int64()) if days else chunk.cast(pa.int64())
    if chunk.null_count:
        if dtype.kind != "f":
            raise _nulls(where, dtype, chunk.null_count)
        chunk = chunk.fill_null(float("nan"))
    own[:] = chunk.to_numpy(zero_copy_only=False)


def _fill_null(where: str, dtype: np.dtype[Any], own: npt.NDArray[Any]) -> None:
    """Write what null is for a type that has no such column."""
    if not len(own):
        return
    if dtype.kind != "f" and dtype != CODES:
        raise _nulls(where, dtype, len(own))
    own[:] = np.nan if dtype.kind == "f" else -1


def _nulls(where: str, dtype: np.dtype[Any], count: int) -> InvalidGraphError:
    return InvalidGraphError(
        f"{where} is {dtype} and null for {count} of them, which no number of it stands "
        "for; ingest it as floats, whose nulls are NaN"
    )


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _codes(chunk: Any, known: Any) -> npt.NDArray[Any]:
    """Return the places of texts among those known, int32 ``[n]``; -1 is null."""
    if pa.types.is_dictionary(chunk.type):  # its texts are many times fewer
        places = np.append(_codes(chunk.dictionary, known), -1)
        found: npt.NDArray[Any] = places[
            chunk.indices.fill_null(len(chunk.dictionary)).to_numpy(zero_copy_only=False)
        ]
        return found
    codes = pc.index_in(chunk.cast(pa.large_string()), value_set=known, skip_nulls=True)
    return np.asarray(codes.fill_null(-1).to_numpy(zero_copy_only=False))


def _distinct(columns: Any) -> Any:
    """Return the distinct texts of columns, in order."""
    found = [
        pc.unique(chunk).cast(pa.large_string())  # of dictionaries too those in use alone
        for column in columns
        if column is not None
        for chunk in column.chunks
    ]
    every = pc.unique(pa.chunked_array(found, pa.large_string())).drop_null()
    return every.take(pc.sort_indices(every))
