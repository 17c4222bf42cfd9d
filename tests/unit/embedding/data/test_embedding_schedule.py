import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsys.core.types import Bucket, EdgeType
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.data.schedule import (
    BucketSchedule,
    BucketTask,
    Layout,
    cut_bucket,
    inside_out,
    units,
)
from graphsys.embedding.model import RelationSet

NONE = np.empty(0, dtype=np.uint32)


def test_units_trained_before_come_first() -> None:
    steps = [
        BucketTask(0, bucket, ("node", bucket.src_part), ("node", bucket.dst_part), 1)
        for bucket in inside_out(grid(3, 3))
    ]
    schedule = BucketSchedule(steps, {"node": 3}, Layout(), 0)
    plain, needs = schedule.epoch(4), schedule.needs(4)
    schedule.put_first(4, [5, 2])
    assert schedule.places(4) == [2, 5, 0, 1, 3, 4]
    assert schedule.epoch(4) == [plain[k] for k in schedule.places(4)]
    assert schedule.needs(4) == [needs[k] for k in schedule.places(4)]
    assert schedule.places(5) == list(range(6))


def some_relations(count: int, has_all: bool) -> RelationSet:
    """Return relations of which every third has all nodes as negatives, or none has."""
    return RelationSet(
        name="edge",
        edge_type=EdgeType("node", "edge", "node"),
        relations=[str(k) for k in range(count)],
        codes=np.zeros(count, np.int64),
        offsets=np.zeros(count + 1, np.int64),
        weights=np.ones(count, np.float32),
        lr_factors=np.ones(count, np.float32),
        all_negatives=(np.arange(count) % 3 == 1) & has_all,
        num_sides=1,
    )


def grid(num_src: int, num_dst: int) -> list[Bucket]:
    """List the buckets of a grid."""
    return [Bucket(i, j) for i in range(num_src) for j in range(num_dst)]


@given(num_src=st.integers(1, 9), num_dst=st.integers(1, 9))
def test_inside_out_visits_every_bucket_once(num_src: int, num_dst: int) -> None:
    order = inside_out(grid(num_src, num_dst))
    assert len(order) == num_src * num_dst
    assert set(order) == {(i, j) for i in range(num_src) for j in range(num_dst)}


@pytest.mark.parametrize("size", [2, 5, 8])
def test_inside_out_trains_one_known_partition_at_each_step(size: int) -> None:
    order = inside_out(grid(size, size))
    seen: set[int] = set(order[0])
    for bucket in order[1:]:
        assert seen & set(bucket)
        seen |= set(bucket)


def test_units_join_edge_types_that_need_the_same_partitions() -> None:
    steps = [
        BucketTask(0, Bucket(i, 0), ("user", i), ("country", 0), 5) for i in range(3)
    ] + [
        BucketTask(1, Bucket(i, j), ("user", i), ("user", j), 5)
        for i in range(3)
        for j in range(3)
    ]
    found = units(steps, {"user": 3, "country": 1})
    keys = [{p for s in unit for p in (s.src, s.dst) if p[0] == "user"} for unit in found]
    assert all(len(key) <= 2 for key in keys)
    assert len({frozenset(key) for key in keys}) == len(keys) == 6
    assert sum(len(unit) for unit in found) == len(steps)
    assert [s.edge_type for s in found[0]] == [0, 1]  # both know only user 0


def test_the_buffer_begins_anew_where_groups_change_and_only_there() -> None:
    def step(k: int, phase: int, turn: int) -> BucketTask:
        return BucketTask(0, Bucket(k, k), ("n", k), ("n", k), 5, phase=phase, round=turn)

    plain = [step(k, phase, 0) for phase in range(2) for k in range(3)]
    whole = BucketSchedule(plain, {"n": 3}, Layout(), 0)
    assert whole.stretches() == [slice(0, 6)]
    assert whole.stretches(4) == [slice(4, 6)]
    grouped = [
        step(2 * turn + k, phase, turn)
        for phase in range(2)
        for turn in range(2)
        for k in range(2)
    ]
    schedule = BucketSchedule(grouped, {"n": 4}, Layout(), 0)
    assert schedule.stretches() == [slice(k, k + 2) for k in (0, 2, 4, 6)]
    assert schedule.stretches(3) == [slice(3, 4), slice(4, 6), slice(6, 8)]
    for units_of in schedule.stretches():
        rounds = {s.round for unit in schedule.epoch(1)[units_of] for s in unit}
        assert len(rounds) == 1


@given(
    num_edges=st.integers(0, 60),
    chunk=st.integers(1, 9),
    per_batch=st.integers(1, 3),
    num_relations=st.integers(1, 4),
    reciprocal=st.booleans(),
    has_all=st.booleans(),
    seed=st.integers(0, 9),
)
def test_cutting_uses_every_edge_once(
    num_edges: int,
    chunk: int,
    per_batch: int,
    num_relations: int,
    reciprocal: bool,
    has_all: bool,
    seed: int,
) -> None:
    config = EmbeddingConfig(
        seed=seed,
        reciprocal=reciprocal,
        num_batch_negatives=chunk,
        batch_size=chunk * per_batch,
    )
    nodes = np.arange(num_edges, dtype=np.uint32)
    relation = (nodes * 7 % num_relations).astype(np.uint32)
    relations = some_relations(num_relations, has_all)
    weight = np.empty(0, np.float32)
    edges = cut_bucket(nodes, nodes, relation, weight, relations, config, ("test",))
    assert sorted(edges.order.tolist()) == nodes.tolist()
    covered = np.concatenate([NONE, *(edges.order[a:b] for a, b in edges.chunks)])
    assert sorted(covered.tolist()) == nodes.tolist()
    assert all(0 < b - a <= chunk for a, b in edges.chunks)
    if not reciprocal:
        assert all(len(set(relation[edges.order[a:b]])) == 1 for a, b in edges.chunks)
    for a, b in edges.chunks:  # all nodes are negatives of all positives, or of none
        assert len(set(relations.all_negatives[relation[edges.order[a:b]]])) == 1
    assert edges.batches[0] == 0
    assert edges.batches[-1] == len(edges.chunks)
    assert (np.diff(edges.batches) <= per_batch).all()
    again = cut_bucket(nodes, nodes, relation, weight, relations, config, ("test",))
    assert (again.order == edges.order).all()


def test_only_the_chosen_edges_of_a_bucket_are_cut() -> None:
    config = EmbeddingConfig(num_batch_negatives=4, batch_size=8)
    nodes = np.arange(20, dtype=np.uint32)
    relation, relations = (nodes % 3).astype(np.uint32), some_relations(3, False)
    chosen = np.array([1, 4, 5, 17, 18], dtype=np.uint32)
    weight = np.empty(0, np.float32)
    edges = cut_bucket(
        nodes, nodes, relation, weight, relations, config, ("test",), chosen.copy()
    )
    covered = np.concatenate([edges.order[a:b] for a, b in edges.chunks])
    assert sorted(covered.tolist()) == chosen.tolist()
    none = cut_bucket(nodes, nodes, relation, weight, relations, config, ("test",), NONE)
    assert len(none.order) == len(none.chunks) == 0
    assert none.batches.tolist() == [0]
