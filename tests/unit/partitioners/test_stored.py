"""Partitioners and orders on stores: what they find, what it costs, what is advised."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import BudgetError
from graphsys.embedding import EmbeddingConfig
from graphsys.embedding.data.schedule import Layout
from graphsys.embedding.training.plan import Planner
from graphsys.partitioners import get_stream_partitioner, greedy, partitioner_names
from graphsys.partitioners.buckets import bucket_ends, sweep_loads
from graphsys.partitioners.testing import EdgeStream
from graphsys.storage import Graph
from graphsys.storage.ingest.node_stream import StoreNodeStream
from graphsys.storage.ingest.partition_compare import (
    PartitionQuality,
    advise,
    compare,
    measure,
)
from graphsys.storage.ingest.repartition import repartition
from graphsys.storage.verify.verify import verify
from tests.embedding_context import context_of
from tests.stores import edge_chunk, make_store


def planted(num_groups: int, size: int) -> list[tuple[int, int]]:
    """Return edges of which nine in ten stay inside a group of consecutive nodes."""
    rng = np.random.default_rng(0)
    src = rng.integers(0, num_groups * size, 12 * num_groups * size)
    near = src // size * size + rng.integers(0, size, len(src))
    far = rng.integers(0, num_groups * size, len(src))
    dst = np.where(rng.random(len(src)) < 0.9, near, far)
    # ids that say nothing about the groups
    labels = rng.permutation(num_groups * size)
    return list(zip(labels[src].tolist(), labels[dst].tolist(), strict=True))


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    out = tmp_path_factory.mktemp("clustered") / "graph"
    with make_store(out, edge_chunk(planted(16, 100)), is_directed=False).graph as graph:
        yield graph


@pytest.mark.parametrize("name", ["reldg", "refennel", "buckets", "metis"])
def test_planted_groups_are_found(clustered: Graph, name: str) -> None:
    stream = StoreNodeStream(clustered)
    parts = get_stream_partitioner(name)(stream, 4, 0)
    quality = measure(stream, parts, 4, name, 0.0)
    # a random assignment cuts 0.75, the planted one about 0.075
    assert quality.edge_cut < 0.2
    assert quality.edge_balance <= 1.05


def test_measures_equal_those_counted_by_hand(tmp_path: Path) -> None:
    path = edge_chunk([(0, 1), (1, 2), (2, 3)])
    with make_store(tmp_path / "g", path, is_directed=False).graph as graph:
        stream = StoreNodeStream(graph)
        ids = graph.node_ids("node").to_numpy()
        parts = np.where(np.isin(ids, [0, 1]), 0, 1).astype(np.uint32)
        quality = measure(stream, parts, 2, "by hand", 0.0)
    assert quality.edge_cut == pytest.approx(1 / 3)
    assert quality.node_balance == 1.0
    assert quality.edge_balance == 1.0
    # node 1 is also needed in partition 1, node 2 in partition 0
    assert quality.replication_factor == pytest.approx(6 / 4)
    assert quality.halo == pytest.approx(3 / 2)
    # one edge in each of the three buckets, for which 0, then 1 are loaded
    assert quality.bucket_balance == 1.0
    assert quality.bucket_loads == 2


def test_comparison_has_a_line_for_every_method(clustered: Graph) -> None:
    lines = {line.partitioner: line for line in compare(clustered, 4)}
    assert {*partitioner_names(), "dbh", "grid", "hdrf"} == set(lines)
    assert lines["reldg"].edge_cut < lines["ldg"].edge_cut < lines["hash"].edge_cut
    assert lines["hdrf"].replication_factor < lines["dbh"].replication_factor
    assert all(line.edge_balance < 1.3 for line in lines.values() if not line.problem)


def test_repartitioned_graph_is_the_same_graph(clustered: Graph, tmp_path: Path) -> None:
    quality = repartition(clustered, tmp_path / "new", partitioner="reldg", partitions=4)
    assert quality.edge_cut < 0.2
    assert verify(tmp_path / "new").ok
    with Graph(tmp_path / "new") as new:
        assert new.num_partitions("node") == 4
        assert edges_of(new) == edges_of(clustered)


@pytest.mark.parametrize("order", ["degree", "original", "rcm", "rabbit"])
def test_ingest_partitions_by_stream_in_any_order(tmp_path: Path, order: str) -> None:
    edges = planted(4, 50)
    report = make_store(
        tmp_path / "g",
        edge_chunk(edges),
        is_directed=False,
        partitions=2,
        partitioner="reldg",
        order=order,
    )
    with report.graph as graph:
        assert graph.manifest.partitioning["method"] == "reldg"
        assert graph.manifest.order == {"node": order}
        assert edges_of(graph) == sorted(tuple(sorted(edge)) for edge in edges)
    assert verify(tmp_path / "g").ok


def test_a_hub_costs_fennel_what_it_weighs() -> None:
    """Hubs, not leaves, decide the balance of edges."""
    rng = np.random.default_rng(0)
    hubs = rng.integers(0, 8, 8000)
    edges = np.stack([hubs, rng.integers(8, 4000, 8000)], axis=1)
    stream = EdgeStream(4000, edges)
    parts = get_stream_partitioner("fennel")(stream, 8, 0)
    # every hub is an eighth of one side: two together would fill one partition
    assert len(set(parts[:8].tolist())) == 8


def test_refining_repairs_an_assignment_and_keeps_its_balance() -> None:
    edges, rng = planted(8, 200), np.random.default_rng(1)
    stream = EdgeStream(1600, edges)
    # of the groups that planted() makes, the one with most neighbors is a node's own
    best = greedy.stream_greedily(stream, 8)
    spoilt = best.copy()
    spoilt[rng.choice(1600, 300, replace=False)] = rng.integers(0, 8, 300)
    mended = greedy.stream_greedily(stream, 8, start=spoilt, max_size=210)
    assert stream.edge_cut(spoilt) > 0.25
    assert stream.edge_cut(mended) == pytest.approx(stream.edge_cut(best), abs=0.01)
    assert np.bincount(mended).max() <= 210


@pytest.fixture(scope="module")
def long_grid() -> EdgeStream:
    """Return a grid of 4 x 400 nodes whose numbers are mixed."""
    labels = np.random.default_rng(0).permutation(1600)
    grid = [(k, k + 4) for k in range(1596)] + [
        (k, k + 1) for k in range(1599) if k % 4 < 3
    ]
    return EdgeStream(1600, labels[np.array(grid)])


def test_buckets_leave_most_pairs_of_a_long_graph_empty(long_grid: EdgeStream) -> None:
    loads = {}
    for name in ("reldg", "buckets"):
        parts = get_stream_partitioner(name)(long_grid, 16, 0)
        loads[name] = sweep_loads(bucket_ends(long_grid, parts, 16))
        assert np.bincount(parts, minlength=16).max() <= 105
    # each partition once; a full sweep over 16 loads 16 * 17 / 2 - 1
    assert loads["buckets"] <= 20
    assert sweep_loads(np.ones((16, 16), dtype=np.int64)) == 135


def test_a_trainer_loads_no_more_than_a_sweep_that_keeps_two_partitions(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(0)
    config = EmbeddingConfig(dim=4)
    for k in range(8):
        size = rng.integers(4, 30)
        edges = edge_chunk(rng.integers(0, size, (size, 2)).tolist())
        report = make_store(tmp_path / str(k), edges, is_directed=False, partitions=6)
        with report.graph as graph:
            stream = StoreNodeStream(graph)
            parts = np.repeat(np.arange(6, dtype=np.uint32), np.diff(graph.offsets("node")))
            found = sweep_loads(bucket_ends(stream, parts, 6))
            plan = Planner(context_of(graph, config)).plan(Layout())
            filled = min(2, len(np.unique(parts)))
            assert plan.min_swaps + filled <= plan.swaps + filled <= found


def quality(name: str, **values: float) -> PartitionQuality:
    even = {"node_balance": 1.0, "edge_balance": 1.0, "bucket_loads": 35.0}
    return PartitionQuality(partitioner=name, **{**even, **values})  # type: ignore[arg-type]


def test_advice_weighs_loads_copies_balance_and_time() -> None:
    lines = [
        quality("hash", replication_factor=7.0, edge_balance=1.02),
        quality("range", replication_factor=7.0),
        quality("reldg", replication_factor=3.75, seconds=0.2),
        quality("metis", replication_factor=3.72, seconds=2.0),
        quality("fennel", replication_factor=2.0, edge_balance=1.5),
        quality("buckets", replication_factor=4.0, bucket_loads=34.0),
        PartitionQuality(partitioner="kahip", problem="not installed"),
        PartitionQuality(partitioner="dbh", replication_factor=1.1, is_vertex_cut=True),
    ]
    kinds = {"GNN sampling": "reldg", "vertex programs": "reldg"}
    assert advise(lines) == {"embeddings": "range", **kinds}
    lines[5] = quality("buckets", replication_factor=4.0, bucket_loads=12.0)
    assert advise(lines) == {"embeddings": "buckets", **kinds}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"partitioner": "metis"}, r"partitioner metis needs .* the budget is 16.*reldg"),
        ({"order": "rabbit"}, r"order rabbit needs .* the budget is 16.*--order degree"),
    ],
)
def test_what_does_not_fit_the_budget_is_refused(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    rng = np.random.default_rng(0)
    edges = edge_chunk(rng.integers(0, 10**5, (600_000, 2)))
    with pytest.raises(BudgetError, match=said):
        make_store(tmp_path / "g", edges, memory=16 << 20, partitions=2, **options)
    assert not (tmp_path / "g").exists()


def test_comparison_tells_what_could_not_run(clustered: Graph) -> None:
    lines = {line.partitioner: line for line in compare(clustered, 4, memory="1MB")}
    assert "needs the graph in memory" in lines["metis"].problem
    assert not lines["reldg"].problem


def test_orders_bring_neighbors_together(tmp_path: Path) -> None:
    labels = np.random.default_rng(0).permutation(400)
    grid = [(k, k + 1) for k in range(399) if k % 20 != 19]
    grid += [(k, k + 20) for k in range(380)]
    edges = edge_chunk([(int(labels[u]), int(labels[v])) for u, v in grid])
    widths, means = {}, {}
    for order in ("original", "rcm", "rabbit"):
        report = make_store(tmp_path / order, edges, is_directed=False, order=order)
        with report.graph as graph:
            bucket = graph.bucket("edge", 0, 0)
            gaps = bucket.src.astype(np.int64) - bucket.dst.astype(np.int64)
            widths[order] = int(np.abs(gaps).max())
            means[order] = float(np.abs(gaps).mean())
    # a 20 x 20 grid has bandwidth 20; shuffled labels come close to 400
    assert widths["rcm"] <= 40 < 200 < widths["original"]
    # the mean distance of shuffled labels is 400 / 3
    assert means["rabbit"] < 40 < 100 < means["original"]


def edges_of(graph: Graph) -> list[tuple[int, ...]]:
    ids = graph.node_ids("node").to_numpy()
    offsets = graph.offsets("node")
    edges = []
    for i in range(len(offsets) - 1):
        for j in range(len(offsets) - 1):
            bucket = graph.bucket("edge", i, j)
            src = ids[bucket.src.astype(np.int64) + offsets[i]].tolist()
            dst = ids[bucket.dst.astype(np.int64) + offsets[j]].tolist()
            edges += [tuple(sorted(edge)) for edge in zip(src, dst, strict=True)]
    return sorted(edges)
