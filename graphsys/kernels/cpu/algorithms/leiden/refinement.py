"""Leiden's second step: communities are split into well-connected parts.

Every node begins as a part of its own. One that is still alone joins a part of its
community at random, better ones far more likely, if both are well connected to the rest of
the community. A part is named by the rank of the node that it began with, which never
leaves once another has joined.

As in ``moves.py`` nodes decide by sub-rounds, against parts that stand still. No node joins
a single one of its own sub-round: that may be about to leave. So a part stays connected:
who joins has an edge to one who stays. The random choice is the largest of gain /
temperature + Gumbel noise by a hash, in which the order of candidates plays no part; that
draws by exp(gain / temperature) (Gumbel, "Statistical theory of extreme values", 1954).

Method: Traag, Waltman, van Eck, "From Louvain to Leiden: guaranteeing well-connected
communities", Scientific Reports 9, 2019.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.algorithms.leiden.moves import NUM_SUBROUNDS, rank_of, subround_of
from graphsys.kernels.cpu.algorithms.leiden.rows import (
    BLOCK,
    Sides,
    num_sides,
    side_of,
    sum_inside,
    weight_at,
)
from graphsys.kernels.cpu.atomics import atomic_add
from graphsys.kernels.cpu.barrier import meet
from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.jit import lean_inline_jit, lean_jit

_RANDOMNESS = 0.01
"""Temperature, in units of the graph's weights."""
_HOPELESS = 40.0
"""So many temperatures below the best nothing is ever drawn."""
_BLOCK = 16


class Parts(NamedTuple):
    """What is known of the nodes, and of parts by their names.

    Attributes:
        community: Community of every node, below n ``[n]``.
        whole: Sum of the strengths of every community, float64 ``[n]``.
        strength: Strength of every node, float64 ``[n]``.
        part: Part of every node ``[n]``.
        totals: Sum of the strengths of every part, float64 ``[n]``.
        outward: Weight from every part to the rest of its community, float64 ``[n]``;
            edges between two that join at once are left in.
        is_joined: Whether a second node has joined a part, uint8 ``[n]``.
        rank: Place of every node in the order of ids ``[n]``; empty where it is the number.
    """

    community: npt.NDArray[Any]
    whole: npt.NDArray[np.float64]
    strength: npt.NDArray[np.float64]
    part: npt.NDArray[Any]
    totals: npt.NDArray[np.float64]
    outward: npt.NDArray[np.float64]
    is_joined: npt.NDArray[np.uint8]
    rank: npt.NDArray[Any]


@lean_jit
def begin_parts(
    thread: int,
    rows: Sides,
    unit: float,
    parts: Parts,
    counter: npt.NDArray[np.int64],
) -> None:
    """Make every node a part of its own.

    Args:
        rows: The level's rows.
        unit: What turns weights into whole numbers.
        parts: The parts; all that is named by parts is written, and ``part``.
        counter: Zero, int64 ``[1]``.
    """
    for node in claimed_range(0, len(parts.part), BLOCK, counter):
        name = rank_of(parts.rank, node)
        parts.part[node] = name
        parts.totals[name] = parts.strength[node]
        parts.is_joined[name] = 0
        parts.outward[name] = sum_inside(node, rows, unit, parts.community)


@lean_inline_jit
def _add_parts(
    node: Any, rows: Any, unit: Any, parts: Any, links: Any, touched: Any
) -> Any:
    """Add up the weights from a node to each part of its community next to it."""
    num_touched = 0
    own = parts.community[node]
    for side in range(num_sides(rows)):
        begin, end, shift, indices, weight = side_of(rows, side, node)
        for k in range(begin, end):
            other = indices[k]
            if other == node or parts.community[other] != own:
                continue
            share = weight_at(weight, k + shift, unit)
            if share > 0.0:
                target = parts.part[other]
                if links[target] == 0.0:
                    touched[num_touched] = target
                    num_touched += 1
                links[target] += share
    return num_touched


@lean_inline_jit
def _noise(seed: Any, name: Any) -> Any:
    word = mix64(seed ^ np.uint64(name)) >> np.uint64(11)
    return -np.log(-np.log((np.float64(word) + 0.5) * 2.0**-53))


