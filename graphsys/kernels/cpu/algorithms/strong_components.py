"""Strongly connected components by one depth-first search without recursion.

Tarjan, "Depth-first search and linear graph algorithms", SIAM Journal on Computing 1(2),
1972, in the form of Pearce, "A space-efficient algorithm for finding strongly connected
components", Information Processing Letters 116(1), 2016 (PEA_FIND_SCC3).

``number`` holds all three of Tarjan's values: 0 of a node not yet visited; of one on a
stack the smallest index that its subtree reaches, from 1 up; of one whose component is
complete that component's number, from N down. Components' numbers are thus above all
indices, and an edge to a complete component never lowers anything.

One array is both stacks: the path of the search grows from its front, and visited nodes
whose component is open wait at its back. O(N + E) time, of which every edge takes one
random access; it runs in one thread, for the order of the search is the method.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import lean_jit


@lean_jit
def find_strong_components(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    number: npt.NDArray[Any],
    stack: npt.NDArray[Any],
    places: npt.NDArray[Any],
    is_first: npt.NDArray[np.bool_],
) -> int:
    """Number the strongly connected components.

    Args:
        begins: Where each row of out-neighbors begins ``[N]``.
        ends: Where it ends ``[N]``.
        number: Zeros ``[N]``; receives the number of every node's component, of C
            components N - C + 1 to N.
        stack: Scratch ``[N]``.
        places: Scratch ``[N]``: which entry of its row each node of the path is at.
        is_first: Scratch ``[N]``: whether it reaches no node that was visited before it.

    Returns:
        How many components there are.
    """
    num_nodes = np.int64(len(begins))
    index, component = np.int64(1), num_nodes
    back = num_nodes  # the waiting nodes are stack[back:]
    for start in range(num_nodes):
        if number[start] != 0:
            continue
        stack[0], places[0], is_first[0] = start, begins[start], True
        number[start] = index
        index += 1
        depth = np.int64(1)
        while depth > 0:
            top = depth - 1
            node = np.int64(stack[top])
            place, end = np.int64(places[top]), np.int64(ends[node])
            low, descends = np.int64(number[node]), False
            while place < end:
                other = np.int64(indices[place])
                found = np.int64(number[other])
                if found == 0:  # looked at again when the search is back
                    descends = True
                    break
                if found < low:
                    low = found
                    is_first[top] = False
                place += 1
            number[node] = low
            if descends:
                places[top] = place
                stack[depth], places[depth], is_first[depth] = other, begins[other], True
                number[other] = index
                index += 1
                depth += 1
                continue
            depth -= 1
            # It reaches one that was visited before: its component closes further up the
            # path.
            if not is_first[top]:
                back -= 1
                stack[back] = node
                continue
            # Indices of a complete component are used again, which keeps them below the
            # numbers of components.
            index -= 1
            while back < num_nodes and np.int64(number[np.int64(stack[back])]) >= low:
                number[np.int64(stack[back])] = component
                back += 1
                index -= 1
            number[node] = component
            component -= 1
    return int(num_nodes - component)


@lean_jit
def name_by_first(
    number: npt.NDArray[Any], num_components: int, first: npt.NDArray[Any]
) -> None:
    """Replace the number of every node's component by that of its first node.

    Args:
        number: Numbers of components, as above ``[N]``; receives numbers of nodes.
        num_components: How many there are.
        first: Scratch of at least as many entries.
    """
    num_nodes = np.int64(len(number))
    lowest = num_nodes - num_components + 1
    # Backwards, so that the smallest number is written last.
    for node in range(num_nodes - 1, -1, -1):
        first[np.int64(number[node]) - lowest] = node
    for node in range(num_nodes):
        number[node] = first[np.int64(number[node]) - lowest]


@lean_jit
def release(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    row_base: int,
    column_base: int,
    left: npt.NDArray[np.int64],
    released: npt.NDArray[Any],
    first: int,
    count: int,
) -> int:
    """Follow the edges of nodes that no cycle leads to, in some rows of a graph.

    Kahn, "Topological sorting of large networks", CACM 5(11), 1962.

    Args:
        begins: Where each row of out-neighbors begins ``[n]``.
        ends: Where it ends ``[n]``.
        indices: Neighbors, less ``column_base``.
        row_base: Number of the first row's node.
        column_base: Added to neighbors to get numbers of nodes.
        left: Of every node the edges into it that were not followed yet ``[N]``.
        released: Nodes of which none is left, in the order of their release ``[N]``.
        first: The first of them whose row has not been looked at here.
        count: How many there are.

    Returns:
        How many there are now; the rows here of all of them were looked at.
    """
    place, num_rows, total = np.int64(first), np.int64(len(begins)), np.int64(count)
    while place < total:
        row = np.int64(released[place]) - row_base
        place += 1
        # Its row lies in another part of the graph, which follows it in turn.
        if row < 0 or row >= num_rows:
            continue
        for entry in range(np.int64(begins[row]), np.int64(ends[row])):
            other = np.int64(indices[entry]) + column_base
            left[other] -= 1
            if left[other] == 0:
                released[total] = other
                total += 1
    return int(total)
