"""The parts of a softmax against NumPy, for sizes around the width of a vector."""

import numpy as np
import pytest

from graphsys.kernels.cpu.embedding.softmax import begin_row, exp_shifted, scale
from graphsys.kernels.cpu.embedding.vector_math import fast_exp

SIZES = [1, 7, 15, 16, 17, 33, 100]
BEHIND = 5.0  # what lies behind a row stays


@pytest.mark.parametrize("size", SIZES)
def test_a_row_gets_its_biases_and_loses_one_node(size: int) -> None:
    rng = np.random.default_rng(size)
    scores, bias = rng.normal(size=(2, size)).astype(np.float32)
    nodes = rng.integers(0, 4, size)
    for own in range(5):
        row = np.append(scores, np.float32(BEHIND))
        highest = begin_row(row[:size], bias, nodes, own)
        wanted = np.where(nodes == own, -np.inf, scores + bias).astype(np.float32)
        assert row[:size].tolist() == wanted.tolist()
        assert highest == wanted.max()
        assert row[size] == BEHIND


@pytest.mark.parametrize("size", SIZES)
def test_the_maximum_is_looked_for_everywhere_but_in_what_is_no_number(size: int) -> None:
    nodes, bias = np.arange(size), np.zeros(size, dtype=np.float32)
    for place in range(size):
        row = np.full(size, -3, dtype=np.float32)
        row[place - 1] = np.nan
        row[place] = -2
        assert begin_row(row, bias, nodes, -1) == -2


def test_exp_is_accurate_and_zero_far_below() -> None:
    x = np.linspace(-59.9, 0, 100_001).astype(np.float32)
    found = x.copy()
    total = exp_shifted(found, np.float32(0))
    np.testing.assert_allclose(found, np.exp(x.astype(np.float64)), rtol=2e-7)
    assert total == pytest.approx(found.sum(dtype=np.float64), rel=1e-4)
    assert found[-9:].tolist() == [fast_exp(y) for y in x[-9:]]
    low = np.array([-61, -1e30, -np.inf, np.nan], dtype=np.float32)
    assert exp_shifted(low, np.float32(0)) == 0
    assert low.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("size", SIZES)
def test_exponentials_and_factors_stay_inside_the_row(size: int) -> None:
    x = np.random.default_rng(size).normal(size=size).astype(np.float32)
    shift = x.max()
    row = np.append(x, np.float32(BEHIND))
    total = exp_shifted(row[:size], shift)
    wanted = np.exp(x.astype(np.float64) - shift)
    np.testing.assert_allclose(row[:size], wanted, rtol=1e-6)
    assert total == pytest.approx(wanted.sum(), rel=1e-6)
    scale(row[:size], np.float32(2))
    np.testing.assert_allclose(row[:size], 2 * wanted, rtol=1e-6)
    assert row[size] == BEHIND
