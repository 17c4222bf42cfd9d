"""A picture of an embedding: its nodes in the plane of the two main directions."""

import html
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.deps import require
from graphsys.core.errors import ConfigError, unknown_name
from graphsys.datasets.temporary import GraphLike
from graphsys.embedding.data.candidates import draw_candidates
from graphsys.embedding.rows.trained_rows import TrainedEmbedding
from graphsys.storage.output_file import new_files, require_writable

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


Doubles = npt.NDArray[np.float64]
SUFFIXES: Final = (".png", ".html", ".svg")
_WRITERS: Final = {".png": to_png, ".html": to_html, ".svg": to_svg}
_COLUMNS: Final = ("label", "class", "type", "category", "name")
_GROUPS = 10
_BLOCK = 1 << 14


def picture(
    run: str | Path | TrainedEmbedding,
    out: str | Path,
    *,
    node_type: str | None = None,
    color: str | None = None,
    num_nodes: int = 5000,
    seed: int = 0,
    graph: GraphLike | None = None,
    overwrite: bool = False,
) -> Path:
    """Draw the nodes by the two principal components of their rows.

    The components are those of all rows of the types drawn; of the nodes a uniform
    sample is shown. Every node's id appears on pointing at it (``.html``, ``.svg``).

    Args:
        run: A run or its folder.
        out: The file: ``.html`` or ``.svg``, or ``.png``, for which matplotlib is needed.
        node_type: Draw only this type; all by default, colored by type.
        color: Column of the node tables that colors the nodes: text and integers by
            value (the ten most frequent), other numbers by size. By default the column
            label, class, type, category or name, if there is one.
        num_nodes: How many nodes to draw at most, of each type.
        seed: Of their choice.
        graph: The graph trained on, if it is not where it was.
        overwrite: Replace the file if there is one.

    Returns:
        The file.

    Raises:
        ConfigError: The suffix is not one of these, or there is nothing to draw.
        UnknownNameError: There is no such node type or column.
        OutputExistsError: The file exists.
        StorageFullError: It cannot be written.
        MissingDependencyError: matplotlib is not installed.
    """
    out = Path(out)
    if out.suffix not in SUFFIXES:
        raise ConfigError(
            f"cannot draw {out.name!r}: expected a name that ends in one of "
            f"{', '.join(SUFFIXES)}"
        )
    if num_nodes < 1:
        raise ConfigError(f"num_nodes: got {num_nodes}, expected an int >= 1")
    if out.suffix == ".png":
        require("matplotlib", extra="plot")
    require_writable(out, overwrite=overwrite)
    opened = (
        run if isinstance(run, TrainedEmbedding) else TrainedEmbedding(run, graph=graph)
    )
    types = [opened.the_type(node_type)] if node_type is not None else opened.node_types
    shown = _choose(opened, types, num_nodes, seed)
    axes = principal_axes(opened, types)
    points = np.concatenate(
        [axes.project(opened.take(name, numbers)) for name, numbers in shown]
    )
    ids = [str(key) for name, some in shown for key in opened.ids(name, some).to_pylist()]
    values, title = _values(opened, shown, color)
    groups, names, is_ordered = _group(values)
    plot = Plot(
        points=points,
        ids=ids,
        groups=groups,
        names=names,
        is_ordered=is_ordered,
        legend=title,
        axes=tuple(f"PC{k + 1} ({axes.shares[k]:.0%} of variance)" for k in range(2)),
        title=f"{opened.path.name}: {len(ids)} nodes",
    )
    _write(out, _WRITERS[out.suffix](plot))
    return out


@dataclass(frozen=True, kw_only=True)
class Axes:
    """Directions of the largest variance.

    Attributes:
        mean: Mean of the rows, float64 ``[D]``.
        directions: Unit vectors, float64 ``[D, 2]``.
        shares: Their shares of the variance, float64 ``[2]``.
    """

    mean: Doubles
    directions: Doubles
    shares: Doubles

    def project(self, rows: npt.NDArray[np.floating]) -> Doubles:
        """Return the coordinates of rows, float64 ``[n, 2]``."""
        return (rows.astype(np.float64) - self.mean) @ self.directions


