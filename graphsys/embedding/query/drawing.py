"""Points in a plane as SVG, HTML and PNG, without a plotting library."""

import html
import struct
import zlib
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from graphsys.embedding.query.letters import draw_text

Image = npt.NDArray[np.float32]

# Tableau 10 (Stone, 2016), then grey for the rest; rising values: viridis in nine steps
_COLORS: Final = (
    "#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f", "#edc948", "#b07aa1",
    "#ff9da7", "#9c755f", "#6b6ecf", "#bab0ac",
)  # fmt: skip
_RISING: Final = (
    "#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779",
    "#6ece58", "#b5de2b",
)  # fmt: skip
_INK, _PALE = "#333333", "#d8d8d8"
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 1000, 720, 50, 50, 210, 50
_RADIUS = 3.0
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
    """Draw as PNG, twice as many pixels as the SVG has units."""
    image = np.full((2 * _HEIGHT, 2 * _WIDTH, 3), 1.0, dtype=np.float32)
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    pale = _rgb(_PALE)
    for x in (_LEFT, right):
        image[2 * _TOP : 2 * bottom, 2 * x : 2 * x + 2] = pale
    for y in (_TOP, bottom):
        image[2 * y : 2 * y + 2, 2 * _LEFT : 2 * right + 2] = pale
    order = np.random.default_rng(0).permutation(len(plot.ids))  # no group over another
    for k, (x, y) in zip(order, 2 * plot.placed()[order], strict=True):
        _disc(image, x, y, 2 * _RADIUS, _rgb(plot.color(int(plot.groups[k]))), 0.7)
    ink = _rgb(_INK)
    draw_text(image, 2 * _LEFT, 2 * (_TOP - 26), plot.title, 3, ink)
    draw_text(image, 2 * _LEFT, 2 * (bottom + 12), plot.axes[0], 2, ink)
    tall = np.rot90(image, -1)
    draw_text(tall, 2 * (_HEIGHT - bottom), 2 * (_LEFT - 24), plot.axes[1], 2, ink)
    if plot.legend:
        draw_text(image, 2 * (right + 20), 2 * _TOP, plot.legend, 2, ink)
        for group, name in enumerate(plot.names):
            y = 2 * (_TOP + 32 + 20 * group)
            _disc(image, 2 * (right + 26), y, 10, _rgb(plot.color(group)), 1.0)
            draw_text(image, 2 * (right + 38), y - 7, _short(name), 2, ink)
    return _encode(np.round(255 * image).astype(np.uint8))


def _disc(
    image: Image, x: float, y: float, radius: float, color: Image, opacity: float
) -> None:
    """Blend a disc with soft edges into an image."""
    left, top = int(x - radius - 1), int(y - radius - 1)
    size = int(2 * radius + 4)
    across = np.arange(left, left + size) + 0.5 - x
    down = np.arange(top, top + size) + 0.5 - y
    distance = np.sqrt(across**2 + down[:, None] ** 2)
    cover = (opacity * np.clip(radius + 0.5 - distance, 0, 1)).astype(np.float32)
    part = image[top : top + size, left : left + size]
    part += cover[:, :, None] * (color - part)


def _rgb(color: str) -> Image:
    return np.array([int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)], dtype=np.float32)


def _encode(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Write a PNG: header, one compressed block of unfiltered lines, end (RFC 2083)."""
    height, width, _ = pixels.shape
    lines = np.zeros((height, 3 * width + 1), dtype=np.uint8)
    lines[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = (
        (b"IHDR", header),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data))
        + kind
        + data
        + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def _short(name: str) -> str:
    return name if len(name) <= _NAME_LENGTH else name[: _NAME_LENGTH - 2] + ".."


def _text(text: str) -> str:
    return html.escape(text)
