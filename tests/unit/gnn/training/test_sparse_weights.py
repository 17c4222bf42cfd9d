"""Sparse training: what is zero stays zero, and what is active moves as RigL says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from graphsys import gnn
from graphsys.gnn import GnnConfig
from graphsys.gnn.training.sparse_weights import SparseWeights, densities
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.training.test_api import (
    StopAfter,
    StoppedError,
    are_equal,
    config_of,
    weights_of,
)


def masks_of(run: Path) -> dict[str, torch.Tensor]:
    (file,) = run.glob("masks.*.safetensors")
    found: dict[str, torch.Tensor] = load_file(file)
    return found


@pytest.mark.parametrize("model", ["sage", "gcn", "gat"])
@pytest.mark.parametrize("optimizer", ["adam", "lamb", "lars"])
def test_weights_that_are_not_active_are_zero_in_the_file(
    groups: Store, tmp_path: Path, model: str, optimizer: Any
) -> None:
    config = config_of(
        model=model,
        optimizer=optimizer,
        sparsity=0.8,
        sparsity_every=2,
        weight_decay=0.01,
        epochs=4,
        dim=32,
    )
    gnn.train(groups(1), config, tmp_path / "run")
    weights, masks = weights_of(tmp_path / "run"), masks_of(tmp_path / "run")
    assert masks
    for name, mask in masks.items():
        assert (weights[name][~mask] == 0).all()
        assert (weights[name][mask] != 0).float().mean() > 0.8  # but what has just grown
    active = sum(int(mask.sum()) for mask in masks.values())
    total = sum(mask.numel() for mask in masks.values())
    assert active / total == pytest.approx(0.2, abs=0.01)
    moved = config_of(model=model, sparsity=0.8, sparsity_every=1000, epochs=4, dim=32)
    gnn.train(groups(1), moved, tmp_path / "still")
    still = masks_of(tmp_path / "still")
    assert any(not torch.equal(mask, still[name]) for name, mask in masks.items())


def test_the_smallest_are_dropped_and_the_steepest_grow() -> None:
    """By hand: ten weights, half of them active; a share of .3 is one weight."""
    network = nn.Sequential(nn.Linear(10, 1, bias=False))
    (weight,) = network.parameters()
    config = GnnConfig(sparsity=0.5, sparsity_every=1, epochs=100)
    sparse = SparseWeights(config, network, torch.optim.Adam([weight]))
    (before,) = sparse.dump().values()
    active = before[0].nonzero()[:, 0].tolist()
    others = (~before[0]).nonzero()[:, 0].tolist()
    assert len(active) == 5
    with torch.no_grad():
        weight[0, active] = torch.tensor([5.0, -4.0, 3.0, -0.1, 2.0])
    weight.grad = torch.zeros(1, 10)
    weight.grad[0, others] = torch.tensor([1.0, 0.0, -9.0, 3.0, 2.0])
    weight.grad[0, active] = 0.5
    sparse.before_step(1, 1)
    (after,) = sparse.dump().values()
    left = before[0] & ~after[0]
    grown = ~before[0] & after[0]
    assert left.nonzero().tolist() == [[active[3]]]
    assert grown.nonzero().tolist() == [[others[2]]]
    assert weight[0, active[3]] == 0 == weight[0, others[2]]
    assert weight.grad[0, others[2]] == -9  # it moves in this step
    assert (weight.grad[~after] == 0).all()
    sparse.before_step(80, 1)  # after three quarters nothing moves
    assert torch.equal(next(iter(sparse.dump().values())), after)


def test_a_resumed_sparse_run_is_that_of_one_piece(groups: Store, tmp_path: Path) -> None:
    graph = groups(1)
    config = config_of(
        sparsity=0.7,
        sparsity_every=2,
        epochs=4,
        deterministic=True,
        checkpoint_seconds=0,
        eval_every=1,
        keep="best",
    )
    gnn.train(graph, config, tmp_path / "whole")
    with pytest.raises(StoppedError):
        gnn.train(graph, config, tmp_path / "run", progress=StopAfter(7))
    gnn.train(graph, None, tmp_path / "run", resume=True)
    assert are_equal(weights_of(tmp_path / "run"), weights_of(tmp_path / "whole"))
    assert are_equal(masks_of(tmp_path / "run"), masks_of(tmp_path / "whole"))


def test_densities_add_up_and_small_matrices_are_denser() -> None:
    shapes = [(1433, 16), (16, 7), (64, 64)]
    sizes = np.array([a * b for a, b in shapes])
    for share in (0.05, 0.1, 0.2, 0.5, 1.0):
        found = np.array(densities(shapes, share))
        assert (found * sizes).sum() == pytest.approx(share * sizes.sum())
        assert found.max() <= 1
        assert found[1] >= found[2]


def test_a_dense_run_has_no_masks(groups: Store, tmp_path: Path) -> None:
    gnn.train(groups(1), config_of(epochs=1), tmp_path / "run")
    assert not list((tmp_path / "run").glob("masks*"))
