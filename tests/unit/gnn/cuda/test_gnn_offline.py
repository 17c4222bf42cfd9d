"""The Triton kernels of message passing compile to Hopper's machine code, no spills."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="the gpu extra (triton) is not installed")

ROOT = Path(__file__).parents[4]

PROGRAM = """
import sys
from graphsys.gnn.ops.offline import compile_kernels

for name, r in compile_kernels(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]).items():
    print(r.registers, r.stack_bytes, r.spill_bytes, r.shared_bytes, name)
"""


@pytest.mark.parametrize("case", [("256", "3", "float32"), ("100", "8", "bfloat16")])
def test_kernels_spill_nothing(case: tuple[str, str, str]) -> None:
    # a process of its own: compiling without a driver puts another in its place, and the
    # interpreter must be off
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *case],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line.split(maxsplit=4) for line in done.stdout.splitlines()]
    assert len({row[4].rsplit(": ")[1] for row in rows}) == 14
    for registers, stack, spilled, shared, kernel in rows:
        assert int(spilled) == 0, kernel
        assert int(stack) == 0, kernel
        assert 8 <= int(registers) <= 255, kernel
        assert int(shared) <= 227 << 10, kernel
