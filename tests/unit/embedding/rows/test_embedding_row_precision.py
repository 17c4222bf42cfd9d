"""Whole runs with rows in 16 and 8 bits, and with rows of bounded length."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import CorruptStoreError
from graphsys.embedding import EmbeddingConfig, evaluate, open_run, train
from graphsys.embedding import run as runs
from graphsys.embedding.rows.row_precision import are_finite, to_floats, to_stored
from graphsys.embedding.type_configs import NodeTypeConfig
from graphsys.storage import Graph

MakeRing = Callable[[int], Graph]


def tables(path: Path) -> dict[str, bytes]:
    """Return the content of every file of a checkpoint under its version-free name."""
    state = runs.read_state(path)
    return {name.rsplit(".", 2)[0]: (path / name).read_bytes() for name in state.files}


@pytest.mark.parametrize("row_dtype", ["bfloat16", "float16"])
def test_rows_in_16_bits_learn_as_well_in_half_the_space(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path, row_dtype: Any
) -> None:
    graph = make_ring(2)
    config = dataclasses.replace(ring_config, row_dtype=row_dtype)
    train(graph, config, tmp_path / "run")
    assert evaluate(tmp_path / "run", split="train")["metrics"]["mrr"] > 0.95
    run = open_run(tmp_path / "run")
    rows = run.rows("entity", 0)
    assert rows.dtype == np.float32
    assert run.rows("entity", 0) is rows
    name = runs.find_file(run.state, runs.rows_file("entity", 0, 0))
    assert name is not None
    stored = runs.read_array(tmp_path / "run", name)
    assert stored.nbytes * 2 == rows.nbytes
    np.testing.assert_array_equal(to_floats(stored, row_dtype), rows)


def test_rows_in_8_bits_learn_in_little_over_a_quarter(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    config = dataclasses.replace(ring_config, row_dtype="int8")
    train(make_ring(2), config, tmp_path / "run")
    assert evaluate(tmp_path / "run", split="train")["metrics"]["mrr"] > 0.9
    run = open_run(tmp_path / "run")
    rows = run.rows("entity", 0)
    name = runs.find_file(run.state, runs.rows_file("entity", 0, 0))
    assert name is not None
    stored = runs.read_array(tmp_path / "run", name)
    assert stored.dtype == np.int8
    assert stored.shape == (len(rows), config.dim + 2)
    np.testing.assert_array_equal(rows, meaning_of_bytes(stored))
    ids = run.ids("entity", [3, 0]).to_pylist()
    some = run.lookup(ids)
    numbers = run.graph.lookup("entity", ids)
    np.testing.assert_array_equal(some, run.take("entity", numbers))


@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": "adam", "lr": 0.05, "relation_lr": 0.1},
        {"optimizer": "adagrad"},
        {"max_norm": 2.0},
        {"node_types": {"entity": NodeTypeConfig(global_embedding=True)}},
    ],
)
def test_rows_in_8_bits_go_with_other_settings(
    make_ring: MakeRing,
    ring_config: EmbeddingConfig,
    tmp_path: Path,
    changes: dict[str, Any],
) -> None:
    graph = make_ring(2)
    found = []
    for row_dtype in ("float32", "int8"):
        config = dataclasses.replace(ring_config, row_dtype=row_dtype, **changes)
        train(graph, config, tmp_path / row_dtype)
        found.append(evaluate(tmp_path / row_dtype, split="train")["metrics"]["mrr"])
    assert found[1] > found[0] - 0.1


def scales_of(stored: np.ndarray) -> np.ndarray:
    """Return the scales of rows of int8: mantissa and exponent, by ldexp."""
    mantissa, exponent = stored[:, -2:].view(np.uint8).astype(int).T[:, :, None]
    scales: np.ndarray = np.ldexp((1 + mantissa / 256).astype(np.float32), exponent - 127)
    return scales


def meaning_of_bytes(stored: np.ndarray) -> np.ndarray:
    """Return what rows of int8 mean."""
    rows: np.ndarray = stored[:, :-2].astype(np.float32) * scales_of(stored)
    return rows


@pytest.mark.parametrize("row_dtype", ["bfloat16", "float16", "int8"])
def test_a_resumed_run_in_few_bits_is_equal_to_an_unbroken_one(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path, row_dtype: Any
) -> None:
    graph = make_ring(4)
    config = dataclasses.replace(ring_config, row_dtype=row_dtype, epochs=2)
    for name in ("a", "b"):
        train(graph, config, tmp_path / name)
    assert tables(tmp_path / "a") == tables(tmp_path / "b")


def test_files_of_another_type_than_the_config_says_are_refused(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph, out = make_ring(2), tmp_path / "run"
    config = dataclasses.replace(ring_config, epochs=1)
    train(graph, config, out)
    state = runs.read_state(out)
    name = next(file for file in state.files if file.startswith("rows/"))
    rows = runs.read_array(out, name)
    state.files[name] = runs.write_array(out / name, rows.astype(np.float64))
    state.checksums.pop(name)
    state.is_complete, state.epoch = False, 0
    runs.commit(out, state)
    with pytest.raises(CorruptStoreError, match=r"type float64, expected .* and float32"):
        train(graph, config, out, resume=True)


def test_rows_are_no_longer_than_max_norm(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    config = dataclasses.replace(ring_config, max_norm=1.5)
    train(make_ring(1), config, tmp_path / "run")
    rows = open_run(tmp_path / "run").rows("entity", 0)
    lengths = np.linalg.norm(rows, axis=1)
    assert lengths.max() <= 1.5 * (1 + 1e-6)
    assert lengths.max() > 1.49


def test_conversion_rounds_to_the_nearest() -> None:
    torch = pytest.importorskip("torch")
    rows = np.random.default_rng(0).normal(size=(50, 20)).astype(np.float32)
    rows[0, :2] = 1 + 2.0**-8, 1 + 3 * 2.0**-8  # halves, which go to the even neighbor
    names: tuple[Any, ...] = ("bfloat16", "float16")
    for row_dtype in names:
        wanted = torch.from_numpy(rows).to(getattr(torch, row_dtype)).float().numpy()
        found = to_floats(to_stored(rows, row_dtype), row_dtype)
        np.testing.assert_array_equal(found, wanted)


def test_bytes_are_the_nearest_of_a_scale_that_just_reaches() -> None:
    rng = np.random.default_rng(1)
    magnitudes = 10.0 ** rng.integers(-30, 30, size=(60, 1))
    rows = (rng.normal(size=(60, 20)) * magnitudes).astype(np.float32)
    rows[0] = np.linspace(-127, 127, 20) * 2.0**-9  # just reached
    stored = to_stored(rows, "int8")
    found, scales = to_floats(stored, "int8"), scales_of(stored)
    np.testing.assert_array_equal(found, meaning_of_bytes(stored))
    assert scales[0] == 2.0**-9
    reach = 127 * scales / np.abs(rows).max(axis=1, keepdims=True)
    assert reach.min() >= 1
    assert reach.max() < 1 + 2.0**-8
    assert (np.abs(found - rows) <= scales * 0.500001).all()
    again = to_stored(found, "int8")
    np.testing.assert_array_equal(again, stored)  # read and stored: nothing is lost
    assert (to_floats(to_stored(np.zeros((2, 3), np.float32), "int8"), "int8") == 0).all()


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_bytes_tell_rows_that_are_not_finite(bad: float) -> None:
    rows = np.ones((3, 4), dtype=np.float32)
    assert are_finite(to_stored(rows, "int8"), "int8")
    rows[1, 2] = bad
    stored = to_stored(rows, "int8")
    assert not are_finite(stored, "int8")
    assert np.isfinite(to_floats(stored, "int8")).all(axis=1).tolist() == [
        True,
        False,
        True,
    ]
