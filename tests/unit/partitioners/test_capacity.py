"""What a partition holds at most, where neighbors pull everything into one."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from graphsys.kernels.cpu.algorithms.partition import UNASSIGNED, stream_pass
from graphsys.partitioners import greedy
from graphsys.partitioners.testing import EdgeStream

FENNEL = 1e-9  # so weak a penalty that only the capacity keeps partitions apart


def clique(num: int, first: int = 0) -> npt.NDArray[np.int64]:
    return np.argwhere(np.tri(num, k=-1)).astype(np.int64) + first


def assigned(weight: float, capacity: float, alpha: float, **changes: Any) -> list[int]:
    """Return the partitions of a clique's 8 nodes in their order, of 4 partitions."""
    indptr = np.arange(0, 8 * 8 + 1, 8)
    indices = np.tile(np.arange(8, dtype=np.uint32), 8)
    parts = np.full(8, UNASSIGNED, dtype=np.uint32)
    loads, sizes = np.zeros(4), np.zeros(4, dtype=np.int64)
    stream_pass(
        0,
        indptr,
        indices,
        np.full(8, weight),
        parts,
        loads,
        capacity,
        sizes,
        changes.get("max_size", 8),
        alpha,
        1.5,
        False,
    )
    assert loads.tolist() == np.bincount(parts, minlength=4).dot(weight).tolist()
    return [int(part) for part in parts]


@pytest.mark.parametrize("alpha", [0.0, FENNEL])
@pytest.mark.parametrize(
    ("weight", "capacity", "expected"),
    [
        (2.0, 5.0, [0, 0, 1, 1, 2, 2, 3, 3]),  # a third one would be too much
        (1.0, 3.0, [0, 0, 0, 1, 1, 1, 2, 2]),  # full to the brim
    ],
)
def test_a_full_partition_is_not_picked(
    alpha: float, weight: float, capacity: float, expected: list[int]
) -> None:
    assert assigned(weight, capacity, alpha) == expected


@pytest.mark.parametrize("alpha", [0.0, FENNEL])
def test_where_all_are_full_the_lightest_is_picked(alpha: float) -> None:
    assert assigned(3.0, 5.0, alpha) == [0, 1, 2, 3, 0, 1, 2, 3]


@pytest.mark.parametrize("alpha", [0.0, FENNEL])
def test_no_partition_has_more_nodes_than_allowed(alpha: float) -> None:
    assert assigned(1.0, 100.0, alpha, max_size=2) == [0, 0, 1, 1, 2, 2, 3, 3]
    # too many nodes is worse than too much load
    assert assigned(9.0, 5.0, alpha, max_size=2) == [0, 1, 2, 3, 0, 1, 2, 3]


@pytest.mark.parametrize("is_fennel", [False, True])
@pytest.mark.parametrize("is_restreamed", [False, True])
def test_two_cliques_in_four_partitions_stay_within_the_slack(
    is_fennel: bool, is_restreamed: bool
) -> None:
    stream = EdgeStream(120, np.concatenate([clique(60), clique(60, 60)]))
    parts = greedy.stream_greedily(
        stream, 4, is_fennel=is_fennel, is_restreamed=is_restreamed
    )
    loads = np.bincount(parts, weights=stream.degrees + 1.0, minlength=4)
    even = loads.sum() / 4
    assert loads.max() <= 1.05 * even
    if not (is_fennel or is_restreamed):  # a clique keeps its last nodes as far as it may
        assert loads.max() > 1.02 * even
