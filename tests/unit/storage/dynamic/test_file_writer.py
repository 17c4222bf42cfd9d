"""Large arrays are written from a buffer, in pieces that end where large pages end."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from graphsys.storage.deltas import merge_cache
from graphsys.storage.deltas.merge_cache import FileWriter


@pytest.mark.parametrize("most", [1 << 20, 100])
def test_pieces_end_where_pages_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Whatever Arrow hands over at a time, and though the system takes less of it."""
    monkeypatch.setattr(merge_cache, "PIECE", 256)
    batch = pa.record_batch({"x": np.arange(1000), "y": np.arange(1000, dtype=np.uint8)})
    ends, real = [0], os.write

    def write(fd: int, data: memoryview) -> int:
        assert len(data) <= 256
        assert (ends[-1] + len(data)) // 256 in {ends[-1] // 256, ends[-1] // 256 + 1}
        ends.append(ends[-1] + real(fd, data[:most]))
        return ends[-1] - ends[-2]

    file = tmp_path / "x.arrow"
    with file.open("wb") as stream:
        monkeypatch.setattr(os, "write", write)
        with (
            pa.PythonFile(FileWriter(stream.fileno()), mode="w") as sink,
            pa.ipc.new_file(sink, batch.schema) as writer,
        ):
            writer.write(batch)
    if most > 256:  # each large page but the last is filled up
        assert set(range(256, ends[-1], 256)) <= set(ends)
    assert file.stat().st_size == ends[-1]
    with pa.memory_map(str(file)) as source:
        assert pa.ipc.open_file(source).read_all().equals(pa.Table.from_batches([batch]))
