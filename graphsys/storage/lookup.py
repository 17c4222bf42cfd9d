"""From the user's ids to numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import UnknownNameError


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
    found = pc.index_in(wanted, value_set=known.combine_chunks())
    if found.null_count:
        missing = wanted.filter(found.is_null())
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise UnknownNameError(
            f"node {missing[0].as_py()!r}{more} is not among the {len(known)} nodes "
            f"of type {where}"
        )
    return found.to_numpy(zero_copy_only=False).astype(np.int64)


def _as_type(
    ids: Sequence[Any] | npt.NDArray[Any], kind: pa.DataType, where: str
) -> pa.Array:
    try:
        if pa.types.is_integer(kind):
            return pa.array([int(key) for key in ids], type=kind)
        return pa.array([str(key) for key in ids], type=kind)
    except (ValueError, OverflowError) as err:
        raise UnknownNameError(
            f"node {next(iter(ids))!r} is not an integer, but the ids of type {where} are"
        ) from err
