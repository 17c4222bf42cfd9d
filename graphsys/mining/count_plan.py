"""How a pattern will be counted: the way, and what each step of a match must fulfil."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.mining.closed_forms import CLOSED_FORMS
from graphsys.mining.links import link_tests, link_words, wanted_labels
from graphsys.mining.pattern import Pattern

Way = Literal["closed form", "census", "matches"]


@dataclass(frozen=True, slots=True)
class CountPlan:
    """How a pattern will be counted.

    Attributes:
        way: ``closed form``, ``census`` (of all motifs of the size) or ``matches``.
        shape: The pattern's name among the motifs, or None.
        order: The pattern's nodes in the order in which they are matched.
        steps: For every step the bits of those before with which it needs an edge, must
            have none, and than which its number must be larger, int64 ``[K, 3]``.
        tests: What edges of steps must be besides, see ``kernels.cpu.mining.matches``,
            int64 ``[L, 4]``.
        wanted: Place in :attr:`Pattern.node_labels` of the label that the node of each step
            must have, -1 for any, int64 ``[K]``; empty without labels.
        said: Of each step, its label and its links in words.
    """

    way: Way
    shape: str | None
    order: tuple[int, ...]
    steps: npt.NDArray[np.int64]
    tests: npt.NDArray[np.int64]
    wanted: npt.NDArray[np.int64]
    said: tuple[str, ...]

    def lines(self) -> list[str]:
        """Say it in words, a line each."""
        if self.way == "closed form":
            return [f"{self.shape}: from few sums over the graph, without its matches"]
        if self.way == "census":
            return [f"{self.shape}: by the census of all motifs of {len(self.order)} nodes"]
        said = ["match by match, the last node counted:"]
        for step, (needed, refused, above) in enumerate(self.steps.tolist()):
            words = [f"{step + 1}. node {self.order[step]}"]
            for text, bits in (
                ("neighbor of", needed),
                ("not of", refused),
                ("numbered above", above),
            ):
                nodes = [str(self.order[k]) for k in range(step) if bits >> k & 1]
                words += [f"{text} {', '.join(nodes)}"] if nodes else []
            said.append("; ".join([*words, *filter(None, [self.said[step]])]))
        return said


def check_induced(induced: str) -> None:
    """Refuse another word than the two."""
    if induced not in ("vertex", "edge"):
        raise ConfigError(f"induced={induced!r} is neither 'vertex' nor 'edge'")


def plan_count(
    pattern: Pattern | str | Any, *, induced: str = "edge", way: Way | None = None
) -> CountPlan:
    """Decide how to count a pattern; see :func:`count`."""
    check_induced(induced)
    pattern = Pattern.of(pattern)
    shape, order = pattern.shape(), _order_of(pattern)
    ways: list[Way] = ["matches"]
    if shape is not None:
        ways = ["census", *ways]
    if shape in CLOSED_FORMS and induced == "edge":
        ways = ["closed form", *ways]
    if way is not None and way not in ways:
        raise ConfigError(f"way={way!r}: this pattern is counted by {' or '.join(ways)}")
    is_induced = induced == "vertex"
    return CountPlan(
        way=way or ways[0],
        shape=shape,
        order=order,
        steps=_steps(pattern, order, is_induced=is_induced),
        tests=link_tests(pattern, order, is_induced=is_induced),
        wanted=wanted_labels(pattern, order),
        said=tuple(link_words(pattern, order, step) for step in range(len(order))),
    )


def _order_of(pattern: Pattern) -> tuple[int, ...]:
    """Return an order in which each node has as many edges as can be to those before."""
    near = [pattern.neighbors(node) for node in range(pattern.num_nodes)]
    order = [max(range(pattern.num_nodes), key=lambda node: len(near[node]))]
    while len(order) < pattern.num_nodes:
        left = sorted(set(range(pattern.num_nodes)) - set(order))
        order.append(max(left, key=lambda it: (len(near[it] & set(order)), len(near[it]))))
    return tuple(order)


def _steps(
    pattern: Pattern, order: tuple[int, ...], *, is_induced: bool
) -> npt.NDArray[np.int64]:
    """Return the steps, with restrictions that leave one match of those that are alike.

    Step by step: of all nodes that an automorphism which keeps the nodes before moves a
    node to, the node itself gets the smallest number (Grochow, Kellis, "Network motif
    discovery using subgraph enumeration and symmetry-breaking", RECOMB 2007).
    """
    places = {node: step for step, node in enumerate(order)}
    edges = {frozenset((places[a], places[b])) for a, b in pattern.edges}
    size = len(order)
    apart = {frozenset((places[a], places[b])) for a, b in pattern.apart}
    same = [tuple(places[it[node]] for node in order) for it in pattern.automorphisms()]
    steps = np.zeros((size, 3), dtype=np.int64)
    for step in range(size):
        for other in {it[step] for it in same} - {step}:
            steps[other, 2] |= 1 << step
        same = [it for it in same if it[step] == step]
        needed = sum(1 << k for k in range(step) if frozenset((k, step)) in edges)
        steps[step, 0] = needed
        steps[step, 1] = sum(1 << k for k in range(step) if frozenset((k, step)) in apart)
        if is_induced:
            steps[step, 1] = ((1 << step) - 1) & ~needed
    return steps
