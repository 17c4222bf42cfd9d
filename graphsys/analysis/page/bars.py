"""Charts of rows of bars as HTML, whose text keeps its size on a phone."""

from collections.abc import Sequence

from markupsafe import Markup, escape

from graphsys.analysis.page.colors import of_lane

LANES = (
    ("work", "at work"),
    ("waiting", "idle in their own row"),
    ("none", "idle, row done or none"),
)
"""Colors of a warp's lanes, and what they mean."""
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
    axis = f'<span></span><small class="ends"><i>0 s</i><i>{seconds:.3g} s</i></small>'
    return Markup(f'<div class="rows">{"".join(parts)}{axis}</div>')


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
