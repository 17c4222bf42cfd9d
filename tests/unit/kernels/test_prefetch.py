"""Asking for memory early changes nothing, behind the end of an array neither."""

from typing import Any

import numba
import numpy as np
import pytest

from graphsys.kernels.cpu.prefetch import prefetch
from graphsys.kernels.jit import lean_jit


@lean_jit
def total(values: Any, ahead: int) -> float:
    """Add up an array, asking for elements further on."""
    found = 0.0
    for i in range(len(values)):
        prefetch(values, i + ahead)
        found += values[i]
    return found


@pytest.mark.parametrize("dtype", ["uint32", "int64", "float32", "float64"])
@pytest.mark.parametrize("ahead", [0, 16, 10**9])
def test_a_sum_is_the_same(dtype: str, ahead: int) -> None:
    values = np.arange(100).astype(dtype)
    assert total(values, ahead) == 4950.0
    np.testing.assert_array_equal(values, np.arange(100))


def test_the_processor_is_asked() -> None:
    compiled = numba.njit(total.py_func)  # type: ignore[attr-defined]  # not from the cache
    compiled(np.arange(4.0), 2)
    assert any("llvm.prefetch" in text for text in compiled.inspect_llvm().values())
