"""Orders of units, and how often each makes a buffer of partitions swap.

A unit needs one or two partitions; an order is a permutation of the units. A buffer holds
``capacity`` partitions, a swap replaces one, and what is replaced is what is needed last
again (Belady, 1966: known in advance, that is optimal). Filling the buffer is no swap.

- ``inside_out``, ``outside_in``: growing or shrinking squares of the grid; ``random``;
  ``affinity``: a random unit that shares a partition with the one before (all Lerer et al.,
  "PyTorch-BigGraph", MLSys 2019).
- ``hilbert``: along a Hilbert curve through the grid.
- ``beta``: all but one place of the buffer are fixed while every other partition passes
  through the last place; then the fixed ones are done and replaced (Mohoney et al.,
  "Marius", OSDI 2021). Near the lower bound.
- ``comet``: two levels. Partitions are grouped at random into logical ones, half a buffer
  each, which follow ``beta``; a unit is trained at a random one of the times when its
  partitions are in memory (Waleffe et al., "MariusGNN", EuroSys 2023): about as few swaps,
  with less correlation between the units that follow each other.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np

Part = TypeVar("Part", bound=Hashable)
Needs = Sequence[frozenset[Part]]
Order = Callable[[Needs[Any], int, np.random.Generator], list[int]]


def order_units(
    name: str, needs: Needs[Part], capacity: int, rng: np.random.Generator
) -> list[int]:
    """Return the positions of units in the order in which they are trained.

    Args:
        name: One of :data:`ORDERS`.
        needs: The partitions of every unit, one or two each, units inside out.
        capacity: Partitions that fit in the buffer; ``beta`` and ``comet`` use it.
        rng: For the orders that draw.
    """
    return ORDERS[name](needs, capacity, rng)


def lower_bound(needs: Needs[Part], capacity: int) -> int:
    """Return a number of swaps that no order can stay below.

    A full buffer of c partitions has c (c - 1) / 2 pairs, and a swap adds at most c - 1
    (Mohoney et al., 2021, equation 1); a partition has to be loaded at least once.
    """
    parts = frozenset[Part]().union(*needs)
    pairs = len({need for need in needs if len(need) == 2})
    missing = pairs - capacity * (capacity - 1) // 2
    by_pairs = -(-missing // (capacity - 1)) if capacity > 1 else 0
    return max(by_pairs, len(parts) - capacity, 0)


def beta_swaps(num_partitions: int, capacity: int) -> int:
    """Return the swaps of BETA over all pairs of partitions (equation 3 of its paper).

    Examples:
        >>> beta_swaps(6, 3), beta_swaps(16, 4)
        (7, 42)
    """
    rest = num_partitions - capacity
    if rest <= 0:
        return 0
    rounds = rest // (capacity - 1)
    return rest + (rounds + 1) * rest - (capacity - 1) * rounds * (rounds + 1) // 2


def beta_states(num_partitions: int, capacity: int) -> list[list[int]]:
    """Return the contents of the buffer, one after each swap, as BETA has them."""
    buffer = list(range(min(capacity, num_partitions)))
    outside = list(range(len(buffer), num_partitions))
    states = [buffer.copy()]
    while outside:
        for k in range(len(outside)):
            buffer[-1], outside[k] = outside[k], buffer[-1]
            states.append(buffer.copy())
        for k in range(min(capacity - 1, len(outside))):
            buffer[k] = outside.pop(0)
            states.append(buffer.copy())
    return states


def _inside_out(needs: Needs[Part], capacity: int, rng: np.random.Generator) -> list[int]:
    return list(range(len(needs)))


def _outside_in(needs: Needs[Part], capacity: int, rng: np.random.Generator) -> list[int]:
    return list(reversed(range(len(needs))))


def _random(needs: Needs[Part], capacity: int, rng: np.random.Generator) -> list[int]:
    return [int(k) for k in rng.permutation(len(needs))]


def _affinity(needs: Needs[Part], capacity: int, rng: np.random.Generator) -> list[int]:
    left = dict.fromkeys(int(k) for k in rng.permutation(len(needs)))
    order: list[int] = []
    while left:
        near = [k for k in left if order and needs[k] & needs[order[-1]]]
        chosen = near[int(rng.integers(len(near)))] if near else next(iter(left))
        del left[chosen]
        order.append(chosen)
    return order


def _hilbert(needs: Needs[Part], capacity: int, rng: np.random.Generator) -> list[int]:
    numbers = _numbers(needs)
    side = 1 << max(1, (len(numbers) - 1).bit_length())

    def place(k: int) -> int:
        ends = sorted(numbers[part] for part in needs[k])
        return hilbert_distance(side, ends[0], ends[-1]) if ends else -1

    return sorted(range(len(needs)), key=place)


def hilbert_distance(side: int, x: int, y: int) -> int:
    """Return where a Hilbert curve through a square, a power of two wide, passes (x, y).

    Examples:
        >>> [hilbert_distance(2, *cell) for cell in ((0, 0), (0, 1), (1, 1), (1, 0))]
        [0, 1, 2, 3]
    """
    distance, half = 0, side // 2
    while half:
        right, upper = int(x & half > 0), int(y & half > 0)
        distance += half * half * ((3 * right) ^ upper)
        if not upper:  # turn the quadrant as the curve does
            if right:
                x, y = side - 1 - x, side - 1 - y
            x, y = y, x
        half //= 2
    return distance


def _beta(needs: Needs[Part], capacity: int, rng: np.random.Generator) -> list[int]:
    numbers = _numbers(needs)
    waiting: dict[frozenset[int], list[int]] = {}
    for k, need in enumerate(needs):
        waiting.setdefault(frozenset(numbers[part] for part in need), []).append(k)
    order = waiting.pop(frozenset(), [])
    held: set[int] = set()
    for state in beta_states(len(numbers), max(capacity, 2)):
        for new in [part for part in state if part not in held]:
            for other in state:
                order += waiting.pop(frozenset((new, other)), [])
        held = set(state)
    return order


def _comet(needs: Needs[Part], capacity: int, rng: np.random.Generator) -> list[int]:
    parts = list(_numbers(needs))
    size = max(1, capacity // 2)
    mixed = rng.permutation(len(parts))
    logical = {parts[p]: at // size for at, p in enumerate(mixed)}
    states = beta_states(math.ceil(len(parts) / size), 2)
    times: dict[frozenset[int], list[int]] = {}
    for time, state in enumerate(states):
        for a in state:
            for b in state:
                found = times.setdefault(frozenset((a, b)), [])
                if time not in found:
                    found.append(time)
    draws = rng.permutation(len(needs))
    keyed = []
    for k, need in enumerate(needs):
        eligible = times[frozenset(logical[part] for part in need)] if need else [0]
        keyed.append((eligible[int(rng.integers(len(eligible)))], int(draws[k]), k))
    return [k for _, _, k in sorted(keyed)]


def _numbers(needs: Needs[Part]) -> dict[Part, int]:
    """Number all partitions, in order: those of a type side by side."""
    parts = sorted(frozenset[Part]().union(*needs))  # type: ignore[type-var]  # tuples
    return {part: number for number, part in enumerate(parts)}


ORDERS: Final[Mapping[str, Order]] = {
    "inside_out": _inside_out,
    "outside_in": _outside_in,
    "affinity": _affinity,
    "random": _random,
    "hilbert": _hilbert,
    "beta": _beta,
    "comet": _comet,
}
