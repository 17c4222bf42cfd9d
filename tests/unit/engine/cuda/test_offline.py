"""Programs compile to Hopper's machine code without spills; no GPU is needed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba_cuda", reason="the gpu extra (numba-cuda) is not installed")
pytest.importorskip("nvidia.cu13", reason="the CUDA compiler's packages are not installed")
if shutil.which("ptxas") is None:
    pytest.skip("ptxas is not on PATH", allow_module_level=True)

ROOT = Path(__file__).parents[4]

PROGRAM = """
import sys
import numpy as np
from graphsys.engine.cuda.offline import compile_common, compile_program
from graphsys.engine.plan import plan_of
from graphsys.engine.spec import spec_of
from tests.cuda_sim.programs import PROGRAMS

if sys.argv[1] == "common":
    reports = compile_common(np.dtype(np.int32))
else:
    plan = plan_of(spec_of(PROGRAMS[sys.argv[1]]), {"weight": np.dtype(np.float64)})
    reports = compile_program(plan)
for report in reports:
    print(report.name, report.registers, report.stack_bytes, report.spill_bytes)
"""


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("common", "reduce_totals"),
        ("Widths", "push_fused_warp_0"),
        ("Ranks", "pull_fused_warp_0"),
        ("Communities", "pull_block_0"),
    ],
)
def test_kernels_spill_nothing(name: str, kernel: str) -> None:
    # a process of its own: compiling without a driver replaces a function of numba-cuda
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line.split() for line in done.stdout.splitlines()]
    assert kernel in [row[0] for row in rows]
    for found, registers, stack, spilled in rows:
        assert int(spilled) == 0, found
        assert int(stack) == 0, found
        assert 8 <= int(registers) <= 128, found
