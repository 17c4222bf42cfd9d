"""Graphs that are Python objects already: arrays, matrices, tables, others' graphs."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import InputError
from graphsys.core.types import EdgeType
from graphsys.datasets.base import ColumnNames, ReadOptions, read_options
from graphsys.datasets.columns import check_weights
from graphsys.datasets.readers.matrix_market import Matrix, MatrixSource
from graphsys.datasets.readers.networkx_graphs import NetworkXSource
from graphsys.datasets.readers.tables import Batches, TableSource
from graphsys.storage.ingest.graph_source import GraphSource
from graphsys.storage.reader import GraphReader
from graphsys.storage.source import Source

_ROLES: Final = ("src", "dst", "weight")
_MAX_EXACT: Final = 2.0**53


def from_object(
    obj: Any,
    *,
    ids: str = "auto",
    columns: ColumnNames = None,
    undirected: bool = False,
    edge_type: EdgeType | Sequence[str] | None = None,
    num_threads: int | None = None,
) -> Source:
    """Make a source of a Python object; arrays and tables are not copied as a whole.

    Args:
        obj: One of: a numpy array or torch tensor ``[E, 2]`` or ``[E, 3]`` (the third
            column is the weight), or ``[2, E]`` (PyG's ``edge_index``); a tuple (src, dst)
            or (src, dst, weight) of arrays or tensors; a SciPy sparse matrix (ids are
            0-based rows and columns; booleans have no weight); a pandas or Polars data
            frame, a dict of arrays, a pyarrow Table, RecordBatch or
            RecordBatchReader, or anything with ``__arrow_c_stream__``, with columns
            found by name; a NetworkX graph with its node and edge attributes; PyG's Data or
            HeteroData, or DGL's graph, with their tensors; an open graph or a view of one.
        ids: "auto", "int" or "string".
        columns: Columns of a table to take, or the table's name of each role.
        undirected: Every edge stands for both directions; a NetworkX graph knows itself.
        edge_type: Type of the edges.
        num_threads: Threads that convert ahead; None for one per core.

    Raises:
        InputError: the object is not one of these, or holds what no graph can.
    """
    options = read_options(
        ids=ids,
        columns=columns,
        undirected=undirected,
        edge_type=edge_type,
        num_threads=num_threads,
    )
    if isinstance(obj, Source):
        return obj
    if isinstance(obj, GraphReader):
        return GraphSource(obj)
    if _is_of(obj, "scipy") and hasattr(obj, "tocoo"):
        return _sparse(obj, options)
    if _is_of(obj, "torch_geometric"):
        from graphsys.datasets.readers import pyg_graphs

        return pyg_graphs.source_of(obj, undirected=undirected)
    if _is_of(obj, "dgl"):
        from graphsys.datasets.readers import dgl_graphs

        return dgl_graphs.source_of(obj, undirected=undirected)
    is_tensor = _is_of(obj, "torch")
    obj = _values(obj)
    if isinstance(obj, np.ndarray) and obj.dtype.names is not None:
        obj = {name: obj[name] for name in obj.dtype.names}
    if isinstance(obj, np.ndarray):
        if is_tensor or obj.dtype.kind in "iu":
            _refuse_either(obj, "tensor" if is_tensor else "array")
        return _matrix_of_edges(obj, options)
    if _is_of(obj, "networkx") and hasattr(obj, "is_multigraph"):
        return NetworkXSource(obj, options)
    if isinstance(obj, (tuple, list)):
        return _arrays(obj, options)
    return TableSource([table_of(obj)], options)


def _refuse_either(array: npt.NDArray[Any], what: str) -> None:
    """Refuse a matrix that may be two edges as well as two ends of edges.

    Two pairs in an array are edges, as everywhere here; a tensor of torch is rather an
    edge_index.
    """
    ends = {(2, 2): "(src, dst)", (2, 3): "(src, dst), or (src, dst, weight)"}
    if array.shape in ends and (what == "tensor" or array.shape == (2, 3)):
        raise InputError(
            f"{what} of shape {list(array.shape)}: may be two edges, or an edge_index of "
            f"{array.shape[1]}; pass {ends[array.shape]}"
        )


def _is_of(obj: Any, package: str) -> bool:
    """Tell whether an object's class, or one it inherits from, is of a package."""
    return package in sys.modules and any(
        kind.__module__.partition(".")[0] == package for kind in type(obj).__mro__
    )


def _values(obj: Any) -> Any:
    """Return a tensor of torch or a kind of array as a plain numpy array.

    Other objects stay as they are.

    Raises:
        InputError: a tensor is sparse, or values of an array are masked.
    """
    if isinstance(obj, np.ndarray):
        return _plain(obj)
    if not _is_of(obj, "torch"):
        return obj
    if obj.layout != sys.modules["torch"].strided:
        raise InputError(
            f"tensor of layout {obj.layout}, expected a dense one; pass its indices, an "
            "edge_index"
        )
    return obj.detach().cpu().numpy()


def _plain(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array without mask, of the machine's byte order, and no matrix."""
    mask = np.ma.getmaskarray(array)
    if isinstance(array, np.ma.MaskedArray) and np.any(mask):
        row = int(np.flatnonzero(mask.reshape(len(mask), -1).any(axis=1))[0])
        raise InputError(
            f"arrays: {int(mask.sum())} values are masked, the first in row {row}; leave "
            "out those rows, as np.ma.compress_rows(array) does, or fill them"
        )
    return np.asarray(array, dtype=array.dtype.newbyteorder("="))


def _sparse(matrix: Any, options: ReadOptions) -> Source:
    name = f"SciPy {type(matrix).__name__}"
    if matrix.ndim != 2:
        raise InputError(f"{name}: got {matrix.ndim} dimensions, expected 2")
    coo = matrix.tocoo()
    row, col = coo.coords
    values = None
    if coo.dtype != np.bool_:
        values = check_weights(coo.data, f"{name}: values")
    entries = Matrix(coo.shape, row, col, values, is_symmetric=False)
    return MatrixSource(
        name,
        entries,
        edge_type=options.edge_type,
        is_undirected=options.is_undirected,
        first_id=0,
        num_bytes=coo.data.nbytes + row.nbytes + col.nbytes,
    )


def _matrix_of_edges(array: npt.NDArray[Any], options: ReadOptions) -> Source:
    if array.ndim == 2 and array.shape[0] == 2 and array.shape[1] not in (2, 3):
        return _arrays([array[0], array[1]], options)  # an edge_index
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        hint = "; transpose it" if array.ndim == 2 and array.shape[0] == 3 else ""
        raise InputError(
            f"array of shape {list(array.shape)}, expected [E, 2] or [E, 3] (src, dst, "
            "weight), or [2, E]" + hint
        )
    return _arrays([array[:, k] for k in range(array.shape[1])], options)


def _arrays(parts: Sequence[Any], options: ReadOptions) -> Source:
    """Make a source of (src, dst) or (src, dst, weight), or of a list of such edges."""
    parts = [_values(part) for part in parts]
    is_arrays = len(parts) in (2, 3) and all(
        isinstance(part, (np.ndarray, pa.Array, pa.ChunkedArray)) for part in parts
    )
    if not is_arrays:
        if not parts or not all(isinstance(part, (tuple, list)) for part in parts):
            raise InputError(
                f"got a {type(parts).__name__} of {len(parts)} objects, expected (src, "
                "dst) or "
                "(src, dst, weight) as arrays, or a list of such edges"
            )
        if len(widths := {len(part) for part in parts}) != 1 or widths - {2, 3}:
            raise InputError(
                f"got edges of {sorted(widths)} values, expected 2 or 3 in all"
            )
        parts = [list(values) for values in zip(*parts, strict=True)]
    columns = {
        role: _arrow(role, part) if role == "weight" else _ids(role, part)
        for role, part in zip(_ROLES, parts, strict=False)
    }
    lengths = [len(column) for column in columns.values()]
    if len(set(lengths)) != 1:
        raise InputError(f"arrays of {lengths} values, expected one length")
    if options.columns or options.roles:
        raise InputError(
            "columns: arrays have no names; pass a data frame or a dict of arrays"
        )
    return TableSource([_batches("arrays", pa.table(columns))], options)


def _ids(role: str, part: Any) -> Any:
    """Return ids as an Arrow array; whole numbers in a float array are integers."""
    if isinstance(part, list):
        part = (
            np.asarray(part)
            if all(isinstance(item, (int, float)) for item in part)
            else part
        )
    if isinstance(part, np.ndarray) and part.dtype.kind == "f":
        is_whole = (
            np.isfinite(part) & (part == np.floor(part)) & (np.abs(part) < _MAX_EXACT)
        )
        if not is_whole.all():
            row = int(np.flatnonzero(~is_whole)[0])
            raise InputError(
                f"arrays: column {role}, row {row}: found {part[row]} as an id, expected "
                "an integer"
            )
        part = part.astype(np.int64)
    return _arrow(role, part)


def _arrow(role: str, part: Any) -> Any:
    if isinstance(part, (pa.Array, pa.ChunkedArray)):
        return part
    if isinstance(part, np.ndarray) and part.ndim != 1:
        raise InputError(
            f"arrays: {role} has shape {list(part.shape)}, expected one dimension"
        )
    if isinstance(part, np.ndarray) and part.dtype.kind == "c":
        raise InputError(f"arrays: {role} is of type {part.dtype}, expected real numbers")
    try:
        if isinstance(part, np.ndarray) and part.dtype.kind not in "OU":
            return pa.array(np.ascontiguousarray(part))
        return pa.array(part.tolist() if isinstance(part, np.ndarray) else part)
    except (pa.ArrowException, OverflowError) as err:
        raise InputError(
            f"arrays: column {role}: {' '.join(str(err).split())}; expected integers "
            "from 0 to "
            "2**63 - 1, or strings"
        ) from err


def table_of(obj: Any) -> Batches:
    """Look at a table of any library as Arrow batches.

    Raises:
        InputError: it is no table.
    """
    kind = f"{type(obj).__module__.partition('.')[0]} {type(obj).__name__}"
    try:
        if _is_of(obj, "pandas") and hasattr(obj, "columns"):
            return _batches(kind, pa.Table.from_pandas(obj, preserve_index=False))
        if _is_of(obj, "polars") and hasattr(obj, "collect"):
            obj = obj.collect()
        if isinstance(obj, (pa.Table, pa.RecordBatch)):
            return _batches(kind, obj if isinstance(obj, pa.Table) else pa.table(obj))
        if isinstance(obj, Mapping):
            arrays = {str(name): pa.array(_values(v)) for name, v in obj.items()}
            return _batches("dict", pa.table(arrays))
        if hasattr(obj, "__arrow_c_stream__"):
            return _stream(kind, pa.RecordBatchReader.from_stream(obj))
        if hasattr(obj, "__arrow_c_array__"):
            return _batches(kind, pa.table(pa.record_batch(obj)))
    except (pa.ArrowException, ValueError, TypeError) as err:
        raise InputError(
            f"{kind}: cannot be read as a table: {' '.join(str(err).split())}"
        ) from err
    raise InputError(
        f"{kind}: no graph; expected paths, numpy arrays, a SciPy sparse matrix, a "
        "pandas or "
        "Polars data frame, an Arrow table or stream, or a NetworkX graph"
    )


def _batches(name: str, table: pa.Table) -> Batches:
    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        yield from table.select(names).to_batches()

    return Batches(name, table.schema, read, table.nbytes)


def _stream(name: str, reader: pa.RecordBatchReader) -> Batches:
    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        yield from (batch.select(names) for batch in reader)

    return Batches(name, reader.schema, read)
