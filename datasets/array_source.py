"""Graphs of other libraries as a source: arrays by node type and edge type."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import InputError
from graphsys.core.types import EdgeType
from graphsys.datasets.columns import narrow_features
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

Values = npt.NDArray[Any]
LABELS: Final = ("y", "label")
_SPLITS: Final = {"val": "valid"}
_ROLES: Final = {"edge_weight": "weight", "w": "weight", "edge_time": "time"}
_CHUNK_ROWS: Final = 1 << 20


class ArraySource(Source):
    """Whole node and edge types as chunks of a million rows; arrays are not copied.

    Args:
        name: What is read, for messages.
        whole: A chunk per node type, then one per edge type.
        is_directed: False where every edge stands for both directions.
    """

    def __init__(
        self, name: str, whole: Sequence[EdgeChunk | NodeChunk], *, is_directed: bool = True
    ) -> None:
        self.name, self._whole, self.is_directed = name, whole, is_directed

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield nodes, then edges."""
        for chunk in self._whole:
            rows = len(chunk.src) if isinstance(chunk, EdgeChunk) else len(chunk.ids)
            for begin in range(0, max(rows, 1), _CHUNK_ROWS):
                yield _piece(chunk, slice(begin, begin + _CHUNK_ROWS))


def _piece(chunk: EdgeChunk | NodeChunk, span: slice) -> EdgeChunk | NodeChunk:
    columns = {name: values[span] for name, values in chunk.columns.items()}
    if isinstance(chunk, EdgeChunk):
        return EdgeChunk(
            src=chunk.src[span],
            dst=chunk.dst[span],
            edge_type=chunk.edge_type,
            columns=columns,
        )
    return NodeChunk(
        ids=chunk.ids[span],
        node_type=chunk.node_type,
        columns=columns,
        features={name: values[span] for name, values in chunk.features.items()},
    )


def node_chunk(node_type: str, num_nodes: int, arrays: Mapping[str, Values]) -> NodeChunk:
    """Return the nodes 0 .. N - 1 of a type.

    ``y`` or ``label`` becomes ``label`` (a matrix of 0 and 1: lists of classes), masks
    ``NAME_mask`` become ``split`` (``val`` is ``valid``), further matrices features
    (float32, unless they are float16 or int8), further vectors columns.

    Raises:
        InputError: Arrays of another length or kind, masks that overlap, or features beyond
            float32.
    """
    columns: dict[str, Any] = {}
    features: dict[str, Values] = {}
    masks: dict[str, Values] = {}
    for name, values in arrays.items():
        where = f"node type {node_type!r}: {name!r}"
        if len(values) != num_nodes:
            raise InputError(f"{where} has {len(values)} rows, expected {num_nodes}")
        if values.ndim == 2 and values.shape[1] == 1 and name in LABELS:
            values = values[:, 0]
        if name.endswith("_mask") and values.dtype == np.bool_:
            if values.ndim != 1:
                raise InputError(
                    f"{where} has {values.shape[1]} splits; choose one: data.{name} = "
                    f"data.{name}[:, 0]"
                )
            split = name.removesuffix("_mask")
            masks[_SPLITS.get(split, split)] = values
        elif name in LABELS:
            columns["label"] = _labels(where, values)
        elif values.ndim == 1 and name != "x":
            columns[name] = values
        elif values.ndim in (1, 2):
            features[name] = narrow_features(values.reshape(num_nodes, -1), where)
        else:
            raise InputError(
                f"{where} has shape {list(values.shape)}, expected one or two dimensions"
            )
    if masks:
        columns["split"] = _splits(node_type, num_nodes, masks)
    return NodeChunk(
        ids=np.arange(num_nodes), node_type=node_type, columns=columns, features=features
    )


def edge_chunk(
    kind: EdgeType, src: Values, dst: Values, arrays: Mapping[str, Values]
) -> EdgeChunk:
    """Return the edges of a type.

    ``edge_weight`` (or ``w``) becomes ``weight``, ``edge_time`` becomes ``time``,
    ``edge_type`` the relation; the others keep their name without ``edge_``, but for
    ``edge_attr``. Matrices become lists of fixed size.

    Raises:
        InputError: Arrays of another length, or of more than two dimensions.
    """
    columns: dict[str, Any] = {}
    for name, values in arrays.items():
        where = f"edges {kind}: {name!r}"
        if len(values) != len(src) or values.ndim > 2:
            raise InputError(
                f"{where} has shape {list(values.shape)}, expected [{len(src)}] or "
                f"[{len(src)}, ...]"
            )
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        role = _ROLES.get(name, name)
        if name == "edge_type":
            columns["relation"] = pa.array(values.astype(str)).dictionary_encode()
        elif values.ndim == 2:
            columns[role] = pa.FixedSizeListArray.from_arrays(
                pa.array(np.ascontiguousarray(values).reshape(-1)), values.shape[1]
            )
        else:
            short = role if role == "edge_attr" else role.removeprefix("edge_")
            columns[short] = values
    return EdgeChunk(src=src, dst=dst, edge_type=kind, columns=columns)


def half_of(kind: EdgeType, src: Values, dst: Values) -> Values:
    """Return which edges to keep of a type that holds both directions of every edge.

    Raises:
        InputError: An edge has no counterpart.
    """
    if kind.src_type != kind.dst_type:
        raise InputError(f"edges {kind}: undirected edges need one node type at both ends")
    both = np.stack([src, dst], axis=1)
    ahead = both[np.lexsort((dst, src))]
    back = both[np.lexsort((src, dst))][:, ::-1]
    if (wrong := np.flatnonzero((ahead != back).any(axis=1))).size:
        u, v = ahead[wrong[0]].tolist()
        raise InputError(
            f"edges {kind}: the edge {u} -> {v} or its reverse is there more often than "
            "the other; an undirected graph has both; leave out undirected=True"
        )
    kept: Values = src <= dst
    return kept


def _labels(where: str, values: Values) -> Any:
    if values.ndim == 1:
        return values
    if values.ndim != 2 or not np.isin(values, (0, 1)).all():
        raise InputError(
            f"{where} has shape {list(values.shape)}; expected a class or number per node, "
            "or a matrix of 0 and 1"
        )
    row, column = np.nonzero(values)
    begins = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(values)))])
    return pa.LargeListArray.from_arrays(begins.astype(np.int64), column.astype(np.int64))


def _splits(node_type: str, num_nodes: int, masks: Mapping[str, Values]) -> Any:
    code = np.zeros(num_nodes, dtype=np.int8)
    for number, (name, mask) in enumerate(masks.items(), 1):
        if count := np.count_nonzero(code[mask]):
            raise InputError(
                f"node type {node_type!r}: {count} nodes of split {name!r} are in another "
                "split too; expected at most one"
            )
        code[mask] = number
    return pa.array([None, *masks], type=pa.string()).take(pa.array(code))
