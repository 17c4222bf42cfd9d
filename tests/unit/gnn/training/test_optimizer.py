"""Optimizers that move weights as torch's do, and do not import its compiler."""

import subprocess
import sys
from pathlib import Path

import torch

from graphsys.gnn.training.optimizer import Adam
from tests.unit.gnn.conftest import Store

HEAVY = ("torch._dynamo", "sympy", "torch.distributed.fsdp")
TRAINS = f"""
import sys
from graphsys import gnn
config = gnn.load_config(overrides=["epochs=2", "dim=4", "recompute=all", "dropout=0.5"])
gnn.train(sys.argv[1], config, sys.argv[2])
more = gnn.load_config(overrides=["epochs=3", "dim=4", "recompute=all", "dropout=0.5"])
gnn.train(sys.argv[1], more, sys.argv[2], resume=True)
print([name for name in {HEAVY} if name in sys.modules])
"""


def test_adam_is_torch_s_also_after_a_checkpoint() -> None:
    """Bit by bit as its one kernel, and but for rounding as its twelve operators."""
    generator = torch.Generator().manual_seed(0)
    ours, theirs, plain = (
        [torch.nn.Parameter(torch.ones(3, 2)), torch.nn.Parameter(torch.zeros(4))]
        for _ in range(3)
    )
    adam = Adam(ours, lr=0.1, weight_decay=0.01)
    oracle = torch.optim.Adam(theirs, lr=0.1, weight_decay=0.01, fused=True)
    by_operators = torch.optim.Adam(plain, lr=0.1, weight_decay=0.01)
    for step in range(6):
        if step == 3:
            state = adam.state_dict()
            assert state.keys() == oracle.state_dict().keys()
            adam = Adam(ours, lr=0.1, weight_decay=0.01)
            adam.load_state_dict(state)
        for weight, *others in zip(ours, theirs, plain, strict=True):
            weight.grad = torch.randn(weight.shape, generator=generator)
            for other in others:
                other.grad = weight.grad.clone()
        adam.step()
        oracle.step()
        by_operators.step()
        assert all(map(torch.equal, ours, theirs))
        torch.testing.assert_close(ours, plain)
    adam.zero_grad()
    assert all(weight.grad is None for weight in ours)


def test_a_training_does_not_import_torch_s_compiler(groups: Store, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", TRAINS, str(groups(1).path), str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
