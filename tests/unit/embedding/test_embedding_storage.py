"""Rows in 16 and 8 bits: what they stand for, and that they are rounded without bias."""

import numba
import numpy as np
import pytest

from graphsys.embedding.rows.row_precision import are_finite, to_floats, to_stored
from graphsys.kernels.cpu.embedding.rows import (
    Optimizer,
    Tables,
    accumulate,
    allocate_sums,
    gather,
    update_rows,
)
from graphsys.kernels.cpu.embedding.storage import (
    narrow_bfloat,
    narrow_half,
    noise,
    store_row,
    widen_bfloat,
    widen_half,
)

ALL = np.arange(1 << 16, dtype=np.uint16)


@numba.njit
def _widen(bits, is_half, out):  # type: ignore[no-untyped-def]
    for i in range(bits.size):
        out[i] = widen_half(bits[i]) if is_half else widen_bfloat(bits[i])


@numba.njit
def _narrow(x, draws, is_half, out):  # type: ignore[no-untyped-def]
    for i in range(x.size):
        draw = draws[i]
        out[i] = narrow_half(x[i], draw) if is_half else narrow_bfloat(x[i], draw)


@numba.njit
def _noise(keys, columns, out):  # type: ignore[no-untyped-def]
    for i in range(keys.size):
        for k in range(columns):
            out[i, k] = noise(keys[i], k)


def meaning(is_half: bool) -> np.ndarray:
    if is_half:
        return ALL.view(np.float16).astype(np.float32)
    return (ALL.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("is_half", [False, True])
def test_every_pattern_means_what_numpy_says(is_half: bool) -> None:
    found = np.empty(ALL.size, dtype=np.float32)
    _widen(ALL, is_half, found)
    np.testing.assert_array_equal(found, meaning(is_half))


@pytest.mark.parametrize("is_half", [False, True])
@pytest.mark.parametrize("draw", [0, 1, 40_000, 65_535])
def test_what_is_stored_is_read_and_stored_again_unchanged(
    is_half: bool, draw: int
) -> None:
    wanted = meaning(is_half)
    fine = np.isfinite(wanted)
    found = np.empty(fine.sum(), dtype=np.uint16)
    draws = np.full(found.size, draw, dtype=np.uint32)
    _narrow(wanted[fine], draws, is_half, found)
    np.testing.assert_array_equal(found, ALL[fine])


@pytest.mark.parametrize("is_half", [False, True])
@pytest.mark.parametrize("x", [1.2345678, -0.01, 3e-5, -1e-6, 333.3])
def test_rounding_is_unbiased_and_to_a_neighbor(is_half: bool, x: float) -> None:
    draws = np.arange(1 << 16, dtype=np.uint32)
    bits = np.empty(draws.size, dtype=np.uint16)
    _narrow(np.full(draws.size, x, dtype=np.float32), draws, is_half, bits)
    values = np.empty(draws.size, dtype=np.float32)
    _widen(bits, is_half, values)
    below, above = np.unique(values)
    assert below <= np.float32(x) <= above
    mean = values.astype(np.float64).mean()
    assert abs(mean - np.float32(x)) < (above - below) * 1e-3


@pytest.mark.parametrize("is_half", [False, True])
def test_what_is_not_finite_stays_so(is_half: bool) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 7e4], dtype=np.float32)
    bits, values = np.empty(4, dtype=np.uint16), np.empty(4, dtype=np.float32)
    _narrow(x, np.zeros(4, dtype=np.uint32), is_half, bits)
    _widen(bits, is_half, values)
    assert values[:2].tolist() == [np.inf, -np.inf]
    assert np.isnan(values[2])
    assert np.isinf(values[3]) == is_half


def test_draws_look_uniform_and_independent() -> None:
    keys = np.random.default_rng(0).integers(0, 2**63, 4000).astype(np.uint64)
    draws = np.empty((keys.size, 64), dtype=np.uint32)
    _noise(keys, 64, draws)
    assert draws.max() < 1 << 16
    counts = np.bincount(draws.ravel() >> 8, minlength=256)
    chi = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    assert 150 < chi < 370  # 255 degrees of freedom
    scaled = draws / 65535.0 - 0.5
    correlation = (scaled[:, 1:] * scaled[:, :-1]).mean() * 12
    assert abs(correlation) < 0.01


def update(dtype: str, max_norm: float = np.inf) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of a table before and after one update, as float32."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(40, 20)).astype(np.float32)
    if dtype == "bfloat16":
        rows = (rows.view(np.uint32) >> 16).astype(np.uint16)
    elif dtype == "float16":
        rows = rows.astype(np.float16).view(np.uint16)
    elif dtype == "int8":
        rows = to_stored(rows, "int8")
    is_half = dtype == "float16"
    nodes = np.arange(40)
    before = np.empty((40, 20), dtype=np.float32)
    after = np.empty_like(before)
    gather(rows, nodes, is_half, before)
    state = np.zeros(40, dtype=np.float32)
    tables = Tables(rows, state, rows, state, True)
    sums = allocate_sums(np.full(80, -1, dtype=np.int32), 40, 20)
    gradient = rng.normal(size=(40, 20)).astype(np.float32)
    accumulate(nodes, 0, gradient, sums)
    optimizer = Optimizer(np.float32(0.1), np.float32(max_norm), is_half)
    assert update_rows(tables, sums, optimizer, np.uint64(5))
    gather(rows, nodes, is_half, after)
    wanted = before - 0.1 * gradient / np.sqrt((gradient**2).mean(1, keepdims=True))
    return wanted, after


