import dataclasses
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import StorageFullError
from graphsys.embedding import EmbeddingConfig
from graphsys.embedding import run as runs
from graphsys.embedding.config import RowDtype
from graphsys.embedding.rows.row_precision import are_finite
from graphsys.embedding.rows.table_files import TableFiles, first_rows
from graphsys.embedding.training import api
from graphsys.storage.runs import run_folder
from tests.stores import edge_chunk, make_store

ROWS = 150_000  # three blocks


def test_first_rows_do_not_depend_on_the_threads() -> None:
    part = ("node", 0)
    one, four = (
        first_rows(EmbeddingConfig(dim=3, threads=threads), part, ROWS)
        for threads in (1, 4)
    )
    np.testing.assert_array_equal(one, four)


def test_first_rows_are_normal_and_every_block_has_its_own() -> None:
    config = EmbeddingConfig(dim=3, init_scale=0.5)
    rows = first_rows(config, ("node", 0), ROWS)
    assert abs(rows.mean()) < 0.005
    assert abs(rows.std() - 0.5) < 0.005
    assert len(np.unique(rows[:, :2], axis=0)) == ROWS
    other = first_rows(config, ("node", 1), ROWS)
    assert not (other == rows).all(axis=1).any()


def test_rows_in_16_bits_never_take_the_memory_of_32() -> None:
    config = EmbeddingConfig(dim=64, row_dtype="bfloat16", threads=1)
    tracemalloc.start()
    try:
        rows = first_rows(config, ("node", 0), ROWS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows.nbytes == 2 * 64 * ROWS
    assert peak < 1.5 * rows.nbytes


@pytest.mark.parametrize("row_dtype", ["float32", "bfloat16", "int8"])
def test_long_rows_are_drawn_and_checked_a_few_at_a_time(row_dtype: RowDtype) -> None:
    """What is held besides the rows stands in no plan, so it may not grow with them."""
    config = EmbeddingConfig(dim=2000, row_dtype=row_dtype, threads=1)
    tracemalloc.start()
    try:
        rows = first_rows(config, ("node", 0), 4096)
        drawn = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        assert are_finite(rows, row_dtype)
        checked = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert drawn - rows.nbytes < 16 << 20
    assert checked - rows.nbytes < 16 << 20


def test_files_of_a_commit_that_failed_after_its_rename_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that cannot be synced fails a commit whose run.json is there already."""
    graph = make_store(tmp_path / "graph", edge_chunk([("a", "b"), ("b", "c")])).graph
    config, run = EmbeddingConfig(dim=4, operator="complex_diagonal"), tmp_path / "run"
    run.mkdir()
    context = api.open_context(graph, config, run)
    state = api.open_state(run, graph, config, context.layout, resume=False)
    files = TableFiles(dataclasses.replace(context, path=run, state=state))
    part = ("node", 0)

    def full(*_: Any) -> None:
        raise StorageFullError("no room")

    for _ in range(2):
        files.store(part, files.load(part))
        files.flush(state)
        with monkeypatch.context() as patch:
            patch.setattr(run_folder, "sync_folder", full)
            with pytest.raises(StorageFullError):
                runs.commit(run, state)
    files.store(part, files.load(part))
    runs.check_files(run, runs.read_state(run))
    files.flush(state)
    runs.check_files(run, runs.read_state(run))
    runs.commit(run, state)
    files.committed()
    there = {each.relative_to(run).as_posix() for each in run.rglob("*.npy")}
    assert there == runs.read_state(run).files.keys()
