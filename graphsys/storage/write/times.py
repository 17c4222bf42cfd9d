"""Times of edges: stored as int64, in a unit that the manifest tells where it is known.

Dates and timestamps have a unit; they count from 1970, UTC. Integers and numbers with
fractions are in whatever unit the user's are.
"""

import datetime as dt
import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from graphsys.core.errors import ConfigError, InputError
from graphsys.storage.manifest import TIME_UNITS as UNITS

Ints = npt.NDArray[np.int64]
_NANOSECONDS: Final = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
    "w": 7 * 86_400 * 10**9,
}
_LENGTH: Final = re.compile(r"\s*(\d+)\s*([a-z]+)\s*")
_MOST: Final = 2**63 - 1


def unit_of(kind: pa.DataType) -> str:
    """Return the unit of an Arrow type: one of ``TIME_UNITS``, or "" where it has none."""
    if pt.is_timestamp(kind):
        return str(kind.unit)
    if pt.is_date32(kind):
        return "d"
    return "ms" if pt.is_date64(kind) else ""


def typed(values: Ints, unit: str) -> Any:
    """Return stored times as Arrow timestamps (days: dates); without a unit as they are."""
    if not unit:
        return values
    if unit == "d":
        return pa.array(values).cast(pa.int32()).cast(pa.date32())
    return pa.array(values).cast(pa.timestamp(unit))


def whole(column: pa.Array, where: str) -> tuple[Ints, str]:
    """Return times as int64 ``[n]`` and their unit, "" of integers.

    Raises:
        InputError: they are neither integers nor timestamps, or one is missing.
    """
    if column.null_count:
        raise InputError(f"{where} has {column.null_count} missing values")
    kind, unit = column.type, unit_of(column.type)
    if not unit and not pt.is_integer(kind):
        raise InputError(f"{where} is {kind}, expected integers or timestamps")
    if pt.is_date32(kind):
        column = column.cast(pa.int32())
    try:
        values: Ints = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as err:
        raise InputError(f"{where}: {' '.join(str(err).split())}") from err
    return values, unit


def require_dates(values: Ints, unit: str, where: str) -> Ints:
    """Return times that their unit's Arrow type holds: days have 32 bits, all else 64.

    Raises:
        InputError: a day has not.
    """
    if unit == "d" and len(values):
        odd = np.flatnonzero(values != values.astype(np.int32))
        if len(odd):
            raise InputError(
                f"{where}: found {values[odd[0]]}, but the times before are in days since "
                "1970, of which a date has 32 bits; give dates, or integers in days"
            )
    return values


