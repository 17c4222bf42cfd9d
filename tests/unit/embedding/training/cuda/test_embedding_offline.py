"""The trainer's Triton kernels compile to Hopper's machine code without spills."""

import pytest

from tests.marks import slow_but
from tests.processes import printed_by_case

pytest.importorskip("triton", reason="the gpu extra (triton) is not installed")

PROGRAM = """
import sys
from graphsys.embedding import EmbeddingConfig
from graphsys.embedding.training.cuda.offline import compile_step

for case in sys.argv[1:]:
    print(case)
    dim, rows, operator, comparator, loss, reciprocal, *others = case.split(",")
    config = EmbeddingConfig(
        dim=int(dim), operator=operator, comparator=comparator, loss=loss,
        reciprocal=reciprocal == "two", regularizer=0.01,
    )
    count, aligned = others or ("64", "aligned")
    for r in compile_step(
        config, is_bfloat16=rows == "bfloat16", count=int(count),
        is_aligned=aligned == "aligned",
    ):
        print(r.name, r.registers, r.stack_bytes, r.spill_bytes, r.shared_bytes)
"""


CASES = [
    "200,float32,complex_diagonal,dot,softmax,two",
    "100,bfloat16,translation,l2,ranking,one",
    "100,float32,linear,cos,logistic,one",
    "100,bfloat16,linear,dot,softmax,two",
]


Rows = dict[str, list[list[str]]]


@pytest.fixture(scope="module")
def compiled(request: pytest.FixtureRequest) -> Rows:
    """Return the rows of each case."""
    # a process of its own: compiling without a driver puts another in its place, and the
    # interpreter must be off
    found = printed_by_case(request, PROGRAM, without="TRITON_INTERPRET")
    return {case: [line.split() for line in lines] for case, lines in found.items()}


@pytest.mark.parametrize("case", CASES)
def test_kernels_spill_nothing(case: str, compiled: Rows) -> None:
    rows = compiled[case]
    assert len(rows) >= 6
    for kernel, registers, stack, spilled, shared in rows:
        assert int(spilled) == 0, kernel
        assert int(stack) == 0, kernel
        assert 8 <= int(registers) <= 255, kernel
        assert int(shared) <= 227 << 10, kernel


COUNTS = [
    f"{case},{count},{place}"
    for case in CASES
    for count in (1, 7, 16, 2**31 + 1)
    for place in ("aligned", "shifted")
]
FEW = [f"{CASES[0]},1,shifted", f"{CASES[3]},2147483649,aligned"]


@pytest.mark.parametrize("case", slow_but(FEW, COUNTS))
def test_kernels_compile_for_batches_of_every_size_and_place(
    case: str, compiled: Rows
) -> None:
    assert len(compiled[case]) >= 6
