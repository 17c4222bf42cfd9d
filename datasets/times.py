"""Times that are no integers: numbers with fractions as millionths, ISO dates as such."""

import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from graphsys.core.caller_warnings import note
from graphsys.core.errors import InputError

PER_SECOND: Final = 1_000_000
_ISO: Final = re.compile(rb"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?$")
_EXPECTED: Final = (
    "expected integers, numbers, or ISO dates such as 2024-05-01 or 2024-05-01T12:30:00.5"
)
_DAY: Final = rb"\d{1,2}"
_MONTH: Final = (
    rb"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|january|february|march|april|june|"
    rb"july|august|september|october|november|december)"
)
_CLOCK: Final = {"": rb"", " %H:%M": rb" \d\d:\d\d", " %H:%M:%S": rb" \d\d:\d\d:\d\d"}
_WRITTEN: Final = {
    "%b %d, %Y": _MONTH + b" " + _DAY + rb", \d{4}",
    "%b %d %Y": _MONTH + b" " + _DAY + rb" \d{4}",
    "%d %b %Y": _DAY + b" " + _MONTH + rb" \d{4}",
    "%d-%b-%Y": _DAY + b"-" + _MONTH + rb"-\d{4}",
    "%Y/%m/%d": rb"\d{4}/\d{1,2}/\d{1,2}",
    "%d.%m.%Y": rb"\d{1,2}\.\d{1,2}\.\d{4}",
    "%a %b %d %H:%M:%S +0000 %Y": rb"[a-z]{3} "
    + _MONTH
    + rb" \d\d \d\d:\d\d:\d\d \+0000 \d{4}",
}
"""Dates that can be read in one way alone; 3/4/2015 is none of them."""

_FORMATS: Final = {
    f"{date}{clock}": re.compile(pattern + tail, re.IGNORECASE)
    for date, pattern in _WRITTEN.items()
    for clock, tail in _CLOCK.items()
}


def is_date(field: bytes) -> bool:
    """Tell whether a field looks like a date, or a date with a time of day.

    Examples:
        >>> is_date(b"2015-03-25"), is_date(b"Mar 25, 2015"), is_date(b"3/4/2015")
        (True, True, False)
    """
    return _ISO.match(field) is not None or _format_of(field) is not None


def _format_of(field: bytes) -> str | None:
    """Return how a date is written that is not ISO's, for strptime; None for others."""
    return next((kind for kind, it in _FORMATS.items() if it.fullmatch(field)), None)


def warn_of_unit(where: str, unit: str) -> None:
    """Say in which unit times of nodes are stored, which the store does not know."""
    note(f"{where}: dates of nodes are stored as {unit} since 1970, UTC (int64)")


def warn_of_millionths(where: str) -> None:
    """Say in which unit times are stored that are numbers with fractions."""
    note(
        f"{where}: column time: numbers with fractions are stored as millionths, whole "
        "ones (int64)"
    )


def times_of(values: Any, where: str, first_row: int = 0) -> Any:
    """Return times as int64 ``[n]`` (numbers with fractions as millionths), or timestamps.

    Args:
        values: Integers or float64 ``[n]``, or Arrow strings (or a dictionary of them).
        where: What messages call the column.
        first_row: Number of the first row, from 0, for messages.

    Returns:
        A numpy array, or of dates an Arrow array of timestamps in microseconds, UTC.

    Raises:
        InputError: a time is no number or date, or too large.
    """
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "iu":
            return values.astype(np.int64, copy=False)
        return _of_numbers(values.astype(np.float64), where, first_row)
    if pt.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
        return _of_numbers(numbers, where, first_row)
    codes = None
    if pt.is_dictionary(values.type):
        codes, values = values.indices.to_numpy(zero_copy_only=False), values.dictionary
    times = _of_dates(values.cast(pa.string()), where)
    return times if codes is None else times.take(pa.array(codes))


def _of_numbers(
    values: npt.NDArray[np.float64], where: str, first_row: int
) -> npt.NDArray[np.int64]:
    scaled = np.rint(values * PER_SECOND)
    wrong = ~(np.abs(scaled) < 2.0**63)  # NaN, too
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"{where}, row {first_row + row}: found {values[row]}, expected a time whose "
            "millionths fit 64 bits"
        )
    return scaled.astype(np.int64)


def _of_dates(texts: pa.StringArray, where: str) -> pa.Array:
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return texts.cast(kind).cast(pa.timestamp("us"))
        except pa.ArrowInvalid:
            continue
    found: set[str | None] = {_format_of(text.encode()) for text in texts.to_pylist()}
    written = found.pop() if len(found) == 1 else None
    if written is not None:
        times = pc.strptime(texts, format=written, unit="us", error_is_null=True)
        if not times.null_count:
            return times.cast(pa.timestamp("us"))
    raise InputError(f"{where}: {_why_not(texts)}")


def _why_not(texts: pa.StringArray) -> str:
    """Return which of some texts are no times of one kind, and what to do."""
    zoned = plain = ""
    for text in texts.to_pylist():
        if not is_date((text or "").encode()):
            return f"found {(text or '')[:60]!r}, {_EXPECTED}"
        one = pa.array([text])
        if not (_can_cast(one, None) or _can_cast(one, "UTC")):
            if _format_of(text.encode()) is None:
                return f"found {text[:60]!r}, which is no date of the calendar; correct it"
        elif _can_cast(one, None):
            plain = plain or text
        else:
            zoned = zoned or text
        if zoned and plain:
            return (
                f"found {zoned[:60]!r}, which has a time zone, and {plain[:60]!r}, which "
                "has none; write all with a zone, or none"
            )
    return f"found dates that are written in several ways, {_EXPECTED}"


def _can_cast(texts: pa.StringArray, zone: str | None) -> bool:
    try:
        texts.cast(pa.timestamp("us", zone))
    except pa.ArrowInvalid:
        return False
    return True
