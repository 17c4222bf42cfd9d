"""Estimates have intervals that hold the count in 95 of 100 seeds."""

import networkx as nx
import numpy as np
import pytest

from graphsys.core.errors import ConfigError
from graphsys.mining import SimpleGraph, estimate, motif_census


@pytest.fixture(scope="module")
def skewed() -> SimpleGraph:
    """Hubs and triangles."""
    graph = nx.powerlaw_cluster_graph(600, 5, 0.5, seed=3)
    edges = np.array(graph.edges)
    return SimpleGraph.of((edges[:, 0], edges[:, 1]))


@pytest.mark.parametrize(
    ("pattern", "induced"),
    [
        ("triangle", "edge"),
        ("diamond", "edge"),
        ("house", "edge"),
        ("4-cycle", "vertex"),
        pytest.param("bull", "vertex", marks=pytest.mark.slow),
    ],
)
def test_the_interval_holds_in_95_of_100_seeds(
    skewed: SimpleGraph, pattern: str, induced: str
) -> None:
    size = {"triangle": 3, "4-cycle": 4, "diamond": 4}.get(pattern, 5)
    count = motif_census(skewed, size, induced=induced)[pattern]
    found = [
        estimate(skewed, pattern, induced=induced, relative_error=0.2, seed=seed)
        for seed in range(100)
    ]
    assert all(it.converged for it in found)
    assert sum(it.low <= count <= it.high for it in found) >= 95
    assert all(it.high - it.low <= 0.401 * it.count for it in found)
    assert len({it.count for it in found}) > 90
    mean = sum(it.count for it in found) / len(found)
    assert mean == pytest.approx(count, rel=0.03)  # unbiased


def test_threads_change_nothing(skewed: SimpleGraph) -> None:
    one, many = (estimate(skewed, "diamond", num_threads=num) for num in (1, 5))
    assert one == many


def test_spelling_changes_little(skewed: SimpleGraph) -> None:
    count = motif_census(skewed, 4, induced="edge")["diamond"]
    for text in ("a-b b-c c-d d-a a-c", "a-b a-c a-d b-c c-d", "d-c c-b b-a a-d d-b"):
        assert estimate(skewed, text).count == pytest.approx(count, rel=0.05)


def test_more_is_drawn_until_it_is_narrow_or_enough(skewed: SimpleGraph) -> None:
    wide = estimate(skewed, "5-cycle", relative_error=0.5)
    narrow = estimate(skewed, "5-cycle", relative_error=0.01)
    assert narrow.samples > wide.samples
    assert narrow.high - narrow.low < wide.high - wide.low
    cut = estimate(skewed, "5-cycle", relative_error=0.001, max_samples=70_000)
    assert not cut.converged
    assert cut.samples == 65_536
    assert estimate(skewed, "8-clique", max_samples=70_000).count == 0


def test_a_graph_without_edges_has_no_patterns() -> None:
    nobody = np.array([0, 1])
    found = estimate((nobody, nobody), "triangle")
    assert (found.count, found.high, found.converged) == (0, 0, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"induced": "node"}, "induced='node' is neither 'vertex' nor 'edge'"),
        ({"relative_error": 0}, "relative_error=0: expected a share, as 0.05"),
        ({"max_samples": 0}, "max_samples=0: expected 1 or more"),
    ],
)
def test_numbers_out_of_range_are_refused(
    skewed: SimpleGraph, options: dict[str, object], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        estimate(skewed, "triangle", **options)  # type: ignore[arg-type]