def in_unit(values: Ints, unit: str, wanted: str, where: str) -> Ints:
    """Return times in another unit, exactly.

    Args:
        values: int64 ``[n]``.
        unit: Theirs.
        wanted: The other; times without a unit have no other.
        where: What messages call them.

    Raises:
        InputError: they cannot be told in it.
    """
    if unit == wanted:
        return values
    if not unit or not wanted:
        names = [UNITS.get(it, "integers of no known unit") for it in (unit, wanted)]
        raise InputError(
            f"{where}: found times in {names[0]}, those before are in {names[1]}; give all "
            "as timestamps or all as integers"
        )
    own, other = _NANOSECONDS[unit], _NANOSECONDS[wanted]
    if own >= other:
        factor = own // other
        if len(values) and max(int(values.max()), -int(values.min())) > _MOST // factor:
            raise InputError(f"{where}: times in {UNITS[wanted]} are beyond 64 bits")
        return values * factor
    found = values // (other // own)
    odd = np.flatnonzero(found * (other // own) != values)
    if len(odd):
        raise InputError(
            f"{where}: {shown(int(values[odd[0]]), unit)} is no whole number of "
            f"{UNITS[wanted]}, in which the times before are; round the times, or give the "
            "finest first"
        )
    return found


def shown(value: int, unit: str) -> str:
    """Return a stored time as people read it: an ISO date, or the integer."""
    if not unit:
        return str(value)
    dtype = f"datetime64[{'D' if unit == 'd' else unit}]"
    return str(np.array(value, dtype=np.int64).view(dtype))


def moment(value: Any, unit: str, *, is_next: bool = False) -> int:
    """Return a point in time as an integer in a unit.

    Args:
        value: An integer in that unit; or an ISO date or time, a ``datetime``, a ``date``
            or numpy's ``datetime64``, those without a time zone in UTC. A date is its
            midnight.
        unit: The unit of the stored times, "" where it is not known.
        is_next: Return the first stored time behind it; else the first that is not before.

    Raises:
        ConfigError: it is no time, or a date where the unit is not known.
    """
    if is_integer(value):
        return int(value) + is_next
    exact = _exact(value)
    if not unit:
        raise ConfigError(
            f"time: got {value!r}, but the edges' times have no known unit, expected a "
            "whole number; ingest dates or timestamps to ask by dates"
        )
    length = _NANOSECONDS[unit]
    below = exact // length
    found = below + 1 if is_next or below * length != exact else below
    if abs(found) > _MOST:
        raise ConfigError(f"time: got {value!r}, beyond 64 bits in {UNITS[unit]}")
    return found


def duration(name: str, value: Any, unit: str) -> int:
    """Return a length of time as an integer in a unit.

    Args:
        name: What messages call it.
        value: An integer in that unit; or text like ``"7d"``, ``"12h"``, ``"30min"`` (also
            w, s, ms, us, ns), a ``timedelta`` or numpy's ``timedelta64``.
        unit: The unit of the stored times, "" where it is not known.

    Raises:
        ConfigError: it is no length of time above 0, or no whole number of units.
    """
    if is_integer(value):
        length, step = int(value), 1
    else:
        length, step = _length(name, value), _NANOSECONDS.get(unit, 0)
        if not step:
            raise ConfigError(
                f"{name}: got {value!r}, but the edges' times have no known unit, expected "
                "a whole number"
            )
        if length % step:
            raise ConfigError(f"{name}: {value!r} is no whole number of {UNITS[unit]}")
    if length < 1:
        raise ConfigError(f"{name}: got {value!r}, expected a length above 0")
    return length // step


def is_integer(value: Any) -> bool:
    """Tell whether a time is given as an integer (numpy's timedelta64 is none)."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64)


def _exact(value: Any) -> int:
    """Return the nanoseconds since 1970 of a date."""
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value)
        except ValueError:
            raise _no_time(value) from None
    if isinstance(value, np.datetime64) and not np.isnat(value):
        kind, count = np.datetime_data(value.dtype)
        if kind in ("Y", "M", "W", "D", "h", "m"):
            value, kind, count = value.astype("datetime64[s]"), "s", 1
        if kind in _NANOSECONDS:
            return int(value.astype(np.int64)) * count * _NANOSECONDS[kind]
    is_day = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
    if is_day:
        value = dt.datetime(value.year, value.month, value.day)
    if not isinstance(value, dt.datetime) or value != value:  # pandas' NaT
        raise _no_time(value)
    if value.tzinfo is None:
        value = value.replace(tzinfo=dt.UTC)
    since = value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return _of_delta(since) + int(getattr(value, "nanosecond", 0))


def _no_time(value: Any) -> ConfigError:
    return ConfigError(
        f"time: got {value!r}, expected a whole number in the unit of the edges' times, or "
        "an ISO date such as 2024-05-01 or 2024-05-01T12:30:00"
    )


def _length(name: str, value: Any) -> int:
    """Return the nanoseconds of a length of time."""
    if isinstance(value, str):
        found = _LENGTH.fullmatch(value)
        if found and found[2] in _NANOSECONDS:
            return int(found[1]) * _NANOSECONDS[found[2]]
    if isinstance(value, dt.timedelta) and value == value:
        return _of_delta(value)
    if isinstance(value, np.timedelta64) and not np.isnat(value):
        return int(value.astype("timedelta64[ns]").astype(np.int64))
    raise ConfigError(
        f"{name}: got {value!r}, expected a whole number in the unit of the edges' times, "
        f"or a length such as '7d' ({', '.join(_NANOSECONDS)})"
    )


def _of_delta(value: dt.timedelta) -> int:
    return (value.days * 86_400 + value.seconds) * 10**9 + value.microseconds * 10**3
