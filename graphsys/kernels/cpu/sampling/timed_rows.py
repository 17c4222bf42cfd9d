"""Temporal sampling: entries of rows that are older than a seed, and nodes by group.

A seed's surroundings hold only entries whose time is strictly before the seed's, whatever
the hop. So a node that two seeds of different times reach is two nodes of the sample: nodes
are numbered by (group, node), where a group is what has one time.

Rows are sorted by neighbor, not by time. A row is scanned once and the ``fanout`` entries
with the smallest rank are kept: a random number (uniform), -log(u) / weight (by weight:
Efraimidis and Spirakis, IPL 2006), or minus the time (the latest ones; of equal times the
first in the row). Uniform draws from long rows first try random places: entries that are
old enough and new are kept until there are enough. Both ways are symmetric in the entries
that may be taken, so that all sets of them are equally likely.

Events in order of time have rows sorted by it (T-CSR: Zhou et al., "TGL: A general
framework for temporal GNN training on billion-scale graphs", PVLDB 15(8), 2022), so that
what is older than a time is a prefix of the row, found by halving.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.pointers import load_int64
from graphsys.kernels.cpu.rows.row_table import (
    INDICES,
    TIME,
    below,
    element,
    find_row,
    fraction,
    weight_of,
)
from graphsys.kernels.cpu.searching import lower_bound
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

UNIFORM, WEIGHTED, LATEST = 0, 1, 2
OUT_OF_RANGE = -1
_TRIES = 4  # random places looked at, per entry wanted
_LONG = 8  # a row of so many times the fanout is worth them
_SALT = np.uint64(0xA0761D6478BD642F)


@lean_inline_jit
def _try_places(
    table: Any,
    part: Any,
    begin: Any,
    degree: Any,
    time: Any,
    key: Any,
    count: Any,
    places: Any,
) -> Any:
    """Draw random places until ``count`` different ones are old enough; or give up: 0."""
    found = 0
    # Draws of their own: where this gives up, those of the scan must not depend on it.
    own = key ^ _SALT
    for draw in range(_TRIES * count):
        place = below(own, draw, degree)
        if load_int64(table[part, TIME], begin + place) >= time:
            continue
        is_new = True
        for q in range(found):
            if places[q] == place:
                is_new = False
                break
        if is_new:
            places[found] = place
            found += 1
            if found == count:
                return found
    return 0


@lean_inline_jit
def _rank(
    table: Any, wide: Any, part: Any, place: Any, p: Any, key: Any, order: Any
) -> Any:
    value = -np.log(fraction(key, p))
    if order == WEIGHTED:
        weight = weight_of(table, wide, part, place)
        return value / weight if weight > 0.0 else np.inf
    return value


@lean_inline_jit
def _scan(
    table: Any,
    wide: Any,
    part: Any,
    begin: Any,
    degree: Any,
    time: Any,
    key: Any,
    count: Any,
    order: Any,
    places: Any,
    keys: Any,
) -> Any:
    """Keep the ``count`` places of the smallest rank, in rising order; return how many."""
    found = 0
    for p in range(degree):
        if load_int64(table[part, TIME], begin + p) >= time:
            continue
        value = _rank(table, wide, part, begin + p, p, key, order)
        # Sorted keys: most entries of a long row fail against the last one and move
        # nothing.
        if value == np.inf or (found == count and value >= keys[found - 1]):
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
def _scan_latest(
    table: Any, part: Any, begin: Any, degree: Any, time: Any, count: Any, places: Any
) -> Any:
    """Keep the ``count`` latest places, the latest first; return how many.

    Times are compared as integers: float64 would take nanoseconds of 256 to be one.
    """
    found = 0
    for p in range(degree):
        own = load_int64(table[part, TIME], begin + p)
        if own >= time:
            continue
        slot = found
        while slot > 0 and load_int64(table[part, TIME], begin + places[slot - 1]) < own:
            slot -= 1
        if slot == count:
            continue
        found = min(found + 1, count)
        for later in range(found - 1, slot, -1):
            places[later] = places[later - 1]
        places[slot] = p
    return found


@lean_jit
def pick_entries_before(
    offsets: Ints,
    table: Words,
    wide: npt.NDArray[np.uint8],
    first_entry: Ints,
    nodes: Ints,
    groups: npt.NDArray[np.int32],
    times: Ints,
    low: int,
    high: int,
    key: np.uint64,
    fanout: int,
    order: int,
    places: Ints,
    keys: npt.NDArray[np.float64],
    indptr: Ints,
    row: int,
    entries: Ints,
    neighbors: Ints,
) -> int:
    """Choose entries of rows that are older than the row's group.

    Args:
        offsets: First number of every partition, and the number of nodes ``[P + 1]``.
        table: Addresses ``[P, 4]``.
        wide: Dtypes ``[P, 4]``.
        first_entry: Entries of all partitions before each ``[P]``.
        nodes: Nodes, of which ``low`` to ``high`` are the rows.
        groups: Their groups.
        times: Of each group.
        low: The first.
        high: Behind the last.
        key: Of this hop's draws.
        fanout: Entries of a row at most; negative for all.
        order: ``UNIFORM``, ``WEIGHTED`` or ``LATEST``.
        places: Scratch ``[fanout]``.
        keys: Scratch ``[fanout]``.
        indptr: ``indptr[row]`` is given; receives ``high - low`` more.
        row: Where those stand.
        entries: Receives positions in the sequence of index files ``[E]``.
        neighbors: Receives numbers of nodes ``[E]``.

    Returns:
        The end of the last row's entries.
    """
    end = indptr[row]
    for j in range(low, high):
        node = nodes[j]
        part, begin, stop = find_row(offsets, table, wide, node)
        degree = stop - begin
        time = times[groups[j]]
        # Two seeds' views of a node are two nodes: the group is part of the key.
        own = mix64(key ^ mix64(np.uint64(node) ^ (np.uint64(groups[j]) << np.uint64(40))))
        if fanout < 0:
            for p in range(degree):
                is_before = load_int64(table[part, TIME], begin + p) < time
                has_weight = order != WEIGHTED
                if not has_weight:
                    has_weight = weight_of(table, wide, part, begin + p) > 0.0
                if is_before and has_weight:
                    entries[end] = first_entry[part] + begin + p
                    neighbors[end] = element(table, wide, part, INDICES, begin + p)
                    end += 1
        else:
            count = np.int64(0)
            # Where most of a long row is old enough, a few looks replace a scan of all of
            # it.
            if order == UNIFORM and degree > _LONG * fanout:
                count = _try_places(table, part, begin, degree, time, own, fanout, places)
            if order == LATEST and degree > 0 and fanout > 0:
                count = _scan_latest(table, part, begin, degree, time, fanout, places)
            elif count == 0 and degree > 0 and fanout > 0:
                count = _scan(
                    table, wide, part, begin, degree, time, own, fanout, order, places, keys
                )
            for q in range(count):
                place = begin + places[q]
                entries[end] = first_entry[part] + place
                neighbors[end] = element(table, wide, part, INDICES, place)
                end += 1
        indptr[row + j - low + 1] = end
    return int(end)


@lean_inline_jit
def _slot_of(slots: Any, nodes: Any, groups: Any, node: Any, group: Any) -> Any:
    """Return the slot that holds a node of a group, or the empty one where it belongs."""
    mask = np.int64(len(slots) - 1)
    slot = np.int64(mix64(np.uint64(node) + mix64(np.uint64(group)))) & mask
    while slots[slot] >= 0:
        known = slots[slot]
        if nodes[known] == node and groups[known] == group:
            break
        slot = (slot + 1) & mask
    return slot


@lean_jit
def number_grouped_seeds(
    seeds: Ints,
    seed_groups: npt.NDArray[np.int32],
    limit: int,
    slots: npt.NDArray[np.int32],
    nodes: Ints,
    groups: npt.NDArray[np.int32],
    places: Ints,
) -> int:
    """Give seeds local numbers, the same to the same node of the same group.

    Args:
        seeds: Numbers of nodes ``[n]``.
        seed_groups: Their groups ``[n]``.
        limit: Nodes of the type.
        slots: A table of local numbers, -1 where empty; a power of two > 2 * n.
        nodes: Receives the number of each local one.
        groups: Receives the group of each local one.
        places: Receives the local numbers ``[n]``.

    Returns:
        How many local numbers there are, or ``-2 - k`` if seed k is not in the graph.
    """
    num_nodes = 0
    for k in range(len(seeds)):
        if seeds[k] < 0 or seeds[k] >= limit:
            return -2 - k
        slot = _slot_of(slots, nodes, groups, seeds[k], seed_groups[k])
        if slots[slot] < 0:
            slots[slot] = num_nodes
            nodes[num_nodes], groups[num_nodes] = seeds[k], seed_groups[k]
            num_nodes += 1
        places[k] = slots[slot]
    return num_nodes


@lean_jit
def number_grouped_neighbors(
    indptr: Ints,
    low: int,
    high: int,
    row_groups: npt.NDArray[np.int32],
    neighbors: Ints,
    limit: int,
    slots: npt.NDArray[np.int32],
    nodes: Ints,
    groups: npt.NDArray[np.int32],
    num_nodes: int,
    indices: npt.NDArray[np.int32],
) -> int:
    """Give neighbors local numbers in the group of their row, by first occurrence.

    Args:
        indptr: Where rows begin and end.
        low: The first row that is looked at.
        high: Behind the last.
        row_groups: Groups of the rows.
        neighbors: Numbers of nodes ``[E]``.
        limit: Nodes of the type.
        slots: As for :func:`number_grouped_seeds`, with room for all.
        nodes: Numbers of the nodes known so far; receives the new ones.
        groups: Their groups; receives those of the new ones.
        num_nodes: How many there are.
        indices: Receives local numbers ``[E]``.

    Returns:
        How many there are now, or ``OUT_OF_RANGE`` if a neighbor is not in the graph.
    """
    for j in range(low, high):
        for k in range(indptr[j], indptr[j + 1]):
            node = neighbors[k]
            if node < 0 or node >= limit:
                return OUT_OF_RANGE
            slot = _slot_of(slots, nodes, groups, node, row_groups[j])
            if slots[slot] < 0:
                slots[slot] = num_nodes
                nodes[num_nodes], groups[num_nodes] = node, row_groups[j]
                num_nodes += 1
            indices[k] = slots[slot]
    return num_nodes


@lean_jit
def fill_slots(
    slots: npt.NDArray[np.int32],
    nodes: Ints,
    groups: npt.NDArray[np.int32],
    num_nodes: int,
) -> None:
    """Put nodes into an empty table by their local numbers."""
    for k in range(num_nodes):
        slots[_slot_of(slots, nodes, groups, nodes[k], groups[k])] = k


@lean_jit
def find_before(indptr: Ints, times: Ints, nodes: Ints, before: Ints, ends: Ints) -> None:
    """Find where the entries of rows end that are strictly older than a time.

    Args:
        times: Of the entries, not falling within a row ``[E]``.
        nodes: The rows asked about ``[n]``.
        before: A time for each ``[n]``.
        ends: Receives the place behind the last older entry of each ``[n]``.
    """
    for k in range(len(nodes)):
        node = nodes[k]
        ends[k] = lower_bound(times, indptr[node], indptr[node + 1], before[k])


@lean_jit
def take_latest(indptr: Ints, nodes: Ints, ends: Ints, entries: Ints) -> None:
    """Take the last entries before an end, the latest first.

    Args:
        nodes: The rows ``[n]``.
        ends: Behind the last entry that may be taken of each ``[n]``.
        entries: Receives places of entries, -1 where a row has no more ``[n, k]``.
    """
    for k in range(len(nodes)):
        begin = indptr[nodes[k]]
        for j in range(entries.shape[1]):
            place = ends[k] - 1 - j
            entries[k, j] = place if place >= begin else -1
