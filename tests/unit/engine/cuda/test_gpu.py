"""Shipped programs on a real GPU against the CPU's results; ``pytest -m gpu``."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.analysis.profile import profile
from graphsys.core.cuda.device import require_device
from graphsys.core.errors import ConfigError, MissingDependencyError
from graphsys.core.events import recording
from graphsys.engine.cuda.strategy import STRATEGIES
from graphsys.engine.run import run
from graphsys.engine.topology import Topology
from tests.cuda_sim.programs import PROGRAMS
from tests.cuda_sim.vector_programs import VECTOR_PROGRAMS

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def graph() -> Topology:
    """Return 20,000 nodes with a skewed degree; skip without a device."""
    try:
        require_device()
    except (ConfigError, MissingDependencyError) as err:
        pytest.skip(str(err))
    rng = np.random.default_rng(5)
    n, num_edges = 20_000, 300_000
    src = np.minimum(rng.zipf(1.5, num_edges), n) - 1
    dst = rng.integers(0, n, num_edges)
    return Topology.from_edges(src, dst, n, weight=rng.random(num_edges))


def program_of(name: str) -> Any:
    kind = (PROGRAMS | VECTOR_PROGRAMS)[name]
    return kind(source=0) if "source" in kind.__annotations__ else kind()


def check(expected: Any, got: Any) -> None:
    """Require the CPU's result.

    Sums of floats may differ: a card adds in the order in which its threads come. None of
    these programs asks such a sum when to stop (one asks a count), so that supersteps are
    equal; a program that does may take a superstep more or less.
    """
    assert expected.supersteps == got.supersteps
    for column in expected.table.column_names:
        if pa.types.is_fixed_size_list(expected.table.schema.field(column).type):
            vectors = [
                it.table.column(column).combine_chunks().flatten().to_numpy()
                for it in (expected, got)
            ]
            np.testing.assert_allclose(vectors[1], vectors[0], rtol=1e-5, atol=1e-6)
            continue
        one = expected.table.column(column).to_pandas()
        other = got.table.column(column).to_pandas()
        assert (one.isna() == other.isna()).all()
        np.testing.assert_allclose(
            other.dropna().astype(float), one.dropna().astype(float), rtol=1e-6
        )


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_every_strategy_gives_the_cpus_result(
    graph: Topology, name: str, strategy: str
) -> None:
    expected = run(program_of(name), graph)
    check(expected, run(program_of(name), graph, device="cuda", strategy=strategy))


@pytest.mark.parametrize("name", list(VECTOR_PROGRAMS))
def test_vectors_give_the_cpus_result(graph: Topology, name: str) -> None:
    check(run(program_of(name), graph), run(program_of(name), graph, device="cuda"))


@pytest.mark.parametrize("name", ["Distances", "Hops", "Components"])
def test_long_paths_need_few_launches(graph: Topology, name: str) -> None:
    nodes = np.arange(200 * 200).reshape(200, 200)
    src = np.concatenate([nodes[:, :-1].ravel(), nodes[:-1].ravel()])
    dst = np.concatenate([nodes[:, 1:].ravel(), nodes[1:].ravel()])
    weight = np.random.default_rng(3).random(len(src))
    square = Topology.from_edges(src, dst, nodes.size, weight=weight, directed=False)
    with recording() as recorder:
        got = run(program_of(name), square, device="cuda", strategy="fused")
    check(run(program_of(name), square), got)
    launches = sum(e.value for e in recorder.events if e.name == "kernel_launches")
    assert got.supersteps > 300
    assert launches < got.supersteps / 10


@pytest.mark.parametrize("name", ["Ranks", "Distances", "Components"])
def test_a_streamed_graph_gives_the_cpus_result(graph: Topology, name: str) -> None:
    rng = np.random.default_rng(6)
    n, num_edges = 2000, 300_000  # rows are most of it, and none is longer than a block
    src, dst = rng.integers(0, n, (2, num_edges))
    dense = Topology.from_edges(src, dst, n, weight=rng.random(num_edges))
    with recording() as recorder:
        got = run(program_of(name), dense, device="cuda", device_memory=1_000_000)
    check(run(program_of(name), dense), got)
    copied = sum(e.value for e in recorder.events if e.name == "bytes_copied")
    assert copied > 3 * 4 * num_edges


def test_two_runs_give_the_same_floats(graph: Topology) -> None:
    first, second = (
        run(program_of("Ranks"), graph, device="cuda", strategy="warp") for _ in range(2)
    )
    assert first.table.equals(second.table)


def test_a_profile_tells_the_seconds_of_kernels(graph: Topology) -> None:
    for _ in range(2):  # what is compiled first is not timed
        with profile(level="L1") as recorded:
            run(program_of("Ranks"), graph, device="cuda", strategy="warp")
    rows = [it for it in recorded.report["operators"] if it["device"] == "cuda"]
    seconds = {row["name"]: row["seconds"] for row in rows}
    assert seconds["pull_warp_0"] > 0
    metrics = {it["name"]: it["value"] for it in recorded.report["metrics"]}
    assert 0 < metrics["kernel_share"] <= 1
    assert sum(seconds.values()) < metrics["wall_seconds"]
