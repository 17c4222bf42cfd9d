"""Losses that are no number, and damage to a checkpoint."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graphsys.core.errors import CorruptStoreError, TrainingFailedError
from graphsys.embedding import EmbeddingConfig, train
from graphsys.embedding import run as runs
from graphsys.embedding.config import RowDtype
from graphsys.embedding.rows.nonfinite import bad_rows, describe_rows, largest_row
from graphsys.embedding.rows.row_precision import to_stored
from graphsys.embedding.rows.table_files import TableFiles
from graphsys.embedding.training.bucket_trainer import BucketTrainer
from graphsys.storage import Graph
from tests.embedding_context import context_of

MakeRing = Callable[[int], Graph]


def test_bad_rows_are_found_and_counted_across_blocks(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(40_000, 3)).astype(np.float32)
    bad = np.sort(rng.choice(len(rows), 11, replace=False))
    rows[bad, rng.integers(0, 3, 11)] = [np.nan, np.inf, -np.inf, *[np.nan] * 8]
    assert bad_rows(rows) == (bad[:3].tolist(), 11)
    rows[bad] = 0.0
    rows[30_000, 1] = -99.0
    assert bad_rows(rows) == ([], 0)
    assert largest_row(rows) == (30_000, 99.0)


def test_rows_are_described_by_the_users_ids(make_ring: MakeRing) -> None:
    graph = make_ring(2)
    ids = graph.nodes("entity", 1).column("id").to_pylist()
    rows = np.zeros((len(ids), 4), dtype=np.float32)
    rows[3, 2] = 7.5
    part = ("entity", 1)
    assert describe_rows(graph, {part: rows}) == (
        f"all rows are finite, the largest is {ids[3]!r} of type 'entity' with 7.5"
    )
    rows[[1, 4, 5, 6]] = np.nan
    shown = ", ".join(repr(ids[k]) for k in (1, 4, 5))
    assert describe_rows(graph, {part: rows}) == (
        f"rows that are not finite: {shown} and 1 more of type 'entity'"
    )


def test_a_loss_that_is_no_number_names_bucket_and_rows_and_keeps_the_checkpoint(
    make_ring: MakeRing,
    ring_config: EmbeddingConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, out = make_ring(2), tmp_path / "run"
    config = dataclasses.replace(ring_config, epochs=3, checkpoint_seconds=0.0)
    whole = train(graph, config, tmp_path / "whole").run
    prepare, calls = BucketTrainer._prepare, []

    def poison(self: BucketTrainer, epoch: int, step: object) -> object:
        calls.append(step)
        if len(calls) == 6:
            self.tables[step.src][0][5, 0] = np.nan  # type: ignore[attr-defined]
        return prepare(self, epoch, step)  # type: ignore[arg-type]

    monkeypatch.setattr(BucketTrainer, "_prepare", poison)
    message = (
        r"not a number in epoch 2, bucket \(\d, \d\) of edge type 'triple' \(rows that are "
        r"not finite: .*'e\d\d'.* of type 'entity'\); lower lr"
    )
    with pytest.raises(TrainingFailedError, match=message) as caught:
        train(graph, config, out)
    assert caught.value.exit_code == 1
    monkeypatch.undo()
    assert runs.read_state(out).epoch == 1
    train(graph, config, out, resume=True)
    for name in runs.read_state(whole).files:
        found = runs.find_file(runs.read_state(out), name)
        assert (out / str(found)).read_bytes() == (whole / name).read_bytes()


def test_rows_that_the_last_batch_spoilt_are_not_written(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph = make_ring(2)
    files = TableFiles(context_of(graph, ring_config, tmp_path))
    table = files.load(("entity", 1))
    table[0][2, 1] = np.inf
    (name,) = graph.nodes("entity", 1).column("id").to_pylist()[2:3]
    with pytest.raises(
        TrainingFailedError, match=f"not finite: {name!r} of .* partition 1"
    ):
        files.store(("entity", 1), table)
    assert list(tmp_path.iterdir()) == []
    table[0][:] = 3e38  # their sum is not finite, they are
    files.store(("entity", 1), table)


@pytest.mark.parametrize("row_dtype", ["bfloat16", "float16", "int8"])
def test_spoilt_rows_in_few_bits_are_not_written_either(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path, row_dtype: RowDtype
) -> None:
    graph = make_ring(2)
    config = dataclasses.replace(ring_config, row_dtype=row_dtype)
    files = TableFiles(context_of(graph, config, tmp_path))
    table = files.load(("entity", 1))
    bad = np.full((1, ring_config.dim), np.nan, dtype=np.float32)
    table[0][2] = to_stored(bad, row_dtype)
    with pytest.raises(TrainingFailedError, match="not finite: 'e"):
        files.store(("entity", 1), table)
    table[0][2] = to_stored(np.full_like(bad, 6e4), row_dtype)
    files.store(("entity", 1), table)


def test_operators_that_are_not_finite_are_not_written(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph = make_ring(1)
    context = context_of(graph, ring_config, tmp_path)
    files, state = TableFiles(context), context.state
    files.operators["triple"] = np.full((2, 4), np.nan, dtype=np.float32)
    with pytest.raises(
        TrainingFailedError, match="operators of edge type 'triple' are not"
    ):
        files.flush(state)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_the_same_size_and_other_content_is_named_on_resume(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    config = dataclasses.replace(ring_config, epochs=2)
    train(make_ring(2), config, out)
    for part in ("rows/*/*.npy", "state/*/*.npy", "relations/*.npy"):
        file = next(out.glob(part))
        content = bytearray(file.read_bytes())
        content[-3] ^= 1
        file.write_bytes(content)
        message = rf"{file.name} has the checksum \w+, run.json says \w+; train the run"
        with pytest.raises(CorruptStoreError, match=message):
            train(make_ring(2), config, out, resume=True)
        content[-3] ^= 1
        file.write_bytes(content)
    train(make_ring(2), config, out, resume=True)
