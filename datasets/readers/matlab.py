"""MATLAB files (.mat): an adjacency matrix and groups of nodes, as BlogCatalog has them.

``network`` (or the only square sparse matrix) holds the edges, ``group`` one column for
each label; a node may have several, so that the node column ``labels`` is a list of the
groups' numbers, from 0. Ids are MATLAB's row numbers, from 1. A symmetric matrix is
undirected, an edge for each pair once. Equal weights of 1 are left out. Nothing is
unpickled: the format has no pickles; but SciPy's reader, which is C, may crash on a file
that was damaged on purpose.

References:
    Tang, Liu, "Relational learning via latent social dimensions", KDD 2009.
"""

import io
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import scipy.io
import scipy.sparse

from graphsys.core.errors import ConfigError, InputError, cut_list
from graphsys.core.types import EDGE, EdgeType
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.columns import check_weights
from graphsys.datasets.files import InputFile, describe
from graphsys.datasets.readers.matrix_market import Matrix, MatrixSource
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

_NETWORKS: Final = ("network", "net", "adjacency", "A", "W")
_GROUPS: Final = ("group", "groups", "label", "labels")


class MatlabSource(Source):
    """The edges of a matrix, and the groups of its rows."""

    def __init__(
        self, edges: MatrixSource, groups: Any | None, edge_type: EdgeType
    ) -> None:
        self.name = edges.name
        self.total_bytes = edges.total_bytes
        self.is_directed = edges.is_directed
        self._edges = edges
        self._groups = groups
        self._edge_type = edge_type

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield all nodes with their groups, then the edges."""
        for chunk in self._edges.chunks():
            if isinstance(chunk, NodeChunk) and self._groups is not None:
                first = int(chunk.ids[0]) - 1
                rows = self._groups[first : first + len(chunk.ids)]
                labels = pa.ListArray.from_arrays(
                    pa.array(rows.indptr.astype(np.int32)),
                    pa.array(rows.indices.astype(np.int32)),
                )
                yield NodeChunk(
                    ids=chunk.ids, node_type=chunk.node_type, columns={"labels": labels}
                )
            else:
                yield chunk


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
    network = _network(file, variables)
    groups = _groups(file, variables, network.shape[0])
    matrix = _matrix(file, network)
    edges = MatrixSource(
        file.name,
        matrix,
        edge_type=options.edge_type,
        is_undirected=options.is_undirected,
        num_bytes=file.num_bytes,
    )
    return MatlabSource(edges, groups, options.edge_type or EDGE)


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


def _network(file: InputFile, variables: dict[str, Any]) -> Any:
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
    return _coo(file, square[chosen[0]])


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


def _groups(file: InputFile, variables: dict[str, Any], num_nodes: int) -> Any | None:
    name = next((key for key in _GROUPS if key in variables), None)
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
