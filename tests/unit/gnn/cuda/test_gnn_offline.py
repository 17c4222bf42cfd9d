"""The Triton kernels of message passing compile to Hopper's machine code, no spills."""

import pytest

from tests.marks import slow_but
from tests.processes import printed_by

pytest.importorskip("triton", reason="the gpu extra (triton) is not installed")

PROGRAM = """
import sys
from graphsys.gnn.ops.offline import compile_kernels

width, heads, precision, count, place = sys.argv[1].split(",")
reports = compile_kernels(
    int(width), int(heads), precision,
    count=int(count) if count else None, is_aligned=place != "shifted",
)
for name, r in reports.items():
    print(r.registers, r.stack_bytes, r.spill_bytes, r.shared_bytes, name)
"""
NUM_KERNELS = 14


def compiled(case: str) -> list[list[str]]:
    # a process of its own: compiling without a driver puts another in its place, and the
    # interpreter must be off
    lines = printed_by("-c", PROGRAM, case, without="TRITON_INTERPRET")
    rows = [line.split(maxsplit=4) for line in lines]
    assert len({row[4].rsplit(": ")[1] for row in rows}) == NUM_KERNELS
    return rows


@pytest.mark.parametrize("case", ["256,3,float32,,aligned", "100,8,bfloat16,,aligned"])
def test_kernels_spill_nothing(case: str) -> None:
    for registers, stack, spilled, shared, kernel in compiled(case):
        assert int(spilled) == 0, kernel
        assert int(stack) == 0, kernel
        assert 8 <= int(registers) <= 255, kernel
        assert int(shared) <= 227 << 10, kernel


COUNTS = [
    f"{count},{place}"
    for count in (1, 7, 16, 2**31 + 1)
    for place in ("aligned", "shifted")
]


@pytest.mark.parametrize("given", slow_but(["1,aligned", "2147483649,shifted"], COUNTS))
def test_kernels_compile_for_integers_of_every_size_and_place(given: str) -> None:
    compiled(f"100,8,bfloat16,{given}")
