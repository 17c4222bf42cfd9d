"""Pictures of a result's values, by matplotlib."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types

from graphsys.core.deps import require
from graphsys.core.errors import ConfigError, unknown_name
from graphsys.core.notebook.figures import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = 40
_SKEWED = 100.0
"""Largest value in medians from which on the axes are logarithmic."""


def plot_values(
    table: pa.Table, name: str, column: str | None, *, groups: bool, axes: Any
) -> "Axes":
    """Draw how often values are there, or how large groups of equal values are.

    Args:
        table: Of a result.
        name: What it is a result of.
        column: Which column; the first behind the ids that fits by default.
        groups: Whether to draw sizes of groups.
        axes: Where to; a new figure by default.

    Raises:
        UnknownNameError: There is no such column.
        ConfigError: The column holds nothing that can be drawn so.
        MissingDependencyError: matplotlib is not installed.
    """
    require("matplotlib", extra="plot")
    chosen = column or _first(table, name, groups=groups)
    if chosen not in table.column_names:
        raise unknown_name("column", chosen, table.column_names)
    values = table[chosen].drop_null()
    axes = new_axes(6.0, 3.6) if axes is None else axes
    if groups:
        _draw_groups(values, axes, chosen)
    elif not _is_number(values.type):
        raise ConfigError(
            f"column {chosen!r} of {name} is {values.type}, expected numbers; give another "
            f"column, or groups=True for the sizes of groups of equal values"
        )
    else:
        _draw_distribution(values.to_numpy().astype(np.float64), axes, chosen)
    axes.set_title(f"{name}: {len(values):,} values")
    return axes  # type: ignore[no-any-return]


def _first(table: pa.Table, name: str, *, groups: bool) -> str:
    fits = [
        field.name
        for field in table.schema
        if field.name != "id" and (groups or _is_number(field.type))
    ]
    if not fits:
        raise ConfigError(
            f"{name} has no column of numbers to draw; its columns are "
            f"{', '.join(table.column_names)}"
        )
    return str(fits[0])


def _is_number(kind: pa.DataType) -> bool:
    return bool(pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind))


def _draw_groups(values: pa.ChunkedArray, axes: Any, name: str) -> None:
    sizes = np.sort(pc.value_counts(values).field("counts").to_numpy())[::-1]
    axes.plot(np.arange(1, len(sizes) + 1), sizes, marker=".", linewidth=1)
    if len(sizes) and sizes[0] > _SKEWED * np.median(sizes):
        axes.set(xscale="log", yscale="log")
    axes.set(xlabel=f"groups of {name}, by size", ylabel="nodes")


def _draw_distribution(values: Any, axes: Any, name: str) -> None:
    finite = values[np.isfinite(values)]
    middle = float(np.median(finite)) if len(finite) else 0.0
    bins: Any = _BINS
    positive = finite[finite > 0]
    if middle > 0 and finite.max() > _SKEWED * middle:
        low, high = positive.min(), positive.max()
        bins = np.geomspace(low, high, _BINS)
        axes.set(xscale="log", yscale="log")
        finite = positive
    axes.hist(finite, bins=bins)
    axes.set(xlabel=name, ylabel="nodes")
