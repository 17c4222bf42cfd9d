"""Counts on a real GPU against the CPU's; ``pytest -m gpu``."""

import numpy as np
import pytest

from graphsys.core.cuda.device import require_device
from graphsys.core.errors import ConfigError, MissingDependencyError
from graphsys.mining.counting import count
from graphsys.mining.motifs import motif_census
from graphsys.mining.simple_graph import SimpleGraph

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def graph() -> SimpleGraph:
    """Return 20,000 nodes with a skewed degree; skip without a device."""
    try:
        require_device()
    except (ConfigError, MissingDependencyError) as err:
        pytest.skip(str(err))
    rng = np.random.default_rng(5)
    ends = np.minimum(rng.zipf(1.6, (2, 300_000)), 20_000) - 1
    return SimpleGraph.of((ends[0], ends[1]))


@pytest.mark.parametrize(
    "pattern", ["triangle", "4-clique", "5-clique", "4-cycle", "diamond"]
)
def test_patterns_are_as_many_as_on_the_cpu(graph: SimpleGraph, pattern: str) -> None:
    expected = count(graph, pattern)
    assert expected > 0
    assert count(graph, pattern, device="cuda") == expected


def test_motifs_are_as_many_as_on_the_cpu(graph: SimpleGraph) -> None:
    assert motif_census(graph, 4, device="cuda") == motif_census(graph, 4)
