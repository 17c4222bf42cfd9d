from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.errors import InvalidGraphError
from graphsys.core.types import EdgeType
from graphsys.storage import Graph, manifest
from graphsys.storage.grouped.merged_view import GroupedGraph, JoinedGraph, stored_graph
from graphsys.storage.ingest.ingest import ingest
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

BUYS = EdgeType("user", "buys", "item")
KNOWS = EdgeType("user", "knows", "user")


class Shop(Source):
    """Users with a feature buy items; they know each other by one of two relations."""

    name = "shop"

    def chunks(self):  # type: ignore[no-untyped-def]
        rng = np.random.default_rng(0)
        ids = np.arange(30)
        yield NodeChunk(
            ids=ids,
            node_type="user",
            features={
                "x": np.arange(60, dtype=np.float32).reshape(30, 2),
                "bag": pa.array([[k, k] for k in range(30)], pa.large_list(pa.uint32())),
            },
        )
        yield EdgeChunk(
            src=rng.integers(0, 30, 200),
            dst=rng.integers(0, 20, 200),
            edge_type=BUYS,
            columns={"weight": rng.random(200).astype(np.float32)},
        )
        yield EdgeChunk(
            src=rng.integers(0, 30, 90),
            dst=rng.integers(0, 30, 90),
            edge_type=KNOWS,
            columns={"relation": pa.array(["friend", "foe", "foe"] * 30)},
        )


@pytest.fixture(params=[{"user": 1, "item": 1}, {"user": 3, "item": 2}])
def graph(tmp_path, request) -> Graph:  # type: ignore[no-untyped-def]
    ingest(Shop(), tmp_path / "shop", partitions=request.param)
    return Graph(tmp_path / "shop")


def edges_of(graph: Graph, kind: EdgeType) -> list[tuple[object, ...]]:
    """Return all edges by the users' ids, with their columns, sorted."""
    src_ids = graph.node_ids(kind.src_type).to_numpy()
    dst_ids = graph.node_ids(kind.dst_type).to_numpy()
    found = []
    for i, j in graph.buckets(kind):
        bucket = graph.bucket(kind, i, j)
        src = bucket.src + graph.offsets(kind.src_type)[i]
        dst = bucket.dst + graph.offsets(kind.dst_type)[j]
        column = bucket.weight if bucket.weight is not None else bucket.relation
        assert column is not None
        found += list(zip(src_ids[src], dst_ids[dst], column, strict=True))
    return sorted(found)


def neighbors_of(graph: Graph, kind: EdgeType) -> list[tuple[int, ...]]:
    own = graph.num_partitions(kind.src_type)
    rows = []
    for part in range(own):
        index = graph.out_index(kind, part)
        rows += [
            tuple(index.indices[index.indptr[u] : index.indptr[u + 1]].tolist())
            for u in range(len(index.indptr) - 1)
        ]
    return rows


@pytest.mark.parametrize("kind", [BUYS, KNOWS])
def test_a_joined_graph_has_the_same_edges_in_one_bucket(
    graph: Graph, kind: EdgeType
) -> None:
    whole = JoinedGraph(graph)
    assert whole.num_partitions("user") == whole.num_partitions("item") == 1
    assert whole.bucket_counts(kind).tolist() == [[graph.num_edges_of(kind)]]
    assert edges_of(whole, kind) == edges_of(graph, kind)
    assert neighbors_of(whole, kind) == neighbors_of(graph, kind)
    incoming = whole.in_index(kind, 0)
    assert incoming.indptr[-1] == len(incoming.indices) == graph.num_edges_of(kind)


@pytest.mark.parametrize("kind", [BUYS, KNOWS])
def test_groups_have_the_edges_and_rows_of_their_partitions(
    tmp_path: Path, kind: EdgeType
) -> None:
    ingest(Shop(), tmp_path / "shop", partitions={"user": 5, "item": 3})
    graph = Graph(tmp_path / "shop")
    for groups in (
        {"user": [[4, 0], [2, 1, 3]], "item": [[1], [2, 0]]},
        {"user": [[3], [0, 1, 2, 4]], "item": [[2], [0, 1]]},
    ):
        grouped = GroupedGraph(graph, groups)
        assert grouped.bucket_counts(kind).sum() == graph.num_edges_of(kind)
        ids = {
            name: np.concatenate(
                [grouped.nodes(name, k).column("id").to_numpy() for k in range(2)]
            )
            for name in ("user", "item")
        }
        edges, rows = list[tuple[int, int]](), list[tuple[int, int]]()
        for i in range(2):
            first = grouped.offsets(kind.src_type)[i]
            index = grouped.out_index(kind, i)
            src = np.repeat(np.arange(len(index.indptr) - 1), np.diff(index.indptr))
            others = graph.node_ids(kind.dst_type).to_numpy()[index.indices]
            found = ids[kind.src_type][src + first], others
            rows += zip(*(side.tolist() for side in found), strict=True)
            for j in range(2):
                bucket = grouped.bucket(kind, i, j)
                assert len(bucket.src) == grouped.bucket_counts(kind)[i, j]
                dst = bucket.dst + grouped.offsets(kind.dst_type)[j]
                ends = ids[kind.src_type][bucket.src + first], ids[kind.dst_type][dst]
                edges += zip(*(side.tolist() for side in ends), strict=True)
        wanted = sorted((u, v) for u, v, _ in edges_of(graph, kind))
        assert sorted(edges) == sorted(rows) == wanted


def test_nodes_and_features_follow_each_other(graph: Graph) -> None:
    whole = JoinedGraph(graph)
    ids = whole.nodes("user", 0).column("id").to_numpy()
    assert np.array_equal(ids, graph.node_ids("user").to_numpy())
    features = whole.features("user", 0, "x")
    assert np.array_equal(features, np.stack([2 * ids, 2 * ids + 1], axis=1))
    bags = whole.features("user", 0, "bag")
    assert isinstance(bags, pa.Array)
    assert bags.to_pylist() == [[k, k] for k in ids.tolist()]


def test_there_is_one_partition_and_the_stored_graph_stays_open(graph: Graph) -> None:
    whole = JoinedGraph(graph)
    with pytest.raises(InvalidGraphError, match="partitions 0 to 0, got 1"):
        whole.nodes("user", 1)
    whole.close()
    assert stored_graph(whole) is graph
    assert stored_graph(graph) is graph
    assert graph.nodes("user", 0).num_rows


def test_a_bucket_is_read_without_counting_all_of_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Edges of all buckets are counted once, though a view asks at each of its own."""
    ingest(Shop(), tmp_path / "shop", partitions={"user": 6, "item": 5})
    asked: list[str] = []
    named = manifest.bucket_file

    def count(generation: int, name: str, split: str, i: int, j: int) -> str:
        asked.append(name)
        return named(generation, name, split, i, j)

    monkeypatch.setattr(manifest, "bucket_file", count)
    with Graph(tmp_path / "shop") as graph:
        view = GroupedGraph(
            graph, {"user": [[0, 1, 2], [3, 4, 5]], "item": [[0, 1], [2, 3, 4]]}
        )
        for bucket in view.buckets(BUYS):
            view.bucket(BUYS, *bucket)
    assert len(asked) <= 2 * 6 * 5
