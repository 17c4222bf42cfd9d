"""The curves of a training as one HTML page, or as an SVG picture."""

from pathlib import Path
from typing import Any, Final

from markupsafe import escape

from graphsys.analysis.page import charts
from graphsys.analysis.page.colors import light
from graphsys.analysis.page.template import filled
from graphsys.core.config import settings_by_key
from graphsys.core.errors import ConfigError
from graphsys.core.memory import format_bytes
from graphsys.core.remote.locations import Place
from graphsys.storage.output_file import new_files, require_writable
from graphsys.training.history import History, history, run_info

SUFFIXES: Final = (".html", ".svg")
_CURVE_HEIGHT: Final = 214
_GAP: Final = 26
_STYLE: Final = (
    f"text {{ font: 12px system-ui, sans-serif; fill: {light('ink')}; }} "
    f".tick {{ stroke: {light('line')}; }} "
    f".limit-line {{ stroke: {light('limit')}; stroke-dasharray: 4 3; }} "
    ".curve { fill: none; stroke-width: 2; } "
    + " ".join(
        f".{name}-line {{ stroke: {light(name)}; }} .{name} {{ fill: {light(name)}; }}"
        for name in ("loss", "quality")
    )
    + f" .paper {{ fill: {light('paper')}; }}"
)
"""The page's colors in light: a picture stands in papers and READMEs."""


def plot_training(run: Place, out: Path, *, overwrite: bool = False) -> Path:
    """Draw the losses and evaluations of a run over its epochs.

    Args:
        run: Its folder, or ``s3://...``.
        out: The file: ``.html`` or ``.svg``.
        overwrite: Replace the file if there is one.

    Returns:
        The file.

    Raises:
        ConfigError: There is no run, or the suffix is not one of these.
        OutputExistsError: The file exists.
        StorageFullError: It cannot be written.
    """
    if out.suffix not in SUFFIXES:
        raise ConfigError(
            f"cannot draw {out.name!r}: expected a name that ends in "
            f"{' or '.join(SUFFIXES)}"
        )
    found = history(run)
    require_writable(out, overwrite=overwrite)
    text = _page_of(found, run) if out.suffix == ".html" else _picture_of(found, run)
    with new_files(out) as [new]:
        new.write_text(text, encoding="utf-8")
    return out


def _page_of(found: History, run: Place) -> str:
    info, table = run_info(run), found.table()
    return filled(
        "training.html",
        name=_name(run),
        info=info,
        summary=_summary(info),
        curves=[{"name": name, "chart": chart} for name, chart in _charts(found)],
        columns=table.column_names,
        rows=[list(row.values()) for row in table.to_pylist()],
        settings=settings_by_key(found.settings),
    )


def _picture_of(found: History, run: Place) -> str:
    """Return the charts below each other, as a file of its own."""
    parts, y = [f'<text x="0" y="18">{escape(_name(run))}</text>'], _GAP
    for name, chart in _charts(found):
        parts.append(f'<text x="0" y="{y + 14}">{escape(name)}</text>')
        parts.append(f'<g transform="translate(0 {y + 18})">{chart}</g>')
        y += _CURVE_HEIGHT + _GAP
    place = f'<svg x="{charts.CURVE_LEFT}" width="{900 - charts.CURVE_LEFT}" '
    place += f'height="{_CURVE_HEIGHT}" overflow="visible"'
    body = "".join(parts).replace('<svg class="chart"', place)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 {y}">'
        f'<style>{_STYLE}</style><rect class="paper" width="900" height="{y}"/>'
        f"{body}</svg>\n"
    )


def _charts(found: History) -> list[tuple[str, Any]]:
    """Return a chart of every curve, losses in one color, evaluations in another."""
    best = found.best
    return [
        (
            name,
            charts.curve(
                points,
                name,
                best=best["epoch"] if best and best["metric"] == name else None,
                kind="loss" if name.endswith("loss") else "quality",
            ),
        )
        for name, points in found.curves.items()
        if points
    ]


def _summary(info: dict[str, Any]) -> str:
    """Say in a sentence or two what a run is."""
    planned, graph = info["epochs_planned"], info["graph"]
    state = "complete" if info["is_complete"] else "not complete"
    text = (
        f"{info['model']}, {info['epochs']} of {planned} epochs, {state}; trained on "
        f"{graph['path']} ({graph['num_nodes']:,} nodes, {graph['num_edges']:,} edges); "
        f"{format_bytes(info['bytes'])}."
    )
    if best := info["best"]:
        text += f" Best {best['metric']}: {best['value']:.4g} after epoch {best['epoch']}."
    return text


def _name(run: Place) -> str:
    return str(run).rstrip("/").rpartition("/")[2] or str(run)
