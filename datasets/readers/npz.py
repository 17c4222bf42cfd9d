"""NumPy archives (.npz): sparse matrices of SciPy, and graphs with node features.

A matrix that ``scipy.sparse.save_npz`` wrote is read like MatrixMarket (directed, or node
types ``row`` and ``col`` where it is rectangular), with ids from 0. An archive with
``edges`` is a graph as in Platonov's heterophilous sets: ``node_features``,
``node_labels`` and ten rows each of ``train_masks``, ``val_masks`` and ``test_masks``,
which become the node columns ``split_0`` ... ``split_9``; ``split`` is the first. Such a
graph is undirected unless its name says "directed", as in its authors' own reader.
``edge_index`` ``[2, E]``, as PyG and OGB have it, stands for ``edges``; it is directed.
Pickled arrays are refused.

References:
    Platonov et al., "A critical look at the evaluation of GNNs under heterophily: are we
    really making progress?", ICLR 2023.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.caller_warnings import note
from graphsys.core.errors import ConfigError, InputError, cut_list
from graphsys.core.types import EDGE, EdgeType
from graphsys.datasets.array_files import dense_features, load_arrays
from graphsys.datasets.base import Format, ReadOptions, base_name, formats
from graphsys.datasets.columns import check_ids, check_weights
from graphsys.datasets.files import InputFile
from graphsys.datasets.readers.matrix_market import Matrix, MatrixSource
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

CHUNK_ROWS: Final = 1 << 20
MAX_NODES: Final = 1 << 40
_READ: Final = {
    *("edges", "node_features", "node_labels", "train_masks", "val_masks", "test_masks")
}
Arrays = Mapping[str, npt.NDArray[Any]]


def sparse_entries(name: str, arrays: Arrays) -> Matrix:
    """Return the entries of a matrix that SciPy saved.

    Raises:
        InputError: arrays are missing, or places lie outside the matrix.
    """
    kind = arrays["format"].item()
    kind = kind.decode("latin-1") if isinstance(kind, bytes) else str(kind)
    needed = {"coo": ("row", "col"), "csr": ("indptr", "indices")}
    needed["csc"] = needed["csr"]
    if kind not in needed:
        raise InputError(
            f"{name}: a sparse matrix of format {kind!r}, expected coo, csr or csc"
        )
    if missing := [it for it in (*needed[kind], "shape", "data") if it not in arrays]:
        raise InputError(f"{name}: a {kind} matrix without {', '.join(missing)}")
    shape = tuple(int(size) for size in arrays["shape"].ravel())
    if len(shape) != 2 or not 0 <= min(shape) <= max(shape) <= MAX_NODES:
        raise InputError(
            f"{name}: a matrix of shape {shape}, expected two dimensions of 0 to "
            f"{MAX_NODES}"
        )
    if kind == "coo":
        row, col = arrays["row"], arrays["col"]
    else:
        size = shape[0] if kind == "csr" else shape[1]
        row, col = _expand(name, arrays["indptr"], arrays["indices"], size)
        row, col = (row, col) if kind == "csr" else (col, row)
    values = arrays["data"]
    if row.ndim != 1 or not len(row) == len(col) == len(values):
        raise InputError(
            f"{name}: {len(row)} rows, {len(col)} columns and {len(values)} values do not "
            "fit"
        )
    for what, ends, size in (("row", row, shape[0]), ("column", col, shape[1])):
        if ends.dtype.kind not in "iu":
            raise InputError(f"{name}: {what}s are {ends.dtype}, expected integers")
        if len(ends) and (ends.min() < 0 or ends.max() >= size):
            raise InputError(f"{name}: a {what} outside 0 to {size - 1}")
    is_pattern = values.dtype == np.bool_
    if values.dtype.kind not in "biuf":
        raise InputError(f"{name}: values are {values.dtype}, expected real numbers")
    return Matrix((shape[0], shape[1]), row, col, None if is_pattern else values, False)


def _expand(name: str, indptr: Any, indices: Any, size: int) -> tuple[Any, Any]:
    if indptr.shape != (size + 1,):
        raise InputError(
            f"{name}: indptr of shape {list(indptr.shape)}, expected [{size + 1}]"
        )
    sizes = np.diff(indptr)
    if indptr.dtype.kind not in "iu" or (sizes < 0).any() or sizes.sum() != len(indices):
        raise InputError(f"{name}: indptr does not fit {len(indices)} indices")
    return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes), indices


class NodeGraphSource(Source):
    """A graph of arrays: edges, features, labels, masks.

    Raises:
        InputError: shapes do not fit.
    """

    def __init__(
        self,
        name: str,
        arrays: Arrays,
        *,
        edge_type: EdgeType,
        num_bytes: int,
        is_directed: bool,
    ) -> None:
        self.name = name
        self._edge_type = edge_type
        self.total_bytes = num_bytes
        self.is_directed = is_directed
        self._edges = arrays["edges"]
        if self._edges.ndim != 2 or 2 not in self._edges.shape:
            raise InputError(
                f"{name}: edges have shape {self._edges.shape}, expected [edges, 2]"
            )
        if self._edges.shape[1] != 2:
            self._edges = self._edges.T
        if self._edges.dtype.kind not in "iu":
            raise InputError(f"{name}: edges are {self._edges.dtype}, expected integers")
        self._arrays = arrays
        self._num_nodes = self._count_nodes()
        top = int(self._edges.max(initial=-1))
        if top >= self._num_nodes:
            raise InputError(
                f"{name}: edges reach node {top}, expected 0 to {self._num_nodes - 1}, as "
                "there are rows of features and labels"
            )

    def _count_nodes(self) -> int:
        sizes = {
            key: len(self._arrays[key])
            for key in ("node_features", "node_labels")
            if key in self._arrays
        }
        for key in ("train_masks", "val_masks", "test_masks"):
            if key in self._arrays:
                sizes[key] = self._arrays[key].shape[-1]
        if len(set(sizes.values())) > 1:
            listed = cut_list(f"{size} {key}" for key, size in sizes.items())
            raise InputError(f"{self.name}: {listed}, expected one number of nodes")
        return next(iter(sizes.values()), int(self._edges.max(initial=-1)) + 1)

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield all nodes, then all edges."""
        features: dict[str, Any] = {}
        if "node_features" in self._arrays:
            features["x"] = dense_features(self.name, self._arrays["node_features"])
        columns = self._splits()
        if "node_labels" in self._arrays:
            columns = {"label": self._arrays["node_labels"], **columns}
        yield NodeChunk(
            ids=np.arange(self._num_nodes, dtype=np.int64),
            node_type=self._edge_type.src_type,
            columns=columns,
            features=features,
            bytes_read=self.total_bytes or 0,
        )
        for first in range(0, len(self._edges), CHUNK_ROWS):
            part = self._edges[first : first + CHUNK_ROWS]
            src, dst = (
                check_ids(np.ascontiguousarray(part[:, k]), self.name, first)
                for k in (0, 1)
            )
            yield EdgeChunk(src=src, dst=dst, edge_type=self._edge_type)

    def _splits(self) -> dict[str, pa.Array]:
        """Return a column for every row of the masks, the first also as ``split``."""
        masks = {
            split: np.atleast_2d(self._arrays[key])
            for split, key in (
                ("train", "train_masks"),
                ("valid", "val_masks"),
                ("test", "test_masks"),
            )
            if key in self._arrays
        }
        if not masks:
            return {}
        names = pa.array([None, *masks], type=pa.string())
        count = min(len(mask) for mask in masks.values())
        columns: dict[str, pa.Array] = {}
        for k in range(count):
            code = np.zeros(self._num_nodes, dtype=np.int8)
            for place, mask in enumerate(masks.values(), start=1):
                code[mask[k].astype(bool)] = place
            columns[f"split_{k}"] = names.take(pa.array(code))
        return {"split": columns["split_0"], **columns}


