"""stable_argsort against numpy's stable argsort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsys.graph.sort import stable_argsort


@given(st.lists(st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**63, 2**64 - 1])))
def test_any_keys_sort_as_numpy_sorts_them(keys: list[int]) -> None:
    array = np.array(keys, dtype=np.uint64)
    before = array.copy()
    assert stable_argsort(array).tolist() == np.argsort(array, kind="stable").tolist()
    assert (array == before).all()


@pytest.mark.parametrize("high", [2, 1000, 2**40, 2**63, 2**64 - 1])
@pytest.mark.parametrize("base", [0, 2**63])
def test_many_keys_narrow_and_wide(high: int, base: int, rng: np.random.Generator) -> None:
    keys = rng.integers(0, high, 100_000, dtype=np.uint64) | np.uint64(base)
    order = stable_argsort(keys)
    assert order.dtype == np.uint32
    assert (order == np.argsort(keys, kind="stable")).all()


def test_long_runs_that_tie_in_their_high_bits(rng: np.random.Generator) -> None:
    """Keys that fill 64 bits and differ only in the low ones, which packing leaves out."""
    high = rng.integers(0, 3, 50_000, dtype=np.uint64) << np.uint64(62)
    keys = high | rng.integers(0, 50, 50_000, dtype=np.uint64)
    assert (stable_argsort(keys) == np.argsort(keys, kind="stable")).all()
