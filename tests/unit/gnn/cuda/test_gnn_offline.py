"""The Triton kernels of message passing compile to Hopper's machine code, no spills."""

import itertools

import pytest

from tests.marks import slow_but
from tests.processes import printed_by_case

pytest.importorskip("triton", reason="the gpu extra (triton) is not installed")

PROGRAM = """
import sys
from graphsys.gnn.ops.offline import compile_kernels

for case in sys.argv[1:]:
    print(case)
    width, heads, precision, count, place = case.split(",")
    reports = compile_kernels(
        int(width), int(heads), precision,
        count=int(count) if count else None, is_aligned=place != "shifted",
    )
    for name, r in reports.items():
        print(r.registers, r.stack_bytes, r.spill_bytes, r.shared_bytes, name)
"""
NUM_KERNELS = 14


Rows = dict[str, list[list[str]]]


@pytest.fixture(scope="module")
def compiled(request: pytest.FixtureRequest) -> Rows:
    """Return the rows of each case."""
    # a process of its own: compiling without a driver puts another in its place, and the
    # interpreter must be off
    found = printed_by_case(request, PROGRAM, without="TRITON_INTERPRET")
    return {
        case: [line.split(maxsplit=4) for line in lines] for case, lines in found.items()
    }


def require_all_kernels(rows: list[list[str]]) -> None:
    assert len({row[4].rsplit(": ")[1] for row in rows}) == NUM_KERNELS


@pytest.mark.parametrize("case", ["256,3,float32,,aligned", "100,8,bfloat16,,aligned"])
def test_kernels_spill_nothing(case: str, compiled: Rows) -> None:
    require_all_kernels(compiled[case])
    for registers, stack, spilled, shared, kernel in compiled[case]:
        assert int(spilled) == 0, kernel
        assert int(stack) == 0, kernel
        assert 8 <= int(registers) <= 255, kernel
        assert int(shared) <= 227 << 10, kernel


FEW, COUNTS = (
    [f"100,8,bfloat16,{count},{place}" for count, place in chosen]
    for chosen in (
        [(1, "aligned"), (2**31 + 1, "shifted")],
        itertools.product((1, 7, 16, 2**31 + 1), ("aligned", "shifted")),
    )
)


@pytest.mark.parametrize("case", slow_but(FEW, COUNTS))
def test_kernels_compile_for_integers_of_every_size_and_place(
    case: str, compiled: Rows
) -> None:
    require_all_kernels(compiled[case])
