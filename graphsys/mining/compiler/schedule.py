"""Orders in which a pattern's nodes can be matched, and what each node must fulfil."""

from dataclasses import dataclass

from graphsys.mining.pattern import Pattern

Bits = tuple[int, ...]
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
    """

    order: tuple[int, ...]
    needed: Bits
    refused: Bits
    above: Bits
    below: Bits

    @property
    def shape(self) -> tuple[Bits, ...]:
        """What two schedules share that are one program."""
        return self.needed, self.refused, self.above, self.below

    @property
    def is_paired(self) -> bool:
        """Whether the nodes of the last two steps are counted as pairs, without a loop.

        They must have no edge to or fro, and be exchanged by automorphisms, if at all,
        only with each other (GraphPi, SC 2020, has it for more of the last steps).
        """
        last, bit = len(self.order) - 1, len(self.order) - 2
        if last < 2 or (self.needed[last] | self.refused[last]) >> bit & 1:
            return False
        bound = (self.above[last] | self.below[last]) >> bit & 1
        return not bound or self.is_alike

    @property
    def is_alike(self) -> bool:
        """Whether the last two steps may be given the same nodes."""
        last = len(self.order) - 1
        mask = (1 << (last - 1)) - 1
        return all(bits[last] & mask == bits[last - 1] for bits in self.shape)

    def lines(self) -> list[str]:
        """Say it in words, a line each step."""
        said = []
        for step, node in enumerate(self.order):
            words = [f"{step + 1}. node {node}"]
            for text, bits in (
                ("neighbor of", self.needed), ("not of", self.refused),
                ("numbered above", self.above), ("numbered below", self.below),
            ):  # fmt: skip
                nodes = [str(self.order[k]) for k in range(step) if bits[step] >> k & 1]
                words += [f"{text} {', '.join(nodes)}"] if nodes else []
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
    found: dict[tuple[Bits, ...], Schedule] = {}
    for order in _orders(near, same):
        for is_downward in (False, True):
            made = _schedule(near, same, order, is_induced, is_downward)
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
    near: list[set[int]],
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
        for other in {it[node] for it in same} - {node}:
            bound[place[other]] |= 1 << step
        same = [it for it in same if it[node] == node]
    needed = [
        sum(1 << k for k in range(step) if order[k] in near[node])
        for step, node in enumerate(order)
    ]
    refused = [((1 << step) - 1) & ~bits for step, bits in enumerate(needed)]
    none = (0,) * len(order)
    return Schedule(
        order=order,
        needed=tuple(needed),
        refused=tuple(refused) if is_induced else none,
        above=none if is_downward else tuple(bound),
        below=tuple(bound) if is_downward else none,
    )
