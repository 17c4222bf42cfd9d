"""What every partitioner keeps to; tests/meta demands a line here for each of them."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsys.core.errors import UnknownNameError
from graphsys.partitioners import get_partitioner

CONTRACT_RUNS = ("hash", "random", "range")
"""Names of the partitioners that the tests below run on."""

Hashes = npt.NDArray[np.uint64]


def draw_nodes(num_nodes: int, seed: int = 0) -> tuple[Hashes, Hashes]:
    """Return hashes and ranks of ``num_nodes`` different nodes, in a mixed order."""
    rng = np.random.default_rng(seed)
    ranks = rng.permutation(num_nodes).astype(np.uint64) * np.uint64(3)
    hashes = rng.integers(2**64 - 1, size=num_nodes, dtype=np.uint64)
    return hashes, ranks


@pytest.mark.parametrize("name", CONTRACT_RUNS)
class TestPartitioner:
    @given(
        num_nodes=st.integers(0, 200),
        num_partitions=st.integers(1, 9),
        seed=st.integers(0, 2**32),
    )
    def test_every_node_gets_a_partition_that_exists(
        self, name: str, num_nodes: int, num_partitions: int, seed: int
    ) -> None:
        hashes, ranks = draw_nodes(num_nodes)
        parts = get_partitioner(name)(hashes, ranks, num_partitions, seed)
        assert parts.dtype == np.uint32
        assert parts.shape == (num_nodes,)
        assert (parts < num_partitions).all()

    def test_same_nodes_and_seed_give_the_same_partitions(self, name: str) -> None:
        hashes, ranks = draw_nodes(1000)
        call = get_partitioner(name)
        assert (call(hashes, ranks, 4, 7) == call(hashes.copy(), ranks.copy(), 4, 7)).all()

    def test_a_node_keeps_its_partition_when_nodes_are_reordered(self, name: str) -> None:
        hashes, ranks = draw_nodes(1000)
        order = np.random.default_rng(1).permutation(1000)
        call = get_partitioner(name)
        mixed = call(hashes[order], ranks[order], 4, 7)
        assert (mixed == call(hashes, ranks, 4, 7)[order]).all()

    def test_sizes_are_about_equal(self, name: str) -> None:
        hashes, ranks = draw_nodes(100_000)
        sizes = np.bincount(get_partitioner(name)(hashes, ranks, 8, 0), minlength=8)
        # six standard deviations of a fair draw: 12,500 +- 627
        assert abs(sizes - 12_500).max() < 630

    def test_arguments_are_left_as_they_are(self, name: str) -> None:
        hashes, ranks = draw_nodes(100)
        before = hashes.copy(), ranks.copy()
        get_partitioner(name)(hashes, ranks, 3, 0)
        assert (hashes == before[0]).all()
        assert (ranks == before[1]).all()


def test_random_depends_on_the_seed_and_hash_does_not() -> None:
    hashes, ranks = draw_nodes(1000)

    def differs(name: str) -> bool:
        call = get_partitioner(name)
        return bool((call(hashes, ranks, 4, 0) != call(hashes, ranks, 4, 1)).any())

    assert differs("random")
    assert not differs("hash")


def test_range_keeps_neighbours_in_the_original_order_together() -> None:
    hashes, ranks = draw_nodes(100)
    parts = get_partitioner("range")(hashes, ranks, 4, 0)
    assert (np.diff(parts[np.argsort(ranks)].astype(np.int64)) >= 0).all()
    assert np.bincount(parts).tolist() == [25, 25, 25, 25]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"'rnage'.*hash, random, range.*'range'"):
        get_partitioner("rnage")
