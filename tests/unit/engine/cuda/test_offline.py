"""Programs compile to Hopper's machine code without spills; no GPU is needed."""

import shutil

import pytest

from tests.processes import printed_by

pytest.importorskip("numba_cuda", reason="the gpu extra (numba-cuda) is not installed")
pytest.importorskip("nvidia.cu13", reason="the CUDA compiler's packages are not installed")
if shutil.which("ptxas") is None:
    pytest.skip("ptxas is not on PATH", allow_module_level=True)

PROGRAM = """
import sys
import numpy as np
from graphsys.engine.cuda.offline import compile_common, compile_program
from graphsys.engine.codegen.plan import plan_of
from graphsys.engine.codegen.spec import spec_of
from tests.cuda_sim.programs import PROGRAMS
from tests.cuda_sim.vector_programs import VECTOR_PROGRAMS

PROGRAMS = PROGRAMS | VECTOR_PROGRAMS
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
        ("Walkers", "pull_warp_0"),
        ("Alike", "gather_warp_1"),
        ("Votes", "pull_block_1"),
    ],
)
def test_kernels_spill_nothing(name: str, kernel: str) -> None:
    # a process of its own: compiling without a driver replaces a function of numba-cuda
    lines = printed_by("-c", PROGRAM, name)
    rows = [line.split() for line in lines]
    assert kernel in [row[0] for row in rows]
    for found, registers, stack, spilled in rows:
        assert int(spilled) == 0, found
        assert int(stack) == 0, found
        assert 8 <= int(registers) <= 128, found


PTX = """
import numpy as np
from graphsys.engine.cuda.offline import compile_program, program_ptx
from graphsys.engine.codegen.plan import plan_of
from graphsys.engine.codegen.spec import spec_of
from tests.cuda_sim.programs import PROGRAMS

plan = plan_of(spec_of(PROGRAMS["Hops"]), {"weight": np.dtype(np.float64)})
for clocked in (False, True):
    for name, text in program_ptx(plan, clocked=clocked).items():
        marks = [mark in text for mark in ("%smid", "%clock64", "activemask")]
        print("ptx", clocked, name, *map(int, marks))
for report in compile_program(plan, clocked=True):
    print("code", report.name, report.registers, report.stack_bytes, report.spill_bytes)
"""


def test_clocks_are_in_the_machine_code_only_where_they_were_asked_for() -> None:
    lines = printed_by("-c", PTX)
    rows = [line.split() for line in lines]
    marks = {(row[1], row[2]): row[3:] for row in rows if row[0] == "ptx"}
    assert marks["True", "pull_warp_0"] == ["1", "1", "1"]
    assert marks["True", "push_fused_thread_0"] == ["1", "1", "1"]
    plain = {
        name: found[:2] for (clocked, name), found in marks.items() if clocked == "False"
    }
    assert len(plain) > 10
    assert set(map(tuple, plain.values())) == {("0", "0")}
    code = [row[1:] for row in rows if row[0] == "code"]
    assert "pull_block_0" in [row[0] for row in code]
    for name, registers, stack, spilled in code:
        assert (int(stack), int(spilled)) == (0, 0), name
        assert 8 <= int(registers) <= 128, name
