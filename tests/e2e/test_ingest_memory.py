"""``ingest --memory`` is kept where columns are wide, and where one row has most edges."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from graphsys.core.memory import parse_bytes
from graphsys.storage import Graph
from tests.e2e.test_memory import SLACK, peak_of

pytestmark = pytest.mark.e2e

BUDGET = "300MB"


def test_a_column_of_long_texts_keeps_the_budget(
    tmp_path: Path, graphsys_command: str
) -> None:
    num = 600_000
    ends = np.random.default_rng(0).integers(0, 50_000, (2, num)).tolist()
    notes = (f"{k:08d}{'x' * 198}" for k in range(num))
    with (tmp_path / "edges.csv").open("w") as stream:
        stream.write("src,dst,note\n")
        stream.writelines(
            f"{u},{v},{note}\n" for u, v, note in zip(*ends, notes, strict=True)
        )
    words = ("ingest", tmp_path / "edges.csv", "-o", tmp_path / "graph")
    peak, _ = peak_of(graphsys_command, *words, "--memory", BUDGET)
    assert peak <= parse_bytes(BUDGET) + SLACK, f"{peak / 1e6:.0f} MB"
    bucket = Graph(tmp_path / "graph").bucket("edge", 0, 0, "train")
    numbers = np.array([int(text[:8]) for text in bucket.columns["note"].to_pylist()])
    assert np.array_equal(np.sort(numbers), np.arange(num))


def test_copies_of_one_edge_keep_the_budget(tmp_path: Path, graphsys_command: str) -> None:
    num = 30_000_000
    ends = {name: np.full(num, k, dtype=np.int32) for k, name in enumerate(("src", "dst"))}
    pyarrow.parquet.write_table(pa.table(ends), tmp_path / "edges.parquet")
    words = ("ingest", tmp_path / "edges.parquet", "-o", tmp_path / "graph")
    peak, _ = peak_of(graphsys_command, *words, "--memory", BUDGET)
    assert peak <= parse_bytes(BUDGET) + SLACK, f"{peak / 1e6:.0f} MB"
    assert Graph(tmp_path / "graph").num_edges == num
