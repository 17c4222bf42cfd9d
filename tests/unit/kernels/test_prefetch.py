"""Asking for memory early changes nothing, behind the end of an array neither."""

import re
from typing import Any

import numba
import numpy as np
import pytest

from graphsys.kernels.cpu.prefetch import prefetch, prefetch_row, prefetch_row_far
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


@lean_jit
def total_of_rows(table: Any, ahead: int) -> float:
    """Add up a matrix, asking for rows further on."""
    found = 0.0
    for i in range(len(table)):
        prefetch_row(table, i + ahead)
        prefetch_row_far(table, i + 2 * ahead)
        for x in table[i]:
            found += x
    return found


@pytest.mark.parametrize("ahead", [0, 2, 10**8])
def test_a_sum_over_rows_is_the_same(ahead: int) -> None:
    table = np.arange(700.0, dtype=np.float32).reshape(7, 100)
    assert total_of_rows(table, ahead) == table.sum(dtype=np.float64)
    np.testing.assert_array_equal(table.ravel(), np.arange(700))


def test_every_line_of_a_row_is_asked_for() -> None:
    compiled = numba.njit(total_of_rows.py_func)  # type: ignore[attr-defined]
    compiled(np.zeros((2, 100), dtype=np.float32), 1)
    text = "".join(compiled.inspect_llvm().values())
    for locality in (3, 2):  # all levels, all but the first
        assert re.search(rf"llvm\.prefetch\.p0\(.*i32 0, i32 {locality}, i32 1\)", text)


def test_the_processor_is_asked() -> None:
    compiled = numba.njit(total.py_func)  # type: ignore[attr-defined]  # not from the cache
    compiled(np.arange(4.0), 2)
    assert any("llvm.prefetch" in text for text in compiled.inspect_llvm().values())
