"""A picture of a small graph: its nodes, their colors, and what is too much."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphsys as gs
from graphsys.core.errors import ConfigError
from graphsys.facade import drawing

pytest.importorskip("matplotlib", reason="the plot extra (matplotlib) is not installed")
RING = np.stack([np.arange(8), (np.arange(8) + 1) % 8], axis=1)


@pytest.fixture
def ring(tmp_path: Path) -> Any:
    with gs.ingest(np.concatenate([RING, RING[:2]]), tmp_path / "ring").graph as graph:
        yield graph


def dots_of(axes: Any) -> list[Any]:
    """Return what was drawn of nodes."""
    return [it for it in axes.collections if it.get_offsets().size]


def test_every_node_and_edge_is_drawn_once(ring: Any, tmp_path: Path) -> None:
    axes = ring.plot()
    (dots,) = dots_of(axes)
    assert dots.get_offsets().shape == (8, 2)
    assert len(axes.patches) == 8  # copies of an edge lie on each other
    assert sorted(it.get_text() for it in axes.texts) == [str(k) for k in range(8)]
    axes.figure.savefig(tmp_path / "ring.png")
    assert (tmp_path / "ring.png").read_bytes().startswith(b"\x89PNG")


def test_a_layout_is_drawn_again_by_its_seed(ring: Any) -> None:
    one, two, other = (dots_of(ring.plot(seed=it))[0].get_offsets() for it in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_numbers_color_nodes_on_a_scale(ring: Any) -> None:
    (dots,) = dots_of(ring.plot(gs.algorithms.pagerank(ring), names=False))
    assert len(dots.get_array()) == 8


def test_kinds_color_nodes_with_a_legend(ring: Any) -> None:
    kinds = {node: "odd" if node % 2 else "even" for node in range(8)}
    axes = ring.plot(kinds)
    assert [len(it.get_offsets()) for it in dots_of(axes)] == [4, 4]
    assert [it.get_text() for it in axes.get_legend().get_texts()] == ["even", "odd"]


def test_types_of_nodes_have_colors(tmp_path: Path) -> None:
    buys = {("user", "buys", "item"): {"src": [1, 2], "dst": [1, 1]}}
    with gs.ingest(edges=buys, out=tmp_path / "shop").graph as graph:
        axes: Any = graph.plot()
    assert [it.get_text() for it in axes.get_legend().get_texts()] == ["item", "user"]


def test_what_is_not_drawn_says_so(ring: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="has none for 7 nodes, the first 1; expected"):
        ring.plot({0: 1.0})
    monkeypatch.setattr(drawing, "MOST_NODES", 7)
    with pytest.raises(ConfigError, match=r"has 8 nodes, and a picture shows 7 at most"):
        ring.plot()
    assert ring.subgraph([0, 1, 2]).plot() is not None  # what the message advises
