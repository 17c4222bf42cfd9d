"""How often a pattern is in a graph: by a closed form, by a census, or match by match."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.progress import SILENT, Progress
from graphsys.datasets.temporary import GraphLike
from graphsys.generated.modules import load_module
from graphsys.kernels.cpu.mining.matches import count_matches
from graphsys.mining.census.motifs import motif_counts
from graphsys.mining.census.sums import degrees_of, kernels_of
from graphsys.mining.closed_forms import CLOSED_FORMS, count_closed
from graphsys.mining.compiler.choose import choose_schedule
from graphsys.mining.compiler.emit import kernel_text
from graphsys.mining.compiler.schedule import Schedule
from graphsys.mining.labeled_graph import LabeledGraph
from graphsys.mining.links import link_tests, link_words, wanted_labels
from graphsys.mining.pattern import Pattern
from graphsys.mining.simple_graph import SimpleGraph

Way = Literal["closed form", "census", "matches"]
WORTH_COMPILING = 5e6
"""Cost of a schedule from which a kernel of its own, made in half a second, pays."""


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
                ("neighbor of", needed), ("not of", refused), ("numbered above", above)
            ):  # fmt: skip
                nodes = [str(self.order[k]) for k in range(step) if bits >> k & 1]
                words += [f"{text} {', '.join(nodes)}"] if nodes else []
            said.append("; ".join([*words, *filter(None, [self.said[step]])]))
        return said


def plan_count(
    pattern: Pattern | str | Any, *, induced: str = "edge", way: Way | None = None
) -> CountPlan:
    """Decide how to count a pattern; see :func:`count`."""
    if induced not in ("vertex", "edge"):
        raise ConfigError(f"induced={induced!r} is neither 'vertex' nor 'edge'")
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


def count(
    graph: SimpleGraph | GraphLike,
    pattern: Pattern | str | Any,
    *,
    induced: str = "edge",
    way: Way | None = None,
    labels: str | None = None,
    num_threads: int | None = None,
    progress: Progress = SILENT,
) -> int:
    """Count a pattern, each set of edges (or of nodes) once; exact at any size.

    Args:
        graph: A store, its path, or an object that holds a graph; counts as simple and,
            but for arrows of the pattern, undirected.
        pattern: What :meth:`graphsys.mining.pattern.Pattern.of` takes: 2 to 8 nodes.
        induced: ``edge`` counts the sets of edges that are the pattern; ``vertex`` the
            sets of nodes whose edges are it: no edge besides, and none back along an
            arrow.
        way: ``closed form`` (stars, cliques, 4-cycle, diamond, house ...), ``census`` (3 to
            5 nodes) or ``matches`` (any): loops that are compiled for the pattern, where
            that pays; the first that the pattern has by default.
        labels: Where labels of nodes are: ``type``, or the name of a column; by default
            the types where there are several, else the column ``label`` if there is one.
        num_threads: All cores by default.
        progress: Receives a stage for each kernel.

    Raises:
        ConfigError: the pattern is not one, or is not counted in this way; arrows in a
            graph without direction.
        UnknownNameError: there is no pattern of this name, or no label in the graph.

    Examples:
        >>> import numpy as np
        >>> count((np.array([0, 1, 2, 2]), np.array([1, 2, 0, 3])), "a-b b-c")
        5
    """
    plan, pattern = plan_count(pattern, induced=induced, way=way), Pattern.of(pattern)
    labeled = LabeledGraph.of(graph, pattern, labels)
    rows = labeled.rows
    if not pattern.is_plain:
        return _count_step_by_step(labeled, plan, num_threads, progress)
    if plan.way == "closed form":
        assert plan.shape is not None  # it has a closed form
        return count_closed(rows, plan.shape, num_threads, progress)
    if plan.way == "census":
        assert plan.shape is not None  # it is in a census
        size = len(plan.order)
        counts = motif_counts(
            rows, size, induced=induced, num_threads=num_threads, progress=progress
        )
        return counts[plan.shape]
    choice = choose_schedule(rows, pattern, is_induced=induced == "vertex")
    if choice.cost < WORTH_COMPILING:
        return _count_step_by_step(labeled, plan, num_threads, progress)
    return count_scheduled(rows, choice.schedule, num_threads, progress)


def explain_count(
    graph: SimpleGraph | GraphLike, pattern: Pattern | str | Any, *, induced: str = "edge"
) -> tuple[list[str], str]:
    """Say how a pattern would be counted in a graph.

    Returns:
        Lines of words: the way; where matches are found the order, what each step must
        fulfil, and what it is expected to cost. And the Python that would be compiled,
        empty where none is.

    Raises:
        ConfigError: as :func:`count`.
        UnknownNameError: as :func:`count`.
    """
    plan, pattern = plan_count(pattern, induced=induced), Pattern.of(pattern)
    if plan.way != "matches" or not pattern.is_plain:
        return plan.lines(), ""
    rows = SimpleGraph.of(graph)
    choice = choose_schedule(rows, pattern, is_induced=induced == "vertex")
    if choice.cost < WORTH_COMPILING:
        return [*plan.lines(), f"cost {choice.cost:.2g}: nothing is compiled for it"], ""
    return ["loops compiled for it, the last node counted:", *choice.lines()], kernel_text(
        choice.schedule
    )[0]


def _count_step_by_step(
    graph: LabeledGraph, plan: CountPlan, num_threads: int | None, progress: Progress
) -> int:
    """Count by the kernel of all patterns, which needs no compiling."""
    rows = graph.rows
    size, longest = len(plan.order), int(degrees_of(rows).max(initial=0))
    asked = (plan.steps, plan.tests, graph.kinds, plan.wanted, graph.labels)
    with kernels_of(rows, num_threads, progress) as kernels:
        candidates = np.empty((kernels.threads, size, longest), dtype=rows.indices.dtype)
        frames = np.zeros((kernels.threads, 3, size), dtype=np.int64)
        return kernels.sums(count_matches, 1, *asked, after=(candidates, frames))[0]


def count_scheduled(
    rows: SimpleGraph,
    schedule: Schedule,
    num_threads: int | None = None,
    progress: Progress = SILENT,
) -> int:
    """Count the matches of a schedule by a kernel that is compiled for it.

    Complexity:
        Memory: the longest row for each of its sets and each thread.
    """
    text, num_sets = kernel_text(schedule)
    kernel = load_module(text).count
    longest = int(degrees_of(rows).max(initial=0))
    with kernels_of(rows, num_threads, progress) as kernels:
        shape = (kernels.threads, max(num_sets, 1), longest + 1)
        return kernels.sums(kernel, 1, after=(np.empty(shape, rows.indices.dtype),))[0]


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
