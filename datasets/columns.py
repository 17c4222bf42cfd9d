"""Columns that come as arrays: checked, and brought to the types of the store."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from graphsys.core.errors import InputError
from graphsys.core.types import MAX_USER_ID
from graphsys.datasets.times import times_of
from graphsys.storage.write.times import unit_of


def id_column(values: Any, *, kind: str, where: str, first_row: int = 0) -> Any:
    """Return ids as int64 ``[n]`` or as an Arrow dictionary of strings.

    Args:
        values: An Arrow array.
        kind: "auto", "int" or "string".
        where: What messages call the column.
        first_row: Number of the first row, from 0, for messages.

    Raises:
        InputError: an id is missing, negative, above 2**63 - 1, or of another type.
    """
    _refuse_nulls(values, where, first_row)
    if pt.is_dictionary(values.type):
        if is_text(values.type):
            words = values.cast(pa.dictionary(pa.int32(), pa.string()))
            return _as_integers(words, where) if kind == "int" else words
        values = values.dictionary_decode()
    if pt.is_integer(values.type):
        if kind == "string":
            return values.cast(pa.string()).dictionary_encode()
        numbers = values.to_numpy(zero_copy_only=False)
        return check_ids(numbers, where, first_row, "; --ids string takes it as a name")
    if is_text(values.type):
        words = values.cast(pa.string()).dictionary_encode()
        return _as_integers(words, where) if kind == "int" else words
    raise InputError(
        f"{where}: ids are of type {values.type}, expected integers or strings; cast them"
    )


def check_ids(
    ids: npt.NDArray[np.integer[Any]], where: str, first_row: int = 0, advice: str = ""
) -> npt.NDArray[np.int64]:
    """Return integer ids as int64 ``[n]``, without a copy where they are.

    Raises:
        InputError: an id is negative or above 2**63 - 1.
    """
    wrong = ids > MAX_USER_ID if ids.dtype == np.uint64 else ids < 0
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"{where}, row {first_row + row}: found {ids[row]} as an id, expected an "
            f"integer from 0 to 2**63 - 1{advice}"
        )
    return ids.astype(np.int64, copy=False)


def check_weights(
    values: Any, where: str, first_row: int = 0, *, what: str = "weights"
) -> npt.NDArray[Any]:
    """Return weights as a numeric array ``[n]``, booleans as integers.

    Raises:
        InputError: a weight is missing, not finite, or no number.
    """
    if isinstance(values, np.ndarray):
        weights = values
    else:
        _refuse_nulls(values, where, first_row)
        if not (pt.is_integer(values.type) or pt.is_floating(values.type)):
            if not (pt.is_boolean(values.type) or pt.is_decimal(values.type)):
                raise InputError(
                    f"{where}: {what} are of type {values.type}, expected numbers"
                )
            is_flag = pt.is_boolean(values.type)
            values = values.cast(pa.int8() if is_flag else pa.float64())
        weights = values.to_numpy(zero_copy_only=False)
    if weights.dtype == np.bool_:
        return weights.astype(np.int8)
    if weights.dtype.kind not in "iuf":
        raise InputError(f"{where}: {what} are of type {weights.dtype}, expected numbers")
    if weights.dtype.kind == "f" and not np.isfinite(weights).all():
        odd = np.flatnonzero(~np.isfinite(weights))
        found = "NaN" if np.isnan(weights[odd[0]]) else f"{weights[odd[0]]}"
        raise InputError(
            f"{where}, row {first_row + int(odd[0])}: found {found}, expected a number "
            f"({len(odd)} {what} here are not finite)"
        )
    return weights


def check_times(values: Any, where: str, first_row: int = 0) -> Any:
    """Return times as int64 ``[n]``, or as Arrow timestamps or dates, which have a unit.

    Numbers with fractions become millionths, dates as text timestamps in microseconds.

    Raises:
        InputError: a time is missing or no number, date or timestamp.
    """
    _refuse_nulls(values, where, first_row)
    if pt.is_floating(values.type) or is_text(values.type):
        return times_of(values, where, first_row)
    if unit_of(values.type):
        return values
    is_moment = pt.is_temporal(values.type) and not pt.is_time(values.type)
    if not (pt.is_integer(values.type) or is_moment):
        raise InputError(
            f"{where}: times are of type {values.type}, expected integers or timestamps"
        )
    try:
        times: npt.NDArray[np.int64] = values.cast(pa.int64()).to_numpy(
            zero_copy_only=False
        )
    except pa.ArrowInvalid as err:
        raise InputError(f"{where}: {' '.join(str(err).split())}") from err
    return times


def relation_column(values: Any, where: str, first_row: int = 0) -> pa.DictionaryArray:
    """Return relation names as an Arrow dictionary of strings; integers become names.

    Raises:
        InputError: a name is missing.
    """
    _refuse_nulls(values, where, first_row)
    if pt.is_dictionary(values.type):
        values = values.dictionary_decode()
    return values.cast(pa.string()).dictionary_encode()


def integer_names(numbers: npt.NDArray[np.int64]) -> pa.DictionaryArray:
    """Return integers as names: an Arrow dictionary of strings, in numeric order."""
    top = int(numbers.max(initial=0))
    if int(numbers.min(initial=0)) < 0 or top >= max(len(numbers), 1 << 16):
        return pa.array(numbers).cast(pa.string()).dictionary_encode()
    is_there = np.zeros(top + 1, dtype=bool)
    is_there[numbers] = True
    codes = np.cumsum(is_there, dtype=np.int32) - np.int32(1)
    names = pa.array(np.flatnonzero(is_there)).cast(pa.string())
    return pa.DictionaryArray.from_arrays(codes[numbers], names)


def holds_features(kind: pa.DataType) -> bool:
    """Tell whether a column is one of vectors: fixed-size lists, or lists of floats."""
    if pt.is_fixed_size_list(kind):
        inner = kind.value_type
        return bool(pt.is_floating(inner) or pt.is_integer(inner) or pt.is_boolean(inner))
    return bool(
        (pt.is_list(kind) or pt.is_large_list(kind)) and pt.is_floating(kind.value_type)
    )


def dense_features(values: Any, where: str, first_row: int = 0) -> npt.NDArray[Any]:
    """Return a column of lists of one length as features ``[n, d]``.

    Returns:
        float16 and int8 as they are, else float32.

    Raises:
        InputError: a list or a number is missing, lists differ in length, or a number is
            not finite, or beyond float32.
    """
    _refuse_nulls(values, where, first_row)
    lengths = pc.list_value_length(values).to_numpy(zero_copy_only=False)
    dim = int(lengths[0]) if len(lengths) else 0
    if (lengths != dim).any() or not dim:
        row = (
            int(np.flatnonzero((lengths != dim) | (lengths == 0))[0]) if len(lengths) else 0
        )
        raise InputError(
            f"{where}, row {first_row + row}: a list of {lengths[row]} numbers, expected "
            f"{dim or 'some'} as in the first; features have one length"
        )
    flat = values.flatten()
    if flat.null_count:
        row = int(pc.index(flat.is_null(), True).as_py()) // dim
        raise InputError(
            f"{where}, row {first_row + row}: a number is missing (null), expected {dim}"
        )
    rows: npt.NDArray[Any] = flat.to_numpy(zero_copy_only=False).reshape(-1, dim)
    if rows.dtype.kind == "f" and not np.isfinite(rows).all():
        row = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise InputError(
            f"{where}, row {first_row + row}: a number is not finite, expected features "
            "without NaN and inf"
        )
    return narrow_features(rows, where, first_row)


def narrow_features(
    rows: npt.NDArray[Any], where: str, first_row: int = 0
) -> npt.NDArray[Any]:
    """Return features ``[n, d]`` in a dtype that the store holds.

    Returns:
        float16 and int8 as they are, else float32; NaN and inf stay.

    Raises:
        InputError: a number is beyond float32.
    """
    if rows.dtype.name in ("float16", "int8", "float32"):
        return rows
    with np.errstate(over="ignore"):
        narrow: npt.NDArray[np.float32] = rows.astype(np.float32)
    if rows.dtype.kind == "f" and np.isinf(narrow).any():
        is_beyond = np.isinf(narrow) & np.isfinite(rows)
        if is_beyond.any():
            row, place = np.argwhere(is_beyond)[0]
            raise InputError(
                f"{where}, row {first_row + row}: {rows[row, place]:g} at place {place} "
                "does not fit float32, which features are kept as; expected numbers "
                f"within {np.finfo(np.float32).max:.2g}, scale the feature or mend the row"
            )
    return narrow


def graph_column(name: str, values: Any, where: str, first_row: int = 0) -> Any:
    """Return a column of edges, checked by its name."""
    if name == "weight":
        return check_weights(values, where, first_row)
    if name == "time":
        return check_times(values, where, first_row)
    if name == "relation":
        return relation_column(values, where, first_row)
    return values


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a column holds strings, in a dictionary or not."""
    if pt.is_dictionary(kind):
        kind = kind.value_type
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def _refuse_nulls(values: Any, where: str, first_row: int) -> None:
    if values.null_count:
        row = int(pc.index(values.is_null(), True).as_py())
        raise InputError(
            f"{where}, row {first_row + row}: the value is missing (null), as "
            f"{values.null_count} of {len(values)} are; drop those rows, or fill them in"
        )


def _as_integers(words: pa.DictionaryArray, where: str) -> npt.NDArray[np.int64]:
    """Turn names of digits into integers, as ``ids="int"`` asks."""
    try:
        numbers = words.dictionary.cast(pa.int64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as err:
        raise InputError(
            f"{where}: {' '.join(str(err).split())}; pass ids='string' if ids are names"
        ) from err
    places = words.indices.to_numpy(zero_copy_only=False)
    ids: npt.NDArray[np.int64] = check_ids(numbers, where)[places]
    return ids
