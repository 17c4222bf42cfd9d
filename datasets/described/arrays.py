"""Arrays whose rows go with the nodes of a table: features, bags, labels, splits."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse

from graphsys.core.errors import InputError
from graphsys.datasets.described.card import NodeCard
from graphsys.datasets.files import input_file
from graphsys.datasets.npz import dense_features, load_arrays, sparse_entries


class NodeArrays:
    """The arrays of one table of nodes, taken piece by piece.

    Args:
        card: The table's description.
        folder: Where the files lie.

    Raises:
        InputError: a file is missing or holds something else.
    """

    def __init__(self, card: NodeCard, folder: Path) -> None:
        self._sizes: dict[str, int] = {}
        self._features = {
            name: self._remember(path, _matrix(folder / path))
            for name, path in card.features.items()
        }
        self._bags = {
            name: self._remember(path, _sparse(folder / path))
            for name, path in card.bags.items()
        }
        self._columns = {
            name: self._remember(path, _column(folder / path))
            for name, path in card.arrays.items()
        }
        self._splits = {
            name: {split: _vector(folder / path) for split, path in parts.items()}
            for name, parts in card.splits.items()
        }

    def _remember(self, path: str, values: Any) -> Any:
        self._sizes[path] = int(values.shape[0])
        return values

    def check(self, what: str, num_rows: int) -> None:
        """Compare the numbers of rows with that of a table.

        Raises:
            InputError: they differ, or a split has a row outside.
        """
        for path, size in self._sizes.items():
            if size != num_rows:
                raise InputError(
                    f"{path}: {size} rows, expected {num_rows}, one for each node of {what}"
                )
        for name, parts in self._splits.items():
            for split, rows in parts.items():
                is_mask = rows.dtype == np.bool_
                if is_mask and len(rows) != num_rows:
                    raise InputError(
                        f"splits.{name}.{split}: a mask of {len(rows)}, expected {num_rows}"
                    )
                if not is_mask and len(rows) and int(rows.max()) >= num_rows:
                    raise InputError(
                        f"splits.{name}.{split}: row {int(rows.max())}, expected 0 to "
                        f"{num_rows - 1}, the nodes of {what}"
                    )

    def columns(self, first: int, last: int) -> dict[str, Any]:
        """Return the columns of rows ``first .. last``."""
        found = {name: values[first:last] for name, values in self._columns.items()}
        for name, parts in self._splits.items():
            found[name] = _split_names(parts, first, last)
        return found

    def features(self, first: int, last: int) -> dict[str, Any]:
        """Return the features of rows ``first .. last``."""
        found: dict[str, Any] = {}
        for name, values in self._features.items():
            part = values[first:last]
            if scipy.sparse.issparse(part):
                part = part.toarray()
            found[name] = dense_features(name, np.asarray(part))
        for name, matrix in self._bags.items():
            part = matrix[first:last]
            found[name] = pa.LargeListArray.from_arrays(
                pa.array(part.indptr.astype(np.int64)),
                pa.array(part.indices.astype(np.uint32)),
            )
        return found


def _split_names(
    parts: Mapping[str, npt.NDArray[Any]], first: int, last: int
) -> pa.StringArray:
    codes = np.zeros(last - first, dtype=np.int8)
    for code, rows in enumerate(parts.values(), start=1):
        if rows.dtype == np.bool_:
            codes[rows[first:last]] = code
        else:
            codes[rows[(rows >= first) & (rows < last)] - first] = code
    names = pa.array([None, *parts], type=pa.string())
    return names.take(pa.array(codes))


def _matrix(path: Path) -> Any:
    """Return a dense matrix, mapped where the file allows it, or a sparse one by rows."""
    file = input_file(path)
    if path.suffix == ".npy" and file.is_plain:
        try:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError:
            load_arrays(file)  # says what is wrong
            raise
    arrays = load_arrays(file)
    if "format" in arrays:
        return _by_rows(file.name, arrays)
    if len(arrays) != 1:
        raise InputError(f"{path}: holds {len(arrays)} arrays, expected one")
    return next(iter(arrays.values()))


def _sparse(path: Path) -> Any:
    file = input_file(path)
    arrays = load_arrays(file)
    if "format" not in arrays:
        raise InputError(f"{path}: no sparse matrix of SciPy, as bags need one")
    matrix = _by_rows(file.name, arrays)
    matrix.eliminate_zeros()
    return matrix


def _by_rows(name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Any:
    entries = sparse_entries(name, arrays)
    values = entries.values
    if values is None:
        values = np.ones(len(entries.row), dtype=np.float32)
    places = (entries.row, entries.col)
    return scipy.sparse.csr_array((values.astype(np.float32), places), shape=entries.shape)


def _vector(path: Path) -> npt.NDArray[Any]:
    """Return row numbers or a mask."""
    values = np.asarray(_matrix(path)).ravel()
    if values.dtype.kind not in "biu" or (len(values) and values.min() < 0):
        raise InputError(f"{path}: {values.dtype}, expected row numbers or a mask")
    return values


def _column(path: Path) -> npt.NDArray[Any]:
    """Return a column; whole numbers that are stored as fractions become integers."""
    values = np.asarray(_matrix(path))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.dtype.kind not in "biufU":
        raise InputError(
            f"{path}: {values.dtype} {list(values.shape)}, expected one value for each node"
        )
    if values.dtype.kind == "f" and np.array_equal(values, np.rint(values)):
        return values.astype(np.int64)
    return values