@lean_inline_jit
def _draw(
    name: Any,
    subround: Any,
    pull: Any,
    scale: Any,
    whole: Any,
    parts: Any,
    seed: Any,
    choices: Any,
    temperature: Any,
    links: Any,
    touched: Any,
    num_touched: Any,
) -> Any:
    """Return the part that a node joins, its own name where it joins none."""
    num_fit, best_gain = 0, 0.0
    for k in range(num_touched):
        part = np.int64(touched[k])
        total = parts.totals[part]
        gain = links[part] - pull * total
        # Both sides must be well connected: here the part, in `join_parts` the node (the
        # paper's T).
        is_fit = gain >= 0.0 and parts.outward[part] >= scale * total * (whole - total)
        if is_fit and (parts.is_joined[part] or subround_of(seed, part) != subround):
            touched[num_fit], touched[k] = touched[k], touched[num_fit]
            best_gain = max(best_gain, gain)
            num_fit += 1
    chosen, best = np.int64(name), -np.inf
    for k in range(num_fit):
        part = np.int64(touched[k])
        gain = links[part] - pull * parts.totals[part]
        value = (gain - best_gain) / temperature
        # Two logarithms a candidate are most of the cost: spared where nothing could
        # change.
        if num_fit > 1 and value > -_HOPELESS:
            value += _noise(choices, part)
        if value > best or (value == best and part < chosen):
            chosen, best = part, value
    return chosen


@lean_jit
def join_parts(
    thread: int,
    num_threads: int,
    rows: Sides,
    unit: float,
    parts: Parts,
    scale: float,
    seed: np.uint64,
    order: npt.NDArray[Any],
    bounds: npt.NDArray[np.int64],
    target: npt.NDArray[Any],
    change: npt.NDArray[np.float64],
    links: npt.NDArray[np.float64],
    touched: npt.NDArray[Any],
    counters: npt.NDArray[np.int64],
    meeting: npt.NDArray[np.int64],
) -> None:
    """Let nodes that are alone join parts, those of one sub-round at the same time.

    Args:
        rows: The level's rows.
        unit: What turns weights into whole numbers.
        parts: The parts; changed.
        scale: Resolution divided by the sum of all strengths.
        seed: That of the sub-rounds, and of the choices.
        order: The nodes, sub-round after sub-round.
        bounds: Where each sub-round begins in ``order``, int64 ``[NUM_SUBROUNDS + 1]``.
        target: Scratch of the length of ``order``.
        change: Scratch of the length of ``order``.
        links: Zeros, float64 ``[threads, n]``; zeros again afterwards.
        touched: Scratch ``[threads, n]``.
        counters: Zeros, int64 ``[3 * NUM_SUBROUNDS, COUNTER_SIZE]``.
        meeting: Zeros: see ``barrier.py``.
    """
    own_links, own_touched = links[thread], touched[thread]
    temperature = _RANDOMNESS * unit
    for subround in range(NUM_SUBROUNDS):
        first, last = bounds[subround], bounds[subround + 1]
        if first == last:
            continue
        for k in claimed_range(first, last, _BLOCK, counters[3 * subround]):
            node = order[k]
            name = rank_of(parts.rank, node)
            # Written for all, as the second pass reads it of nodes that may not move too.
            target[k] = name
            # Who has joined, or was joined, stays: others count on its edges.
            if np.int64(parts.part[node]) != name or parts.is_joined[name]:
                continue
            whole = parts.whole[parts.community[node]]
            own = parts.strength[node]
            outward = parts.outward[name]
            if outward <= 0.0 or outward < scale * own * (whole - own):
                continue
            num_touched = _add_parts(node, rows, unit, parts, own_links, own_touched)
            chosen = _draw(
                name,
                subround,
                scale * own,
                scale,
                whole,
                parts,
                seed,
                mix64(seed + np.uint64(name)),
                temperature,
                own_links,
                own_touched,
                num_touched,
            )
            target[k] = chosen
            change[k] = outward - 2.0 * own_links[chosen]
            for j in range(num_touched):
                own_links[own_touched[j]] = 0.0
        # Nobody may change parts while others still decide by them.
        meet(meeting, num_threads)
        for k in claimed_range(first, last, _BLOCK, counters[3 * subround + 1]):
            node, chosen = order[k], np.int64(target[k])
            if chosen != rank_of(parts.rank, node):
                parts.part[node] = chosen
                parts.is_joined[chosen] = 1
                # Whole numbers in float64: the sums are exact, whichever thread adds first.
                atomic_add(parts.totals, chosen, parts.strength[node])
                atomic_add(parts.outward, chosen, change[k])
        meet(meeting, num_threads)
