"""Rows on a device that is not there, and tensors that are elsewhere."""

import numpy as np
import pytest
import torch

from graphsys.core.errors import ConfigError
from graphsys.gnn.ops import adjacency as device_rows
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.ops.functional import spmm


def chain() -> SparseRows:
    """Return three rows of one entry each."""
    return SparseRows(np.arange(4), np.arange(3, dtype=np.int32), 3)


def test_rows_go_to_the_cpu_as_they_are() -> None:
    rows = chain()
    assert rows.to("cpu") is rows
    assert not rows.is_on_device


def test_no_gpu_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton", reason="the gpu extra (triton) is not installed")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="no CUDA device or driver; use device='cpu'"):
        chain().to("cuda")


def test_tensors_elsewhere_are_refused() -> None:
    with pytest.raises(ConfigError, match="a tensor is on meta, the rows on cpu; expected"):
        spmm(chain(), torch.empty(3, 2, device="meta"))


def test_too_many_entries_for_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_rows, "_MAX_ENTRIES", 3)
    with pytest.raises(ConfigError, match="rows have 3 entries, a device takes fewer than"):
        device_rows.DeviceSparseRows.moved(chain(), torch.from_numpy)


def test_long_rows_are_cut_into_pieces() -> None:
    lengths = np.array([0, 256, 257, 1, 700])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.zeros(indptr[-1], dtype=np.int32)
    rows = device_rows.DeviceSparseRows.moved(
        SparseRows(indptr, indices, 1), torch.from_numpy
    )
    entries = rows.entries
    begin, row = entries.extras
    assert entries.num_extras == 1214 // 256
    assert begin.tolist() == [0, 0, 0, 1, 1, 3]
    assert row.tolist() == [2, 4, 4, 5]  # the last one is nobody's
    short = device_rows.DeviceSparseRows.moved(chain(), torch.from_numpy)
    assert short.entries.num_extras == 0
