"""Stores of the matrix's graphs, each made once for a file of tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.matrix.stores import LAYOUTS
from tests.unit.engine.algorithms.small_graphs import SmallGraph

Stores = Callable[[SmallGraph], dict[str, Path]]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    """Return a function that has a graph in all layouts, made once."""
    made: dict[int, dict[str, Path]] = {}

    def of(graph: SmallGraph) -> dict[str, Path]:
        key = hash((tuple(graph.ids), tuple(graph.edges), graph.is_directed))
        if key not in made:
            folder = tmp_path_factory.mktemp("layouts")
            made[key] = {name: folder / name.replace(" ", "-") for name in LAYOUTS}
            for name, build in LAYOUTS.items():
                build(made[key][name], graph)
        return made[key]

    return of