def _pairs(name: str, edge_index: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an edge_index ``[2, E]`` as pairs ``[E, 2]``.

    Raises:
        InputError: it has another shape.
    """
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise InputError(
            f"{name}: edge_index has shape {list(edge_index.shape)}, expected [2, edges]"
        )
    return edge_index.T


def _warn_of_unread(name: str, arrays: Arrays) -> None:
    """Name the arrays beside an edge_index that are not read."""
    if others := sorted(set(arrays) - _READ - {"edge_index"}):
        note(
            f"{name}: the arrays {cut_list(others, 8)} are not read; save features as "
            "node_features and labels as node_labels to have them"
        )


def open_npz(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of one .npz archive.

    Raises:
        InputError: it holds neither a sparse matrix nor a graph, or there are several.
    """
    if options.columns or options.roles or options.skip:
        raise ConfigError("npz archives have no columns to name and no lines to skip")
    if len(files) != 1:
        raise InputError(
            f"{files[1].name}: a second archive, expected one; ingest each by itself"
        )
    file = files[0]
    arrays = load_arrays(file)
    if "format" in arrays and "shape" in arrays:
        matrix = sparse_entries(file.name, arrays)
        if matrix.values is not None:
            check_weights(matrix.values, file.name)
        return MatrixSource(
            file.name,
            matrix,
            edge_type=options.edge_type,
            is_undirected=options.is_undirected,
            first_id=0,
            num_bytes=file.num_bytes,
        )
    if "edge_index" in arrays and "edges" not in arrays:  # as PyG and OGB call it
        arrays = {**arrays, "edges": _pairs(file.name, arrays["edge_index"])}
        _warn_of_unread(file.name, arrays)
    if "edges" not in arrays:
        raise InputError(
            f"{file.name}: holds {cut_list(arrays)}, expected a sparse matrix of SciPy or "
            "an array edges or edge_index; name other arrays in a tables file"
        )
    is_named = "directed" in base_name(file.path)[0] or "edge_index" in arrays
    is_directed = is_named and not options.is_undirected
    return NodeGraphSource(
        file.name,
        arrays,
        edge_type=options.edge_type or EDGE,
        num_bytes=file.num_bytes,
        is_directed=is_directed,
    )


formats.register("npz")(
    Format(
        open=open_npz,
        suffixes=(".npz",),
        about="NumPy archives: SciPy's sparse matrices, edges with node_features",
    )
)
