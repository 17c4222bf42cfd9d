"""What every partitioner that sees neighbours keeps to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsys.partitioners import STREAM_PARTITIONERS, get_stream_partitioner
from graphsys.storage import Graph
from graphsys.storage.node_stream import StoreNodeStream
from graphsys.storage.repartition import compare, measure, repartition
from graphsys.storage.verify import verify
from tests.stores import edge_chunk, make_store

NAMES = STREAM_PARTITIONERS.names()


class ArrayStream:
    """A stream over a list of edges, in blocks of three nodes."""

    def __init__(self, num_nodes: int, edges: list[tuple[int, int]]) -> None:
        self.num_nodes = num_nodes
        self.rows: list[list[int]] = [[] for _ in range(num_nodes)]
        for u, v in edges:
            self.rows[u].append(v)
            self.rows[v].append(u)
        self.degrees = np.array([len(row) for row in self.rows], dtype=np.int64)

    def blocks(self) -> Iterator[tuple[int, npt.NDArray[Any], npt.NDArray[Any]]]:
        for first in range(0, self.num_nodes, 3):
            rows = self.rows[first : first + 3]
            indptr = np.cumsum([0, *(len(row) for row in rows)])
            yield first, indptr, np.array([n for row in rows for n in row], dtype=np.int64)


@pytest.mark.parametrize("name", NAMES)
class TestStreamPartitioner:
    @given(data=st.data(), num_nodes=st.integers(0, 12), num_partitions=st.integers(1, 4))
    def test_every_node_gets_a_partition_that_exists(
        self, name: str, data: st.DataObject, num_nodes: int, num_partitions: int
    ) -> None:
        nodes = st.integers(0, max(num_nodes - 1, 0))
        edges = data.draw(
            st.lists(st.tuples(nodes, nodes), max_size=30 if num_nodes else 0)
        )
        stream = ArrayStream(num_nodes, edges)
        parts = get_stream_partitioner(name)(stream, num_partitions, 0)
        assert parts.dtype == np.uint32
        assert parts.shape == (num_nodes,)
        assert (parts < num_partitions).all()

    def test_same_stream_and_seed_give_the_same_partitions(self, name: str) -> None:
        edges = [(k, (k * 7 + 1) % 60) for k in range(60)]
        call = get_stream_partitioner(name)
        first = call(ArrayStream(60, edges), 4, 7)
        assert (first == call(ArrayStream(60, edges), 4, 7)).all()


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


@pytest.mark.parametrize("name", ["reldg", "refennel", "metis"])
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


def test_comparison_has_a_line_for_every_method(clustered: Graph) -> None:
    lines = {line.partitioner: line for line in compare(clustered, 4)}
    assert {*NAMES, "hash", "random", "range", "dbh", "grid", "hdrf"} == set(lines)
    assert lines["reldg"].edge_cut < lines["ldg"].edge_cut < lines["hash"].edge_cut
    assert lines["hdrf"].replication_factor < lines["dbh"].replication_factor
    assert all(line.edge_balance < 1.3 for line in lines.values())


def test_repartitioned_graph_is_the_same_graph(clustered: Graph, tmp_path: Path) -> None:
    quality = repartition(clustered, tmp_path / "new", partitioner="reldg", partitions=4)
    assert quality.edge_cut < 0.2
    assert verify(tmp_path / "new").ok
    with Graph(tmp_path / "new") as new:
        assert new.num_partitions("node") == 4
        assert edges_of(new) == edges_of(clustered)


@pytest.mark.parametrize("order", ["degree", "original", "rcm"])
def test_ingest_partitions_by_stream_in_any_order(tmp_path: Path, order: str) -> None:
    edges = planted(4, 50)
    report = make_store(
        tmp_path / "g", edge_chunk(edges), is_directed=False,
        partitions=2, partitioner="reldg", order=order,
    )  # fmt: skip
    with report.graph as graph:
        assert graph.manifest.partitioning["method"] == "reldg"
        assert graph.manifest.order == {"node": order}
        assert edges_of(graph) == sorted(tuple(sorted(edge)) for edge in edges)
    assert verify(tmp_path / "g").ok


def test_rcm_brings_neighbours_together(tmp_path: Path) -> None:
    labels = np.random.default_rng(0).permutation(400)
    grid = [(k, k + 1) for k in range(399) if k % 20 != 19]
    grid += [(k, k + 20) for k in range(380)]
    edges = edge_chunk([(int(labels[u]), int(labels[v])) for u, v in grid])
    widths = {}
    for order in ("original", "rcm"):
        report = make_store(tmp_path / order, edges, is_directed=False, order=order)
        with report.graph as graph:
            bucket = graph.bucket("edge", 0, 0)
            gaps = bucket.src.astype(np.int64) - bucket.dst.astype(np.int64)
            widths[order] = int(np.abs(gaps).max())
    # a 20 x 20 grid has bandwidth 20; shuffled labels come close to 400
    assert widths["rcm"] <= 40 < 200 < widths["original"]


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
