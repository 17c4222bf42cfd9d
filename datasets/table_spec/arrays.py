"""Arrays whose rows go with the nodes of a table: features, bags, labels, splits.

``x.npy``, ``x.npz`` (of one array, or a sparse matrix), ``x.csv`` are files.
``data.npz:label`` is one array of several, ``data.npz:kind=2`` the mask of its rows that
are 2. ``role.json:train`` is a list of row numbers, ``class.json`` an object from row
numbers to values, as GraphSAINT has them.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import InputError, unknown_name
from graphsys.datasets.array_files import dense_features, load_arrays, mapped_array
from graphsys.datasets.files import input_file
from graphsys.datasets.readers.npz import sparse_entries
from graphsys.datasets.table_spec.spec import NodeCard
from graphsys.datasets.table_spec.text_arrays import (
    is_text_array,
    text_column,
    text_matrix,
    text_rows,
)

_MAX_WHOLE: Final = 2.0**63


class NodeArrays:
    """The arrays of one table of nodes, taken piece by piece.

    Raises:
        InputError: a file is missing or holds something else.
    """

    def __init__(self, card: NodeCard, folder: Path) -> None:
        self._sizes: dict[str, int] = {}
        self._features = {
            name: self._remember(path, _matrix(folder, path))
            for name, path in card.features.items()
        }
        self._bags = {
            name: self._remember(path, _sparse(folder / path))
            for name, path in card.bags.items()
        }
        self._columns = {
            name: self._remember(path, _column(folder, path))
            for name, path in card.arrays.items()
        }
        self._splits = {
            name: {split: _vector(folder, path) for split, path in parts.items()}
            for name, parts in card.splits.items()
        }
        self._split_files = card.splits

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
                where = f"{self._split_files[name][split]} (splits.{name}.{split})"
                is_mask = rows.dtype == np.bool_
                if is_mask and len(rows) != num_rows:
                    raise InputError(f"{where}: a mask of {len(rows)}, expected {num_rows}")
                if not is_mask and len(rows) and int(rows.max()) >= num_rows:
                    raise InputError(
                        f"{where}: row {int(rows.max())}, expected 0 to "
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
            if hasattr(part, "toarray"):  # a sparse matrix
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


def _matrix(folder: Path, name: str) -> Any:
    """Return a dense matrix, mapped where the file allows it, or a sparse one by rows."""
    if (inner := inner_array(folder, name)) is not None:
        return inner
    path = folder / name
    file = input_file(path)
    if is_text_array(path.name):
        return text_matrix(file)
    if path.suffix == ".npy" and file.is_plain:
        return mapped_array(file)
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
    from scipy.sparse import csr_array

    entries = sparse_entries(name, arrays)
    values = entries.values
    if values is None:
        values = np.ones(len(entries.row), dtype=np.float32)
    places = (entries.row, entries.col)
    return csr_array((values.astype(np.float32), places), shape=entries.shape)


def _vector(folder: Path, name: str) -> npt.NDArray[Any]:
    """Return row numbers or a mask."""
    path = folder / name
    if is_text_array(name):
        return text_rows(input_file(path))
    values = np.asarray(_matrix(folder, name)).ravel()
    if values.dtype.kind not in "biu" or (len(values) and values.min() < 0):
        raise InputError(f"{path}: {values.dtype}, expected row numbers or a mask")
    return values


def _column(folder: Path, name: str) -> Any:
    """Return a column; whole numbers that are stored as fractions become integers.

    Several values for each node become lists; missing ones are null.
    """
    path = folder / name
    is_text = is_text_array(name)
    values = text_column(input_file(path)) if is_text else np.asarray(_matrix(folder, name))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim not in (1, 2) or values.dtype.kind not in "biufU":
        raise InputError(
            f"{path}: {values.dtype} {list(values.shape)}, expected values for each node"
        )
    if values.dtype.kind != "f":
        return _listed(values, None)
    is_missing = np.isnan(values)
    given = values[~is_missing]
    is_whole = np.array_equal(given, np.rint(given))
    if is_whole and (np.abs(given) < _MAX_WHOLE).all():
        whole = np.where(is_missing, 0, values).astype(np.int64)
        return _listed(whole, is_missing if is_missing.any() else None)
    return _listed(values, None)


def _listed(values: npt.NDArray[Any], mask: npt.NDArray[np.bool_] | None) -> Any:
    """Return a plain array, one with nulls, or lists of one length."""
    if values.ndim == 1:
        return values if mask is None else _WithNulls(values, mask)
    flat = pa.array(values.ravel(), mask=None if mask is None else mask.ravel())
    return _Lists(flat, *values.shape)


class _WithNulls:
    """A column of which some values are missing, to be sliced like an array."""

    def __init__(self, values: npt.NDArray[Any], mask: npt.NDArray[np.bool_]) -> None:
        self.shape = values.shape
        self._values = values
        self._mask = mask

    def __getitem__(self, part: slice) -> pa.Array:
        return pa.array(self._values[part], mask=self._mask[part])


class _Lists:
    """A column of lists of one length, to be sliced like an array."""

    def __init__(self, flat: pa.Array, rows: int, width: int) -> None:
        self.shape = (rows, width)
        self._flat = flat

    def __getitem__(self, part: slice) -> pa.Array:
        first, last, _ = part.indices(self.shape[0])
        width = self.shape[1]
        values = self._flat.slice(first * width, (last - first) * width)
        offsets = np.arange(last - first + 1, dtype=np.int32) * width
        return pa.ListArray.from_arrays(pa.array(offsets), values)


def inner_array(folder: Path, name: str) -> Any | None:
    """Return the array that a name with a colon, or of a JSON file, stands for.

    Args:
        folder: Where files lie.
        name: As described above.

    Returns:
        The array, or None for the name of a plain file.

    Raises:
        InputError: the file is damaged, or holds something else.
        UnknownNameError: it has no such array.
    """
    path, _, key = name.partition(":")
    if path.endswith(".json"):
        return _json_array(folder / path, key)
    if not key:
        return None
    key, is_mask, value = key.partition("=")
    arrays = load_arrays(input_file(folder / path))
    if key not in arrays:
        err = unknown_name("array", key, arrays)
        raise type(err)(f"{folder / path}: {err}")
    return arrays[key].astype(str) == value if is_mask else arrays[key]


def _json_array(path: Path, key: str) -> npt.NDArray[Any]:
    try:
        content = json.loads(input_file(path).read_all())
    except (ValueError, RecursionError) as err:
        raise InputError(f"{path}: no JSON file: {err}") from err
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a JSON object")
    try:
        if key:
            return np.array(content[key], dtype=np.int64)
        if {int(it) for it in content} != set(range(len(content))):
            raise InputError(f"{path}: keys are not 0 to {len(content) - 1}")
        values = np.array([content[str(row)] for row in range(len(content))])
    except KeyError:
        unknown = unknown_name("key", key, content)
        raise type(unknown)(f"{path}: {unknown}") from None
    except (ValueError, TypeError, OverflowError) as err:
        if isinstance(err, InputError):
            raise
        raise InputError(f"{path}: expected integers, {err}") from err
    if values.dtype.kind not in "biuf":
        raise InputError(f"{path}: values are {values.dtype}, expected numbers")
    return values
