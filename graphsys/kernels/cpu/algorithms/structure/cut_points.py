"""Blocks of a graph: parts that stay connected when any one of their nodes goes.

Hopcroft, Tarjan, "Algorithm 447: efficient algorithms for graph manipulation", CACM 16(6),
1973, by one depth-first search without recursion, with a stack of nodes in place of edges.
O(N + E), in one thread, for the order of the search is the method.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import lean_jit


class BlockState(NamedTuple):
    """What the search keeps, and what it finds.

    Attributes:
        number: Zeros; when each node was found, from 1 on ``[N]``.
        low: Scratch: the earliest node that its part of the tree has an edge to ``[N]``.
        path: Scratch: nodes from the root to where the search is ``[N]``.
        place: Scratch: which entry each of them is at ``[N]``.
        skipped: Scratch: whether the edge by which it was found was left out ``[N]``.
        waiting: Scratch: nodes whose block is not complete ``[N]``.
        members: Receives the nodes of block after block ``[2 N]``.
        bounds: Receives where each block ends, behind a 0 ``[N + 1]``.
        is_bridge: Receives whether the block is one edge ``[N]``.
    """

    number: npt.NDArray[np.int64]
    low: npt.NDArray[np.int64]
    path: npt.NDArray[Any]
    place: npt.NDArray[np.int64]
    skipped: npt.NDArray[np.bool_]
    waiting: npt.NDArray[Any]
    members: npt.NDArray[Any]
    bounds: npt.NDArray[np.int64]
    is_bridge: npt.NDArray[np.bool_]


# long: one search over shared state
@lean_jit
def find_blocks(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    in_begins: npt.NDArray[Any],
    in_ends: npt.NDArray[Any],
    in_indices: npt.NDArray[Any],
    state: BlockState,
) -> int:
    """Find the blocks; the neighbors of a node are those of both its rows.

    Args:
        begins: Where each row of out-neighbors begins ``[N]``.
        ends: Where it ends ``[N]``.
        indices: Out-neighbors ``[E]``.
        in_begins: The same of in-neighbors; of length 0 where there is no direction.
        in_ends: Where each ends.
        in_indices: In-neighbors.
        state: See there.

    Returns:
        How many blocks there are.
    """
    number, low, path, place = state.number, state.low, state.path, state.place
    has_both = len(in_begins) > 0
    found, blocks, num_members, num_waiting = 0, 0, 0, 0
    state.bounds[0] = 0
    for start in range(len(begins)):
        if number[start] != 0:
            continue
        found += 1
        number[start] = low[start] = found
        path[0], place[0], state.skipped[0] = start, 0, True
        depth = 1
        while depth > 0:
            top = depth - 1
            node = np.int64(path[top])
            first, last = np.int64(begins[node]), np.int64(ends[node])
            degree, in_first = last - first, np.int64(0)
            if has_both:
                in_first = np.int64(in_begins[node])
                degree += np.int64(in_ends[node]) - in_first
            above = np.int64(path[top - 1]) if top > 0 else np.int64(-1)
            descends = False
            while place[top] < degree:
                entry = place[top]
                place[top] += 1
                if entry < last - first:
                    other = np.int64(indices[first + entry])
                else:
                    other = np.int64(in_indices[in_first + entry - (last - first)])
                if other == above and not state.skipped[top]:
                    state.skipped[top] = True  # repeated edges are other ways back
                elif number[other] == 0:
                    descends = True
                    break
                else:
                    low[node] = min(low[node], number[other])
            if descends:
                found += 1
                number[other] = low[other] = found
                state.waiting[num_waiting] = other
                num_waiting += 1
                path[depth], place[depth], state.skipped[depth] = other, 0, False
                depth += 1
                continue
            depth -= 1
            if top == 0:
                continue
            low[above] = min(low[above], low[node])
            # What hangs below has a way past the node above: no block ends here.
            if low[node] < number[above]:
                continue
            state.is_bridge[blocks] = low[node] > number[above]
            # All that wait above the node were found below it, and are in no block yet.
            member = np.int64(-1)
            while member != node:
                num_waiting -= 1
                member = np.int64(state.waiting[num_waiting])
                state.members[num_members] = member
                num_members += 1
            # The node above is in this block and stays waiting: it may be in others too.
            state.members[num_members], num_members = above, num_members + 1
            blocks += 1
            state.bounds[blocks] = num_members
    return blocks
