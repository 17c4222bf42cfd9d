"""The last steps of a pattern, counted together by inclusion and exclusion.

Steps that have no edges to or fro can be given any nodes of their sets, all different. How
many ways there are is a sum over the partitions of the steps: those of a block are given
the same node, which the sets of the block must share; a block of b steps counts
(-1)^(b-1) (b-1)! times.

Shi et al., "GraphPi: high performance graph pattern matching through effective redundancy
elimination", SC 2020 (the last independent steps of a pattern).
"""

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from math import factorial, prod

from graphsys.mining.compiler.schedule import Schedule
from graphsys.mining.compiler.sets import Key, Known, Set, Text

Mask = int
MOST = 5
"""Most steps that are counted together: 52 partitions."""


@dataclass(frozen=True, slots=True)
class SharedTail:
    """A set that some of the last steps have.

    Attributes:
        found: The set.
        num_steps: How many steps have it.
        is_ordered: Whether their nodes are numbered upwards, or downwards.
        others: Steps before whose nodes it may hold.
    """

    found: Set
    num_steps: int
    is_ordered: bool
    others: frozenset[int]


def longest_tail(schedule: Schedule, longest: int) -> int:
    """Return how many of the last steps can be counted together within 63 bits.

    Args:
        schedule: The schedule.
        longest: Length of the longest row.
    """
    num = MOST
    while num > 2 and max(longest, 1) ** num * factorial(num) >= 1 << 62:
        num -= 1
    return schedule.longest_tail(num)


def distinct_sets(schedule: Schedule, num: int) -> int:
    """Return how many different sets the last steps have."""
    first = len(schedule.order) - num
    steps = range(first, len(schedule.order))
    return len({schedule.known_of(step, first - 1) for step in steps})


def count_tail(text: Text, known: Known, schedule: Schedule, num: int) -> str:
    """Write how many ways there are for the last steps; return it as an expression.

    Args:
        text: Receives the lines, in the loop of the last step before them.
        known: The sets.
        schedule: The schedule.
        num: How many steps.
    """
    depth = len(schedule.order) - num - 1
    groups = _groups(known, schedule, num)
    sizes = _sizes(text, groups, depth)
    numbers = [k for k, group in enumerate(groups) for _ in range(group.num_steps)]
    total = _sum(_terms(numbers), sizes)
    divisor = prod(factorial(it.num_steps) for it in groups if it.is_ordered)
    return f"({total}) // {divisor}" if divisor > 1 else total


def _groups(known: Known, schedule: Schedule, num: int) -> list[SharedTail]:
    """Return the different sets of the last steps."""
    size = len(schedule.order)
    first = size - num
    alike: dict[Key, list[int]] = {}
    for step in range(first, size):
        alike.setdefault(Key.of(schedule, step, first - 1), []).append(step)
    found = []
    for key, steps in alike.items():
        bound = schedule.above[steps[-1]] | schedule.below[steps[-1]]
        others = frozenset(k for k in schedule.can_be_same(steps[0]) if k < first)
        is_ordered = len(steps) > 1 and bool(bound >> steps[0] & 1)
        found.append(SharedTail(known[key], len(steps), is_ordered, others))
    return found


def _sizes(text: Text, groups: list[SharedTail], depth: int) -> dict[Mask, str]:
    """Write how many nodes some sets share, for all choices of sets."""
    sizes: dict[Mask, str] = {}
    shared: dict[Mask, Set] = {}
    for num in range(1, len(groups) + 1):
        for some in combinations(range(len(groups)), num):
            mask = sum(1 << k for k in some)
            size = sizes[mask] = text.name("n")
            if num == 1:
                shared[mask] = groups[some[0]].found
                text.add(depth, f"{size} = {shared[mask].size}")
            else:
                pieces = (shared[mask & ~(1 << some[-1])], groups[some[-1]].found)
                both = ", ".join(it.piece for it in pieces)
                text.tell(depth, pieces[0].size)
                if some[-1] == len(groups) - 1:  # no other choice goes on from it
                    text.add(depth, f"{size} = intersect_size({both})")
                else:
                    array, end = text.scratch(), text.name("e")
                    text.add(depth, f"{end} = intersect({both}, {array})")
                    text.add(depth, f"{size} = {end}")
                    shared[mask] = Set(array, "0", end)
            for other in sorted(frozenset.intersection(*(groups[k].others for k in some))):
                tests = [f"has({groups[k].found.piece}, v{other})" for k in some]
                text.add(depth, f"if {' and '.join(tests)}:")
                text.add(depth + 1, f"{size} -= 1")
    return sizes


def _terms(numbers: list[int]) -> dict[tuple[Mask, ...], int]:
    """Return how often each product of sizes counts, for steps of numbered sets."""
    terms: Counter[tuple[Mask, ...]] = Counter()
    for blocks in _partitions(numbers):
        masks = [sum({1 << number for number in block}) for block in blocks]
        sign = prod((-1) ** (len(it) - 1) * factorial(len(it) - 1) for it in blocks)
        terms[tuple(sorted(masks))] += sign
    return dict(terms)


def _partitions(items: list[int]) -> list[list[list[int]]]:
    """Return all ways to cut items into blocks."""
    if not items:
        return [[]]
    first, found = items[0], []
    for blocks in _partitions(items[1:]):
        found.append([[first], *blocks])
        for k in range(len(blocks)):
            found.append([*blocks[:k], [first, *blocks[k]], *blocks[k + 1 :]])
    return found


def _sum(terms: dict[tuple[Mask, ...], int], sizes: dict[Mask, str]) -> str:
    text = ""
    for masks, times in terms.items():
        factors = [sizes[mask] for mask in masks]
        if abs(times) > 1:
            factors.insert(0, str(abs(times)))
        sign = ("-" if times < 0 else "") if not text else (" - " if times < 0 else " + ")
        text += sign + " * ".join(factors)
    return text
