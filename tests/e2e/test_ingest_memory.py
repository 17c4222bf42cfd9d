"""``ingest --memory`` is kept where columns are wide, and where one row has most edges."""

import gzip
import lzma
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from graphsys.core.memory import parse_bytes
from graphsys.storage import Graph
from tests.e2e.test_memory import SLACK, peak_of
from tests.marks import slow_but

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


NUM_EQUAL = 20_000_000


def parquet(path: Path) -> None:
    ends = {name: np.full(NUM_EQUAL, k) for k, name in enumerate(("src", "dst"))}
    pyarrow.parquet.write_table(pa.table(ends), path)


def feather(path: Path) -> None:
    ends = {name: np.full(NUM_EQUAL, k) for k, name in enumerate(("src", "dst"))}
    pyarrow.feather.write_feather(pa.table(ends), str(path), compression="zstd")


def packed_text(path: Path) -> None:
    text = b"0 1\n" * (NUM_EQUAL // 20)
    if path.suffix == ".zip":
        with (
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
            archive.open(path.stem, "w") as member,
        ):
            member.writelines(text for _ in range(20))
        return
    if path.suffix == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as sink:
            for _ in range(20):
                sink.write(text)
        return
    opened = gzip.open if path.suffix == ".gz" else lzma.open
    with opened(path, "wb") as stream:
        stream.writelines(text for _ in range(20))


SMALL_FILES = {
    "a.parquet": parquet,
    "a.feather": feather,
    **{f"a.txt{kind}": packed_text for kind in (".gz", ".zst", ".xz", ".zip")},
}


@pytest.mark.parametrize("name", slow_but(["a.parquet", "a.txt.gz"], [*SMALL_FILES]))
def test_a_small_file_of_many_equal_rows_keeps_the_budget(
    name: str, tmp_path: Path, graphsys_command: str
) -> None:
    SMALL_FILES[name](tmp_path / name)
    words = ("ingest", tmp_path / name, "-o", tmp_path / "graph")
    peak, _ = peak_of(graphsys_command, *words, "--memory", BUDGET)
    assert peak <= parse_bytes(BUDGET) + SLACK, f"{peak / 1e6:.0f} MB"
    assert Graph(tmp_path / "graph").num_edges == NUM_EQUAL


def test_dropping_all_of_a_row_that_has_most_edges_keeps_the_budget(
    tmp_path: Path, graphsys_command: str
) -> None:
    with (tmp_path / "edges.txt").open("w") as stream:
        stream.writelines("1 1\n" * 1_000_000 for _ in range(NUM_EQUAL // 1_000_000))
        stream.write("1 2\n")
    words = ("ingest", tmp_path / "edges.txt", "-o", tmp_path / "graph", "--coalesce")
    peak, _ = peak_of(graphsys_command, *words, "--drop-self-loops", "--memory", BUDGET)
    assert peak <= parse_bytes(BUDGET) + SLACK, f"{peak / 1e6:.0f} MB"
    assert Graph(tmp_path / "graph").num_edges == 1
