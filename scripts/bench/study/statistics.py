"""Statistics over the runs of the study: graph applications beside controls, and trends."""

import statistics
from collections.abc import Sequence

Rows = Sequence[tuple[str, dict[str, float]]]
"""Runs: ``application, graph, size`` or ``control name, size``, and its figures."""


def is_control(work: str) -> bool:
    """Return whether a run is one of a control."""
    return work.startswith("control ")


def comparable(rows: Rows) -> Rows:
    """Return the controls, and the graph applications on inputs no larger than theirs.

    What a launch does and what is copied grow with the input: where only graphs had large
    ones, pairs of a graph and a control would compare sizes. Twice the largest control's
    values count as no larger.
    """
    most = max(
        (figures.get("entries", 0.0) for work, figures in rows if is_control(work)),
        default=0.0,
    )
    return [
        (work, figures)
        for work, figures in rows
        if is_control(work) or figures.get("entries", 0.0) <= 2 * most
    ]


def values(rows: Rows, name: str) -> tuple[list[float], list[float]]:
    """Return a figure of the graph applications, and of the controls, where known."""
    both: tuple[list[float], list[float]] = ([], [])
    for work, figures in rows:
        if name in figures:
            both[is_control(work)].append(figures[name])
    return both


def medians(rows: Rows, name: str) -> tuple[float, float]:
    """Return the median of a figure over graph applications, and over controls."""
    graph, control = values(rows, name)
    return _median(graph), _median(control)


def _median(known: Sequence[float]) -> float:
    return statistics.median(known) if known else float("nan")


def superiority(rows: Rows, name: str) -> float:
    """Return in which share of pairs the graph application has more than the control.

    Ties count half; 0.5 is no difference (Mann and Whitney's U over all pairs).
    """
    graph, control = values(rows, name)
    pairs = [(a > b) + (a == b) / 2 for a in graph for b in control]
    return statistics.fmean(pairs) if pairs else float("nan")


def rank_correlation(rows: Rows, left: str, right: str) -> float:
    """Return Spearman's rank correlation of two figures over the graph applications."""
    import numpy as np

    found = [
        (figures[left], figures[right])
        for work, figures in rows
        if not is_control(work) and left in figures and right in figures
    ]
    if len(found) < 3:
        return float("nan")
    ranks = [_ranks(column) for column in zip(*found, strict=True)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(column: Sequence[float]) -> list[float]:
    """Return ranks from 1, the mean of them where values are equal."""
    order = sorted(column)
    return [order.index(it) + (order.count(it) + 1) / 2 for it in column]


def series(rows: Rows, name: str) -> dict[tuple[str, str], list[float]]:
    """Return a figure from the smallest to the largest graph, by application and kind.

    Only graphs that are drawn in several sizes have a kind: ``rmat-1e4``.
    """
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for work, figures in rows:
        if is_control(work) or name not in figures or "entries" not in figures:
            continue
        application, graph = work.split(", ")[:2]
        kind, _, size = graph.rpartition("-")
        if kind and size[0].isdigit():
            place = found.setdefault((application, kind), [])
            place.append((figures["entries"], figures[name]))
    return {
        key: [value for _, value in sorted(own)]
        for key, own in found.items()
        if len(own) > 1
    }


def trends(rows: Rows, name: str) -> dict[str, tuple[list[tuple[float, float]], int]]:
    """Return a figure's medians along the sizes of a kind of graph.

    Args:
        rows: Runs.
        name: The figure.

    Returns:
        By kind: (entries as the size is called, median) from the smallest graph to the
        largest, over those applications that were run on most sizes, and how many those
        are.
    """
    found: dict[str, dict[str, dict[float, float]]] = {}
    for work, figures in rows:
        if is_control(work) or name not in figures:
            continue
        application, graph = work.split(", ")[:2]
        kind, _, size = graph.rpartition("-")
        if kind and size[0].isdigit():
            own = found.setdefault(kind, {}).setdefault(application, {})
            own[float(size)] = figures[name]
    told = {}
    for kind, applications in found.items():
        most = max(map(len, applications.values()))
        whole = [own for own in applications.values() if len(own) == most]
        sizes = sorted(set.intersection(*map(set, whole)))
        line = [(size, statistics.median(own[size] for own in whole)) for size in sizes]
        told[kind] = line, len(whole)
    return {kind: it for kind, it in told.items() if len(it[0]) > 1}


def share_rising(rows: Rows, name: str) -> tuple[float, int]:
    """Return in which share of series the largest graph has more, and how many there are.

    Series that end as they begin count half.
    """
    found = [own[-1] - own[0] for own in series(rows, name).values()]
    if not found:
        return float("nan"), 0
    return statistics.fmean((it > 0) + (it == 0) / 2 for it in found), len(found)
