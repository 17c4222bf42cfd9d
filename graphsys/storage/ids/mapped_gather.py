"""Some of many values that are mapped from files, without a copy of all."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_FEW: Final = 8  # times as many values as places


def taken(column: pa.ChunkedArray, places: npt.ArrayLike) -> pa.Array:
    """Return the values at some places, in their order.

    Arrow's own ``take`` first copies a column of several chunks into one: for two of 16M
    ids .3 s and 128 MB. Here only what is taken is read, unless that is much of it: a place
    costs some 56 bytes on the way.

    Args:
        column: ``[N]``; its chunks may be mapped.
        places: Integers below N ``[n]``.

    Returns:
        Of the column's type ``[n]``.
    """
    places = np.asarray(places, dtype=np.int64)
    if column.num_chunks == 1:
        return column.chunk(0).take(pa.array(places))
    if len(places) > len(column) // _FEW:
        whole = column.take(pa.array(places))
        return whole.chunk(0) if whole.num_chunks == 1 else whole.combine_chunks()
    ends = np.cumsum([len(chunk) for chunk in column.chunks])
    which = np.searchsorted(ends, places, side="right")
    if len(which) and (places.min() < 0 or which.max() == column.num_chunks):
        raise IndexError(f"places up to {places.max()} of {len(column)} values")
    order = np.argsort(which, kind="stable")
    starts = np.searchsorted(which[order], np.arange(column.num_chunks + 1))
    pieces = []
    for number, chunk in enumerate(column.chunks):
        some = order[starts[number] : starts[number + 1]]
        if len(some):
            local = places[some] - (ends[number] - len(chunk))
            pieces.append(chunk.take(pa.array(local)))
    if len(pieces) < 2:
        return pieces[0] if pieces else pa.array([], column.type)
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(pieces).take(pa.array(back))
