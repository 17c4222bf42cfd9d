"""Products and transposes against NumPy, for sizes around the width of a vector."""

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from graphsys.kernels.cpu.embedding.products import multiply, multiply_by_rows, transpose

Floats = npt.NDArray[np.float32]
SIZES = [1, 2, 5, 15, 16, 17, 33, 50, 100, 130]


def close(found: Floats, wanted: Floats) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("columns", SIZES)
def test_products_equal_those_of_numpy(columns: int) -> None:
    rng = np.random.default_rng(columns)
    for rows, depth in product((0, 1, 3, 4, 6, 50), (0, 1, 7, 128, 300)):
        a = rng.normal(size=(rows, depth)).astype(np.float32)
        b = rng.normal(size=(depth, columns)).astype(np.float32)
        out = np.full((rows, columns), np.nan, dtype=np.float32)
        multiply(a, b, out, False)
        close(out, a @ b)
        multiply(a, b, out, True)
        close(out, 2 * (a @ b))


def test_operands_are_views_at_any_stride() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(50, 90)).astype(np.float32)
    rows = rng.normal(size=(50, 100)).astype(np.float32)
    out = np.zeros((40, 100), dtype=np.float32)
    multiply(scores[:, 50:].T, rows, out, False)
    close(out, scores[:, 50:].T @ rows)
    wide = np.zeros((50, 90), dtype=np.float32)
    multiply(scores[:, :40], rows[:40, :30], wide[:, 60:], False)
    close(wide[:, 60:], scores[:, :40] @ rows[:40, :30])
    assert not wide[:, :60].any()


@pytest.mark.parametrize("columns", SIZES)
def test_transposes_are_exact(columns: int) -> None:
    for rows in SIZES:
        a = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
        out = np.zeros((columns, rows), dtype=np.float32)
        transpose(a, out)
        np.testing.assert_array_equal(out, a.T)


def test_inner_products_of_rows() -> None:
    rng = np.random.default_rng(1)
    a = rng.normal(size=(20, 37)).astype(np.float32)
    b = rng.normal(size=(31, 37)).astype(np.float32)
    out = np.empty((20, 31), dtype=np.float32)
    multiply_by_rows(a, b, np.empty(b.size, dtype=np.float32), out)
    close(out, a @ b.T)


def test_a_number_that_is_not_one_is_found_again() -> None:
    a = np.ones((3, 20), dtype=np.float32)
    a[1, 19] = np.nan
    out = np.zeros((3, 20), dtype=np.float32)
    multiply(a, np.ones((20, 20), dtype=np.float32), out, False)
    assert np.isnan(out).all(axis=1).tolist() == [False, True, False]
