"""Kernels called through addresses: results, casts, errors, caches of another process."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from numba.core import types
from numba.core.errors import TypingError

from graphsys.kernels.jit import jit
from graphsys.kernels.pointers import address_of, pointer_call

Doubles = npt.NDArray[np.float64]
FLOATS = types.Array(types.float64, 1, "C")
call_reduce = pointer_call(types.float64, FLOATS, types.float64, types.boolean)


@jit
def total(values: Doubles, factor: float, is_negated: bool) -> float:
    result = 0.0
    for value in values:
        result += factor * value
    return -result if is_negated else result


@jit
def scaled_copy(values: Doubles, factor: float, is_negated: bool) -> float:
    made = values * factor  # allocates, so that counts of references pass through
    return float(made.max())


@jit
def count(values: Doubles, factor: float, is_negated: bool) -> int:
    return len(values)


@jit
def impossible(values: Doubles, factor: float, is_negated: bool) -> float:
    if is_negated:
        raise ValueError("negated")
    return factor


@jit
def reduce_rows(rows: Doubles, address: int, is_negated: bool) -> float:
    result = 0.0
    for i in range(len(rows)):
        result += call_reduce(address, rows[i], 2, is_negated)  # 2 is cast
    return result


ROWS = np.arange(12.0).reshape(3, 4)


def test_the_kernel_of_the_address_is_called() -> None:
    assert reduce_rows(ROWS, address_of(total, call_reduce), False) == 2 * ROWS.sum()
    assert reduce_rows(ROWS, address_of(total, call_reduce), True) == -2 * ROWS.sum()
    expected = 2 * ROWS.max(axis=1).sum()
    assert reduce_rows(ROWS, address_of(scaled_copy, call_reduce), False) == expected


def test_errors_of_the_kernel_reach_the_caller() -> None:
    address = address_of(impossible, call_reduce)
    assert reduce_rows(ROWS, address, False) == 6.0
    with pytest.raises(ValueError, match="negated"):
        reduce_rows(ROWS, address, True)


def test_the_result_is_cast_to_the_type_that_callers_know() -> None:
    assert reduce_rows(ROWS, address_of(count, call_reduce), False) == 12.0


def test_a_kernel_of_other_arguments_is_refused() -> None:
    with pytest.raises(TypingError):
        address_of(reduce_rows, call_reduce)


PROGRAM = """
import numpy as np
import numpy.typing as npt
from program_kernels import apart, whole, call
from graphsys.kernels.pointers import address_of
print(whole(np.arange(5.0), address_of(apart, call)))
print(sum(whole.stats.cache_hits.values()), sum(apart.stats.cache_hits.values()))
"""
KERNELS = """
from numba.core import types
from numba.core.errors import TypingError
from graphsys.kernels.jit import jit
from graphsys.kernels.pointers import pointer_call

call = pointer_call(types.float64, types.Array(types.float64, 1, "C"))

@jit
def apart(values):
    return values.sum()

@jit
def whole(values, address):
    return call(address, values) + 1.0
"""


def test_both_sides_come_from_the_cache_of_another_process(tmp_path: Path) -> None:
    (tmp_path / "program_kernels.py").write_text(KERNELS)
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    lines = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        lines.append(done.stdout.split("\n")[:2])
    assert lines == [["11.0", "0 0"], ["11.0", "1 1"]]
