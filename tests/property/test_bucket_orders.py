"""Orders of units and the buffer's swaps, against the papers' formulas and brute force."""

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsys.core.types import Bucket
from graphsys.embedding.data.bucket_order import (
    ORDERS,
    beta_states,
    beta_swaps,
    hilbert_distance,
    lower_bound,
    order_units,
)
from graphsys.embedding.data.schedule import BucketTask, inside_out, needs_of, units
from graphsys.embedding.training.eviction import Swap, SwapPlan

Need = frozenset[tuple[str, int]]
RNG = np.random.default_rng(0)


def grid(**partitions: int) -> list[Need]:
    """Return the needs of the units of edges between all types, inside out."""
    steps = [
        BucketTask(k, bucket, (a, bucket[0]), (b, bucket[1]), 1)
        for k, (a, b) in enumerate(itertools.product(partitions, repeat=2))
        for bucket in inside_out(
            Bucket(i, j) for i in range(partitions[a]) for j in range(partitions[b])
        )
    ]
    return [needs_of(unit, partitions) for unit in units(steps, partitions)]


def square(num_partitions: int) -> list[Need]:
    return grid(node=num_partitions)


def in_order(name: str, needs: list[Need], capacity: int, seed: int = 0) -> list[Need]:
    rng = np.random.default_rng(seed)
    return [needs[k] for k in order_units(name, needs, capacity, rng)]


def all_swaps(needs: list[frozenset[Any]], capacity: int) -> list[Swap[Any]]:
    """Return every load of a sequence of units, from an empty buffer on."""
    plan: SwapPlan[Any] = SwapPlan(capacity)
    plan.extend(needs)
    swaps: list[Swap[Any]] = []
    while not plan.is_done:
        swaps += plan.advance()
    return swaps


def count_swaps(needs: list[Need], capacity: int) -> int:
    """Return how often a partition is replaced; filling the buffer is not counted."""
    return sum(swap.evict is not None for swap in all_swaps(needs, capacity))


@pytest.mark.parametrize("name", ORDERS)
@given(
    partitions=st.dictionaries(
        st.sampled_from(["user", "item", "country"]), st.integers(1, 7), min_size=1
    ),
    capacity=st.integers(2, 9),
    seed=st.integers(0, 3),
)
def test_every_unit_is_trained_once_within_the_capacity_and_above_the_bound(
    name: str, partitions: dict[str, int], capacity: int, seed: int
) -> None:
    needs = grid(**partitions)
    order = order_units(name, needs, capacity, np.random.default_rng(seed))
    assert sorted(order) == list(range(len(needs)))
    sequence = [needs[k] for k in order]
    held: set[tuple[str, int]] = set()
    swaps = all_swaps(sequence, capacity)
    for unit, need in enumerate(sequence):
        for swap in (s for s in swaps if s.unit == unit):
            assert (swap.evict is None) == (len(held) < capacity)
            if swap.evict is not None:
                assert all(swap.evict not in n for n in sequence[swap.after + 1 : unit])
                held.remove(swap.evict)
            held.add(swap.load)
        assert need <= held
        assert len(held) <= capacity
    assert count_swaps(sequence, capacity) >= lower_bound(needs, capacity)
    # types with one partition are always there
    assert all(partitions[kind] > 1 for need in needs for kind, _ in need)


