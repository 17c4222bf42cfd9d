"""Rows that were spilled come back as Arrow itself would take them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.storage.scratch import Scratch
from graphsys.storage.write import row_store
from graphsys.storage.write.row_store import RowStore

NUM = 1000


def columns_of(rng: np.random.Generator, num: int) -> dict[str, pa.Array]:
    whole = rng.integers(-100, 100, num)
    missing = rng.random(num) < 0.3
    return {
        "int8": pa.array(whole.astype(np.int8)),
        "int64": pa.array(whole, mask=missing),
        "half": pa.array(whole.astype(np.float16)),
        "double": pa.array(whole / 7, mask=rng.random(num) < 0.1),
        "date": pa.array(whole.astype(np.int32), pa.int32()).cast(pa.date32()),
        "time": pa.array(whole, mask=missing).cast(pa.timestamp("ms", tz="UTC")),
        "yes": pa.array(whole > 0, mask=missing),
        "text": pa.array([str(v) for v in whole], pa.large_string(), mask=missing),
        "bytes": pa.array([bytes(v % 5) for v in whole], pa.large_binary()),
        "null": pa.nulls(num, pa.large_string()),
        "none": pa.nulls(num, pa.float32()),
    }


@pytest.mark.parametrize("many", [1, 1 << 30])
@pytest.mark.parametrize("budget", [1 << 30, 1])
def test_rows_are_those_that_arrow_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: int, many: int
) -> None:
    monkeypatch.setattr(row_store, "_PIECE", 16)
    monkeypatch.setattr(row_store, "_MANY_BYTES", many)
    rng = np.random.default_rng(0)
    columns = columns_of(rng, NUM)
    store = RowStore(Scratch(tmp_path, budget), "rows")
    for begin, end in ((0, 1), (1, 700), (700, 700), (700, NUM)):
        part = {name: values[begin:end] for name, values in columns.items()}
        assert store.append(part) == begin
    store.finish()
    for _ in range(2):
        rows = rng.integers(-1, NUM, 333)
        taken = store.take(rows)
        expected = pa.table(columns).take(pa.array(rows, mask=rows < 0))
        assert list(taken) == list(columns)
        for name, values in taken.items():
            values.validate(full=True)
            assert values.equals(expected[name].combine_chunks()), name
    assert {name: len(values) for name, values in store.take(rows[:0]).items()} == (
        dict.fromkeys(columns, 0)
    )


def test_a_store_without_rows_gives_nulls(tmp_path: Path) -> None:
    store = RowStore(Scratch(tmp_path, 1), "rows")
    empty: dict[str, Any] = {"x": pa.array([], pa.int32()), "s": pa.array([], pa.string())}
    store.append(empty)
    store.finish()
    taken = store.take(np.array([-1, -1]))
    assert taken["x"].to_pylist() == taken["s"].to_pylist() == [None, None]
    assert taken["x"].type == pa.int32()
