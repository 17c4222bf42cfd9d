"""Distinct values are those of ``np.unique``, found by sorting; arrays load in threads."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsys.core.arrays import aligned_empty, distinct, load_array, npy_pieces

KINDS = ("int8", "uint32", "int64", "uint64", "float32", "bool")


@given(
    st.sampled_from(KINDS).flatmap(
        lambda kind: hnp.arrays(
            kind,
            hnp.array_shapes(min_dims=1, max_dims=2, min_side=0),
            elements={"allow_nan": False} if kind == "float32" else None,
        )
    )
)
def test_they_are_those_of_numpy(values: np.ndarray) -> None:
    found = distinct(values)
    np.testing.assert_array_equal(found, np.unique(values))
    assert found.dtype == values.dtype


@pytest.mark.parametrize("high", [8, 1 << 40])
def test_they_are_found_as_fast_as_values_are_sorted(
    rng: np.random.Generator, high: int
) -> None:
    values = rng.integers(0, high, 1_000_000)

    def seconds(function: object) -> float:
        began = time.thread_time()
        function(values)  # type: ignore[operator]
        return time.thread_time() - began

    ratios = [seconds(distinct) / seconds(lambda it: np.sort(it)) for _ in range(7)]
    assert min(ratios) < 4  # np.unique takes fifty times as long where they differ


def test_headers_are_parsed_by_one_thread_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside: list[int] = []
    most: list[int] = []

    def load(file: Path, **_: Any) -> Path:
        inside.append(1)
        time.sleep(0.002)
        most.append(len(inside))
        inside.pop()
        return file

    monkeypatch.setattr(np, "load", load)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(load_array, [tmp_path] * 8))
    assert most == [1] * 8


def test_arrays_are_mapped_and_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    assert isinstance(load_array(tmp_path / "a.npy"), np.memmap)
    assert not load_array(tmp_path / "a.npy").flags.writeable
    assert type(load_array(tmp_path / "a.npy", None)) is np.ndarray
    (tmp_path / "p.npy").write_bytes(b"")
    with pytest.raises(EOFError):
        load_array(tmp_path / "p.npy")
    np.save(tmp_path / "o.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match="Object arrays"):
        load_array(tmp_path / "o.npy", None)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int32).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12, dtype=np.uint8)[::3],
        np.empty((0, 4), np.float32),
        np.array(2.5),
        np.array([True, False]),
    ],
    ids=["rows", "columns", "strided", "empty", "number", "flags"],
)
def test_npy_pieces_are_a_file_that_numpy_reads(
    array: npt.NDArray[Any], tmp_path: Path
) -> None:
    file = tmp_path / "a.npy"
    file.write_bytes(b"".join(npy_pieces(array)))
    found = load_array(file, None)
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.tolist() == array.tolist()


@pytest.mark.parametrize("length", [0, 1, 1000, 1 << 20])
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
def test_arrays_begin_where_a_cache_line_does(length: int, dtype: str) -> None:
    found = aligned_empty(length, dtype)
    assert (found.shape, found.dtype) == ((length,), np.dtype(dtype))
    assert not length or found.ctypes.data % 64 == 0
    found[:] = 1
    assert found.sum() == length
