"""How often a pattern is in a graph: by a closed form, by a census, or match by match."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from graphsys.core.progress import IN_NOTEBOOKS, Progress
from graphsys.datasets.temporary import GraphLike
from graphsys.kernels.cpu.mining.matches import count_matches
from graphsys.mining.census.motifs import motif_counts
from graphsys.mining.census.sums import degrees_of, kernels_of
from graphsys.mining.closed_forms import count_closed
from graphsys.mining.compiler.choose import choose_schedule, choose_together
from graphsys.mining.count_plan import CountPlan, Way, check_induced, plan_count
from graphsys.mining.devices import CountRun, kept_of, require_countable
from graphsys.mining.disconnected import count_parts, is_in_parts, required_patterns
from graphsys.mining.labeled_graph import LabeledGraph
from graphsys.mining.loops import count_by_loops
from graphsys.mining.pattern import Pattern
from graphsys.mining.simple_graph import SimpleGraph

WORTH_COMPILING = 5e6
"""Cost step by step from which a kernel of its own, made in half a second, pays."""


def count(
    graph: SimpleGraph | GraphLike,
    pattern: Pattern | str | Any,
    *,
    induced: str = "edge",
    way: Way | None = None,
    labels: str | None = None,
    num_threads: int | None = None,
    progress: Progress = IN_NOTEBOOKS,
    device: str = "cpu",
    memory: int | str | None = None,
    disconnected: bool = False,
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
        device: ``cpu``, or ``cuda`` for stars, cliques, the patterns of 3 and 4 nodes.
        memory: Budget of anonymous memory of the process (``"4GB"``): rows that do not fit
            are read from a file without a name. What there is by default.
        disconnected: Count patterns in several parts too, which are refused by default:
            edge-induced, or of up to 5 nodes; see ``disconnected.py``.

    Raises:
        ConfigError: the pattern is not one, or is not counted in this way or on this
            device; arrows in a graph without direction; there is no GPU.
        MissingDependencyError: numba-cuda is not installed.
        BudgetError: what is kept besides rows does not fit; the message names what does.
        UnknownNameError: there is no pattern of this name, or no label in the graph.

    Examples:
        >>> import numpy as np
        >>> count((np.array([0, 1, 2, 2]), np.array([1, 2, 0, 3])), "a-b b-c")
        5
    """
    wanted = {"": Pattern.of(pattern, disconnected=disconnected)}
    run = CountRun(num_threads=num_threads, progress=progress, device=device, memory=memory)
    return _counts(graph, wanted, induced, way, labels, run)[""]


def count_all(
    graph: SimpleGraph | GraphLike,
    patterns: Iterable[Pattern | str | Any],
    *,
    induced: str = "edge",
    labels: str | None = None,
    num_threads: int | None = None,
    progress: Progress = IN_NOTEBOOKS,
    device: str = "cpu",
    memory: int | str | None = None,
    disconnected: bool = False,
) -> dict[Any, int]:
    """Count several patterns together: one census, one kernel of shared loops.

    Args:
        graph: As for :func:`count`.
        patterns: Each what :func:`count` takes.
        induced: As for :func:`count`.
        labels: As for :func:`count`.
        num_threads: All cores by default.
        progress: Receives a stage for each kernel.
        device: As for :func:`count`.
        memory: As for :func:`count`.
        disconnected: As for :func:`count`.

    Returns:
        Counts by the patterns as they are given.

    Raises:
        ConfigError: as :func:`count`.
        UnknownNameError: as :func:`count`.

    Examples:
        >>> edges = np.array([0, 1, 2, 2]), np.array([1, 2, 0, 3])
        >>> count_all(edges, ["triangle", "a-b b-c"])
        {'triangle': 1, 'a-b b-c': 5}
    """
    wanted = {it: Pattern.of(it, disconnected=disconnected) for it in patterns}
    run = CountRun(num_threads=num_threads, progress=progress, device=device, memory=memory)
    return _counts(graph, wanted, induced, None, labels, run)


def _counts(
    graph: SimpleGraph | GraphLike,
    patterns: dict[Any, Pattern],
    induced: str,
    way: Way | None,
    labels: str | None,
    run: CountRun,
) -> dict[Any, int]:
    """Count patterns by name; the way for all, or each its own."""
    if any(map(is_in_parts, patterns.values())):
        return _counts_in_parts(graph, patterns, induced, way, labels, run)
    plans = {
        it: plan_count(shape, induced=induced, way=way) for it, shape in patterns.items()
    }
    require_countable(run.device, plans)
    found: dict[Any, int] = {}
    plain = [name for name, shape in patterns.items() if shape.is_plain]
    if plain:
        with_way = {name: plans[name] for name in plain}
        rows = SimpleGraph.of(graph, run.memory, kept_of(with_way.values()))
        found |= _by_sums(rows, with_way, induced, run)
        left = {name: patterns[name] for name in plain if name not in found}
        found |= _by_matches(rows, left, plans, induced, run)
    for name in [name for name in patterns if name not in found]:
        labeled = LabeledGraph.of(graph, patterns[name], labels, run.memory)
        found[name] = _count_labeled(labeled, patterns[name], plans[name], induced, run)
    return {name: found[name] for name in patterns}


