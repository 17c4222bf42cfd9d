"""How dense features are stored: as given, narrower, or each distinct row once."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError, InputError, cut_list
from graphsys.kernels.cpu.text.dictionary import find_distinct
from graphsys.storage.scratch import Scratch
from graphsys.storage.views import view_of

GIVEN, SHARED = "given", "shared"
NARROW: Final = ("float16", "int8")
_PLACE_BYTES = 4
_ROWS_SHOWN = 5
_WORDS = {8: np.uint64, 4: np.uint32, 2: np.uint16, 1: np.uint8}


def parse_forms(text: str) -> tuple[str, bool]:
    """Return the dtype that a setting names, or "given", and whether rows are shared.

    Raises:
        ConfigError: It names anything else.

    Examples:
        >>> parse_forms("int8,shared"), parse_forms("given")
        (('int8', True), ('given', False))
    """
    names = [name.strip() for name in text.split(",")]
    kinds = [name for name in names if name != SHARED]
    is_known = all(name in (GIVEN, *NARROW) for name in kinds)
    if not is_known or len(kinds) > 1 or len(set(names)) < len(names):
        raise ConfigError(
            f"features_as: got {text!r}, expected given, {', '.join(NARROW)} or {SHARED}, "
            f"or one of the first and {SHARED} (int8,{SHARED})"
        )
    return (kinds or [GIVEN])[0], SHARED in names


def quantize(
    name: str, values: npt.NDArray[np.floating[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """Return a feature as int8 rows with a scale each, to be ingested: a quarter the bytes.

    A row's largest value becomes 127; every value is off by half a step at most, which is
    1/254 of the largest.

    Args:
        name: Of the feature; its scale is called ``NAME_scale``.
        values: Finite numbers ``[n, F]``.

    Returns:
        Two entries for ``NodeChunk.features``: int8 ``[n, F]`` and float32 ``[n, 1]``.

    Examples:
        >>> found = quantize("x", np.array([[127.0, 1.0, -2.0]]))
        >>> found["x"].tolist(), found["x_scale"].tolist()
        ([[127, 1, -2]], [[1.0]])
    """
    scale = np.abs(values).max(axis=1, keepdims=True, initial=0).astype(np.float32) / 127
    steps = np.divide(values, scale, out=np.zeros(values.shape), where=scale > 0)
    return {name: np.rint(steps).astype(np.int8), f"{name}_scale": scale}


def narrow(
    features: dict[str, Any], kind: str, node_type: str, first: int
) -> dict[str, Any]:
    """Return features with the dense ones narrowed, where that takes fewer bytes.

    Args:
        features: Those of a chunk, by name.
        kind: "float16" or "int8".
        node_type: For messages.
        first: Number of the chunk's first row, for messages.

    Raises:
        InputError: A number is not finite, or beyond float16; or a scale has the name of
            another feature.
    """
    found: dict[str, Any] = {}
    for name, values in features.items():
        if not _is_narrower(values, kind):
            found[name] = values
            continue
        where = f"feature {name!r} of node type {node_type!r}"
        if kind == "float16":
            with np.errstate(over="ignore"):
                found[name] = values.astype(np.float16)
            is_bad = (np.isinf(found[name]) & np.isfinite(values)).any(axis=1)
            _require(is_bad, where, "has numbers beyond float16 (65504)", first)
            continue
        _require(~np.isfinite(values).all(axis=1), where, "is not finite", first)
        pair = quantize(name, values)
        if f"{name}_scale" in features:
            raise InputError(
                f"{where} gets its scale in {name}_scale, which is another feature; "
                "rename that, or keep features as given"
            )
        found |= pair
    return found


def _is_narrower(values: Any, kind: str) -> bool:
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.dtype.kind != "f":
        return False
    dim = values.shape[1]
    wanted = 2 * dim if kind == "float16" else dim + 4
    return bool(wanted < values.dtype.itemsize * dim)


def _require(is_bad: npt.NDArray[np.bool_], where: str, what: str, first: int) -> None:
    rows = np.flatnonzero(is_bad)
    if len(rows):
        shown = cut_list((rows[: _ROWS_SHOWN + 1] + first).tolist(), _ROWS_SHOWN)
        raise InputError(
            f"{where} {what} in {len(rows)} rows, counted from 0: {shown}; mend them, or "
            "keep features as given"
        )


def share_rows(rows: npt.NDArray[Any], scratch: Scratch) -> pa.DictionaryArray | None:
    """Return each distinct row once and which of them every row is, if that is smaller.

    Rows are compared byte for byte: what is no number equals itself, 0 and -0 differ.

    Args:
        rows: C-contiguous ``[n, d]``.
        scratch: Where the work's arrays are.

    Returns:
        uint32 places of ``FixedSizeList`` rows, or None.
    """
    num_rows, row_bytes = len(rows), rows.itemsize * rows.shape[1]
    most = (num_rows * (row_bytes - _PLACE_BYTES) - 1) // row_bytes
    if most < 1 or most >= 2**32 - 1:
        return None
    word = next(size for size in _WORDS if row_bytes % size == 0)
    table = scratch.zeros(1 << (2 * most - 1).bit_length(), np.uint32)
    first, codes = scratch.array(most, np.int64), scratch.array(num_rows, np.uint32)
    words = rows.reshape(-1).view(_WORDS[word]).reshape(num_rows, -1)
    count = find_distinct(words, table, first, codes)
    if count < 0:
        return None
    kept = scratch.array(count * rows.shape[1], rows.dtype)
    np.take(rows, first[:count], axis=0, out=kept.reshape(count, -1), mode="clip")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(kept), rows.shape[1])
    return pa.DictionaryArray.from_arrays(pa.array(codes), lists)


def split_rows(
    column: pa.Array, dim: int
) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint32] | None]:
    """Return the rows ``[k, dim]`` of a column and, if they are shared, the place of each.

    Returns:
        Views: rows, and uint32 ``[n]`` or None.
    """
    if not pa.types.is_dictionary(column.type):
        return view_of(column.values).reshape(len(column), dim), None
    rows = view_of(column.dictionary.values).reshape(len(column.dictionary), dim)
    return rows, view_of(column.indices)


def saved_bytes(num_nodes: int, entry: dict[str, Any]) -> int:
    """Return what sharing saves of a feature, given its entry in the manifest."""
    if "stored_rows" not in entry:
        return 0
    row_bytes = entry["dim"] * np.dtype(entry["dtype"]).itemsize
    saved: int = (num_nodes - entry["stored_rows"]) * row_bytes
    return saved - _PLACE_BYTES * num_nodes
