"""Workers as threads: results are those of one machine, for every listed program."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.types import EDGE, EdgeType
from graphsys.distributed.run import combined
from graphsys.distributed.work import ProgramWork
from graphsys.distributed.worker import run_in_threads
from graphsys.engine.algorithms import get
from graphsys.engine.execute.prepared import compile_program, table_of
from graphsys.engine.topology import Topology
from tests.stores import edge_chunk, make_store

NUM_NODES = 700
CASES: list[tuple[str, dict[str, Any]]] = [
    ("pagerank", {"tolerance": 1e-12, "iterations": 30}),
    ("personalized_pagerank", {"source": 3}),
    ("hits", {}),
    ("katz", {"alpha": 0.005}),
    ("eigenvector", {}),
    ("coloring", {}),
    ("mis", {}),
    ("matching", {}),
    ("cdlp", {}),
    ("clustering", {}),
    ("label_propagation", {"labels": {3: 1, 5: 0}}),
    ("wcc", {}),
    ("scc", {}),
    ("bfs", {"source": 3}),
    ("sssp", {"source": 3}),
    ("mst", {}),
]


@pytest.fixture(scope="module", params=["directed", "undirected", "typed"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(5)
    path: Path = tmp_path_factory.mktemp("graphs") / request.param
    pairs = rng.integers(0, NUM_NODES, (2400, 2)) ** 2 // NUM_NODES
    weights = rng.integers(1, 9, len(pairs)).astype(np.float32)
    half = len(pairs) // 2
    kinds = [EDGE, EDGE]
    if request.param == "typed":
        kinds = [EdgeType("user", "likes", "item"), EdgeType("user", "knows", "user")]
        pairs[:half, 1] += 2 * NUM_NODES  # ids of items
    chunks = [
        edge_chunk(map(tuple, pairs[part].tolist()), kind, weight=weights[part])
        for kind, part in zip(kinds, (slice(half), slice(half, None)), strict=True)
    ]
    make_store(path, *chunks, is_directed=request.param != "undirected", partitions=4)
    return path


@pytest.mark.parametrize(("name", "options"), CASES, ids=[name for name, _ in CASES])
def test_workers_find_what_one_machine_finds(
    store: Path, name: str, options: dict[str, Any]
) -> None:
    alone = get(name)(str(store), implementation="program", **options)
    work = ProgramWork(graph=str(store), algorithm=name, parameters=options, threads=1)
    parts = run_in_threads([work] * 3)
    topology = Topology.of(str(store))
    plan, _, _ = compile_program(work.program(), topology)
    table = table_of(plan, topology, combined(parts))
    assert table.column_names == alone.table.column_names
    for column in table.column_names:
        ours, theirs = table.column(column), alone.table.column(column)
        if str(ours.type) in ("float", "double"):
            found, expected = (c.to_numpy() for c in (ours, theirs))
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
        else:
            assert ours.to_pylist() == theirs.to_pylist()
