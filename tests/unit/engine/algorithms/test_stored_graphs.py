"""Results of the same edges in stores of different partitions are the same."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import graphsys as gs
from graphsys.engine.algorithms.degrees import degree_statistics
from graphsys.engine.algorithms.k_core import k_core
from graphsys.engine.algorithms.leiden import leiden
from graphsys.engine.algorithms.pagerank import pagerank
from graphsys.engine.algorithms.similarity import adamic_adar, jaccard
from graphsys.engine.algorithms.walks import random_walks
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology

ALGORITHMS: list[tuple[Callable[..., Result], dict[str, Any]]] = [
    (degree_statistics, {}),
    (k_core, {}),
    (leiden, {"weighted": True}),
    (adamic_adar, {"top_k": 5}),
    (jaccard, {"threshold": 0.02}),
    (random_walks, {"length": 5, "p": 0.5, "q": 2.0, "weighted": True}),
]


@pytest.fixture(scope="module", params=[False, True], ids=["directed", "undirected"])
def stores(request: Any, tmp_path_factory: Any) -> list[Topology]:
    folder = tmp_path_factory.mktemp("stores")
    rng = np.random.default_rng(0)
    src, dst = rng.integers(0, 120, 500) * 7, rng.integers(0, 120, 500) * 7
    edges = (src, dst, rng.integers(1, 9, 500) / 4)
    arguments: dict[str, Any] = {"undirected": request.param}
    gs.ingest(edges, folder / "one", **arguments)
    gs.ingest(edges, folder / "four", partitions=4, **arguments)
    return [Topology.of(folder / name) for name in ("one", "four")]


def by_id(result: Result) -> pa.Table:
    keys = [name for name in ("id", "walk") if name in result.table.column_names]
    if "other" in result.table.column_names:  # has an order of its own
        return result.table.combine_chunks()
    return result.table.sort_by([(key, "ascending") for key in keys]).combine_chunks()


@pytest.mark.parametrize(("algorithm", "arguments"), ALGORITHMS)
def test_partitions_do_not_change_a_result(
    stores: list[Topology], algorithm: Callable[..., Result], arguments: dict[str, Any]
) -> None:
    one, four = (algorithm(topology, **arguments) for topology in stores)
    assert by_id(one).equals(by_id(four))
    assert one.result == four.result


def test_partitions_change_pagerank_by_rounding_only(stores: list[Topology]) -> None:
    one, four = (by_id(pagerank(topology, weighted=True)) for topology in stores)
    assert one["id"].equals(four["id"])
    np.testing.assert_allclose(one["value"], four["value"], rtol=1e-12)
