import ctypes

import numpy as np

from graphsys.embedding.blas import _loaded_libraries, single_threaded_blas
from graphsys.kernels.cpu.embedding.vector_math import normalize_rows


def test_a_row_of_zeros_has_no_direction() -> None:
    rows, norms = np.zeros((2, 3), dtype=np.float32), np.empty(2, dtype=np.float32)
    rows[1] = 2
    out = np.empty_like(rows)
    normalize_rows(rows, out, norms)
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
