"""Orders in which a pattern's nodes can be matched, and what each node must fulfil."""

from dataclasses import dataclass
from itertools import combinations

from graphsys.mining.links import link_tests, link_words, wanted_labels
from graphsys.mining.pattern import Pattern

Bits = tuple[int, ...]
Test = tuple[int, int, int, int]
_MOST_FOR_ALL = 5
"""Nodes of a pattern up to which all orders are looked at."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """An order of matching, and what each step must fulfil, given those before it.

    Steps before a step are the bits of a word.

    Attributes:
        order: The pattern's nodes in the order in which they are matched.
        needed: Of each step, those with which it needs an edge.
        refused: Those with which it must have no edge.
        above: Those than which its number must be larger.
        below: Those than which its number must be smaller.
        labels: Place of each step's label in :attr:`Pattern.node_labels`, -1 for any; or
            empty.
        tests: What edges of steps must be besides, see ``kernels.cpu.mining.matches``.
        words: Of each step, its label and its links in words; or empty.
    """

    order: tuple[int, ...]
    needed: Bits
    refused: Bits
    above: Bits
    below: Bits
    labels: tuple[int, ...] = ()
    tests: tuple[Test, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[tuple[object, ...], ...]:
        """What two schedules share that are one program."""
        return (*self._bits, self.labels, self.tests)

    @property
    def _bits(self) -> tuple[Bits, ...]:
        return self.needed, self.refused, self.above, self.below

    def condition(self, step: int) -> tuple[object, ...]:
        """Return all that a step must fulfil; loops of one condition are one loop."""
        bits = tuple(it[step] for it in self._bits)
        return (*bits, self.label(step), self.tests_of(step))

    def label(self, step: int) -> int:
        """Return the label that the node of a step must have, -1 for any."""
        return self.labels[step] if self.labels else -1

    def tests_of(self, step: int) -> tuple[Test, ...]:
        """Return what the edges of a step to those before must be besides."""
        return tuple(test for test in self.tests if test[0] == step)

    def is_filtered(self, step: int) -> bool:
        """Whether not all nodes of a step's set will do."""
        return self.label(step) >= 0 or bool(self.tests_of(step))

    def known_of(self, step: int, until: int) -> Bits:
        """Return what of a step's set is known when the steps to ``until`` are bound."""
        # Bits up to and with `until`.
        mask = (2 << until) - 1
        return tuple(it[step] & mask for it in self._bits)

    def can_be_same(self, step: int) -> list[int]:
        """Return the steps before that could be given the same node, but for a look."""
        other = self.needed[step] | self.above[step] | self.below[step]
        return [k for k in range(step) if not other >> k & 1]

    def longest_tail(self, most: int) -> int:
        """Return how many of the last steps can be counted together, without a loop.

        They must have no edges to or fro, and be exchanged by automorphisms, if at all,
        only among those of one set (GraphPi, SC 2020).

        Args:
            most: As many at most.
        """
        num = min(most, len(self.order) - 1)
        while num > 1 and not self._is_tail(num):
            num -= 1
        return max(num, 1)

    def _is_tail(self, num: int) -> bool:
        first = len(self.order) - num
        tail = range(first, len(self.order))
        if any(self.is_filtered(step) for step in tail):
            return False
        if any((self.needed[k] | self.refused[k]) >> first for k in tail):
            return False
        sets = {step: self.known_of(step, first - 1) for step in tail}
        bound = {
            (a, b): (self.above[b] | self.below[b]) >> a & 1
            for a, b in combinations(tail, 2)
        }
        # A restriction between two sets cannot be counted as a share of all pairs; within
        # one set it can, if it holds for all pairs or for none.
        if any(bits for (a, b), bits in bound.items() if sets[a] != sets[b]):
            return False
        alike = {it: [step for step in tail if sets[step] == it] for it in sets.values()}
        return all(
            len({bound[pair] for pair in combinations(steps, 2)}) <= 1
            for steps in alike.values()
        )

    def lines(self) -> list[str]:
        """Say it in words, a line each step."""
        said = []
        for step, node in enumerate(self.order):
            words = [f"{step + 1}. node {node}"]
            for text, bits in (
                ("neighbor of", self.needed),
                ("not of", self.refused),
                ("numbered above", self.above),
                ("numbered below", self.below),
            ):
                nodes = [str(self.order[k]) for k in range(step) if bits[step] >> k & 1]
                words += [f"{text} {', '.join(nodes)}"] if nodes else []
            words += [self.words[step]] if self.words and self.words[step] else []
            said.append("; ".join(words))
        return said


