"""Gradients recovered from the kernel's step, against torch autograd."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from graphsys.embedding.training.gradients import batch_gradients
from graphsys.kernels.cpu.embedding.bags import PLAIN
from graphsys.kernels.cpu.embedding.rows import Tables
from tests.embedding_oracle import NUM_SRC, Step
from tests.unit.embedding.test_embedding_gradients import settings


@pytest.mark.parametrize("optimizer", ["row_adagrad", "adagrad", "adam"])
@pytest.mark.parametrize("is_shared", [False, True])
def test_recovered_gradients_are_those_of_autograd(is_shared: bool, optimizer: Any) -> None:
    config = settings(regularizer=0.05, max_norm=0.1, optimizer=optimizer)
    step = Step(config, is_shared=is_shared)
    tables = Tables(step.src_rows, step.src_state, step.dst_rows, step.dst_state, is_shared)
    arrays = (step.src_rows, step.src_state, step.dst_rows, step.dst_state, step.table)
    before = [array.copy() for array in arrays]
    work = SimpleNamespace(edges=step.edges, settings=step.settings(), losses=np.zeros(1))
    found = batch_gradients(tables, PLAIN, step.model, step.table, work)
    for array, kept in zip(arrays, before, strict=True):
        assert array.tobytes() == kept.tobytes()
    assert not work.losses.any()
    src_rows = torch.tensor(step.src_rows, requires_grad=True)
    dst_rows = src_rows
    if not is_shared:
        dst_rows = torch.tensor(step.dst_rows, requires_grad=True)
    table = [torch.tensor(row, requires_grad=True) for row in step.table[::2]]
    total, penalty = step._loss(src_rows, dst_rows, table, [])
    (total + penalty).backward()  # type: ignore[no-untyped-call]  # torch's
    expected = {"src": src_rows, **({} if is_shared else {"dst": dst_rows})}
    assert set(found) == {*expected, "operators"}
    for name, rows in expected.items():
        assert rows.grad is not None
        grad = rows.grad.numpy()
        at = np.flatnonzero(grad.any(axis=1))
        nonzero = found[name][found[name].any(axis=1)]  # in order of rows
        np.testing.assert_allclose(nonzero, grad[at], rtol=2e-3, atol=1e-5)
        assert len(at) <= len(found[name]) <= NUM_SRC
    assert table[0].grad is not None
    operators = table[0].grad.numpy()
    np.testing.assert_allclose(
        found["operators"], operators[operators != 0], rtol=2e-3, atol=1e-5
    )
