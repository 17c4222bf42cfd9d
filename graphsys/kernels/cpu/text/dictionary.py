"""Hash tables that give each distinct id a code, in order of first appearance.

Open addressing with linear probing over interleaved (key, code) slots, so that a probe
touches one cache line. Callers cut the ids into shards by the *high* bits of their hash
so that a table stays in cache; slots use the low bits. A table is full at 5/8. Rows of a
matrix are coded as ids are, and words are gathered into Arrow's buffers.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import hash_bytes, mix64
from graphsys.kernels.jit import inline_jit, jit

EMPTY = -1

Table = npt.NDArray[np.int64]
"""Slots: int64 ``[capacity, 2]``, capacity a power of two, column 0 is -1 where empty."""


@jit
def encode_integers(
    ids: npt.NDArray[np.uint64],
    table: Table,
    known: npt.NDArray[np.int64],
    num_known: int,
    degrees: npt.NDArray[np.uint32],
    codes: npt.NDArray[np.uint32],
    begin: int,
) -> tuple[int, int]:
    """Give codes to ids from position ``begin`` until the table is full.

    Args:
        ids: Ids below 2**63, uint64 ``[n]``; the top bit is set on those that do not
            count towards the degree.
        table: The hash table; slots (id, code).
        known: Ids by code, int64, room for 5/8 of the table's capacity.
        num_known: Codes in use.
        degrees: Appearances by code, uint32, as long as ``known``.
        codes: Receives the codes, uint32 ``[n]``.
        begin: First position to do.

    Returns:
        The first position not done (n at the end), and the codes in use.
    """
    mask = np.uint64(len(table) - 1)
    room = len(known)
    for k in range(begin, len(ids)):
        # The top bit is no part of the id: it says that this one adds nothing to the
        # degree.
        key = np.int64(ids[k] & np.uint64(0x7FFFFFFFFFFFFFFF))
        slot = mix64(np.uint64(key)) & mask
        while True:
            held = table[slot, 0]
            if held == key:
                code = table[slot, 1]
                break
            if held == EMPTY:
                if num_known == room:
                    return k, num_known
                code = num_known
                table[slot, 0] = key
                table[slot, 1] = code
                known[code] = key
                degrees[code] = 0
                num_known += 1
                break
            slot = (slot + np.uint64(1)) & mask
        degrees[code] += np.uint32(1) - np.uint32(ids[k] >> np.uint64(63))
        codes[k] = code
    return len(ids), num_known


@jit
def insert_integers(known: npt.NDArray[np.int64], table: Table) -> None:
    """Fill an empty table with distinct ids; the code of each is its position."""
    mask = np.uint64(len(table) - 1)
    for code in range(len(known)):
        slot = mix64(np.uint64(known[code])) & mask
        while table[slot, 0] != EMPTY:
            slot = (slot + np.uint64(1)) & mask
        table[slot, 0] = known[code]
        table[slot, 1] = code


@inline_jit
def equal_bytes(
    a: npt.NDArray[np.uint8],
    a_begin: int,
    b: npt.NDArray[np.uint8],
    b_begin: int,
    length: int,
) -> bool:
    """Return whether two byte ranges are equal."""
    for k in range(length):  # noqa: SIM110 (numba has no all() of a generator)
        if a[a_begin + k] != b[b_begin + k]:
            return False
    return True


@jit
def encode_strings(
    offsets: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
    weights: npt.NDArray[np.uint32],
    table: Table,
    known_offsets: npt.NDArray[np.int64],
    known_data: npt.NDArray[np.uint8],
    num_known: int,
    degrees: npt.NDArray[np.uint32],
    codes: npt.NDArray[np.uint32],
    begin: int,
) -> tuple[int, int]:
    """Give codes to strings from position ``begin`` until a table or arena is full.

    Args:
        offsets: Starts of the strings in ``data`` and the end of the last ``[n + 1]``.
        data: Their UTF-8 bytes.
        weights: Added to the degree of each string, uint32 ``[n]``.
        table: The hash table; slots (hash with its top bit off, code).
        known_offsets: Starts of the known strings and the end of the last, int64, room
            for 5/8 of the table's capacity and one.
        known_data: Their bytes.
        num_known: Codes in use.
        degrees: Summed weights by code, uint32.
        codes: Receives the codes, uint32 ``[n]``.
        begin: First position to do.

    Returns:
        The first position not done (n at the end), and the codes in use.
    """
    mask = np.uint64(len(table) - 1)
    room = len(known_offsets) - 1
    for k in range(begin, len(offsets) - 1):
        start, end = offsets[k], offsets[k + 1]
        length = end - start
        full_hash = hash_bytes(data, start, end)
        # Without the top bit it is never EMPTY; as good as the whole hash to rule strings
        # out.
        mark = np.int64(full_hash & np.uint64(0x7FFFFFFFFFFFFFFF))
        slot = full_hash & mask
        while True:
            held = table[slot, 0]
            if held == mark:
                code = table[slot, 1]
                at = known_offsets[code]
                # Equal hashes are rare but possible: only the bytes decide.
                if known_offsets[code + 1] - at == length and equal_bytes(
                    data, start, known_data, at, length
                ):
                    break
            elif held == EMPTY:
                at = known_offsets[num_known]
                if num_known == room or at + length > len(known_data):
                    return k, num_known
                code = num_known
                table[slot, 0] = mark
                table[slot, 1] = code
                known_data[at : at + length] = data[start:end]
                known_offsets[code + 1] = at + length
                degrees[code] = 0
                num_known += 1
                break
            slot = (slot + np.uint64(1)) & mask
        degrees[code] += weights[k]
        codes[k] = code
    return len(offsets) - 1, num_known


@jit
def insert_strings(
    offsets: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
    num_known: int,
    table: Table,
) -> None:
    """Fill an empty table with distinct strings; the code of each is its position."""
    mask = np.uint64(len(table) - 1)
    for code in range(num_known):
        full_hash = hash_bytes(data, offsets[code], offsets[code + 1])
        slot = full_hash & mask
        while table[slot, 0] != EMPTY:
            slot = (slot + np.uint64(1)) & mask
        table[slot, 0] = np.int64(full_hash & np.uint64(0x7FFFFFFFFFFFFFFF))
        table[slot, 1] = code


@inline_jit
def _shard(word: np.uint64, bits: int) -> np.int64:
    return np.int64(word >> np.uint64(64 - bits)) if bits else np.int64(0)


@jit
def shards_of_hashes(
    hashes: npt.NDArray[np.uint64], bits: int, shards: npt.NDArray[np.uint16]
) -> None:
    """Write the top ``bits`` bits of every hash, uint16 ``[n]``; zeros for no bits."""
    if bits == 0:
        shards[:] = 0
        return
    shift = np.uint64(64 - bits)
    for k in range(len(hashes)):
        shards[k] = hashes[k] >> shift


@jit
def group_integers(
    ids: npt.NDArray[np.integer],
    weight: int,
    bits: int,
    starts: npt.NDArray[np.int64],
    grouped: npt.NDArray[np.uint64],
    shards: npt.NDArray[np.uint16],
) -> None:
    """Copy ids grouped by shard, in order within each.

    Args:
        ids: Ids ``[n]``.
        weight: 0 sets the top bit of every copy.
        bits: Bits of the shard: the top ones of the hash.
        starts: Receives where each shard begins and n, int64 ``[2**bits + 1]``.
        grouped: Receives the ids, uint64 ``[n]``.
        shards: Receives the shard of every position, uint16 ``[n]``.
    """
    mark = np.uint64(0) if weight else np.uint64(1) << np.uint64(63)
    starts[:] = 0
    for k in range(len(ids)):
        shard = _shard(mix64(np.uint64(ids[k])), bits)
        shards[k] = shard
        starts[shard + 1] += 1
    for s in range(1, len(starts)):
        starts[s] += starts[s - 1]
    cursor = starts[:-1].copy()
    for k in range(len(ids)):
        grouped[cursor[shards[k]]] = np.uint64(ids[k]) | mark
        cursor[shards[k]] += 1


@jit
def group_by_shard(
    shards: npt.NDArray[np.uint16],
    starts: npt.NDArray[np.int64],
    order: npt.NDArray[np.uint32],
) -> None:
    """Write the positions grouped by shard, in order within each.

    Args:
        shards: Shard of every position, uint16 ``[n]``.
        starts: Receives where each shard begins in ``order`` and n, int64 ``[S + 1]``.
        order: Receives the positions, uint32 ``[n]``.
    """
    starts[:] = 0
    for shard in shards:
        starts[shard + 1] += 1
    for s in range(1, len(starts)):
        starts[s] += starts[s - 1]
    cursor = starts[:-1].copy()
    for k in range(len(shards)):
        order[cursor[shards[k]]] = k
        cursor[shards[k]] += 1


@jit
def translate_codes(
    codes: npt.NDArray[np.uint32],
    numbers: npt.NDArray[np.integer],
    out: npt.NDArray[np.integer],
) -> None:
    """Write the number of every code; ``out`` may be ``codes`` itself.

    Args:
        codes: Codes of one shard ``[n]``.
        numbers: Number by code of that shard.
        out: Receives the numbers ``[n]``.
    """
    for k in range(len(codes)):
        out[k] = numbers[codes[k]]


@jit
def merge_shards(
    shards: npt.NDArray[np.uint16],
    values: npt.NDArray[np.integer],
    cursors: npt.NDArray[np.int64],
    out: npt.NDArray[np.integer],
) -> None:
    """Undo the sharding: give each position the next value of its shard.

    Args:
        shards: Shard of every position, uint16 ``[n]``.
        values: Values of all shards' positions, shard after shard.
        cursors: Next entry of each shard in ``values``, int64 ``[S]``; advanced.
        out: Receives the values ``[n]``.
    """
    for k in range(len(shards)):
        shard = shards[k]
        out[k] = values[cursors[shard]]
        cursors[shard] += 1


@jit
def gather_ends(
    order: npt.NDArray[np.integer],
    offsets: npt.NDArray[np.int64],
    out_offsets: npt.NDArray[np.int64],
) -> None:
    """Write the offsets ``[n + 1]`` of strings taken in the order of ``order``."""
    out_offsets[0] = 0
    for k in range(len(order)):
        length = offsets[order[k] + 1] - offsets[order[k]]
        out_offsets[k + 1] = out_offsets[k] + length


@jit
def gather_strings(
    order: npt.NDArray[np.integer],
    offsets: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
    out_offsets: npt.NDArray[np.int64],
    out: npt.NDArray[np.uint8],
) -> None:
    """Copy strings in the order of ``order``; ``out_offsets`` is filled beforehand."""
    for k in range(len(order)):
        begin = offsets[order[k]]
        at = out_offsets[k]
        for b in range(out_offsets[k + 1] - at):
            out[at + b] = data[begin + b]


@jit
def first_positions(
    codes: npt.NDArray[np.uint32],
    positions: npt.NDArray[np.uint64],
    first: npt.NDArray[np.uint64],
) -> None:
    """Write the position of the first appearance of every code."""
    # Backwards, so that the first appearance is written last.
    for k in range(len(codes) - 1, -1, -1):
        first[codes[k]] = positions[k]


@jit
def find_distinct(
    rows: npt.NDArray[Any],
    table: npt.NDArray[np.uint32],
    first: npt.NDArray[np.int64],
    codes: npt.NDArray[np.uint32],
) -> int:
    """Give every row the code of the first one like it, in the order of appearance.

    Args:
        rows: Rows as unsigned integers ``[n, words]``.
        table: Zeros, a power of two of them, more than ``len(first)``.
        first: Receives the number of the first row of each code; the most codes that there
            may be.
        codes: Receives the codes ``[n]``.

    Returns:
        How many codes there are; -1 if more than ``first`` has room for.
    """
    mask = np.uint64(len(table) - 1)
    count = 0
    for k in range(len(rows)):
        state = np.uint64(0)
        for w in range(rows.shape[1]):
            state = mix64(state ^ np.uint64(rows[k, w]))
        slot = state & mask
        while True:
            # Slots hold the code plus one, so that 0 says empty.
            code = int(table[slot]) - 1
            if code < 0:
                if count == len(first):
                    return -1
                first[count] = k
                code = count
                count += 1
                table[slot] = count
                break
            is_same = True
            for w in range(rows.shape[1]):
                if rows[first[code], w] != rows[k, w]:
                    is_same = False
                    break
            if is_same:
                break
            slot = (slot + np.uint64(1)) & mask
        codes[k] = code
    return count


@jit
def look_up(
    ids: npt.NDArray[Any],
    table: npt.NDArray[Any],
    nobody: int,
    out: npt.NDArray[np.int64],
) -> None:
    """Write the number of every id, -1 where there is none.

    Args:
        ids: Integers from 0 on ``[n]``.
        table: Number by id.
        nobody: What stands in the table for ids that no node has.
        out: Receives the numbers, int64 ``[n]``.
    """
    size = np.int64(len(table))
    for k in range(len(ids)):
        key = np.int64(ids[k])
        out[k] = -1
        if key < size and np.int64(table[key]) != nobody:
            out[k] = np.int64(table[key])


@jit
def gather_words(
    data: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int32],
    out: npt.NDArray[np.uint8],
) -> None:
    """Copy words side by side: the buffers of an Arrow string array.

    Args:
        data: The block, uint8.
        starts: Where words begin, ``[N]``.
        lengths: How long they are, ``[N]``.
        offsets: Receives their starts in ``out`` and the end of the last, ``[N + 1]``.
        out: Receives the bytes, uint8, as long as all words.
    """
    position = 0
    for k in range(len(starts)):
        offsets[k] = position
        begin = starts[k]
        for b in range(lengths[k]):
            out[position + b] = data[begin + b]
        position += lengths[k]
    offsets[len(starts)] = position
