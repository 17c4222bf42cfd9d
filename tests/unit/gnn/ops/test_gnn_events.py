"""What the SIMT model is told of message passing is what the kernels walk."""

from typing import Any

import numpy as np
import pytest
import torch

import graphsys as gs
from graphsys.analysis.model.simt import MAPPINGS, walk
from graphsys.gnn.ops import cpu
from graphsys.gnn.ops.adjacency import SparseRows

LENGTHS = np.array([0, 3, 40, 1, 0, 7, 500, 2] * 9)
NUM_SRC = 600


def _rows() -> SparseRows:
    indptr = np.concatenate(([0], np.cumsum(LENGTHS))).astype(np.int64)
    draws = np.random.default_rng(0).integers(0, NUM_SRC, indptr[-1])
    return SparseRows(indptr, draws.astype(np.int32), NUM_SRC)


def _metrics(p: "gs.Profile") -> dict[str, float | None]:
    return {it["name"]: it["value"] for it in p.report["metrics"]}


def test_sums_of_messages_have_the_lanes_of_their_rows() -> None:
    rows, x = _rows(), torch.ones(NUM_SRC, 16)
    with gs.profile() as p:
        cpu.sum_rows(rows.entries, None, x)
    found = _metrics(p)
    for mapping in MAPPINGS:
        expected = walk(16 * LENGTHS, mapping).utilization
        assert found[f"lane_utilization.{mapping}"] == expected
    assert found["predicted_launches.thread"] == 1
    assert found["work_per_invocation"] == sum(LENGTHS)
    thread = LENGTHS.reshape(-1, 8)
    assert thread.size == 72
    by_hand = sum(LENGTHS) / (32 * sum(LENGTHS[k : k + 32].max() for k in (0, 32, 64)))
    assert found["lane_utilization.thread"] == by_hand


def test_the_gradient_walks_the_rows_of_the_sources() -> None:
    rows, x = _rows(), torch.ones(NUM_SRC, 16)
    with gs.profile() as p:
        cpu.sum_rows(rows.transposed, None, torch.ones(rows.num_dst, 16))
    lengths = np.bincount(rows.indices, minlength=NUM_SRC)
    expected = walk(16 * lengths, "thread").utilization
    assert _metrics(p)["lane_utilization.thread"] == expected
    assert x.shape[0] == len(lengths)


def test_nothing_is_made_while_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []
    monkeypatch.setattr(cpu, "RowVisit", lambda **facts: made.append(facts))
    rows, x = _rows(), torch.ones(NUM_SRC, 4)
    cpu.sum_rows(rows.entries, None, x)
    with gs.profile(level="L0"):
        cpu.sum_rows(rows.entries, None, x)
    assert made == []
