"""Writing the CUDA kernels of a program as the text of a Python module.

The same lowered functions and the same plan as :mod:`graphsys.engine.codegen.cpu`; what
differs is who visits a row: a thread, a warp, or a block (``pull_thread_0``,
``pull_warp_0``, ``pull_block_0``), or a thread per edge (``gather_edge_0``); and that many
supersteps may share one kernel (``push_fused_warp_0``: see ``fused_source.py``). Programs
with vector states have kernels of warps alone (``vector_source.py``). Arguments are named
as there, with these besides:

==========================  =====================================================
``sizes``, ``size_at``      where the length of the list ``nodes`` stands
``counts``, ``at``          the superstep's counters, int64: see ``counters.py``
``active``, ``epoch``       stamps of the senders, and the stamp that counts
``changed``, ``next_epoch`` stamps of the nodes that changed
``touched``, ``touch_epoch``  stamps of the nodes that got a message
``bits_0``                  the accumulator's memory as integers, for compare-and-swap
``partial``, ``part_base``  the warps' parts of the aggregators
==========================  =====================================================
"""

from dataclasses import dataclass
from pathlib import Path

from graphsys.core.errors import CompileError
from graphsys.engine.codegen.lowered import Lowered
from graphsys.engine.codegen.plan import ProgramPlan
from graphsys.engine.codegen.text import call_text, cast_text, functions_of
from graphsys.engine.cuda.fused_source import FusedWriter
from graphsys.engine.cuda.mode_source import ModeWriter
from graphsys.engine.cuda.phase_parts import CudaKernel, places_of
from graphsys.engine.cuda.push_source import can_combine_atomically
from graphsys.engine.cuda.vector_source import CudaVectorWriter, vector_init

MAPPINGS = ("thread", "warp", "block")
"""Who visits a row."""

_PROVIDED = {
    "import math",
    "import numpy",
    "from graphsys.kernels.cpu.hashing import random_fraction",
}
_COMMON = Path(__file__).parents[2] / "kernels" / "cuda" / "common.py"
_CLOCKS = _COMMON.with_name("clocks.py")
_OWN_IMPORT = "from graphsys.kernels.cuda.common import SIMULATED, device\n"
"""What the text of the clocks needs as a module of its own, and not behind the head."""


def module_source(plan: ProgramPlan, *, clocked: bool = False) -> str:
    """Return the text of the module with all CUDA kernels of a program.

    Args:
        plan: The lowered program.
        clocked: Have kernels write down clocks and lanes; else nothing of it is in them.

    Raises:
        CompileError: the program calls something that has no CUDA version.
    """
    functions = functions_of(plan)
    _check_imports(functions)
    parts = [_COMMON.read_text(), "import numpy\n", "KERNELS = {}"]
    if clocked:
        parts.append(_CLOCKS.read_text().replace(_OWN_IMPORT, ""))
    helpers = {name: text for f in functions for name, text in f.helpers.items()}
    parts += [f"@device\n{text}\n" for text in helpers.values()]
    parts += [f"@device\n{lowered.source}\n" for lowered in functions]
    if plan.init is not None:
        make = vector_init if plan.num_components else _init_kernel
        parts.append(make(plan, plan.init).text())
    writer = CudaVectorWriter if plan.num_components else CudaPhaseWriter
    for phase in plan.phases:
        parts += writer(plan, phase, clocked=clocked).kernels()
    return "\n\n".join(parts)


def user_lines(plan: ProgramPlan, text: str) -> dict[int, str]:
    """Return the user's file and line for lines of a module's text, where there is one."""
    found: dict[int, str] = {}
    for lowered in functions_of(plan):
        before = text[: text.index(f"@device\n{lowered.source}\n")].count("\n") + 1
        found |= {before + line: at for line, at in lowered.user_lines().items()}
    return found


def _check_imports(functions: list[Lowered]) -> None:
    for lowered in functions:
        for line in sorted(lowered.imports - _PROVIDED):
            raise CompileError(
                f"{lowered.where}: {line.rpartition(' ')[2]} has no CUDA version; run it "
                "with device='cpu'"
            )


def _init_kernel(plan: ProgramPlan, init: Lowered) -> CudaKernel:
    kernel = CudaKernel("init", totals=places_of(plan))
    kernel.use("num_rows")
    kernel.add(1, "for v in range(cuda.grid(1), num_rows, cuda.gridsize(1)):")
    names = [f"x_{i}" for i in range(len(plan.spec.states))]
    call = call_text(kernel, init, (), {"node": ("row", "v")}, plan)
    kernel.add(2, f"{', '.join(names)} = {call}")
    for name, state in zip(names, plan.spec.states, strict=True):
        kernel.use(f"row__{state}")
        kernel.add(2, f"row__{state}[v] = {cast_text(plan.dtypes[state])}({name})")
    return kernel


@dataclass
class CudaPhaseWriter(FusedWriter, ModeWriter):
    """Writes the kernels of one phase."""

    def row_kernels(self) -> list[CudaKernel]:
        """Return the kernels that walk rows, by who walks them."""
        phase, made = self.phase, []
        if phase.kind == "mode":
            made += [self.mode_pull("thread"), self.mode_pull("block")]
        elif phase.kind != "local":
            for mapping in MAPPINGS:
                made.append(self.pull_by(mapping, fused=True))
                made.append(self.pull_by(mapping, fused=False))
            if can_combine_atomically(phase):
                made.append(self.gather_edge())
                if phase.can_push:
                    made += [self.push_by(mapping) for mapping in MAPPINGS]
                    made.append(self.push_edge())
        return [*made, *self.fused()]
