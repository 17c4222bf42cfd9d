"""Maximal cliques: Bron and Kerbosch's search on words of bits.

Nodes are numbered so that those of dense parts come first. Every clique is found at its
largest number ``v``: what may join it are the smaller neighbors of ``v``, few since the
numbers fall with core numbers, and what keeps it from being maximal may be a larger one.

Bron, Kerbosch, "Algorithm 457: finding all cliques of an undirected graph", CACM 16(9),
1973; the pivots of Tomita, Tanaka, Takahashi, "The worst-case time complexity for
generating all maximal cliques", TCS 363, 2006; the outer order of Eppstein, Loeffler,
Strash, "Listing all maximal cliques in sparse graphs in near-optimal time", ISAAC 2010.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.bits import clear_bit, has_bit, lowest_bit, num_bits, set_bit
from graphsys.kernels.jit import inline_jit, jit

Numbers = npt.NDArray[Any]
Offsets = npt.NDArray[np.int64]


@jit
def list_cliques(
    low: int,
    high: int,
    indptr: Offsets,
    indices: Numbers,
    smaller: Numbers,
    fewest: int,
    is_kept: bool,
    place: npt.NDArray[np.int32],
) -> tuple[int, Numbers, Offsets]:
    """List the maximal cliques whose largest numbers are in a range.

    Args:
        low: First number.
        high: End of the numbers.
        indptr: Row offsets of the simple graph ``[N + 1]``.
        indices: Neighbors, sorted in every row ``[2 M]``.
        smaller: How many neighbors of each are smaller ``[N]``.
        fewest: Nodes that a clique has at least.
        is_kept: Whether the cliques are listed, not only counted.
        place: Scratch of zeros, int32 ``[N]``; zeros again after.

    Returns:
        How many members the cliques have in all; these, and the size of each clique, in
        the order in which they are found; the members empty if not kept.
    """
    most, most_words, most_outside = np.int64(1), np.int64(1), np.int64(1)
    for v in range(low, high):
        near = np.int64(smaller[v])
        words = (near + 63) >> 6
        most = max(most, near)
        most_words = max(most_words, words * (indptr[v + 1] - indptr[v]))
        most_outside = max(most_outside, indptr[v + 1] - indptr[v] - near)
    rows = np.empty(most_words, dtype=np.uint64)
    stack = np.empty((3, most + 1, (most + 63) >> 6), dtype=np.uint64)
    outside = np.empty(most_outside, dtype=np.int32)
    ends = np.empty(most + 1, dtype=np.int64)
    clique = np.empty(most + 1, dtype=indices.dtype)
    members = np.empty(1024 if is_kept else 0, dtype=indices.dtype)
    sizes = np.empty(256, dtype=np.int64)
    found = np.zeros(2, dtype=np.int64)  # cliques, and their members
    for v in range(low, high):
        begin, near = indptr[v], np.int64(smaller[v])
        if near == 0 and indptr[v + 1] == begin and fewest <= 1:
            clique[0] = v
            members, sizes = _added(members, sizes, found, clique, 1, is_kept)
        # of the cliques of one that has no smaller neighbors a larger one is the largest
        if near == 0 or near + 1 < fewest:
            continue
        words = (near + 63) >> 6
        num_outside = _fill_rows(indptr, indices, smaller, v, place, rows, words)
        # Bron and Kerbosch's P and X: what may join the clique, and what has been tried
        # beside it, as bits of smaller neighbors; the larger ones of X are listed outside
        within, seen, tried = stack[0], stack[1], stack[2]
        for word in range(words):
            within[0, word] = _first_bits(near - (word << 6))
            seen[0, word] = 0
        for k in range(num_outside):
            outside[k] = near + k
        ends[0], clique[0], depth = num_outside, v, np.int64(0)
        _choose(rows, words, within[0], seen[0], outside, ends[0], tried[0])
        while depth >= 0:
            chosen = _take_first(tried[depth], words)
            if chosen < 0:
                depth -= 1
                continue
            clique[depth + 1], size = indices[begin + chosen], depth + 2
            num_within, num_seen = _join(rows, words, chosen, within, seen, depth)
            end = _keep_neighbors(rows, words, chosen, outside, ends[depth])
            # Nothing may join, nor could anything have: the clique is maximal.
            if num_within + num_seen + end == 0 and size >= fewest:
                members, sizes = _added(members, sizes, found, clique, size, is_kept)
            elif num_within > 0 and size + num_within >= fewest:
                depth += 1
                ends[depth] = end
                _choose(rows, words, within[depth], seen[depth], outside, end, tried[depth])
        for k in range(near):
            place[indices[begin + k]] = 0
    kept = found[1] if is_kept else 0
    return found[1], members[:kept].copy(), sizes[: found[0]].copy()


@inline_jit
def _first_bits(num: Any) -> Any:
    if num >= 64:
        return np.uint64(0xFFFFFFFFFFFFFFFF)
    return (np.uint64(1) << np.uint64(num)) - np.uint64(1)


@inline_jit
def _fill_rows(
    indptr: Any, indices: Any, smaller: Any, v: Any, place: Any, rows: Any, words: Any
) -> Any:
    """Write which smaller neighbors of ``v`` each of its neighbors has, as bits.

    Returns:
        How many larger neighbors of ``v`` have any: their rows follow.
    """
    begin, near = indptr[v], np.int64(smaller[v])
    for k in range(near):
        # Plus one, so that 0 says that it is no smaller neighbor.
        place[indices[begin + k]] = k + 1
    for word in range(near * words):
        rows[word] = np.uint64(0)
    for k in range(near):
        u = np.int64(indices[begin + k])
        for f in range(indptr[u], indptr[u] + np.int64(smaller[u])):
            other = np.int64(place[indices[f]])
            if other:
                set_bit(rows[k * words : (k + 1) * words], other - 1)
                # Rows list smaller neighbors only, so that the other direction is set here.
                set_bit(rows[(other - 1) * words : other * words], k)
    filled = near
    for e in range(begin + near, indptr[v + 1]):
        u = np.int64(indices[e])
        row = rows[filled * words : (filled + 1) * words]
        row[:] = np.uint64(0)
        is_beside = False
        for f in range(indptr[u], indptr[u] + np.int64(smaller[u])):
            other = np.int64(place[indices[f]])
            if other:
                set_bit(row, other - 1)
                is_beside = True
        # Else the next one writes over the row.
        if is_beside:
            filled += 1
    return filled - near


@inline_jit
def _choose(
    rows: Any,
    words: Any,
    within: Any,
    seen: Any,
    outside: Any,
    end: Any,
    tried: Any,
) -> None:
    """Write what must be tried: what may join, but for the neighbors of a pivot."""
    best, pivot = np.int64(-1), np.int64(0)
    for word in range(words):
        # Tomita's pivot: of all in P and X the one with most neighbors in P, which are not
        # tried.
        left = within[word] | seen[word]
        while left:
            node = (np.int64(word) << 6) + lowest_bit(left)
            left &= left - np.uint64(1)
            shared = _num_shared(rows, words, within, node)
            if shared > best:
                best, pivot = shared, node
    for place in range(end):
        node = np.int64(outside[place])
        shared = _num_shared(rows, words, within, node)
        if shared > best:
            best, pivot = shared, node
    for word in range(words):
        tried[word] = within[word] & ~rows[pivot * words + word]


@inline_jit
def _num_shared(rows: Any, words: Any, within: Any, node: Any) -> Any:
    """Count the neighbors of a node among those that may join."""
    shared = np.int64(0)
    for word in range(words):
        shared += num_bits(within[word] & rows[node * words + word])
    return shared


@inline_jit
def _take_first(tried: Any, words: Any) -> Any:
    """Take the first node out of those to be tried; -1: there is none."""
    for word in range(words):
        if tried[word]:
            found = (np.int64(word) << 6) + lowest_bit(tried[word])
            tried[word] &= tried[word] - np.uint64(1)
            return found
    return np.int64(-1)


@inline_jit
def _keep_neighbors(rows: Any, words: Any, chosen: Any, outside: Any, end: Any) -> Any:
    """Move those of the outer nodes that have the chosen one to the front; count them."""
    kept = np.int64(0)
    for place in range(end):
        node = np.int64(outside[place])
        if has_bit(rows[node * words : (node + 1) * words], chosen):
            outside[place], outside[kept] = outside[kept], np.int32(node)
            kept += 1
    return kept


@inline_jit
def _join(
    rows: Any, words: Any, chosen: Any, within: Any, seen: Any, depth: Any
) -> tuple[Any, Any]:
    """Let a node join: write what may follow it, and what has been tried beside it.

    Returns:
        How many nodes either has; at this depth, the node has been tried now.
    """
    num_within, num_seen = np.int64(0), np.int64(0)
    for word in range(words):
        own = rows[chosen * words + word]
        bits, others = within[depth, word] & own, seen[depth, word] & own
        if depth + 1 < within.shape[0]:
            within[depth + 1, word], seen[depth + 1, word] = bits, others
        num_within += num_bits(bits)
        num_seen += num_bits(others)
    clear_bit(within[depth], chosen)
    set_bit(seen[depth], chosen)
    return num_within, num_seen


@inline_jit
def _added(
    members: Any, sizes: Any, found: Any, clique: Any, size: Any, is_kept: Any
) -> Any:
    """Return the lists with one more clique, made longer where they end."""
    count, total = found[0], found[1]
    if count == len(sizes):
        more = np.empty(2 * count, dtype=sizes.dtype)
        more[:count] = sizes
        sizes = more
    if is_kept:
        if total + size > len(members):
            longer = np.empty(2 * (total + size), dtype=members.dtype)
            longer[:total] = members[:total]
            members = longer
        members[total : total + size] = clique[:size]
    sizes[count] = size
    found[0], found[1] = count + 1, total + size
    return members, sizes


@jit
def sort_cliques(
    sizes: Offsets, order: Offsets, ranks: Numbers, members: Numbers, ordered: Numbers
) -> None:
    """Write cliques one after the other in another order, the members of each by rank.

    Args:
        sizes: Of the cliques ``[C]``.
        order: Which comes first, second, ... ``[C]``.
        ranks: Rank of every number ``[N]``.
        members: Clique after clique ``[L]``.
        ordered: Receives the ranks of the members ``[L]``.
    """
    begins = np.empty(len(sizes), dtype=np.int64)
    at = np.int64(0)
    for k in range(len(sizes)):
        begins[k] = at
        at += sizes[k]
    at = np.int64(0)
    for k in order:
        own = ordered[at : at + sizes[k]]
        for m in range(sizes[k]):
            own[m] = ranks[members[begins[k] + m]]
        own.sort()
        at += sizes[k]