@pytest.mark.parametrize(
    ("dtype", "error"), [("float32", 1e-6), ("bfloat16", 2.0**-7), ("float16", 2.0**-10)]
)
def test_an_update_is_right_up_to_the_rounding(dtype: str, error: float) -> None:
    wanted, found = update(dtype)
    np.testing.assert_allclose(found, wanted, rtol=error, atol=1e-6)
    assert abs((found - wanted).mean()) < error / 20


def move(stored: np.ndarray, step: np.ndarray, key: int) -> np.ndarray:
    """Return rows of int8 that are moved by ``step`` once, stored."""
    rows, many = stored.copy(), len(stored)
    state = np.zeros(many, dtype=np.float32)
    gradient = -step.astype(np.float32)
    root = np.sqrt((gradient**2).mean(axis=1, keepdims=True))
    tables = Tables(rows, state, rows, state, True)
    sums = allocate_sums(np.full(2 * many, -1, dtype=np.int32), many, step.shape[1])
    for v in range(many):  # each row's rate undoes what Adagrad divides by
        accumulate(np.array([v]), 0, gradient[v : v + 1], sums)
    optimizer = Optimizer(np.float32(1), np.float32(np.inf), False)
    rates = root[:, 0].astype(np.float32)
    update_rows(
        tables._replace(src_rates=rates, dst_rates=rates), sums, optimizer, np.uint64(key)
    )
    return rows


def test_steps_below_a_byte_are_right_on_average() -> None:
    rng = np.random.default_rng(4)
    many, dim = 2000, 16
    row = rng.normal(size=dim).astype(np.float32)
    row[0] = 127 * 2.0**-5
    stored = to_stored(np.tile(row, (many, 1)), "int8")
    before = to_floats(stored, "int8")
    step = np.tile(rng.uniform(-0.01, 0.01, size=dim), (many, 1))  # a third at most
    step[:, 0] = 0  # so that the scale stays
    moved = to_floats(move(stored, step, 7), "int8") - before
    scale = 2.0**-5
    assert np.isin(moved / scale, [-1, 0, 1]).all()
    share = np.abs(step[0]) / scale
    error = scale * np.sqrt(share * (1 - share) / many)
    assert (np.abs(moved.mean(axis=0) - step[0]) <= 5 * error).all()


def test_a_scale_follows_the_largest_number_of_its_row() -> None:
    stored = to_stored(np.array([[64.0, 3.0, -2.0, 1.0]], dtype=np.float32), "int8")
    before = to_floats(stored, "int8")
    for largest in (127.0, 129.0, 40.0, 3.0, 1e6):
        moved = move(stored, np.array([[largest - before[0, 0], 0, 0, 0]]), 1)
        found = to_floats(moved, "int8")
        wanted = np.array([[largest, *before[0, 1:]]])
        scale = np.abs(wanted).max() / 126.5
        assert (np.abs(found - wanted) <= scale).all()


@numba.njit
def _store(row, table):  # type: ignore[no-untyped-def]
    store_row(row, 0, np.float32(1), table, 0, False, np.uint64(3))


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_bytes_that_are_not_finite_stay_so(bad: float) -> None:
    table = to_stored(np.ones((1, 4), dtype=np.float32), "int8")
    _store(np.array([[1, bad, 2, 0]], dtype=np.float32), table)
    assert not np.isfinite(to_floats(table, "int8")).any()
    assert not are_finite(table, "int8")


@pytest.mark.parametrize("largest", [0.0, 1e-45, 1e-37, 1.0, 3e38])
def test_bytes_hold_rows_as_small_and_as_large_as_floats(largest: float) -> None:
    table = to_stored(np.ones((1, 4), dtype=np.float32), "int8")
    row = np.array([[largest, -largest / 2, 0, 0]], dtype=np.float32)
    _store(row, table)
    found = to_floats(table, "int8")
    np.testing.assert_allclose(found, row, atol=largest / 63 + 2.0**-126)


def test_an_update_of_bytes_is_right_up_to_their_scale() -> None:
    wanted, found = update("int8")
    scale = np.abs(wanted).max(axis=1, keepdims=True) / 126.5
    assert (np.abs(found - wanted) <= scale).all()
    assert abs((found - wanted).mean()) < scale.mean() / 20


@pytest.mark.parametrize(
    ("dtype", "error"), [("float32", 0), ("float16", 0), ("int8", 0.04)]
)
def test_long_rows_are_shortened(dtype: str, error: float) -> None:
    wanted, found = update(dtype, max_norm=4.0)
    lengths = np.linalg.norm(wanted, axis=1, keepdims=True)
    assert (lengths > 4).any()
    assert (lengths < 4).any()
    np.testing.assert_allclose(
        found, wanted * np.minimum(1, 4 / lengths), rtol=2e-3, atol=error
    )
