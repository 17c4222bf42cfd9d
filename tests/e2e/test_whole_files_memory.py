"""``ingest --memory`` counts what of compressed files is in memory at a time."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
import scipy.io
import scipy.sparse

from graphsys.core.memory import parse_bytes
from tests.conftest import Run
from tests.e2e.test_memory import SLACK, peak_of
from tests.marks import slow_but

pytestmark = pytest.mark.e2e

NUM = 8_000_000
"""Edges, by far more than is read at a time."""


def ends() -> tuple[np.ndarray, np.ndarray]:
    place = np.arange(NUM)
    return place // 1000, place % 1000


def matrix() -> scipy.sparse.coo_array:
    return scipy.sparse.coo_array((np.ones(NUM), ends()), shape=(NUM // 1000,) * 2)


def npz(path: Path) -> None:
    np.savez_compressed(path, edges=np.stack(ends(), 1))


def sparse_npz(path: Path) -> None:
    scipy.sparse.save_npz(path, matrix().tocsr())


def mat(path: Path) -> None:
    scipy.io.savemat(path, {"network": matrix().tocsc()}, do_compression=True)


def feather(path: Path) -> None:
    table = pa.table(dict(zip(("src", "dst"), ends(), strict=True)))
    pyarrow.feather.write_feather(table, str(path), compression="zstd", chunksize=NUM)


FILES = {"a.npz": npz, "csr.npz": sparse_npz, "a.mat": mat, "a.feather": feather}


@pytest.mark.parametrize("name", slow_but(["a.feather"], [*FILES]))
def test_a_compressed_file_is_refused_with_an_amount_near_its_peak(
    name: str, tmp_path: Path, run_installed: Run, graphsys_command: str
) -> None:
    FILES[name](tmp_path / name)
    words = ("ingest", tmp_path / name, "-o", tmp_path / "graph", "--memory")
    done = run_installed(*words, "240MB")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    named = re.search(
        r"^error: memory: .*; give --memory (\d+MB) \(memory=.*\) or more$", line
    )
    assert named is not None, line
    assert not (tmp_path / "graph").exists()
    peak, _ = peak_of(graphsys_command, *words, named[1])
    assert peak <= parse_bytes(named[1]) + SLACK
    assert parse_bytes(named[1]) <= 1.25 * peak
