"""From the user's ids to numbers."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import UnknownNameError
from graphsys.storage.views import array_of, view_of

_SCANNED_AT_A_TIME = 1 << 20
_COMPARED_AT_A_TIME = 1 << 16
_FEW = 8  # times as many are scanned as fast as they are hashed


def lookup_ids(
    known: pa.ChunkedArray, ids: Sequence[Any] | npt.NDArray[Any], where: str
) -> npt.NDArray[np.int64]:
    """Return the position of every id among the known ones.

    Args:
        known: Ids in the order of their numbers, int64 or large_string ``[N]``.
        ids: Ids to find ``[n]``; text is read as an integer where the graph's are integers.
        where: The type and graph, for messages.

    Returns:
        Positions, int64 ``[n]``.

    Raises:
        UnknownNameError: an id is not known; the message names the first.
    """
    wanted = _as_type(ids, known.type, where)
    if len(wanted) == 1:  # a scan is much faster than hashing all that are known
        numbers = np.array([_position_of(wanted[0], known)], dtype=np.int64)
    elif _FEW * len(wanted) < len(known):
        numbers = _scanned(known, wanted)
    else:
        numbers = _positions(wanted, known.combine_chunks())
    if len(missing := np.flatnonzero(numbers < 0)):
        first = ids[int(missing[0])]
        shown = first.item() if isinstance(first, np.generic) else first
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise UnknownNameError(
            f"node {shown!r}{more} is not among the {len(known)} nodes of type {where}"
        )
    return numbers


def _position_of(wanted: pa.Scalar, known: pa.ChunkedArray) -> int:
    """Return the position of one id, or -1; at once where ids are the nodes' numbers."""
    if not pa.types.is_integer(known.type):
        return int(pc.index(known, wanted).as_py())
    number = wanted.as_py()
    if 0 <= number < len(known) and known[number].as_py() == number:
        return int(number)
    begin = 0
    for chunk in known.chunks:
        values = view_of(chunk)
        for at in range(0, len(values), _COMPARED_AT_A_TIME):
            hits = values[at : at + _COMPARED_AT_A_TIME] == number
            if hits.any():  # half the time of Arrow's index
                return begin + at + int(hits.argmax())
        begin += len(values)
    return -1


def _scanned(known: pa.ChunkedArray, wanted: pa.Array) -> npt.NDArray[np.int64]:
    """Return positions of few among many: a table of the few, whom the many are asked for.

    A table of the many takes 250 bytes for each of them.
    """
    unique = wanted.unique()
    places = np.full(len(unique), -1, dtype=np.int64)
    begin, size = 0, max(_SCANNED_AT_A_TIME, 4 * len(unique))
    for chunk in known.chunks:
        for at in range(0, len(chunk), size):
            found = _positions(chunk.slice(at, size), unique)
            hits = np.flatnonzero(found >= 0)
            places[found[hits]] = begin + at + hits
        begin += len(chunk)
    return places[_positions(wanted, unique)]


def _positions(wanted: pa.Array, known: pa.Array) -> npt.NDArray[np.int64]:
    """Return the position of every id in an array that is hashed, or -1."""
    found = pc.fill_null(pc.index_in(wanted, value_set=known), -1)
    numbers: npt.NDArray[np.int64] = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _as_type(
    ids: Sequence[Any] | npt.NDArray[Any], kind: pa.DataType, where: str
) -> pa.Array:
    if not pa.types.is_integer(kind):
        return pa.array([str(key) for key in ids], type=kind)
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu" and ids.dtype != np.uint64:
        return pa.array(ids, type=kind)
    numbers = []
    for key in ids:
        try:
            numbers.append(int(key) if isinstance(key, str) else operator.index(key))
        except (ValueError, TypeError) as err:
            raise UnknownNameError(
                f"node {key!r} is not an integer, but the ids of type {where} are"
            ) from err
    # beyond 64 bits an id is unknown like any other; -1 is no id
    known = np.array([n if abs(n) < 2**63 else -1 for n in numbers], dtype=np.int64)
    return array_of(known).cast(kind)
