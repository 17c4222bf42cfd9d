"""Pictures of results, and the tables that notebooks show of them."""

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import graphsys as gs
from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.engine.result import Result


def result_of(supersteps: int = 1, converged: bool = True, **columns: object) -> Result:
    return Result(
        source=pa.table(columns),
        algorithm="made <up>",
        supersteps=supersteps,
        seconds=0.0,
        converged=converged,
    )


def test_a_picture_counts_every_value() -> None:
    axes: Any = result_of(id=[1, 2, 3, 4], value=[0.5, 1.0, 1.0, None]).plot()
    assert sum(bar.get_height() for bar in axes.patches) == 3
    assert axes.get_xlabel() == "value"
    out = io.BytesIO()
    axes.figure.savefig(out, format="png")
    assert out.getvalue().startswith(b"\x89PNG")


def test_skewed_values_are_drawn_on_logarithmic_axes() -> None:
    values = np.concatenate([np.ones(99), [1e4]])
    axes: Any = result_of(id=range(100), value=values).plot()
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert sum(bar.get_height() for bar in axes.patches) == 100


def test_groups_are_drawn_by_their_sizes() -> None:
    labels = ["a", "b", "b", "c", "c", "c"]
    axes: Any = result_of(id=range(6), value=labels).plot(groups=True)
    (line,) = axes.lines
    assert line.get_ydata().tolist() == [3, 2, 1]


def test_axes_may_be_given() -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.add_subplot()
    assert result_of(id=[1], value=[2]).plot(axes=axes) is axes


def test_what_cannot_be_drawn_is_refused() -> None:
    words = result_of(id=[1], value=["x"])
    with pytest.raises(ConfigError, match="no column of numbers to draw"):
        words.plot()
    with pytest.raises(ConfigError, match="expected numbers"):
        words.plot("value")
    with pytest.raises(UnknownNameError, match="other"):
        words.plot("other")


def test_a_notebook_shows_the_first_rows_and_says_how_many_there_are() -> None:
    shown = result_of(id=range(100), value=range(100))._repr_html_()
    assert shown.count("<tr>") == 9
    assert "92 more rows" in shown
    assert "made &lt;up&gt;" in shown


def test_a_notebook_says_what_did_not_converge() -> None:
    shown = result_of(converged=False, id=[1], value=[1])._repr_html_()
    assert "did not converge" in shown


def test_an_algorithm_is_shown() -> None:
    ring = gs.Topology.from_edges(np.arange(5), (np.arange(5) + 1) % 5, 5)
    shown = gs.algorithms.degree_statistics(ring)._repr_html_()
    assert "<th>out_degree</th>" in shown
