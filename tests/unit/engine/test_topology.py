from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphsys as gs
from graphsys.core.errors import InvalidGraphError, UnknownNameError
from graphsys.datasets.recipes.build import build
from graphsys.engine.topology import Topology
from graphsys.engine.united_rows import Direction


def entries(topology: Topology, direction: Direction) -> list[tuple[int, int, float]]:
    """The rows as (row id, neighbor id, weight), sorted."""
    csr = topology.csr(direction)
    ids = topology.numbers.ids().to_numpy()
    rows = np.repeat(np.arange(csr.num_nodes), csr.degrees())
    assert csr.weight is not None
    columns = ids[rows].tolist(), ids[csr.indices].tolist(), csr.weight.tolist()
    return sorted(zip(*columns, strict=True))


@pytest.mark.parametrize(
    ("partitions", "undirected"), [(1, False), (1, True), (3, False), (3, True)]
)
def test_rows_are_the_edges_of_the_store(
    tmp_path: Path, partitions: int, undirected: bool
) -> None:
    rng = np.random.default_rng(0)
    src, dst = rng.integers(0, 100, 600) * 7, rng.integers(0, 100, 600) * 7
    weight = rng.random(600)
    gs.ingest(
        (src, dst, weight), tmp_path / "g", partitions=partitions, undirected=undirected
    )
    topology = Topology.of(tmp_path / "g")
    out = sorted(zip(src.tolist(), dst.tolist(), weight.tolist(), strict=True))
    if undirected:
        out = sorted(out + [(b, a, w) for a, b, w in out if a != b])
    assert entries(topology, "out") == out
    assert entries(topology, "in") == sorted((b, a, w) for a, b, w in out)
    assert topology.num_edges == len(out)
    ids = topology.numbers.ids().to_numpy()
    rank = np.arange(len(ids)) if topology.rank is None else topology.rank
    assert (rank == np.argsort(np.argsort(ids))).all()
    assert ids[topology.number(int(src[0]))] == src[0]

    simple = topology.simple()
    rows = np.repeat(np.arange(simple.num_nodes), simple.degrees())
    pairs = {(a, b) for a, b, _ in out if a != b}
    pairs |= {(b, a) for a, b in pairs}
    found = zip(ids[rows].tolist(), ids[simple.indices].tolist(), strict=True)
    assert sorted(found) == sorted(pairs)


def test_types_are_numbered_one_after_the_other(tmp_path: Path) -> None:
    recipe = build("demo", tmp_path / "demo")
    topology = Topology.of(recipe.graph)
    graph = recipe.graph
    expected: list[tuple[int, int]] = []
    for edge_type in graph.edge_types:
        src = topology.numbers.base(edge_type.src_type)
        dst = topology.numbers.base(edge_type.dst_type)
        for bucket in graph.buckets(edge_type):
            edges = graph.bucket(edge_type, *bucket)
            first = graph.offsets(edge_type.src_type)[bucket.src_part] + src
            other = graph.offsets(edge_type.dst_type)[bucket.dst_part] + dst
            expected += zip(
                (edges.src + first).tolist(), (edges.dst + other).tolist(), strict=True
            )
    out = topology.csr("out")
    rows = np.repeat(np.arange(out.num_nodes), out.degrees())
    if topology.is_directed:  # the demo's edges all have a direction
        assert sorted(expected) == list(
            zip(rows.tolist(), out.indices.tolist(), strict=True)
        )
    assert topology.table({"value": rows[: out.num_nodes]}).column_names[:2] == [
        "id",
        "type",
    ]


def test_edges_in_memory_equal_a_store() -> None:
    src, dst = np.array([0, 1, 2, 2]), np.array([1, 2, 0, 2])
    topology = Topology.from_edges(src, dst, 4, directed=False, ids=["d", "c", "b", "a"])
    assert topology.num_edges == 7
    assert topology.number("b") == 2
    assert topology.rank is not None
    assert topology.rank.tolist() == [3, 2, 1, 0]
    assert topology.numbers.ids_at_ranks(np.array([0, 3])).to_pylist() == ["a", "d"]
    assert topology.csr("in") is topology.csr("out")


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidGraphError, match="src must lie in 0 to 1, got 0 to 2"):
        Topology.from_edges(np.array([0, 2]), np.array([1, 1]), 2)
    with pytest.raises(InvalidGraphError, match="2 nodes need as many ids, got 1"):
        Topology.from_edges(np.array([0]), np.array([1]), 2, ids=[5])
    with pytest.raises(InvalidGraphError, match="an id of its own"):
        Topology.from_edges(np.array([0]), np.array([1]), 2, ids=["a", "a"])
    with pytest.raises(UnknownNameError, match="node 9 is not among the 2 nodes"):
        Topology.from_edges(np.array([0]), np.array([1]), 2).number(9)


def test_arrays_of_other_kinds_are_taken_or_refused() -> None:
    foreign = np.array([0, 1], dtype=">i8"), np.array([1, 0], dtype=">i4")
    weight = np.array([1.5, 2.0], dtype=">f4")
    graph = Topology.from_edges(*foreign, 2, weight=weight)
    assert graph.csr("out").weight.tolist() == [1.5, 2.0]  # type: ignore[union-attr]
    assert Topology.from_edges([], [], 3).num_nodes == 3
    masked: Any = np.ma.array([0, 1], mask=np.array([False, True]))
    with pytest.raises(InvalidGraphError, match="src has 1 masked values, expected none"):
        Topology.from_edges(masked, [1, 0], 2)
    for wrong in ([1.0, 2.0], [[1.0]]):
        with pytest.raises(InvalidGraphError, match="weight must be as long as src, got"):
            Topology.from_edges([0], [1], 2, weight=wrong)
    with pytest.raises(InvalidGraphError, match="weight must be numbers, got <U1"):
        Topology.from_edges([0], [1], 2, weight=["a"])
