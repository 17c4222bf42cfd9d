"""Workers as threads: results are those of one machine, for every listed program."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.types import EDGE, EdgeType
from graphsys.distributed.run import combined
from graphsys.distributed.work import ProgramWork
from graphsys.engine.algorithms import get
from graphsys.engine.load_program import load_program
from graphsys.engine.program_run import prepare_program
from tests.clusters import run_by_workers, run_in_threads
from tests.matrix import programs
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
    ("label_propagation", {"labels": {3: 1, 5: 0}, "iterations": 100}),
    ("wcc", {}),
    ("scc", {}),
    ("bfs", {"source": 3}),
    ("sssp", {"source": 3}),
    ("mst", {}),
    ("k_core", {}),
    ("belief_propagation", {"coupling": 0.05, "evidence": {3: 1.0, 5: -0.5}}),
    ("min_cut", {"source": 0, "target": 2}),
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
    table, _ = run_by_workers(name, store, options, 3)
    assert table.column_names == alone.table.column_names
    for column in table.column_names:
        ours, theirs = table.column(column), alone.table.column(column)
        if str(ours.type) in ("float", "double"):
            found, expected = (c.to_numpy() for c in (ours, theirs))
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
        else:
            assert ours.to_pylist() == theirs.to_pylist()


@pytest.mark.parametrize("program", ["Walks", "Hops", "Means"])
def test_workers_pass_on_vectors(store: Path, program: str) -> None:
    name = f"{Path(programs.__file__)}:{program}"
    alone = prepare_program(load_program(name), str(store)).run()
    table, _ = run_by_workers(name, store, {}, 3)
    assert table.column_names == alone.table.column_names
    for column in table.column_names[-1:]:
        found, expected = (
            np.array(t.column(column).to_pylist()) for t in (table, alone.table)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)


def test_sparse_supersteps_push_and_send_less_than_dense_ones(tmp_path: Path) -> None:
    pairs = [(k, k + 1) for k in range(3000)]  # a path: one node sends at a time
    make_store(tmp_path / "path", edge_chunk(pairs), partitions=2, partitioner="range")
    _, parts = run_by_workers("sssp", tmp_path / "path", {"source": 0}, 2)
    steps = np.sum([part["bytes"] for part in parts], axis=0)
    assert len(steps) >= 3000
    # a sum of counts each way and, at the border of the partitions, a message
    assert np.median(steps) < 80
    assert steps[10:].max() < 300


def test_values_that_do_not_change_are_not_sent_again(store: Path) -> None:
    _, parts = run_by_workers("pagerank", store, {"tolerance": 0, "iterations": 200}, 3)
    steps = np.sum([part["bytes"] for part in parts], axis=0)
    bound = sum(part["bound"] for part in parts)
    counts = 3 * 2 * 10 * 8  # of every worker to two others, some numbers of 8 bytes
    assert bound <= steps[0] <= bound + counts
    assert steps[-1] < steps[0]  # at the fixed point messages stay as they are


@pytest.mark.parametrize("store", ["undirected"], indirect=True)
def test_states_of_edges_are_sent_where_they_changed(store: Path) -> None:
    options = {"coupling": 0.05, "evidence": {3: 1.0}, "iterations": 90}
    _, parts = run_by_workers("belief_propagation", store, options, 3)
    steps = np.sum([part["bytes"] for part in parts], axis=0)
    bound = sum(part["bound"] for part in parts)
    assert steps.max() <= bound + 3 * 2 * 10 * 8
    assert steps[-1] < steps.max() / 5  # near the fixed point most stay as they are


@pytest.mark.parametrize("store", ["directed"], indirect=True)
def test_states_of_edges_go_on_from_a_checkpoint(store: Path, tmp_path: Path) -> None:
    options = {"coupling": 0.05, "evidence": {3: 1.0}, "iterations": 12}
    expected, _ = run_by_workers("belief_propagation", store, options, 2)
    work = ProgramWork(
        graph=str(store),
        algorithm="belief_propagation",
        parameters=options,
        threads=1,
        checkpoint=str(tmp_path),
        checkpoint_every=1,
        max_supersteps=7,
    )
    run_in_threads([work] * 2)
    parts = run_in_threads([replace(work, resume=True, max_supersteps=None)] * 2)
    assert len(parts[0]["steps"]) == 6  # the last was not kept
    np.testing.assert_array_equal(combined(parts)["value"], expected.column("value"))


@pytest.mark.parametrize(
    "name", ["wcc", "pagerank", "coloring", "cdlp", "belief_propagation"]
)
def test_workers_may_have_no_nodes(tmp_path: Path, name: str) -> None:
    make_store(tmp_path / "small", edge_chunk([(1, 2), (2, 1)]), partitions=5)
    table, parts = run_by_workers(name, tmp_path / "small", {}, 5)
    assert 0 in [part["nodes"] for part in parts]
    alone = get(name)(str(tmp_path / "small"), implementation="program")
    assert table.to_pylist() == alone.table.to_pylist()
