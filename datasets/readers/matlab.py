"""MATLAB files (.mat): an adjacency matrix and groups of nodes, as BlogCatalog has them.

``network`` (or the only square sparse matrix) holds the edges, ``group`` one column for
each label; a node may have several, so that the node column ``labels`` is a list of the
groups' numbers, from 0. Ids are MATLAB's row numbers, from 1. A symmetric matrix is
undirected, an edge for each pair once. Vectors with a number for each node become columns,
dense matrices with a row for each become features; what is left out is named. Weights that
are all 1 are left out. Nothing is unpickled: the format has no pickles; but SciPy's reader,
which is C, may crash on a file that was damaged on purpose.

References:
    Tang, Liu, "Relational learning via latent social dimensions", KDD 2009.
"""

import io
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.io
import scipy.sparse

from graphsys.core.caller_warnings import note
from graphsys.core.errors import ConfigError, InputError, cut_list
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.columns import check_weights, narrow_features
from graphsys.datasets.files import InputFile, describe
from graphsys.datasets.readers.matrix_market import Matrix, MatrixSource
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

_NETWORKS: Final = ("network", "net", "adjacency", "A", "W")
_GROUPS: Final = ("group", "groups", "label", "labels")


class MatlabSource(Source):
    """The edges of a matrix, and the groups and other columns of its rows."""

    def __init__(
        self,
        edges: MatrixSource,
        groups: Any | None,
        columns: Mapping[str, npt.NDArray[Any]],
        features: Mapping[str, npt.NDArray[Any]],
    ) -> None:
        self.name = edges.name
        self.total_bytes = edges.total_bytes
        self.is_directed = edges.is_directed
        self._edges = edges
        self._groups = groups
        self._columns, self._features = columns, features

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield all nodes with their groups, then the edges."""
        for chunk in self._edges.chunks():
            if not isinstance(chunk, NodeChunk):
                yield chunk
                continue
            first = int(chunk.ids[0]) - 1
            part = slice(first, first + len(chunk.ids))
            columns: dict[str, Any] = {name: it[part] for name, it in self._columns.items()}
            if self._groups is not None:
                rows = self._groups[part]
                columns["labels"] = pa.ListArray.from_arrays(
                    pa.array(rows.indptr.astype(np.int32)),
                    pa.array(rows.indices.astype(np.int32)),
                )
            yield NodeChunk(
                ids=chunk.ids,
                node_type=chunk.node_type,
                columns=columns,
                features={name: it[part] for name, it in self._features.items()},
            )


def open_matlab(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of one .mat file.

    Raises:
        InputError: it is damaged, or holds no adjacency matrix.
    """
    if options.columns or options.roles or options.skip:
        raise ConfigError("mat files have no columns to name and no lines to skip")
    if len(files) != 1:
        raise InputError(
            f"{files[1].name}: a second file, expected one; ingest each by itself"
        )
    file = files[0]
    variables = _load(file)
    name, network = _network(file, variables)
    groups = _groups(file, variables, network.shape[0])
    taken = {name, _group_name(variables)}
    others = {key: it for key, it in variables.items() if key not in taken}
    columns, features = _further(file, others, network.shape[0])
    matrix = _matrix(file, network)
    edges = MatrixSource(
        file.name,
        matrix,
        edge_type=options.edge_type,
        is_undirected=options.is_undirected,
        num_bytes=file.num_bytes,
    )
    return MatlabSource(edges, groups, columns, features)


def _further(
    file: InputFile, others: Mapping[str, Any], num_nodes: int
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, npt.NDArray[Any]]]:
    """Return the vectors and the dense matrices with a row for each node; name the rest."""
    columns: dict[str, npt.NDArray[Any]] = {}
    features: dict[str, npt.NDArray[Any]] = {}
    left_out = []
    for name, value in others.items():
        is_dense = isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
        if is_dense and value.shape in ((num_nodes, 1), (1, num_nodes)) and name != "id":
            columns[name] = value.ravel()
        elif is_dense and value.ndim == 2 and value.shape[0] == num_nodes:
            features[name] = narrow_features(value, f"{file.name}: {name!r}")
        else:
            shape = "x".join(map(str, getattr(value, "shape", ()))) or "none"
            left_out.append(f"{ascii(name)[1:-1][:40]} ({shape})")
    if left_out:
        note(
            f"{file.name}: left out {cut_list(left_out, 8)}: neither the network nor "
            f"numbers with a row for each of {num_nodes} nodes"
        )
    return columns, features


def _load(file: InputFile) -> dict[str, Any]:
    try:
        loaded = scipy.io.loadmat(io.BytesIO(file.read_all()), spmatrix=False)
    except Exception as err:  # SciPy's reader raises whatever its bytes lead to
        if isinstance(err, InputError):
            raise
        raise InputError(
            f"{file.name}: cannot be read as a MATLAB file: {describe(err)}; save it with "
            "-v7 or earlier"
        ) from err
    return {key: value for key, value in loaded.items() if not key.startswith("__")}


def _network(file: InputFile, variables: dict[str, Any]) -> tuple[str, Any]:
    square = {
        key: value
        for key, value in variables.items()
        if getattr(value, "ndim", 0) == 2
        and value.shape[0] == value.shape[1] > 1
        and value.dtype.kind in "biuf"
    }
    known: list[str] = [key for key in _NETWORKS if key in square]
    chosen = known or list(square)
    names = cut_list(ascii(it)[1:-1][:40] for it in variables) or "nothing"
    if not chosen or (chosen[0] not in _NETWORKS and len(chosen) > 1):
        raise InputError(
            f"{file.name}: holds {names}, expected one square matrix of numbers, called "
            "network"
        )
    return chosen[0], _coo(file, square[chosen[0]])


def _coo(file: InputFile, matrix: Any) -> Any:
    """Return the entries of a matrix, none of them outside it.

    Raises:
        InputError: one is, or there is no matrix of numbers.
    """
    try:
        if scipy.sparse.issparse(matrix):
            matrix.check_format(full_check=True)
        return scipy.sparse.coo_array(matrix)
    except (ValueError, TypeError) as err:
        raise InputError(f"{file.name}: a damaged matrix: {describe(err)}") from err


def _group_name(variables: dict[str, Any]) -> str | None:
    return next((key for key in _GROUPS if key in variables), None)


def _groups(file: InputFile, variables: dict[str, Any], num_nodes: int) -> Any | None:
    name = _group_name(variables)
    if name is None:
        return None
    groups = _coo(file, variables[name]).tocsr()
    if groups.shape[0] != num_nodes:
        raise InputError(
            f"{file.name}: {name} has {groups.shape[0]} rows, expected {num_nodes} as the "
            "network"
        )
    groups.eliminate_zeros()
    groups.sort_indices()
    return groups


def _matrix(file: InputFile, network: Any) -> Matrix:
    """List the entries; of a symmetric matrix those of the lower triangle."""
    network.sum_duplicates()
    row, col = network.coords
    values = check_weights(network.data, f"{file.name}: network")
    is_symmetric = bool((network != network.T).nnz == 0)
    if is_symmetric:
        is_lower = row >= col
        row, col, values = row[is_lower], col[is_lower], values[is_lower]
    is_plain = bool((values == 1).all())
    return Matrix(network.shape, row, col, None if is_plain else values, is_symmetric)


formats.register("mat")(
    Format(
        open=open_matlab,
        suffixes=(".mat",),
        about="MATLAB files: a matrix network, and labels as a matrix group",
    )
)
