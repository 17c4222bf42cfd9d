import ctypes

import numpy as np
import pytest

from graphsys.embedding.blas import _loaded_libraries, single_threaded_blas
from graphsys.kernels.cpu.embedding_math import exp_shifted, normalise_rows, row_maximum


def test_exp_is_accurate_and_zero_far_below() -> None:
    x = np.linspace(-59.9, 60, 100_001).astype(np.float32)
    found = x.copy()
    exp_shifted(found, np.float32(0))
    np.testing.assert_allclose(found, np.exp(x.astype(np.float64)), rtol=2e-7)
    low = np.array([-61, -1e30, -np.inf], dtype=np.float32)
    exp_shifted(low, np.float32(0))
    assert low.tolist() == [0, 0, 0]


@pytest.mark.parametrize("size", [1, 15, 16, 17, 100])
def test_row_maximum_looks_at_every_place(size: int) -> None:
    for place in range(size):
        row = np.full(size, -3, dtype=np.float32)
        row[place] = -2
        assert row_maximum(row, np.empty(16, dtype=np.float32)) == -2


def test_a_row_of_zeros_has_no_direction() -> None:
    rows, norms = np.zeros((2, 3), dtype=np.float32), np.empty(2, dtype=np.float32)
    rows[1] = 2
    out = np.empty_like(rows)
    normalise_rows(rows, out, norms)
    np.testing.assert_allclose(out, [[0.0] * 3, [3**-0.5] * 3], rtol=1e-6)


def test_scipys_blas_runs_on_one_thread_inside_the_block_only() -> None:
    def threads() -> list[int]:
        libraries = [ctypes.CDLL(path) for path in _loaded_libraries()]
        names = ("scipy_openblas_get_num_threads", "scipy_openblas_get_num_threads64_")
        return [getattr(lib, n)() for lib in libraries for n in names if hasattr(lib, n)]

    with single_threaded_blas():
        assert set(threads()) <= {1}
        before = len(threads())
    assert len(threads()) == before
