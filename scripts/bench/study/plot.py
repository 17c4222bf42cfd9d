"""The three regimes of finding F as a picture: SVG, by hand, as the report's charts are."""

import math

from bench.study.finding import GPU, LABELS, OLD
from bench.study.statistics import Rows, is_control

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 720, 360, 52, 18, 44
WIDE = (1e-3, 100.0)
"""CTAs over places, the horizontal axis."""
HIGH = (1.0, 200.0)
"""Most CTAs of an SM over the mean, the vertical axis."""
STYLE = (
    "text{font:12px sans-serif;fill:#444}line{stroke:#bbb}.exact{stroke:#888;"
    "stroke-dasharray:4 3}.h100{fill:#1f6fb2}.m2050{fill:#d1722c}.control{fill:none;"
    "stroke-width:1.5}.h100.control{stroke:#1f6fb2}.m2050.control{stroke:#d1722c}"
    "circle{fill-opacity:.55}svg{background:#fff}"
)


def points(rows: Rows) -> list[tuple[str, str, float, float]]:
    """Return GPU, kind of the work, CTAs over places, and the most over the mean."""
    found = []
    for work, figures in rows:
        for gpu in (GPU, OLD):
            for filling in ("fewer", "exact", "more"):
                waves = figures.get(f"{gpu} {filling} waves")
                if waves is not None:
                    most = figures[f"{gpu} {filling} cta_imbalance"]
                    kind = "control" if is_control(work) else "graph"
                    found.append((gpu, kind, waves, most))
    return found


def _at(value: float, ends: tuple[float, float], low: float, high: float) -> float:
    part = math.log(value / ends[0]) / math.log(ends[1] / ends[0])
    return low + min(max(part, 0.0), 1.0) * (high - low)


def regimes(rows: Rows) -> str:
    """Return the picture's text."""
    right, base = WIDTH - 12, HEIGHT - BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        "<title>CTAs of an SM by how launches fill the SMs</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for tick in (0.001, 0.01, 0.1, 1, 10, 100):
        x = _at(tick, WIDE, LEFT, right)
        kind = ' class="exact"' if tick == 1 else ""
        parts.append(f'<line{kind} x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{base}"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{base + 16}" text-anchor="middle">{tick:g}</text>'
        )
    for tick in (1, 2, 5, 10, 20, 50, 100, 200):
        y = _at(tick, HIGH, base, TOP)
        parts.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick}</text>'
        )
    for gpu, kind, waves, most in points(rows):
        x, y = _at(waves, WIDE, LEFT, right), _at(most, HIGH, base, TOP)
        title = f"{LABELS[gpu]}, {kind}: {waves:.3g} CTAs per place, {most:.3g}"
        parts.append(
            f'<circle class="{gpu} {kind}" cx="{x:.1f}" cy="{y:.1f}" r="4">'
            f"<title>{title}</title></circle>"
        )
    legend = (
        "CTAs over m*n places (filled: graphs, rings: controls; blue: H100, orange: M2050)"
    )
    parts.append(f'<text x="{right}" y="{HEIGHT - 8}" text-anchor="end">{legend}</text>')
    parts.append(f'<text x="{LEFT}" y="12">most CTAs of an SM / mean</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