def principal_axes(run: TrainedEmbedding, types: Iterable[str]) -> Axes:
    """Find the two main directions of all rows of some types, in two passes.

    Raises:
        ConfigError: The types' rows differ in length.
    """
    types = list(types)
    lengths = {run.dim_of(name) for name in types}
    if len(lengths) > 1:
        raise ConfigError(
            f"the node types {', '.join(types)} have rows of different lengths "
            f"({', '.join(map(str, sorted(lengths)))}); give node_type"
        )
    dim = lengths.pop()
    total, count = np.zeros(dim), 0
    for block in _blocks(run, types):
        total += block.sum(axis=0)
        count += len(block)
    mean, spread = total / max(count, 1), np.zeros((dim, dim))
    for block in _blocks(run, types):
        centered = block - mean
        spread += centered.T @ centered
    sizes, vectors = np.linalg.eigh(spread)
    directions = np.zeros((dim, 2))
    directions[:, : min(dim, 2)] = vectors[:, ::-1][:, :2]
    largest = np.argmax(np.abs(directions), axis=0)  # a sign that no layout changes
    directions *= np.where(directions[largest, [0, 1]] < 0, -1.0, 1.0)
    shares = np.zeros(2)
    shares[: min(dim, 2)] = sizes[::-1][:2] / max(float(sizes.sum()), 1e-300)
    return Axes(mean=mean, directions=directions, shares=shares)


def _blocks(run: TrainedEmbedding, types: Iterable[str]) -> Iterable[Doubles]:
    for name in types:
        for part in range(run.graph.num_partitions(name)):
            rows = run.rows(name, part)
            for begin in range(0, len(rows), _BLOCK):
                yield rows[begin : begin + _BLOCK].astype(np.float64)


def _choose(
    run: TrainedEmbedding, types: list[str], num_nodes: int, seed: int
) -> list[tuple[str, npt.NDArray[np.int64]]]:
    """Sample nodes of every type by their ids."""
    return [
        (name, np.sort(drawn))
        for name in types
        for drawn in draw_candidates(run.graph, run.model, name, num_nodes, 1, seed=seed)
    ]


def _values(
    run: TrainedEmbedding, shown: list[tuple[str, npt.NDArray[np.int64]]], color: str | None
) -> tuple[pa.Array, str]:
    """Return what colors each node, and what it is called."""
    columns = {
        name: [c for c in run.graph.nodes(name, 0).column_names if c != "id"]
        for name, _ in shown
    }
    known = sorted({column for some in columns.values() for column in some})
    if color is not None and color not in known:
        raise unknown_name("node column", color, known)
    chosen = color or next((c for c in _COLUMNS if c in known and len(shown) == 1), None)
    if chosen is None:
        owners = [name for name, numbers in shown for _ in range(len(numbers))]
        return pa.array(owners, pa.string()), "node type" if len(shown) > 1 else ""
    pieces = []
    for name, numbers in shown:
        if chosen not in columns[name]:
            pieces.append(pa.nulls(len(numbers)))
            continue
        parts = range(run.graph.num_partitions(name))
        tables = [run.graph.nodes(name, part).select([chosen]) for part in parts]
        column = pa.concat_tables(tables).column(chosen).take(pa.array(numbers))
        pieces.append(column.combine_chunks())
    kinds = {piece.type for piece in pieces if not pa.types.is_null(piece.type)}
    kind = kinds.pop() if len(kinds) == 1 else pa.string()
    return pa.concat_arrays([piece.cast(kind) for piece in pieces]), chosen


def _group(values: pa.Array) -> tuple[npt.NDArray[np.int64], list[str], bool]:
    """Sort values into at most eleven groups: their numbers, names, whether they rise."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_floating(values.type):
        numbers: Any = values.fill_null(float("nan")).to_numpy(zero_copy_only=False)
        finite = numbers[np.isfinite(numbers)]
        if not len(finite):
            return np.zeros(len(numbers), dtype=np.int64), [""], False
        bounds = np.unique(np.quantile(finite, np.linspace(0, 1, 9)))
        place = np.clip(np.searchsorted(bounds, numbers, "right") - 1, 0, len(bounds) - 1)
        return place.astype(np.int64), [f">= {bound:.4g}" for bound in bounds], True
    text = values.cast(pa.string()).fill_null("none")
    counted = pc.value_counts(text).to_pylist()
    counted.sort(key=lambda entry: (-entry["counts"], entry["values"]))
    names = [entry["values"] for entry in counted[:_GROUPS]]
    place = pc.index_in(text, value_set=pa.array(names, pa.string())).fill_null(len(names))
    rest = len(counted) - len(names)
    if rest > 0:
        names.append(f"{rest} others")
    return place.to_numpy(zero_copy_only=False).astype(np.int64), names, False


def _write(out: Path, content: bytes) -> None:
    with new_files(out) as [new]:
        new.write_bytes(content)
