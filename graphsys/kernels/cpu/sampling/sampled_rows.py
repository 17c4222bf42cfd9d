"""Neighbor sampling: how many entries of each row, which ones, and local numbers.

Rows lie in the index files of a store, one per partition, reached by a table of addresses
(see ``pointers``). Sampling a hop is two passes: :func:`count_sampled` says where each
row's entries go, so that the caller can make room, and one of the ``pick`` kernels fills
them. Every draw is a hash of (key, node, number of the draw), so neither threads nor the
batch that a node is in changes it; nodes get local numbers in order of first occurrence.

Without replacement: Floyd's algorithm (Bentley and Floyd, "A sample of brilliance", CACM
1987), k draws for k of d. By weight: Efraimidis and Spirakis, "Weighted random sampling
with a reservoir", IPL 2006. With replacement by weight: sorted thresholds, one pass.

Legend: see ``row_table``.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.pointers import address, load_int64, load_uint32, prefetch
from graphsys.kernels.cpu.rows.row_table import (
    INDICES,
    ask_row,
    below,
    find_partition,
    find_row,
    fraction,
    weight_of,
)
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

OUT_OF_RANGE = -1
_AHEAD = 16  # rows and nodes asked for before they are needed
_LATER = 8  # rows between asking for a row's neighbors and reading them
_LINEAR = 24  # up to so many picks, looking through them beats a hash table


@lean_jit
def count_sampled(
    offsets: Ints,
    table: Words,
    wide: npt.NDArray[np.uint8],
    nodes: Ints,
    low: int,
    high: int,
    fanout: int,
    is_replacing: bool,
    indptr: Ints,
    row: int,
) -> int:
    """Write where the sampled entries of each row end.

    Args:
        offsets: First number of every partition, and the number of nodes ``[P + 1]``.
        table: Addresses ``[P, 4]``.
        wide: Their dtypes ``[P, 4]``.
        nodes: Numbers of nodes; rows are sampled for ``nodes[low:high]``.
        low: The first.
        high: Behind the last.
        fanout: Entries of a row at most; negative for all.
        is_replacing: Whether every row that is not empty gets ``fanout`` entries.
        indptr: ``indptr[row]`` is given; receives ``high - low`` more.
        row: Where those stand.

    Returns:
        The last of them, or ``OUT_OF_RANGE`` if a node is not in the graph.
    """
    end = indptr[row]
    for j in range(low, high):
        if j + _AHEAD < high:
            ask_row(offsets, table, wide, nodes[j + _AHEAD])
        node = nodes[j]
        if node < 0 or node >= offsets[-1]:
            return OUT_OF_RANGE
        _, begin, stop = find_row(offsets, table, wide, node)
        degree = stop - begin
        if fanout >= 0 and (degree > fanout or (is_replacing and degree > 0)):
            degree = fanout
        end += degree
        indptr[row + j - low + 1] = end
    return int(end)


@lean_inline_jit
def _pick_floyd(key: Any, degree: Any, count: Any, places: Any, slots: Any) -> None:
    """Write ``count`` different numbers below ``degree`` to ``places``."""
    # Floyd: what was drawn already is replaced by `top`, which no earlier draw could reach.
    if count <= _LINEAR:
        for q in range(count):
            top = degree - count + q
            place = below(key, q, top + 1)
            for r in range(q):
                if places[r] == place:
                    place = top
                    break
            places[q] = place
        return
    # At most half full, so that probes are short; `slots` holds -1 for empty.
    mask = np.int64(1)
    while mask < 2 * count:
        mask *= 2
    mask -= 1
    for q in range(count):
        top = degree - count + q
        place = below(key, q, top + 1)
        slot = np.int64(mix64(np.uint64(place))) & mask
        while slots[slot] != -1 and slots[slot] != place:
            slot = (slot + 1) & mask
        if slots[slot] == place:
            place = top
            slot = np.int64(mix64(np.uint64(place))) & mask
            while slots[slot] != -1:
                slot = (slot + 1) & mask
        slots[slot] = place
        places[q] = place
    for q in range(mask + 1):
        slots[q] = -1


@lean_inline_jit
def _pick_weighted(
    table: Any,
    wide: Any,
    part: Any,
    begin: Any,
    degree: Any,
    key: Any,
    count: Any,
    places: Any,
    keys: Any,
) -> Any:
    """Keep the ``count`` places with the smallest -log(u) / weight, in rising order.

    Returns how many have a weight: a place without one is never taken.
    """
    found = 0
    for p in range(degree):
        weight = weight_of(table, wide, part, begin + p)
        if not weight > 0.0:
            continue
        value = -np.log(fraction(key, p)) / weight
        # Keys are sorted: most of a long row fails against the last and moves nothing.
        if found == count and value >= keys[found - 1]:
            continue
        slot = found if found < count else found - 1
        while slot > 0 and keys[slot - 1] > value:
            keys[slot] = keys[slot - 1]
            places[slot] = places[slot - 1]
            slot -= 1
        keys[slot], places[slot] = value, p
        found = min(found + 1, count)
    return found


@lean_inline_jit
def _pick_replacing_weighted(
    table: Any,
    wide: Any,
    part: Any,
    begin: Any,
    degree: Any,
    key: Any,
    count: Any,
    places: Any,
    keys: Any,
) -> Any:
    """Draw ``count`` places in proportion to their weights: one pass, sorted thresholds."""
    # Negative weights count as 0, in this pass as in the next.
    total = 0.0
    for p in range(degree):
        total += max(weight_of(table, wide, part, begin + p), 0.0)
    if not total > 0.0:
        return 0
    for q in range(count):
        value = fraction(key, q) * total
        # Sorted thresholds meet the running sum in one pass, where each draw would need a
        # search.
        slot = q
        while slot > 0 and keys[slot - 1] > value:
            keys[slot] = keys[slot - 1]
            slot -= 1
        keys[slot] = value
    running, q, last = 0.0, 0, 0
    for p in range(degree):
        weight = weight_of(table, wide, part, begin + p)
        if weight > 0.0:
            running += weight
            last = p
            while q < count and keys[q] < running:
                places[q] = p
                q += 1
    while q < count:  # rounding
        places[q] = last
        q += 1
    return count


@lean_inline_jit
def _pick(
    table: Any,
    wide: Any,
    part: Any,
    begin: Any,
    degree: Any,
    key: Any,
    count: Any,
    is_replacing: Any,
    is_weighted: Any,
    places: Any,
    keys: Any,
    slots: Any,
) -> Any:
    """Write the places drawn from a row to ``places``; return how many those are."""
    if is_weighted and is_replacing:
        return _pick_replacing_weighted(
            table, wide, part, begin, degree, key, count, places, keys
        )
    if is_weighted:
        return _pick_weighted(table, wide, part, begin, degree, key, count, places, keys)
    if is_replacing:
        for q in range(count):
            places[q] = below(key, q, degree)
    else:
        _pick_floyd(key, degree, count, places, slots)
    return count


@lean_inline_jit
def _read_neighbors(
    offsets: Any,
    table: Any,
    wide: Any,
    first_entry: Any,
    node: Any,
    begin: Any,
    end: Any,
    entries: Any,
    neighbors: Any,
) -> None:
    part = find_partition(offsets, node)
    first, indices = first_entry[part], table[part, INDICES]
    if wide[part, INDICES]:
        for k in range(np.uint64(begin), np.uint64(end)):
            neighbors[k] = load_int64(indices, entries[k] - first)
    else:
        for k in range(np.uint64(begin), np.uint64(end)):
            neighbors[k] = load_uint32(indices, entries[k] - first)


@lean_jit
def pick_entries(
    offsets: Ints,
    table: Words,
    wide: npt.NDArray[np.uint8],
    first_entry: Ints,
    nodes: Ints,
    low: int,
    high: int,
    key: np.uint64,
    fanout: int,
    is_replacing: bool,
    is_weighted: bool,
    places: Ints,
    keys: npt.NDArray[np.float64],
    slots: Ints,
    indptr: Ints,
    row: int,
    entries: Ints,
    neighbors: Ints,
) -> int:
    """Choose the entries of rows and read the neighbors there.

    Args:
        offsets: As for :func:`count_sampled`, as all that is not named here.
        table: Addresses.
        wide: Dtypes.
        first_entry: Entries of all partitions before each ``[P]``.
        nodes: Nodes, of which ``low`` to ``high`` are the rows.
        low: The first.
        high: Behind the last.
        key: Of this hop's draws.
        fanout: Entries of a row at most; negative for all.
        is_replacing: Whether an entry may be drawn several times.
        is_weighted: Whether entries are drawn in proportion to their weights.
        places: Scratch ``[fanout]``.
        keys: Scratch ``[fanout]``.
        slots: Scratch filled with -1, ``[4 * fanout]``.
        indptr: Where each row's entries go; corrected where fewer have a weight.
        row: Of the first row in ``indptr``.
        entries: Receives positions in the sequence of index files ``[E]``.
        neighbors: Receives numbers of nodes ``[E]``.

    Returns:
        The end of the last row's entries.
    """
    end = indptr[row]
    for j in range(low, high + _LATER):
        # A pipeline: this row's entries are chosen and asked for, the neighbors of the row
        # _LATER before are read, which by now are in the cache.
        line = row + j - low + 1
        if j - _LATER >= low:
            _read_neighbors(
                offsets,
                table,
                wide,
                first_entry,
                nodes[j - _LATER],
                indptr[line - _LATER - 1],
                indptr[line - _LATER],
                entries,
                neighbors,
            )
        if j >= high:
            continue
        if j + _AHEAD < high:
            ask_row(offsets, table, wide, nodes[j + _AHEAD])
        node = nodes[j]
        part, begin, stop = find_row(offsets, table, wide, node)
        degree = stop - begin
        count = degree
        is_drawn = degree > 0 and fanout >= 0
        is_drawn = is_drawn and (is_replacing or is_weighted or degree > fanout)
        if is_drawn:
            count = fanout if is_replacing else min(fanout, degree)
            # By node, not by row: the same node draws the same in whichever batch or
            # thread.
            own = mix64(key ^ np.uint64(node))
            count = _pick(
                table,
                wide,
                part,
                begin,
                degree,
                own,
                count,
                is_replacing,
                is_weighted,
                places,
                keys,
                slots,
            )
        first, indices = first_entry[part], table[part, INDICES]
        # Entries have 4 or 8 bytes.
        width = 2 + wide[part, INDICES]
        for q in range(count):
            place = begin + (places[q] if is_drawn else q)
            entries[end + q] = first + place
            prefetch(indices + np.uint64(place << width))
        end += count
        indptr[line] = end
    return int(end)


@lean_jit
def number_neighbors(
    neighbors: Ints,
    begin: int,
    end: int,
    positions: npt.NDArray[np.int32],
    nodes: Ints,
    num_nodes: int,
    indices: npt.NDArray[np.int32],
) -> int:
    """Give neighbors local numbers in order of first occurrence.

    Args:
        neighbors: Numbers of nodes ``[E]``; ``begin`` to ``end`` are looked at.
        begin: The first.
        end: Behind the last.
        positions: Local number of every node plus one, 0 for none ``[N]``.
        nodes: The nodes that have one; receives the new ones.
        num_nodes: How many those are.
        indices: Receives local numbers ``[E]``.

    Returns:
        How many nodes there are now, or ``OUT_OF_RANGE`` if a neighbor is not in the graph.
    """
    # counted without a sign: an index that might be negative is looked at each time
    base, stop, ahead = np.uint64(address(positions)), np.uint64(end), np.uint64(_AHEAD)
    found = np.uint64(num_nodes)
    for k in range(np.uint64(begin), stop):
        if k + ahead < stop:
            prefetch(base + np.uint64(4) * np.uint64(neighbors[k + ahead]))
        node = np.uint64(neighbors[k])
        if node >= np.uint64(len(positions)):
            return OUT_OF_RANGE
        position = positions[node]
        is_new = position == 0
        nodes[found] = np.int64(node)  # without a branch, which could not be foreseen
        found += np.uint64(is_new)
        position = np.int32(found) if is_new else position
        positions[node] = position
        indices[k] = position - np.int32(1)
    return int(np.int64(found))


@lean_jit
def number_seeds(
    seeds: Ints,
    positions: npt.NDArray[np.int32],
    nodes: Ints,
    num_nodes: int,
    places: npt.NDArray[np.int64],
) -> int:
    """Give seeds local numbers, the same to the same.

    Returns:
        How many nodes there are now, or ``-2 - k`` if seed k is not in the graph.
    """
    for k in range(len(seeds)):
        node = seeds[k]
        if node < 0 or node >= len(positions):
            return -2 - k
        position = positions[node]
        if position == 0:
            nodes[num_nodes] = node
            num_nodes += 1
            position = np.int32(num_nodes)
            positions[node] = position
        places[k] = position - 1
    return num_nodes


@lean_jit
def forget_positions(positions: npt.NDArray[np.int32], nodes: Ints, num_nodes: int) -> None:
    """Take the local numbers of nodes away."""
    for k in range(num_nodes):
        positions[nodes[k]] = 0
