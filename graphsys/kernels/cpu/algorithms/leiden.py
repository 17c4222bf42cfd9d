"""Two steps of Leiden: moving nodes and refining communities (folding: communities.py).

Method: Traag, Waltman, van Eck, "From Louvain to Leiden: guaranteeing well-connected
communities", Scientific Reports 9, 2019; modularity with a resolution as quality. Gains
are in units of edge weight: moving v into C adds w(v, C) - resolution k_v K_C / 2m.

Serial, with a queue of the nodes whose neighborhood changed; draws come from a counter
in the order of the nodes, so a seed gives one result. Rows hold no loops: loops count in
the strengths (twice) and never change a gain.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.jit import inline_jit, jit

_RANDOMNESS = 0.01


@inline_jit
def _uniform(seed: Any, k: Any) -> Any:
    return np.float64(mix64(seed ^ mix64(np.uint64(k))) >> np.uint64(11)) * 2.0**-53


@jit
def _shuffled(num: int, seed: np.uint64) -> npt.NDArray[np.int64]:
    order = np.arange(num)
    for k in range(num - 1, 0, -1):
        other = np.int64(_uniform(seed, k) * (k + 1))
        order[k], order[other] = order[other], order[k]
    return order


@inline_jit
def _weigh_communities(
    indptr: Any,
    indices: Any,
    weight: Any,
    node: Any,
    community: Any,
    within: Any,
    links: Any,
    touched: Any,
) -> Any:
    """Add up the weights from a node to each community next to it.

    With ``within`` of the length of ``community``, only neighbors in the node's own
    community there count. ``links`` must be zeros for the communities not in ``touched``.
    """
    num_touched = 0
    for k in range(indptr[node], indptr[node + 1]):
        other = indices[k]
        if len(within) and within[other] != within[node]:
            continue
        target = community[other]
        if links[target] == 0.0:
            touched[num_touched] = target
            num_touched += 1
        links[target] += weight[k]
    return num_touched


@jit
def move_nodes(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[Any],
    weight: npt.NDArray[np.float64],
    strength: npt.NDArray[np.float64],
    scale: float,
    least: float,
    seed: np.uint64,
    community: npt.NDArray[np.int64],
) -> int:
    """Move nodes to the best community next to them until none gains.

    Args:
        indptr: Row offsets of the symmetric graph without loops ``[n + 1]``.
        indices: Neighbors ``[e]``.
        weight: Weights above 0, float64 ``[e]``.
        strength: Sum of the weights of every node, loops twice, float64 ``[n]``.
        scale: Resolution divided by the sum of all strengths.
        least: A gain must be above this, against endless moves by rounding.
        seed: Seed of the order of the first visits.
        community: Community of every node, below n, int64 ``[n]``; changed.

    Returns:
        How many moves were made.
    """
    num = len(strength)
    totals = np.zeros(num, dtype=np.float64)
    sizes = np.zeros(num, dtype=np.int64)
    for node in range(num):
        totals[community[node]] += strength[node]
        sizes[community[node]] += 1
    empty = np.empty(num + 1, dtype=np.int64)
    num_empty = 0
    for c in range(num - 1, -1, -1):
        if sizes[c] == 0:
            empty[num_empty] = c
            num_empty += 1
    links = np.zeros(num, dtype=np.float64)
    touched = np.empty(num, dtype=np.int64)
    queue = _shuffled(num, seed)
    is_queued = np.ones(num, dtype=np.bool_)
    anywhere = community[:0]
    head, waiting = 0, num
    num_moves = 0
    while waiting > 0:
        node = queue[head]
        head = head + 1 if head + 1 < num else 0
        waiting -= 1
        is_queued[node] = False
        old = community[node]
        num_touched = _weigh_communities(
            indptr, indices, weight, node, community, anywhere, links, touched
        )
        pull = scale * strength[node]
        totals[old] -= strength[node]
        sizes[old] -= 1
        best = old
        best_gain = links[old] - pull * totals[old] + least
        if sizes[old] > 0 and num_empty > 0 and best_gain < 0.0:
            best, best_gain = empty[num_empty - 1], 0.0
        for k in range(num_touched):
            c = touched[k]
            gain = links[c] - pull * totals[c]
            if c != old and gain > best_gain:
                best, best_gain = c, gain
            links[c] = 0.0
        if best != old:
            num_moves += 1
            if num_empty > 0 and best == empty[num_empty - 1]:
                num_empty -= 1
            if sizes[old] == 0:
                empty[num_empty] = old
                num_empty += 1
                totals[old] = 0.0
            community[node] = best
            for k in range(indptr[node], indptr[node + 1]):
                other = indices[k]
                if community[other] != best and not is_queued[other]:
                    is_queued[other] = True
                    tail = head + waiting
                    queue[tail if tail < num else tail - num] = other
                    waiting += 1
        totals[best] += strength[node]
        sizes[best] += 1
    return num_moves


@jit
def refine_communities(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[Any],
    weight: npt.NDArray[np.float64],
    strength: npt.NDArray[np.float64],
    scale: float,
    seed: np.uint64,
    community: npt.NDArray[np.int64],
    refined: npt.NDArray[np.int64],
) -> None:
    """Split each community into well-connected parts, each grown from single nodes.

    A node that is alone joins a part of its community at random, better ones far more
    likely, if both are well connected to the rest of the community.

    Args:
        indptr: Row offsets of the symmetric graph without loops ``[n + 1]``.
        indices: Neighbors ``[e]``.
        weight: Weights above 0, float64 ``[e]``.
        strength: Sum of the weights of every node, loops twice, float64 ``[n]``.
        scale: Resolution divided by the sum of all strengths.
        seed: Seed of the order and the choices.
        community: Community of every node, int64 ``[n]``.
        refined: Receives the part of every node, int64 ``[n]``.
    """
    num = len(strength)
    community_total = np.zeros(num, dtype=np.float64)
    outward = np.zeros(num, dtype=np.float64)
    for node in range(num):
        refined[node] = node
        community_total[community[node]] += strength[node]
        for k in range(indptr[node], indptr[node + 1]):
            if community[indices[k]] == community[node]:
                outward[node] += weight[k]
    totals = strength.copy()
    is_alone = np.ones(num, dtype=np.bool_)
    links = np.zeros(num, dtype=np.float64)
    touched = np.empty(num, dtype=np.int64)
    chances = np.empty(num, dtype=np.float64)
    order = _shuffled(num, seed)
    choices = mix64(seed)
    for k in range(num):
        node = order[k]
        whole = community_total[community[node]]
        pull = scale * strength[node]
        if not is_alone[node] or outward[node] < pull * (whole - strength[node]):
            continue
        num_touched = _weigh_communities(
            indptr, indices, weight, node, refined, community, links, touched
        )
        best_gain = 0.0
        num_fit = 0
        for j in range(num_touched):
            part = touched[j]
            gain = links[part] - pull * totals[part]
            bar = scale * totals[part] * (whole - totals[part])
            if gain >= 0.0 and outward[part] >= bar:
                touched[num_fit], touched[j] = part, touched[num_fit]
                chances[num_fit] = gain
                best_gain = max(best_gain, gain)
                num_fit += 1
        if num_fit > 0:
            total = 0.0
            for j in range(num_fit):
                total += np.exp((chances[j] - best_gain) / _RANDOMNESS)
                chances[j] = total
            target = _uniform(choices, node) * total
            chosen = 0
            while chosen + 1 < num_fit and chances[chosen] <= target:
                chosen += 1
            part = touched[chosen]
            refined[node] = part
            is_alone[part] = False
            is_alone[node] = False
            outward[part] += outward[node] - 2.0 * links[part]
            totals[part] += strength[node]
        for j in range(num_touched):
            links[touched[j]] = 0.0
