"""Figures along the sizes of the sweep as small pictures beside each other, SVG by hand."""

import math
from collections.abc import Mapping

from bench.study.statistics import Rows, trends

PANEL, HIGH, LEFT, TOP, BOTTOM = 232, 190, 44, 30, 28
COLORS = {"rmat": "#1f6fb2", "road": "#d1722c", "uniform": "#3a8f3a"}
STYLE = (
    "text{font:11px sans-serif;fill:#444}line{stroke:#ddd}polyline{fill:none;"
    "stroke-width:2}svg{background:#fff}"
)
_RATIO = 20.0  # values that differ more lie on a logarithmic axis


def along(rows: Rows, figures: Mapping[str, str]) -> str:
    """Return the picture's text.

    Args:
        rows: Runs.
        figures: Names of figures by what stands over their panel.
    """
    panels = [(label, trends(rows, name)) for label, name in figures.items()]
    shown = [
        (label, {k: line for k, (line, _) in it.items()}) for label, it in panels if it
    ]
    width = PANEL * max(len(shown), 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {TOP + HIGH + 20}">',
        "<title>Medians of applications, from small graphs to large</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{TOP + HIGH + 20}" fill="#fff"/>',
    ]
    for place, (label, lines) in enumerate(shown):
        parts += [f'<g transform="translate({place * PANEL} 0)">', *_panel(label, lines)]
        parts.append("</g>")
    x = LEFT
    for kind, color in COLORS.items():
        parts.append(f'<text x="{x}" y="{TOP + HIGH + 14}" fill="{color}">')
        parts.append(f'<tspan fill="{color}">\u25cf {kind}</tspan></text>')
        x += 80
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(label: str, lines: Mapping[str, list[tuple[float, float]]]) -> list[str]:
    sizes = sorted({size for line in lines.values() for size, _ in line})
    known = [value for line in lines.values() for _, value in line]
    positive = [value for value in known if value > 0]
    is_log = len(positive) == len(known) and max(known) > _RATIO * min(known)
    low, high = (min(known), max(known)) if is_log else (0.0, max(known) or 1.0)
    right, base = PANEL - 14, HIGH - BOTTOM + TOP

    def across(size: float) -> float:
        first, last = math.log(sizes[0]), math.log(sizes[-1])
        return LEFT + (math.log(size) - first) / (last - first) * (right - LEFT)

    def up(value: float) -> float:
        part = (value - low) / (high - low)
        if is_log:
            part = math.log(value / low) / math.log(high / low)
        return base - part * (base - TOP)

    parts = [f'<text x="{LEFT}" y="16">{label}</text>']
    for size in sizes:
        x = across(size)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{base}"/>')
        text = f"1e{round(math.log10(size))}"
        parts.append(
            f'<text x="{x:.1f}" y="{base + 15}" text-anchor="middle">{text}</text>'
        )
    for value in (low, high):
        y = up(value)
        parts.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{value:.2g}</text>'
        )
    for kind, line in lines.items():
        points = " ".join(f"{across(size):.1f},{up(value):.1f}" for size, value in line)
        color = COLORS.get(kind, "#888")
        told = ", ".join(f"{size:.0e}: {value:.3g}" for size, value in line)
        parts.append(f'<polyline points="{points}" stroke="{color}">')
        parts.append(f"<title>{kind}: {told}</title></polyline>")
    return parts