def _counts_in_parts(
    graph: SimpleGraph | GraphLike,
    patterns: dict[Any, Pattern],
    induced: str,
    way: Way | None,
    labels: str | None,
    run: CountRun,
) -> dict[Any, int]:
    """Count patterns of which some are in several parts."""
    parted = {name: it for name, it in patterns.items() if is_in_parts(it)}
    check_induced(induced)
    is_induced = induced == "vertex"
    needed: set[Pattern] = set()  # in an order of their own: processes may share sums
    for it in parted.values():
        needed |= required_patterns(it, is_induced=is_induced)
    plans = {it: plan_count(it, way=way) for it in sorted(needed, key=repr)}
    require_countable(run.device, plans)
    rows = SimpleGraph.of(graph, run.memory, kept_of(plans.values()))
    counts = _counts(rows, {it: it for it in plans}, "edge", way, None, run)
    found = {
        name: count_parts(it, counts, rows.num_nodes, is_induced=is_induced)
        for name, it in parted.items()
    }
    others = {name: it for name, it in patterns.items() if name not in parted}
    if others:
        plain = all(it.is_plain for it in others.values())
        found |= _counts(rows if plain else graph, others, induced, way, labels, run)
    return {name: found[name] for name in patterns}


def _by_sums(
    rows: SimpleGraph,
    plans: dict[Any, CountPlan],
    induced: str,
    run: CountRun,
) -> dict[Any, int]:
    """Count what has a closed form or is in a census; of each size one census."""
    found: dict[Any, int] = {}
    censuses: dict[int, dict[str, int]] = {}
    for name, plan in plans.items():
        if plan.way == "matches":
            continue
        assert plan.shape is not None  # it has a closed form, or is in a census
        if plan.way == "closed form":
            found[name] = count_closed(
                rows, plan.shape, run.num_threads, run.progress, run.device
            )
            continue
        size = len(plan.order)
        if size not in censuses:
            censuses[size] = motif_counts(
                rows,
                size,
                induced=induced,
                num_threads=run.num_threads,
                progress=run.progress,
                device=run.device,
            )
        found[name] = censuses[size][plan.shape]
    return found


def _by_matches(
    rows: SimpleGraph,
    patterns: dict[Any, Pattern],
    plans: dict[Any, CountPlan],
    induced: str,
    run: CountRun,
) -> dict[Any, int]:
    """Count plain patterns match by match: those that are much work in shared loops."""
    if not patterns:
        return {}
    none = np.empty(0, dtype=np.int64)
    graph = LabeledGraph(rows=rows, kinds=none, labels=none)
    choices = choose_together(rows, list(patterns.values()), is_induced=induced == "vertex")
    chosen = dict(zip(patterns, choices, strict=True))
    large = {name: it for name, it in chosen.items() if it.stepwise_cost >= WORTH_COMPILING}
    found = {}
    for name in [name for name in patterns if name not in large]:
        found[name] = _count_step_by_step(graph, plans[name], run)
    if large:
        counts = count_by_loops(graph, list(large.values()), run.num_threads, run.progress)
        found |= dict(zip(large, counts, strict=True))
    return found


def _count_labeled(
    graph: LabeledGraph,
    pattern: Pattern,
    plan: CountPlan,
    induced: str,
    run: CountRun,
) -> int:
    """Count a pattern with labels, arrows or anti-edges."""
    is_induced = induced == "vertex"
    choice = choose_schedule(
        graph.rows, pattern, is_induced=is_induced, labels=graph.labels
    )
    if choice.stepwise_cost < WORTH_COMPILING:
        return _count_step_by_step(graph, plan, run)
    return count_by_loops(graph, [choice], run.num_threads, run.progress)[0]


def _count_step_by_step(graph: LabeledGraph, plan: CountPlan, run: CountRun) -> int:
    """Count by the kernel of all patterns, which needs no compiling."""
    rows = graph.rows
    size, longest = len(plan.order), int(degrees_of(rows).max(initial=0))
    asked = (plan.steps, plan.tests, graph.kinds, plan.wanted, graph.labels)
    with kernels_of(rows, run.num_threads, run.progress) as kernels:
        candidates = np.empty((kernels.threads, size, longest), dtype=rows.indices.dtype)
        frames = np.zeros((kernels.threads, 3, size), dtype=np.int64)
        return kernels.sums(count_matches, 1, *asked, after=(candidates, frames))[0]
