"""Charts of rows of bars as HTML, whose text keeps its size on a phone."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from markupsafe import Markup, escape

from graphsys.analysis.page.colors import of_lane

LANES = (
    ("work", "at work"),
    ("waiting", "idle in their own row"),
    ("none", "idle, row done or none"),
)
"""Colors of a warp's lanes, and what they mean."""
_OF_WORKER = {"at work": "work", "waiting": "waiting", "compiling": "compiling"}
"""Colors of what a worker does, from the bottom of its lane to the top."""
_LANE_HEIGHT = 20
_LEAST_TEXT = 0.1
"""Share of a bar from which on its percentage stands inside."""


def timeline(lanes: Sequence[tuple[str, Sequence[float]]], seconds: float) -> Markup:
    """Draw when what was done: each lane is cut into equal bins, filled by its share.

    Args:
        lanes: Name, and the share of every bin, 0 to 1.
        seconds: How long all bins are together.

    Returns:
        Nothing where there are no lanes.
    """
    if not lanes:
        return Markup("")
    parts = []
    for name, shares in lanes:
        rects, begin = [], 0
        while begin < len(shares):  # equal neighbors are one rectangle
            level, end = round(shares[begin], 1), begin + 1
            while end < len(shares) and round(shares[end], 1) == level:
                end += 1
            if level > 0:
                rects.append(
                    f'<rect class="{of_lane(name)}" x="{begin}" y="0" '
                    f'width="{end - begin}" height="16" '
                    f'fill-opacity="{max(level, 0.15):.2f}"/>'
                )
            begin = end
        parts.append(
            f"<span>{escape(name)}</span>"
            f'<svg class="chart span" viewBox="0 0 {max(len(shares), 1)} 16" role="img" '
            f'preserveAspectRatio="none" aria-label="when: {escape(name)}">'
            f'<rect class="lane" width="{max(len(shares), 1)}" height="16"/>'
            f"{''.join(rects)}</svg>"
        )
    return Markup(f'<div class="rows">{"".join(parts)}{_axis(0, seconds)}</div>')


def _axis(first: float, last: float) -> str:
    ends = f"<i>{first:.4g} s</i><i>{last:.4g} s</i>"
    return f'<span></span><small class="ends">{ends}</small>'


def worker_lanes(
    workers: Sequence[tuple[str, Sequence[tuple[str, Sequence[float]]]]],
    seconds: tuple[float, float],
) -> Markup:
    """Draw what each worker of a cluster did when.

    Args:
        workers: Name, and its lanes: name and the share of every bin, 0 to 1.
        seconds: When the first bin begins, and the last one ends.
    """
    parts = []
    for worker, lanes in workers:
        bins = list(zip(*(shares for _, shares in lanes), strict=True))
        colors = [_OF_WORKER.get(name, "host") for name, _ in lanes]
        rects, begin = [], 0
        while begin < len(bins):  # equal neighbors are one rectangle
            levels, end = _levels(bins[begin]), begin + 1
            while end < len(bins) and _levels(bins[end]) == levels:
                end += 1
            base = _LANE_HEIGHT
            for color, level in zip(colors, levels, strict=True):
                base -= level
                if level:
                    rects.append(
                        f'<rect class="{color}" x="{begin}" y="{base}" '
                        f'width="{end - begin}" height="{level}"/>'
                    )
            begin = end
        width = max(len(bins), 1)
        parts.append(
            f"<span>{escape(worker)}</span>"
            f'<svg class="chart span" viewBox="0 0 {width} {_LANE_HEIGHT}" role="img" '
            f'preserveAspectRatio="none" aria-label="what worker {escape(worker)} did">'
            f'<rect class="lane" width="{width}" height="{_LANE_HEIGHT}"/>'
            f"{''.join(rects)}</svg>"
        )
    return Markup(f'<div class="rows">{"".join(parts)}{_axis(*seconds)}</div>')


def _levels(shares: Sequence[float]) -> list[int]:
    """Return the heights of a bin's parts; what is rounded up does not leave the lane."""
    ends = [round(_LANE_HEIGHT * min(it, 1)) for it in accumulate(shares, initial=0.0)]
    return [high - low for low, high in pairwise(ends)]


def worker_threads(workers: Sequence[tuple[str, Sequence[float]]]) -> Markup:
    """Draw how long the threads of each worker were in kernels.

    Args:
        workers: Name, and the seconds of each thread.

    Returns:
        Nothing where no thread told any.
    """
    most = max((max(seconds, default=0.0) for _, seconds in workers), default=0.0)
    if most <= 0:
        return Markup("")
    parts = []
    for worker, seconds in workers:
        bars = "".join(
            f'<span class="track" title="thread {k}: {took:.4g} s">'
            f'<span class="work" style="width: {100 * took / most:.2f}%"></span></span>'
            for k, took in enumerate(seconds)
        )
        parts.append(f'<span>{escape(worker)}</span><div class="threads">{bars}</div>')
    return Markup(f'<div class="rows">{"".join(parts)}{_axis(0, most)}</div>')


def lane_shares(rows: Sequence[tuple[str, int, int, int]]) -> Markup:
    """Draw lanes at work, idle in their own row, and idle for want of one, by mapping.

    Args:
        rows: Name, active, intra-task idle, inter-task idle.
    """
    parts = []
    for name, *amounts in rows:
        total = sum(amounts) or 1
        inside = []
        for (color, what), amount in zip(LANES, amounts, strict=True):
            share = amount / total
            if share <= 0:
                continue
            text = f"{100 * share:.0f} %" if share >= _LEAST_TEXT else ""
            inside.append(
                f'<span class="{color} on-{color}" style="flex: {share:.6f} 1 0" '
                f'title="{what}: {100 * share:.1f} %">{text}</span>'
            )
        parts.append(
            f"<span>{escape(name)}</span>"
            f'<div class="bar thin" role="img" aria-label="lanes of {escape(name)}">'
            f"{''.join(inside)}</div>"
        )
    return Markup(f'<div class="rows">{"".join(parts)}</div>')


def lanes_by_degree(
    rows: Sequence[tuple[str, float, Sequence[tuple[str, float | None]]]],
) -> Markup:
    """Draw the lanes at work of every class of degrees, and its share of the entries.

    Args:
        rows: Degrees, share of the entries, and the share of lanes by mapping.
    """
    parts = [
        f"<small>{head}</small>"
        for head in ("degree", "share of the entries", "lanes at work")
    ]
    for name, share, lanes in rows:
        bars = [
            _meter(
                value,
                f"work k{k}",
                f"{name} entries, {mapping}: {100 * value:.1f} % of lanes at work",
            )
            for k, (mapping, value) in enumerate(lanes)
            if value is not None
        ]
        entries = _meter(share, "reading", f"{name} entries: {100 * share:.1f} % of all")
        parts.append(
            f"<span>{escape(name)}</span><div>{entries}</div><div>{''.join(bars)}</div>"
        )
    return Markup(f'<div class="rows degrees">{"".join(parts)}</div>')


def _meter(share: float, color: str, title: str) -> str:
    """Draw a share as a bar, with its percentage behind it."""
    text = "< 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"
    return (
        f'<div class="meter" title="{escape(title)}"><span class="track"><span '
        f'class="{color}" style="width: {100 * min(share, 1):.2f}%"></span></span>'
        f"<small>{escape(text)}</small></div>"
    )
