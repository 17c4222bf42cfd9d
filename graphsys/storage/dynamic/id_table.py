"""From ids to numbers without reading all ids: a table on disk, made once a generation.

The partitions that a generation was written with have one table for each node type, which
the first append that needs it writes; the ids of a delta's partition ascend, so they are
their own table. A table is one of

* ``number``: row ``id`` has the number of the node ``id``, or what no node has, where ids
  are small integers;
* ``id``, ``number``: sorted by id, for other integers;
* ``hash``, ``number``: sorted by the hash of the id (``kernels/cpu/hashing``), for strings.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.threads import run_parallel
from graphsys.core.types import number_dtype
from graphsys.graph.sort import stable_argsort
from graphsys.kernels.cpu import hashing
from graphsys.kernels.cpu.text.dictionary import look_up
from graphsys.storage.views import view_of

Ints = npt.NDArray[np.integer]
Ids = Any
"""Integers ``[n]``, or an Arrow array of ``large_string``."""

WORTH_A_TABLE = 1 << 16
"""Fewer nodes are looked through one by one."""
_DENSE = 4  # rows of a table for each node
_PIECE = 1 << 18  # ids for a thread at a time
_SORT_FROM = 1 << 12  # queries that are faster when sorted first


def make_table(ids: pa.ChunkedArray) -> pa.RecordBatch:
    """Return the table of some nodes, given by their ids in the order of numbers."""
    kind = number_dtype(len(ids))
    if not pa.types.is_integer(ids.type):
        keys = hashes_of(ids.combine_chunks())
        order = stable_argsort(keys)
        return pa.record_batch(
            [pa.array(keys[order]), pa.array(order.astype(kind))], names=["hash", "number"]
        )
    known = ids.to_numpy()
    most = int(known.max()) if len(known) else 0
    if most < max(_DENSE * len(known), WORTH_A_TABLE):
        table = np.full(most + 1, -1, dtype=np.int64).astype(kind)
        table[known] = np.arange(len(known), dtype=kind)
        return pa.record_batch([pa.array(table)], names=["number"])
    order = stable_argsort(known.view(np.uint64))
    return pa.record_batch(
        [pa.array(known[order]), pa.array(order.astype(kind))], names=["id", "number"]
    )


def find_in_table(
    table: pa.RecordBatch, ids: Ids, known: pa.ChunkedArray
) -> npt.NDArray[np.int64]:
    """Return the numbers of some ids, int64 ``[n]``; -1 for those that are not there.

    Args:
        table: What :func:`make_table` made.
        ids: What is looked for.
        known: The ids that the table was made of.
    """
    numbers = view_of(table.column("number"))
    if "id" in table.schema.names:
        places = find_sorted(view_of(table.column("id")), ids)
        return np.where(places < 0, -1, numbers[np.maximum(places, 0)].astype(np.int64))
    if "hash" in table.schema.names:
        return _find_hashes(view_of(table.column("hash")), numbers, ids, known)
    found = np.empty(len(ids), dtype=np.int64)
    nobody = int(np.array(-1).astype(numbers.dtype))

    def work(begin: int) -> None:
        piece = slice(begin, begin + _PIECE)
        look_up(ids[piece], numbers, nobody, found[piece])

    run_parallel(work, range(0, len(ids), _PIECE))
    return found


def find_sorted(known: Ints, ids: Ints) -> npt.NDArray[np.int64]:
    """Return the places of integers among ascending ones; -1 for those not there."""
    if not len(known):
        return np.full(len(ids), -1, dtype=np.int64)
    wanted = ids.astype(np.int64, copy=False)
    if len(wanted) < _SORT_FROM:
        places = np.searchsorted(known, wanted)
    else:  # in order, so that neighbors of what was read are read next
        order = stable_argsort(wanted.view(np.uint64))
        places = np.empty(len(wanted), dtype=np.int64)
        places[order] = np.searchsorted(known, wanted[order])
    places = np.minimum(places, len(known) - 1)
    return np.where(known[places] == wanted, places, -1)


def find_strings(known: pa.Array, ids: pa.Array) -> npt.NDArray[np.int64]:
    """Return the places of strings among others; -1 for those not there."""
    found = pc.fill_null(pc.index_in(ids, value_set=known), -1)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def hashes_of(ids: pa.Array) -> npt.NDArray[np.uint64]:
    """Return the hashes of strings, uint64 ``[n]``."""
    hashes = np.empty(len(ids), dtype=np.uint64)
    if not len(ids):
        return hashes
    _, offsets, data = ids.buffers()
    starts = np.frombuffer(offsets, np.int64)[ids.offset : ids.offset + len(ids) + 1]
    text = b"" if data is None else data
    hashing.hash_strings(starts, np.frombuffer(text, np.uint8), hashes)
    return hashes


def _find_hashes(
    hashes: npt.NDArray[np.uint64], numbers: Ints, ids: pa.Array, known: pa.ChunkedArray
) -> npt.NDArray[np.int64]:
    found = np.full(len(ids), -1, dtype=np.int64)
    wanted = hashes_of(ids)
    for waiting, places in _candidates(hashes, wanted):
        candidates = numbers[places].astype(np.int64)
        is_same = pc.equal(known.take(pa.array(candidates)), ids.take(pa.array(waiting)))
        same = is_same.to_numpy().astype(bool)
        found[waiting[same]] = candidates[same]
    return found


def _candidates(
    hashes: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Yield which queries have a candidate, and where; several have the same hash."""
    waiting = np.arange(len(wanted))
    places = np.searchsorted(hashes, wanted)
    while len(waiting) and len(hashes):
        inside = places < len(hashes)
        inside &= hashes[np.minimum(places, len(hashes) - 1)] == wanted[waiting]
        waiting, places = waiting[inside], places[inside]
        if len(waiting):
            yield waiting, places
        places = places + 1
