"""The stream of integer ids of one node type, and the dictionary built from it.

Small ids index a table directly. Others are cut into shards by hash, so that each shard's
hash table fits the processor's cache and the budget; each shard writes its codes in
stream order, and merging the shards' codes by the same hash restores the stream. Nothing
but one shard's table, the distinct ids and their degrees is held, and the latter two
spill to mapped files beyond the budget.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.core.threads import map_in_order
from graphsys.kernels.cpu.rows.ingest import count_integers, mark_sampled
from graphsys.kernels.cpu.text import dictionary
from graphsys.storage.ids.sharded_codes import ShardedCodes
from graphsys.storage.scratch import Scratch, Segments, Spool

_SAMPLE_BITS = 10
_TABLE_BYTES = 1 << 20  # half the second-level cache of one core
_CACHE_SHARD_BITS = 9  # more shards cost more to scatter than their tables save
_SLOT_BYTES = 32  # table, ids and degrees for each distinct id, at the worst load
_MAX_SHARD_BITS = 12
_PIECE = 1 << 22


class IntegerIds:
    """Collects integer ids, then gives each distinct one a code.

    Attributes:
        known: Distinct ids by code, int64 ``[N]``, after :meth:`build`.
        degrees: Appearances in edges by code, uint32 ``[N]``, after :meth:`build`.
        is_sorted: Whether ``known`` ascends.
    """

    id_type = "int64"

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._spool = Spool(scratch, "ids")
        self._weights: list[int] = []
        self._lengths: list[int] = []
        self._shards: list[int] = []
        self._max_id = -1
        self._num_seen = 0
        self._is_dense = False
        self._shard_bits = 0
        self.known: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.degrees: npt.NDArray[np.uint32] = np.empty(0, dtype=np.uint32)
        self.is_sorted = True

    def add(self, ids: npt.NDArray[np.integer], weight: int) -> None:
        """Append a batch; ``weight`` 1 counts towards the degrees, 0 does not."""
        largest = int(ids.max()) if len(ids) else -1
        self._max_id = max(self._max_id, largest)
        self._num_seen += len(ids)
        dtype = np.dtype(np.uint32 if largest < 2**32 else np.int64)
        self._spool.append(ids.astype(dtype, copy=False))
        self._weights.append(weight)
        self._lengths.append(len(ids))

    def build(self) -> None:
        """Find the distinct ids and count them."""
        table_bytes = (self._max_id + 1) * 9
        # A table by id pays while it is mostly filled, or small.
        small = max(4 * self._num_seen, 1 << 20)
        if self._max_id < small and table_bytes <= self._scratch.budget_bytes // 4:
            self._build_dense()
        else:
            self._build_sharded()

    def numbers(self, numbers: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
        """Yield each batch of the stream as numbers, once; the stream is dropped.

        Args:
            numbers: Number by code ``[N]``.
        """
        if self._is_dense:
            # Places of ids that nobody has stay as they are: the stream has none of them.
            by_id = self._scratch.array(self._max_id + 1, numbers.dtype)
            by_id[self.known] = numbers
            for place in range(len(self._weights)):
                ids = self._spool.read(place)
                out = np.empty(len(ids), dtype=numbers.dtype)
                dictionary.translate_codes(ids, by_id, out)
                yield out
                self._spool.drop(place)
            return
        values = self._codes.translate(numbers)
        cursors = self._codes.begins.copy()
        for place, shards in enumerate(self._shards):
            out = np.empty(self._lengths[place], dtype=numbers.dtype)
            dictionary.merge_shards(self._spool.read(shards), values, cursors, out)
            yield out
            self._spool.drop(shards)

    def _read(self) -> Iterator[tuple[npt.NDArray[Any], int]]:
        for place, weight in enumerate(self._weights):
            yield self._spool.read(place), weight

    # ---- small ids

    def _build_dense(self) -> None:
        self._is_dense = True
        is_present = np.zeros(self._max_id + 1, dtype=np.uint8)
        degrees = np.zeros(self._max_id + 1, dtype=np.uint32)
        for ids, weight in self._read():
            count_integers(ids, weight, is_present, degrees)
        known = np.flatnonzero(is_present)
        self.known = self._scratch.array(len(known), np.int64)
        self.known[:] = known
        self.degrees = self._scratch.array(len(known), np.uint32)
        self.degrees[:] = degrees[known]

    # ---- any ids

    def _build_sharded(self) -> None:
        self.is_sorted = False
        distinct = self._estimate_distinct()
        self._shard_bits = self._choose_shard_bits(distinct)
        segments = self._scatter()
        shards = range(1 << self._shard_bits)
        expected = distinct >> self._shard_bits
        lengths = [segments.length(shard) for shard in shards]
        self._codes = ShardedCodes(self._scratch, lengths)

        def encode(shard: int) -> _ShardEncoder:
            encoder = _ShardEncoder(expected)
            codes, at = self._codes.of(shard), 0
            for piece in segments.pieces(shard, _PIECE):
                ids = piece["id"]
                encoder.encode(ids, codes[at : at + len(ids)])
                at += len(ids)
            return encoder

        # How many ids there are is known only when all shards are done: until then they
        # wait.
        known, degrees = Spool(self._scratch, "known"), Spool(self._scratch, "degrees")
        sizes = []
        for encoder in map_in_order(encode, shards):
            known.append(encoder.known[: encoder.size].copy())
            degrees.append(encoder.degrees[: encoder.size].copy())
            sizes.append(encoder.size)
        segments.remove()
        bases = np.cumsum([0, *sizes])
        self._codes.bases = bases
        self.known = self._scratch.array(int(bases[-1]), np.int64)
        self.degrees = self._scratch.array(int(bases[-1]), np.uint32)
        for shard in shards:
            piece = slice(int(bases[shard]), int(bases[shard + 1]))
            self.known[piece], self.degrees[piece] = known.read(shard), degrees.read(shard)
            known.drop(shard)
            degrees.drop(shard)
        known.remove()
        degrees.remove()

    def _estimate_distinct(self) -> int:
        """Estimate the distinct ids from those whose hash ends in ten zeros."""
        sampled = [np.empty(0, dtype=np.uint64)]
        for ids, _ in self._read():
            hits = np.empty(len(ids), dtype=np.uint64)
            sampled.append(hits[: mark_sampled(ids, _SAMPLE_BITS, hits)].copy())
        return max(len(distinct(np.concatenate(sampled))), 1) << _SAMPLE_BITS

    def _choose_shard_bits(self, distinct: int) -> int:
        needed = _bits(
            distinct * _SLOT_BYTES / max(self._scratch.budget_bytes // 16, 1 << 20)
        )
        wished = min(_bits(distinct * _SLOT_BYTES / _TABLE_BYTES), _CACHE_SHARD_BITS)
        return min(max(needed, wished), _MAX_SHARD_BITS)

    def _scatter(self) -> Segments:
        num_shards = 1 << self._shard_bits
        segments = Segments(
            self._scratch, "shards", {"id": np.dtype(np.uint64)}, num_shards
        )

        def group(place: int) -> tuple[Any, ...]:
            ids = self._spool.read(place)
            starts = np.zeros(num_shards + 1, dtype=np.int64)
            grouped = np.empty(len(ids), dtype=np.uint64)
            shards = np.empty(len(ids), dtype=np.uint16)
            weight = self._weights[place]
            dictionary.group_integers(
                ids, weight, self._shard_bits, starts, grouped, shards
            )
            self._spool.drop(place)  # from here on the shard is all that is needed
            return grouped, starts, shards

        for grouped, starts, shards in map_in_order(group, range(len(self._weights))):
            segments.append({"id": grouped}, starts)
            self._shards.append(self._spool.append(shards))
        return segments


def _bits(pieces: float) -> int:
    return int(np.ceil(np.log2(max(pieces, 1))))


class _ShardEncoder:
    """One shard's hash table, made for an expected number of ids, growing as needed."""

    def __init__(self, expected: int) -> None:
        self.size = 0
        self.known = np.empty(0, dtype=np.int64)
        self.degrees = np.empty(0, dtype=np.uint32)
        # room for a tenth more than expected, at a load of five eighths
        self._grow(1 << max((expected * 9 // 5).bit_length(), 10))

    def encode(self, ids: npt.NDArray[np.uint64], codes: npt.NDArray[np.uint32]) -> None:
        done = 0
        while done < len(ids):
            done, self.size = dictionary.encode_integers(
                ids, self._table, self.known, self.size, self.degrees, codes, done
            )
            if done < len(ids):
                self._grow(2 * len(self._table))

    def _grow(self, capacity: int) -> None:
        room = capacity * 5 // 8
        self.known = np.concatenate(
            (self.known[: self.size], np.empty(room - self.size, np.int64))
        )
        self.degrees = np.concatenate(
            (self.degrees[: self.size], np.empty(room - self.size, np.uint32))
        )
        self._table = np.full((capacity, 2), dictionary.EMPTY, dtype=np.int64)
        dictionary.insert_integers(self.known[: self.size], self._table)
