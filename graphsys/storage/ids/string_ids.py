"""The stream of string ids of one node type, and the dictionary built from it.

Like ``integer_ids``, on per-chunk dictionaries: a chunk's distinct strings are spilled
once with their counts, and its rows as positions in them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.threads import map_in_order
from graphsys.kernels.cpu import hashing
from graphsys.kernels.cpu.text import dictionary
from graphsys.storage.ids.sharded_codes import ShardedCodes
from graphsys.storage.scratch import Scratch, Segments

_MAX_SHARD_BITS = 12


@dataclass(frozen=True, slots=True)
class _IdBatch:
    rows_begin: int
    num_rows: int
    entries_begin: int  # counted in entries, over all batches
    num_entries: int
    bytes_begin: int
    num_bytes: int


@dataclass(frozen=True, slots=True)
class _Shard:
    codes: npt.NDArray[np.uint32]
    lengths: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]
    degrees: npt.NDArray[np.uint32]
    first: npt.NDArray[np.uint64]


class StringIds:
    """Collects string ids, then gives each distinct one a code.

    Attributes:
        offsets: Starts of the distinct strings in ``data`` by code, and the end of the
            last, int64 ``[N + 1]``, after :meth:`build`.
        data: Their UTF-8 bytes, after :meth:`build`.
        degrees: Appearances in edges by code, uint32 ``[N]``, after :meth:`build`.
        first: Position of the first appearance by code, uint64 ``[N]``, after
            :meth:`build`.
    """

    id_type = "large_string"

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._rows = scratch.file("rows")
        self._hashes = scratch.file("hashes")
        self._lengths = scratch.file("lengths")
        self._weights = scratch.file("weights")
        self._bytes = scratch.file("bytes")
        self._batches: list[_IdBatch] = []
        self._num_entries = 0
        self._shard_bits = 0

    def add(self, ids: pa.DictionaryArray, weight: int) -> None:
        """Append a batch; ``weight`` 1 counts towards the degrees, 0 does not.

        Args:
            ids: Strings without nulls, dictionary-encoded with ``large_string`` values.
            weight: 1 for ends of edges, 0 for node tables.
        """
        rows, counts, strings = used_strings(ids)
        offsets, data = string_buffers(strings)
        hashes = np.empty(len(strings), dtype=np.uint64)
        hashing.hash_strings(offsets, data, hashes)
        self._batches.append(
            _IdBatch(
                self._rows.append(rows),
                len(rows),
                self._num_entries,
                len(strings),
                self._bytes.append(data[offsets[0] : offsets[-1]]),
                int(offsets[-1] - offsets[0]),
            )
        )
        self._hashes.append(hashes)
        self._lengths.append(np.diff(offsets).astype(np.uint32))
        self._weights.append((counts * weight).astype(np.uint32))
        self._num_entries += len(strings)

    def build(self) -> None:
        """Find the distinct strings and count them."""
        self._shard_bits = self._choose_shard_bits()
        num_shards = 1 << self._shard_bits
        records, texts = self._scatter()
        lengths = [records.length(shard) for shard in range(num_shards)]
        self._codes = ShardedCodes(self._scratch, lengths)
        files = {
            key: self._scratch.file(key) for key in ("known", "ends", "degree", "first")
        }
        sizes, end = [], 0

        def encode(shard: int) -> _Shard:
            return _encode_shard(records.read(shard), texts.read(shard)["text"])

        for number, shard in enumerate(map_in_order(encode, range(num_shards))):
            self._codes.of(number)[:] = shard.codes
            files["known"].append(shard.data)
            files["ends"].append(end + np.cumsum(shard.lengths))
            files["degree"].append(shard.degrees)
            files["first"].append(shard.first)
            end += len(shard.data)
            sizes.append(len(shard.degrees))
        records.remove()
        texts.remove()
        self._codes.bases = np.cumsum([0, *sizes])
        self.data = files["known"].mapped(np.uint8)
        self.degrees = files["degree"].mapped(np.uint32)
        self.first = files["first"].mapped(np.uint64)
        self.offsets = self._scratch.zeros(len(self.degrees) + 1, np.int64)
        self.offsets[1:] = files["ends"].mapped(np.int64)

    def numbers(self, numbers: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
        """Yield each batch of the stream as numbers; ``numbers`` is the number by code."""
        values = self._codes.translate(numbers)
        cursors = self._codes.begins.copy()
        for batch in self._batches:
            entries = np.empty(batch.num_entries, dtype=numbers.dtype)
            shards = self._shards(self._hashes_of(batch))
            dictionary.merge_shards(shards, values, cursors, entries)
            yield entries[self._rows.read(batch.rows_begin, batch.num_rows, np.uint32)]

    def _hashes_of(self, batch: _IdBatch) -> npt.NDArray[np.uint64]:
        return self._hashes.read(8 * batch.entries_begin, batch.num_entries, np.uint64)

    def _shards(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint16]:
        shards = np.zeros(len(hashes), dtype=np.uint16)
        dictionary.shards_of_hashes(hashes, self._shard_bits, shards)
        return shards

    def _choose_shard_bits(self) -> int:
        """Cut so that a shard's share of the stream fits a slice of the budget."""
        stream_bytes = self._bytes.size + 40 * self._num_entries
        target = max(min(self._scratch.budget_bytes // 16, 64 << 20), 1 << 20)
        bits = int(np.ceil(np.log2(max(stream_bytes / target, 1))))
        return min(bits, _MAX_SHARD_BITS)

    def _scatter(self) -> tuple[Segments, Segments]:
        num_shards = 1 << self._shard_bits
        dtypes: dict[str, np.dtype[Any]] = {
            "length": np.dtype(np.int64),
            "weight": np.dtype(np.uint32),
            "position": np.dtype(np.uint64),
        }
        records = Segments(self._scratch, "shards", dtypes, num_shards)
        texts = Segments(self._scratch, "texts", {"text": np.dtype(np.uint8)}, num_shards)

        def group(batch: _IdBatch) -> tuple[Any, ...]:
            starts = np.zeros(num_shards + 1, dtype=np.int64)
            order = np.empty(batch.num_entries, dtype=np.uint32)
            shards = self._shards(self._hashes_of(batch))
            dictionary.group_by_shard(shards, starts, order)
            at = 4 * batch.entries_begin
            lengths = self._lengths.read(at, batch.num_entries, np.uint32).astype(np.int64)
            weights = self._weights.read(at, batch.num_entries, np.uint32)
            data = self._bytes.read(batch.bytes_begin, batch.num_bytes, np.uint8)
            text, ends = take_strings(order, ends_to_offsets(lengths), data)
            columns = {
                "length": lengths[order],
                "weight": weights[order],
                "position": order.astype(np.uint64) + np.uint64(batch.entries_begin),
            }
            return columns, starts, text, ends[starts]

        for columns, starts, text, text_starts in map_in_order(group, self._batches):
            records.append(columns, starts)
            texts.append({"text": text}, text_starts)
        return records, texts


def _encode_shard(
    records: dict[str, npt.NDArray[Any]], data: npt.NDArray[np.uint8]
) -> _Shard:
    offsets = ends_to_offsets(records["length"])
    num_entries = len(records["length"])
    codes = np.empty(num_entries, dtype=np.uint32)
    capacity, size, done = 1 << 12, 0, 0
    known_offsets = np.zeros(1, dtype=np.int64)
    known_data = np.empty(len(data), dtype=np.uint8)
    degrees = np.empty(0, dtype=np.uint32)
    while True:
        room = capacity * 5 // 8
        known_offsets = _resized(known_offsets, room + 1)
        degrees = _resized(degrees, room)
        table = np.full((capacity, 2), dictionary.EMPTY, dtype=np.int64)
        dictionary.insert_strings(known_offsets, known_data, size, table)
        done, size = dictionary.encode_strings(
            offsets,
            data,
            records["weight"],
            table,
            known_offsets,
            known_data,
            size,
            degrees,
            codes,
            done,
        )
        if done == num_entries:
            break
        capacity *= 2
    first = np.empty(size, dtype=np.uint64)
    dictionary.first_positions(codes, records["position"], first)
    lengths = np.diff(known_offsets[: size + 1])
    return _Shard(codes, lengths, known_data[: known_offsets[size]], degrees[:size], first)


def used_strings(
    ids: pa.DictionaryArray,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], pa.LargeStringArray]:
    """Return the strings that rows use: places of the rows ``[n]``, counts, strings."""
    rows = ids.indices.to_numpy(zero_copy_only=False).astype(np.uint32, copy=False)
    counts = np.bincount(rows, minlength=len(ids.dictionary))
    used = np.flatnonzero(counts)
    if len(used) == len(counts):
        return rows, counts, ids.dictionary
    renumber = np.zeros(len(counts), dtype=np.uint32)  # it lists what no row uses
    renumber[used] = np.arange(len(used), dtype=np.uint32)
    return renumber[rows], counts[used], ids.dictionary.take(pa.array(used))


def _resized(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    out = np.zeros(length, dtype=array.dtype)
    out[: min(len(array), length)] = array[:length]
    return out


def ends_to_offsets(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the starts of strings of these lengths and the end of the last ``[n + 1]``."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def string_buffers(
    strings: pa.LargeStringArray,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return the offsets ``[n + 1]`` and bytes of a ``large_string`` array, as views."""
    _, offset_buffer, data_buffer = strings.buffers()
    if offset_buffer is None or not len(strings):
        return np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8)
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)
    offsets = offsets[strings.offset : strings.offset + len(strings) + 1]
    empty = np.empty(0, dtype=np.uint8)
    data = empty if data_buffer is None else np.frombuffer(data_buffer, dtype=np.uint8)
    return offsets, data


def take_strings(
    order: npt.NDArray[np.integer],
    offsets: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
    scratch: Scratch | None = None,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Copy strings in an order; returns their bytes and their offsets ``[n + 1]``."""
    array = np.empty if scratch is None else scratch.array
    out_offsets = array(len(order) + 1, np.int64)
    dictionary.gather_ends(order, offsets, out_offsets)
    out = array(int(out_offsets[-1]), np.uint8)
    dictionary.gather_strings(order, offsets, data, out_offsets, out)
    return out, out_offsets
