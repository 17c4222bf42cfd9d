"""Arrays by name: files, arrays inside files, and where they have a value.

``x.npy``, ``x.npz`` (of one array, or a sparse matrix), ``x.csv`` are files.
``data.npz:label`` is one array of several, ``data.npz:kind=2`` the mask of its rows that
are 2. ``role.json:train`` is a list of row numbers, ``class.json`` an object from row
numbers to values, as GraphSAINT has them.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import InputError, unknown_name
from graphsys.datasets.array_files import load_arrays
from graphsys.datasets.files import input_file


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