def schedules(pattern: Pattern, *, is_induced: bool) -> list[Schedule]:
    """Return the schedules of a pattern that are worth a look, each program once.

    Every node but the first has an edge with one before it. Of larger patterns only such
    orders are taken in which each node has as many edges as can be to those before. Nodes
    that automorphisms exchange are numbered upwards, or downwards: numbers go by
    descending degree, so the one leads to smaller degrees and the other to larger.

    Args:
        pattern: The pattern.
        is_induced: Whether a match has no other edges than the pattern's.
    """
    near = [pattern.neighbors(node) for node in range(pattern.num_nodes)]
    same = pattern.automorphisms()
    found: dict[tuple[object, ...], Schedule] = {}
    for order in _orders(near, same):
        for is_downward in (False, True):
            made = _schedule(pattern, same, order, is_induced, is_downward)
            # Orders of one shape are one program.
            found.setdefault(made.shape, made)
    return list(found.values())


def _orders(near: list[set[int]], same: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return orders; of those that an automorphism makes of each other, one."""
    size = len(near)
    found: list[tuple[tuple[int, ...], list[tuple[int, ...]]]] = [((), same)]
    for step in range(size):
        longer = []
        for begin, alike in found:
            ties = {
                node: len(near[node] & set(begin))
                for node in range(size)
                if node not in begin and (not step or near[node] & set(begin))
            }
            most = max(ties.values())
            longer += [
                ((*begin, node), [it for it in alike if it[node] == node])
                for node, num in ties.items()
                if (size <= _MOST_FOR_ALL or num == most)
                and node == min(it[node] for it in alike)
            ]
        found = longer
    return [order for order, _ in found]


def _schedule(
    pattern: Pattern,
    same: list[tuple[int, ...]],
    order: tuple[int, ...],
    is_induced: bool,
    is_downward: bool,
) -> Schedule:
    """Return an order with restrictions that leave one match of those that are alike.

    Step by step: of all nodes that an automorphism which keeps the nodes before moves a
    node to, the node itself gets the smallest number (Grochow, Kellis, "Network motif
    discovery using subgraph enumeration and symmetry-breaking", RECOMB 2007), or the
    largest.
    """
    place = {node: step for step, node in enumerate(order)}
    bound = [0] * len(order)
    for step, node in enumerate(order):
        # What this node's place fixes is fixed now: only automorphisms that keep it are
        # left.
        for other in {it[node] for it in same} - {node}:
            bound[place[other]] |= 1 << step
        same = [it for it in same if it[node] == node]
    needed, apart = _pairs(pattern.edges, place), _pairs(pattern.apart, place)
    if is_induced:
        apart = [((1 << step) - 1) & ~bits for step, bits in enumerate(needed)]
    none = (0,) * len(order)
    labels = wanted_labels(pattern, order).tolist()
    tests = link_tests(pattern, order, is_induced=is_induced).tolist()
    words = [link_words(pattern, order, step) for step in range(len(order))]
    return Schedule(
        order=order,
        needed=tuple(needed),
        refused=tuple(apart),
        above=none if is_downward else tuple(bound),
        below=tuple(bound) if is_downward else none,
        labels=tuple(labels),
        tests=tuple((a, b, wanted, refused) for a, b, wanted, refused in tests),
        words=tuple(words),
    )


def _pairs(pairs: frozenset[tuple[int, int]], place: dict[int, int]) -> list[int]:
    """Return, of each step, the bits of those before that it is a pair with."""
    bits = [0] * len(place)
    for a, b in pairs:
        bits[max(place[a], place[b])] |= 1 << min(place[a], place[b])
    return bits
