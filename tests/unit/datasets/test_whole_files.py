"""What of a file is held whole while it is read, by what it states."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.io

from graphsys.datasets.whole_files import whole_bytes

NUM = 8 << 20


def table() -> pa.Table:
    return pa.table({"src": np.arange(NUM) // 9, "dst": np.zeros(NUM, dtype=np.int64)})


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_compressed_batches_count_but_for_what_any_ingest_holds(
    compression: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.feather"
    pyarrow.feather.write_feather(table(), str(path), compression, chunksize=NUM)
    assert whole_bytes([path]) == 16 * NUM - (56 << 20)
    pyarrow.feather.write_feather(table(), str(path), compression, chunksize=NUM // 2)
    assert whole_bytes([path]) == 16 * NUM - (56 << 20)  # two of half the size
    pyarrow.feather.write_feather(table(), str(path), compression, chunksize=1 << 16)
    assert whole_bytes([path]) == 0


def test_what_is_mapped_or_read_in_pieces_is_not_held(tmp_path: Path) -> None:
    plain, parquet = tmp_path / "a.feather", tmp_path / "a.parquet"
    pyarrow.feather.write_feather(table(), str(plain), "uncompressed", chunksize=NUM)
    pyarrow.parquet.write_table(table(), parquet)
    assert whole_bytes([plain, parquet, tmp_path / "none.npz", tmp_path]) == 0


def test_arrays_and_variables_count_as_they_are_when_unpacked(tmp_path: Path) -> None:
    edges = np.zeros((NUM // 8, 2), dtype=np.int64)
    np.savez_compressed(tmp_path / "a.npz", edges=edges)
    assert edges.nbytes <= whole_bytes([tmp_path / "a.npz"]) <= edges.nbytes + 1000
    scipy.io.savemat(tmp_path / "a.mat", {"network": edges}, do_compression=True)
    assert whole_bytes([tmp_path / "a.mat"]) >= edges.nbytes


@pytest.mark.parametrize("name", ["a.npz", "a.mat", "a.feather"])
def test_a_file_that_is_cut_counts_as_nothing_or_less(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    np.savez_compressed(tmp_path / "a.npz", edges=np.zeros((1000, 2), dtype=np.int64))
    scipy.io.savemat(tmp_path / "a.mat", {"network": np.eye(50)}, do_compression=True)
    pyarrow.feather.write_feather(table(), str(tmp_path / "a.feather"), "zstd")
    whole, content = whole_bytes([path]), path.read_bytes()
    for size in np.linspace(0, len(content), 60, dtype=int):
        path.write_bytes(content[:size])
        assert whole_bytes([path]) <= whole
