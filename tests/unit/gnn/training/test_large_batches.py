"""Large batches and several processes: LARS, scaled rates, gradients of 8 bits."""

from typing import Any

import numpy as np
import pytest
import torch

from graphsys.core.errors import ConfigError
from graphsys.gnn.config import num_threads
from graphsys.gnn.process_group import ProcessGroup
from graphsys.gnn.training.gradients import (
    BLOCK,
    Int8Sum,
    dequantized,
    quantized,
)
from graphsys.gnn.training.optimizer import Lars, rate_at
from tests.unit.gnn.training.test_api import (
    config_of,
)


def test_lars_takes_the_paper_s_step() -> None:
    start = np.array([[3.0, 4.0], [0.0, 1.0]])
    weight = torch.nn.Parameter(torch.tensor(start, dtype=torch.float32))
    optimizer = Lars([weight], lr=0.8, momentum=0.9, trust=0.02, weight_decay=0.5)
    w, v = start, np.zeros((2, 2))
    for rows in ([[1.0, -2.0], [0.0, 0.5]], [[0.5, 0.5], [-1.0, 0.0]]):
        grad = np.array(rows)
        weight.grad = torch.tensor(grad, dtype=torch.float32)
        optimizer.step()
        norm = np.linalg.norm(w)
        local = 0.02 * norm / (np.linalg.norm(grad) + 0.5 * norm)
        v = 0.9 * v + 0.8 * local * (grad + 0.5 * w)
        w = w - v
        assert weight.detach().numpy() == pytest.approx(w, rel=1e-5)


def test_lars_leaves_biases_and_zeros_to_momentum() -> None:
    bias = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    zeros = torch.nn.Parameter(torch.zeros(2, 2))
    optimizer = Lars([bias, zeros], lr=0.5, momentum=0.9, weight_decay=0.5)
    bias.grad, zeros.grad = torch.ones(2), torch.ones(2, 2)
    optimizer.step()
    assert bias.tolist() == [2.5, 3.5]
    assert zeros.tolist() == [[-0.5, -0.5], [-0.5, -0.5]]


def test_the_rate_is_scaled_by_the_batch_and_warmed_up() -> None:
    config = config_of(
        lr=0.1, batch_size=64, accumulate=2, lr_base_batch=16, lr_warmup_epochs=2
    )
    rates = [rate_at(config, epoch, 3, 4) for epoch in range(3)]
    assert rates == pytest.approx([0.4, 0.8, 0.8])
    with pytest.raises(ConfigError, match="lr_base_batch: got 16 with batch_size 0"):
        config_of(batch_size=0, fanouts=(), lr_base_batch=16)


class Pretended(ProcessGroup):
    """Two processes with the same gradients."""

    def all_gather(self, data: torch.Tensor) -> list[torch.Tensor]:
        """Return what both sent."""
        return [data, data]


def test_rounding_is_bounded_and_made_up_for_later() -> None:
    generator = torch.Generator().manual_seed(3)
    grads = [torch.randn(3 * BLOCK + 5, generator=generator) for _ in range(20)]
    data, scales = quantized(grads[0])
    assert data.dtype == torch.int8
    error = (dequantized(data, scales, len(grads[0])) - grads[0]).abs().max()
    assert error <= grads[0].abs().max() / 127
    summed = Int8Sum(Pretended(0, 2))
    total = sum((summed(grad) for grad in grads), torch.zeros_like(grads[0]))
    whole = 2 * torch.stack(grads).sum(0)
    # without the error of before, 20 steps would be off by up to 20 roundings
    assert (total - whole).abs().max() <= 4 * grads[0].abs().max() / 127
    assert summed(torch.zeros(len(whole))).abs().max() <= 0.1  # what was left, no more


def test_zeros_stay_zeros() -> None:
    data, scales = quantized(torch.zeros(7))
    assert dequantized(data, scales, 7).tolist() == [0.0] * 7


def test_processes_of_a_machine_share_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphsys.gnn.config.num_cores", lambda: 8)
    config: Any = config_of(threads=0)
    found = []
    for told in ("1", "3", "16"):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", told)
        found.append(num_threads(config, 1000))
    assert found == [8, 2, 1]
