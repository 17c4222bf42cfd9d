"""Questions within a budget of memory: the same answers, or a refusal beforehand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from graphsys.core.errors import BudgetError
from graphsys.embedding import EmbeddingConfig, Embeddings, evaluate, export, nearest, train
from graphsys.embedding import predict as answer
from graphsys.embedding.rows.trained_rows import RowBlocks
from graphsys.storage import Graph

MakeRing = Callable[[int], Graph]
ENOUGH = "100GB"


@pytest.fixture(params=["float32", "bfloat16", "float16", "int8"])
def run(request: pytest.FixtureRequest, make_ring: MakeRing, tmp_path: Path) -> Embeddings:
    config = EmbeddingConfig(dim=6, epochs=1, row_dtype=request.param)
    train(make_ring(3), config, tmp_path / "run")
    return Embeddings(tmp_path / "run")


def asked(run: Embeddings) -> dict[str, list[Any]]:
    (model,) = run.model
    return {
        "head": ["e00", "e05", None],
        "relation": [model.relations[0]] * 3,
        "tail": [None, None, "e07"],
    }


def test_a_budget_changes_no_answer(
    run: Embeddings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [
        evaluate(run, split="test"),
        answer(run, asked(run), 4).to_pylist(),
        nearest(run, "e03", 5).to_pylist(),
    ]
    export(run, tmp_path / "free.parquet")
    for name, size in (("_BATCH", 3), ("_PAIRS", 4)):
        monkeypatch.setattr(f"graphsys.embedding.data.filtered_queries.{name}", size)
    monkeypatch.setattr("graphsys.embedding.rows.batch_memory._CANDIDATES", 5)
    monkeypatch.setattr("graphsys.embedding.inference.nearest.BLOCK", 4)
    monkeypatch.setattr("graphsys.training.row_files._BLOCK", 3)
    fresh = Embeddings(run.path)
    assert [
        evaluate(fresh, split="test", memory=ENOUGH),
        answer(fresh, asked(run), 4, memory=ENOUGH).to_pylist(),
        nearest(fresh, "e03", 5, memory=ENOUGH).to_pylist(),
    ] == free
    export(fresh, tmp_path / "kept.parquet", memory=ENOUGH)
    tables = [
        pyarrow.parquet.read_table(tmp_path / f"{name}.parquet")
        for name in ("free", "kept")
    ]
    assert tables[0].equals(tables[1])


@pytest.mark.parametrize("index", ["exact", "hnsw", "ivf"])
def test_too_small_a_budget_is_refused_before_any_work(run: Embeddings, index: Any) -> None:
    with pytest.raises(BudgetError, match=r"give --memory \d+MB") as refused:
        nearest(run, "e03", index=index, memory="1MB")
    assert refused.value.smallest > 10**6
    assert not (run.path / "indexes").exists()


def test_every_question_is_refused_in_one_line(run: Embeddings, tmp_path: Path) -> None:
    for ask in (
        lambda: evaluate(run, memory="1MB"),
        lambda: answer(run, asked(run), memory="1MB"),
        lambda: export(run, tmp_path / "rows.parquet", memory="1MB"),
    ):
        with pytest.raises(BudgetError, match=r"^memory: .* got 976\.6 KiB; give --memory"):
            ask()
    assert not (tmp_path / "rows.parquet").exists()


def test_rows_in_16_bits_are_not_converted_whole(run: Embeddings) -> None:
    (node_type,) = run.node_types
    blocks = run.blocks(node_type, 1)
    assert isinstance(blocks, RowBlocks) == (run.config.row_dtype != "float32")
    rows = run.rows(node_type, 1)
    assert len(blocks) == len(rows)
    np.testing.assert_array_equal(blocks[2:5], rows[2:5])
    np.testing.assert_array_equal(blocks[3 : len(rows) + 9], rows[3:])
