"""Layer-wise sampling: which sources all rows of a hop have in common.

A source u of a hop has the weight w_u, the sum over rows v of (1 / d_v)**2 of the entries
that name it, with d_v entries in row v. :func:`weigh_sources` reads all rows and adds up;
the caller makes chances of the sums, and :func:`keep_sources` drops the entries of sources
that a draw leaves out. A draw is a hash of (key, source), the same for all rows.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.rows.row_table import INDICES, INDPTR, element, find_partition
from graphsys.kernels.jit import lean_jit

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]

OUT_OF_RANGE: Final = -1


@lean_jit
def weigh_sources(
    offsets: Ints,
    table: npt.NDArray[np.uint64],
    wide: npt.NDArray[np.uint8],
    first_entry: Ints,
    nodes: Ints,
    low: int,
    high: int,
    indptr: Ints,
    row: int,
    slots: Places,
    entries: Ints,
    neighbors: Ints,
    sources: Ints,
    weights: npt.NDArray[np.float64],
) -> int:
    """Read rows whole, and add up what each source weighs in them.

    Args:
        offsets: First number of every partition, and the number of nodes ``[P + 1]``.
        table: Addresses ``[P, 4]``.
        wide: Dtypes ``[P, 4]``.
        first_entry: Entries of all partitions before each ``[P]``.
        nodes: Nodes, of which ``low`` to ``high`` are the rows.
        low: The first.
        high: Behind the last.
        indptr: Where each row ends, from ``indptr[row]`` on.
        row: Where those stand.
        slots: 0 for every node of the sources' type; receives its place in ``sources``
            plus one, until :func:`keep_sources` clears it.
        entries: Receives positions in the sequence of index files, from ``indptr[row]``.
        neighbors: Receives numbers of nodes there.
        sources: Receives the distinct sources, in order of first occurrence.
        weights: Receives their weights.

    Returns:
        Distinct sources, or ``OUT_OF_RANGE`` where a number is outside the graph; then
        ``slots`` are 0 again.
    """
    count = 0
    for j in range(low, high):
        node = nodes[j]
        part = find_partition(offsets, node)
        begin = element(table, wide, part, INDPTR, node - offsets[part])
        end = indptr[row + j - low]
        degree = indptr[row + j - low + 1] - end
        if degree == 0:
            continue
        share = 1.0 / np.float64(degree)
        for p in range(begin, begin + degree):
            source = element(table, wide, part, INDICES, p)
            # The scratch is shared by all calls: it is left as it was found.
            if source < 0 or source >= len(slots):
                for k in range(count):
                    slots[sources[k]] = 0
                return OUT_OF_RANGE
            slot = slots[source]
            if slot == 0:
                sources[count] = source
                weights[count] = 0.0
                count += 1
                slot = count
                slots[source] = slot
            weights[slot - 1] += share * share
            entries[end] = first_entry[part] + p
            neighbors[end] = source
            end += 1
    return count


@lean_jit
def keep_sources(
    key: np.uint64,
    count: int,
    chances: npt.NDArray[np.float64],
    indptr: Ints,
    row: int,
    num_rows: int,
    slots: Places,
    entries: Ints,
    neighbors: Ints,
    sources: Ints,
    factors: npt.NDArray[np.float32],
) -> int:
    """Draw sources, each once, and keep their entries alone, in their order.

    Args:
        key: Of this hop's draws.
        count: Distinct sources.
        chances: Of every source to be kept ``[count]``.
        indptr: Where rows end, from ``indptr[row]`` on; brought up to date.
        row: Where those stand.
        num_rows: Rows.
        slots: As :func:`weigh_sources` leaves them; 0 afterwards.
        entries: Positions in the sequence of index files.
        neighbors: Numbers of nodes.
        sources: The distinct sources.
        factors: Receives ``1 / (degree * chance)`` of every entry that stays: with these a
            row's sum is the mean over all of its entries on average.

    Returns:
        The end of the last row.
    """
    begin = indptr[row]
    end = begin
    for k in range(row, row + num_rows):
        before = indptr[k + 1]
        degree = np.float64(before - begin)
        for place in range(begin, before):
            source = neighbors[place]
            chance = chances[slots[source] - 1]
            word = mix64(key ^ np.uint64(source))
            if np.float64(word >> np.uint64(11)) * 2.0**-53 >= chance:
                continue
            entries[end] = entries[place]
            neighbors[end] = source
            factors[end] = 1.0 / (degree * chance)
            end += 1
        indptr[k + 1] = end
        begin = before
    for k in range(count):
        slots[sources[k]] = 0
    return int(end)
