"""NumPy's files read or mapped, and features brought to a dtype that the store holds."""

import io
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import InputError
from graphsys.datasets.columns import narrow_features
from graphsys.datasets.files import InputFile, describe


def load_arrays(file: InputFile) -> dict[str, npt.NDArray[Any]]:
    """Read a .npz archive, or a .npy file as its only array ``data``.

    Raises:
        InputError: it is damaged, or an array is a pickle.
    """
    content: Any = file.path if file.is_plain else io.BytesIO(file.read_all())
    try:
        loaded = np.load(content, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"data": loaded}
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except Exception as err:  # NumPy evaluates a header, which may raise anything
        if "pickle" in str(err):
            raise InputError(
                f"{file.name}: holds pickled objects or is no NumPy file, expected plain "
                "arrays; pickles are not read, save the arrays with a dtype of numbers"
            ) from err
        raise InputError(
            f"{file.name}: cannot be read as a NumPy file: {describe(err)}"
        ) from err


def mapped_array(file: InputFile) -> npt.NDArray[Any]:
    """Map a .npy file; read it where it is compressed.

    Raises:
        InputError: it is damaged, or a pickle.
    """
    if file.is_plain:
        try:
            with warnings.catch_warnings():  # a damaged header's sizes overflow
                warnings.simplefilter("error", RuntimeWarning)
                mapped: npt.NDArray[Any] = np.load(
                    file.path, mmap_mode="r", allow_pickle=False
                )
                return mapped
        except Exception:  # the reader of whole files says what is wrong
            pass
    arrays = load_arrays(file)
    if "data" not in arrays:
        raise InputError(f"{file.name}: holds {len(arrays)} arrays, expected one")
    return arrays["data"]


def dense_features(name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return features in a dtype that the store holds, ``[n, d]``.

    Raises:
        InputError: they are no matrix of numbers, not finite, or beyond float32.
    """
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise InputError(
            f"{name}: features are {values.dtype} {list(values.shape)}, expected numbers "
            "[nodes, dim]"
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
        raise InputError(f"{name}: features of row {row} are not finite, expected numbers")
    return narrow_features(values, f"{name}: features")