@given(num_partitions=st.integers(2, 24), capacity=st.integers(2, 24))
def test_beta_stays_within_its_formula_and_near_the_bound(
    num_partitions: int, capacity: int
) -> None:
    needs = square(num_partitions)
    published = beta_swaps(num_partitions, capacity)
    assert len(beta_states(num_partitions, capacity)) - 1 == published
    found = count_swaps(in_order("beta", needs, capacity), capacity)
    assert lower_bound(needs, capacity) <= found <= published
    # Mohoney et al., 2021: the bound for c of p partitions
    p, c = num_partitions, capacity
    pairs = (p * (p - 1) // 2 - c * (c - 1) // 2) / (c - 1)
    assert lower_bound(needs, capacity) == max(0, int(np.ceil(pairs)), p - c)


def test_beta_with_three_of_six_partitions_is_one_swap_above_the_bound() -> None:
    needs = square(6)
    assert count_swaps(in_order("beta", needs, 3), 3) == beta_swaps(6, 3) == 7
    assert lower_bound(needs, 3) == 6


@pytest.mark.parametrize(
    ("num_partitions", "capacity"), [(8, 4), (16, 4), (16, 8), (32, 8)]
)
def test_the_orders_made_for_a_buffer_swap_less_than_those_that_are_not(
    num_partitions: int, capacity: int
) -> None:
    needs = square(num_partitions)
    found = {n: count_swaps(in_order(n, needs, capacity), capacity) for n in ORDERS}
    assert found["beta"] == min(found.values())
    assert found["beta"] <= 1.5 * lower_bound(needs, capacity)
    assert found["comet"] < found["inside_out"] < found["random"]
    assert found["hilbert"] < found["affinity"] < found["inside_out"]
    assert found["inside_out"] == found["outside_in"]


def test_the_readme_states_the_swaps_of_every_order() -> None:
    needs = square(16)
    found = {n: count_swaps(in_order(n, needs, 4), 4) for n in ORDERS if n != "outside_in"}
    stated = {
        "beta": 42,
        "comet": 54,
        "hilbert": 56,
        "affinity": 86,
        "inside_out": 96,
        "random": 146,
    }
    assert found == stated
    assert lower_bound(needs, 4) == 38


@pytest.mark.parametrize("capacity", [2, 4, 5, 8])
def test_comet_swaps_at_most_what_its_logical_partitions_do(capacity: int) -> None:
    for num_partitions in range(2, 20):
        size = capacity // 2
        logical = -(-num_partitions // size)
        needs = square(num_partitions)
        found = count_swaps(in_order("comet", needs, capacity, seed=1), capacity)
        assert found <= size * beta_swaps(logical, 2)


def test_comet_differs_between_epochs_and_mixes_the_units() -> None:
    needs = square(8)
    first, second = (in_order("comet", needs, 4, seed) for seed in (0, 1))
    assert first != second
    assert first != in_order("beta", needs, 4)


@given(
    sequence=st.lists(
        st.frozensets(st.integers(0, 5), min_size=1, max_size=2), min_size=1, max_size=9
    ),
    capacity=st.integers(2, 4),
)
def test_no_replacement_loads_less_than_the_planned_one(
    sequence: list[frozenset[int]], capacity: int
) -> None:
    @functools.cache
    def fewest(at: int, held: frozenset[int]) -> int:
        if at == len(sequence):
            return 0
        wanted = held | sequence[at]
        leave = max(0, len(wanted) - capacity)
        loads = len(sequence[at] - held)
        choices = itertools.combinations(wanted - sequence[at], leave)
        return loads + min(fewest(at + 1, wanted - frozenset(out)) for out in choices)

    assert len(all_swaps(sequence, capacity)) == fewest(0, frozenset())


def test_a_plan_that_grows_knows_the_epoch_that_follows() -> None:
    epoch = [frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 2})]
    plan: SwapPlan[int] = SwapPlan(2)
    plan.extend(epoch)
    plan.extend(epoch)
    loads = [[swap.load for swap in plan.advance()] for _ in range(6)]
    assert loads == [[0, 1], [2], [0], [1], [2], [0]]
    assert plan.is_done


@pytest.mark.parametrize("side", [2, 4, 16])
def test_the_hilbert_curve_walks_to_neighbors_and_misses_no_cell(side: int) -> None:
    cells = itertools.product(range(side), repeat=2)
    walk = sorted(cells, key=lambda cell: hilbert_distance(side, *cell))
    assert [hilbert_distance(side, *cell) for cell in walk] == list(range(side * side))
    steps = np.abs(np.diff(np.array(walk), axis=0)).sum(axis=1)
    assert (steps == 1).all()


def test_affinity_keeps_a_partition_while_a_unit_with_it_is_left() -> None:
    sequence = in_order("affinity", square(6), 2)
    for at, (before, after) in enumerate(itertools.pairwise(sequence)):
        assert before & after or not any(before & need for need in sequence[at + 1 :])


def test_a_bucket_of_one_partition_needs_no_buffer() -> None:
    unit = [BucketTask(0, Bucket(0, 0), ("country", 0), ("country", 0), 3)]
    assert needs_of(unit, {"country": 1}) == frozenset()
