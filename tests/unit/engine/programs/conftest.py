"""Stores that every program runs on, made once."""

from typing import Any

import pytest

from tests.unit.engine.programs.runs import Stored, random_graph, store


@pytest.fixture(scope="session", params=["directed, text", "undirected, integers"])
def stored(request: Any, tmp_path_factory: Any) -> Stored:
    is_directed = request.param.startswith("directed")
    graph = random_graph(is_directed=is_directed, is_text=is_directed)
    return store(tmp_path_factory.mktemp("stores"), graph)
