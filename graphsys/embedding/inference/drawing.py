"""Points in a plane as SVG and HTML of our own, and as PNG by matplotlib."""

import html
import io
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from graphsys.core.deps import require

# Tableau 10 (Stone, 2016), then grey for the rest; rising values: viridis in nine steps
_COLORS: Final = (
    "#4e79a7",
    "#f28e2b",
    "#e15759",
    "#76b7b2",
    "#59a14f",
    "#edc948",
    "#b07aa1",
    "#ff9da7",
    "#9c755f",
    "#6b6ecf",
    "#bab0ac",
)
_RISING: Final = (
    "#440154",
    "#482878",
    "#3e4a89",
    "#31688e",
    "#26828e",
    "#1f9e89",
    "#35b779",
    "#6ece58",
    "#b5de2b",
)
_INK, _PALE = "#333333", "#d8d8d8"
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 1000, 720, 50, 50, 210, 50
_RADIUS = 3.0
_DPI = 200
_NAME_LENGTH = 26


@dataclass(frozen=True, kw_only=True)
class Plot:
    """What is drawn.

    Attributes:
        points: Coordinates, float64 ``[n, 2]``.
        ids: What each point is.
        groups: The group of each, int64 ``[n]``.
        names: Names of the groups.
        is_ordered: Whether the groups rise, and their colors should.
        legend: What the groups are; empty for no legend.
        axes: Names of the axes.
        title: Name of the picture.
    """

    points: npt.NDArray[np.float64]
    ids: list[str]
    groups: npt.NDArray[np.int64]
    names: list[str]
    is_ordered: bool
    legend: str
    axes: tuple[str, ...]
    title: str

    def color(self, group: int) -> str:
        """Return a group's color."""
        colors = _RISING if self.is_ordered else _COLORS
        return colors[min(group, len(colors) - 1)]

    def placed(self) -> npt.NDArray[np.float64]:
        """Return the points in pixels, y downwards, float64 ``[n, 2]``."""
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        scale = np.where(high > low, high - low, 1.0)
        unit = (self.points - (low + high) / 2) / scale  # -0.5 .. 0.5
        size = np.array([_WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM])
        center = np.array([_LEFT, _TOP]) + size / 2
        return np.asarray(center + unit * (size - 4 * _RADIUS) * np.array([1, -1]))


def to_svg(plot: Plot) -> bytes:
    """Draw as SVG; pointing at a node shows its id."""
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    view = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="13"'
    size = f'width="{right - _LEFT}" height="{bottom - _TOP}"'
    turned = f'transform="translate({_LEFT - 14} {bottom}) rotate(-90)"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {view} fill="{_INK}">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<rect x="{_LEFT}" y="{_TOP}" {size} fill="none" stroke="{_PALE}"/>',
        f'<text x="{_LEFT}" y="{_TOP - 16}" font-size="16">{_text(plot.title)}</text>',
        f'<text x="{_LEFT}" y="{bottom + 24}">{_text(plot.axes[0])}</text>',
        f"<text {turned}>{_text(plot.axes[1])}</text>",
    ]
    places = plot.placed()
    for group in range(len(plot.names)):
        lines.append(f'<g fill="{plot.color(group)}" fill-opacity="0.7">')
        for k in np.flatnonzero(plot.groups == group):
            x, y = places[k]
            name = _text(f"{plot.ids[k]} ({plot.names[group]})")
            lines.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS}"><title>{name}</title>'
                "</circle>"
            )
        lines.append("</g>")
    if plot.legend:
        lines.append(f'<text x="{right + 20}" y="{_TOP + 10}">{_text(plot.legend)}</text>')
        for group, name in enumerate(plot.names):
            y = _TOP + 32 + 20 * group
            lines.append(
                f'<circle cx="{right + 26}" cy="{y}" r="5" fill="{plot.color(group)}"/>'
                f'<text x="{right + 38}" y="{y + 4}">{_text(_short(name))}</text>'
            )
    return "\n".join([*lines, "</svg>\n"]).encode()


def to_html(plot: Plot) -> bytes:
    """Draw as a page of its own, which loads nothing."""
    head = f'<!doctype html><meta charset="utf-8"><title>{_text(plot.title)}</title>'
    style = "<style>body{margin:0}svg{width:100vw;height:100vh}circle:hover{stroke:#000}"
    return f"{head}\n{style}</style>\n{to_svg(plot).decode()}".encode()


def to_png(plot: Plot) -> bytes:
    """Draw as PNG by matplotlib, twice as many pixels as the SVG has units.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    require("matplotlib", extra="plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    figure = Figure(figsize=(_WIDTH / _DPI * 2, _HEIGHT / _DPI * 2), dpi=_DPI)
    box = (_LEFT / _WIDTH, 1 - bottom / _HEIGHT)
    size = ((right - _LEFT) / _WIDTH, (bottom - _TOP) / _HEIGHT)
    axes = figure.add_axes((*box, *size), xlim=(_LEFT, right), ylim=(bottom, _TOP))
    axes.set(xticks=(), yticks=(), xlabel=plot.axes[0], ylabel=plot.axes[1])
    axes.set_title(plot.title, loc="left", color=_INK)
    for spine in axes.spines.values():
        spine.set_color(_PALE)
    order = np.random.default_rng(0).permutation(len(plot.ids))  # no group over another
    colors = [plot.color(int(group)) for group in plot.groups[order]]
    area = (2 * 2 * _RADIUS * 72 / _DPI) ** 2
    x, y = plot.placed()[order].T
    axes.scatter(x, y, s=area, c=colors, alpha=0.7, linewidths=0, clip_on=False)
    if plot.legend:
        for group, name in enumerate(plot.names):
            axes.scatter([], [], s=2 * area, c=plot.color(group), label=_short(name))
        axes.legend(
            title=plot.legend,
            loc="upper left",
            bbox_to_anchor=(1, 1),
            frameon=False,
            alignment="left",
            fontsize=7.5,
            handletextpad=0.2,
        )
    content = io.BytesIO()
    FigureCanvasAgg(figure).print_png(content)
    return content.getvalue()


def _short(name: str) -> str:
    return name if len(name) <= _NAME_LENGTH else name[: _NAME_LENGTH - 2] + ".."


def _text(text: str) -> str:
    return html.escape(text)
