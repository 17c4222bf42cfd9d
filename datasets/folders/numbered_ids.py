"""Nodes that edges name by their place in a table: chunks of them, and ids at places."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import InputError
from graphsys.datasets.columns import dense_features, holds_features
from graphsys.storage.source import NodeChunk


def node_chunk(
    name: str, ids: Any, columns: dict[str, Any], where: str, first: int
) -> NodeChunk:
    """Return nodes with columns, of which lists of floating-point numbers are features.

    Raises:
        InputError: a column is called ``id``, or features are not of one length.
    """
    features = {it: v for it, v in columns.items() if holds_features(v.type)}
    if "id" in columns:
        raise InputError(
            f"{where}: a property 'id' beside the primary one, expected another name"
        )
    return NodeChunk(
        ids=ids,
        node_type=name,
        columns={it: v for it, v in columns.items() if it not in features},
        features={
            it: dense_features(v, f"{where}: {it}", first) for it, v in features.items()
        },
    )


def joined_ids(chunks: list[Any]) -> Any:
    """Return the ids of a type, whole."""
    if not chunks:
        return np.empty(0, dtype=np.int64)
    if isinstance(chunks[0], np.ndarray):
        return np.concatenate(chunks)
    return pa.concat_arrays([it.cast(pa.large_string()) for it in chunks])


def places_of(column: pa.Array, where: str) -> npt.NDArray[np.int64]:
    """Return a column of places.

    Raises:
        InputError: it has nulls, or no integers.
    """
    if column.null_count or not pa.types.is_integer(column.type):
        raise InputError(
            f"{where}: {column.type} with nulls or no numbers, expected places"
        )
    places: npt.NDArray[np.int64] = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return places


def ids_at(ids: Any, places: npt.NDArray[np.int64], where: str) -> Any:
    """Return the ids of vertices.

    Raises:
        InputError: there is no such vertex.
    """
    wrong = (places < 0) | (places >= len(ids))
    if wrong.any():
        raise InputError(
            f"{where}: vertex {places[wrong][0]}, expected 0 to {len(ids) - 1}"
        )
    return taken_ids(ids, pa.array(places))


def taken_ids(values: Any, places: pa.Array) -> Any:
    """Return values at places, of NumPy or of Arrow."""
    if isinstance(values, np.ndarray):
        return values[places.to_numpy()]
    return values.take(places)
