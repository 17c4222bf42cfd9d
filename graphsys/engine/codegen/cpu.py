"""Writing the CPU kernels of a program as the text of a Python module.

Each kernel is one loop over rows or over a frontier, with the program's lowered functions
called inside (LLVM inlines them: measured 1.00 of a hand-written loop). The names of a
kernel's arguments say what the executor binds to them:

===================  ============================================================
``row__x``           state or column x of the nodes whose rows are visited
``col__x``           state or column x of the neighbors
``new__x``           where x's next values go, where they must not replace x at once
``at__x``            state x of all nodes
``in_i``, ``out_i``  the i-th value of every node's message, read or written
``acc_i``            the i-th value of the combined messages
``edge__x``          column or state x of the edges, in row order
``begins__x``        where each row begins in column x of the edges
===================  ============================================================
"""

from graphsys.engine.codegen.cpu_phase import CHUNKS, CpuPhaseText
from graphsys.engine.codegen.plan import ProgramPlan
from graphsys.engine.codegen.text import KernelText, call_text, cast_text, functions_of
from graphsys.engine.codegen.vector_parts import ComponentLoop, init_lines
from graphsys.engine.codegen.vector_phase import VectorPhaseText

_HEADER = '''"""Kernels of {name}, written by graphsys; do not edit."""

import math

import numpy as np

from graphsys.kernels.cpu.atomics import atomic_add, compare_exchange
from graphsys.kernels.cpu.bits import has_bit, lowest_bit, set_bit, set_bit_atomic
from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.cpu.node_lists import append_buffer
from graphsys.kernels.cpu.rows.row_mode import row_mode
from graphsys.kernels.jit import inline_jit, jit
{imports}

KERNELS = {{}}
'''

_PREFETCH = "from graphsys.kernels.cpu.pointers import prefetch"


def module_source(plan: ProgramPlan) -> str:
    """Return the text of the module with all kernels of a program."""
    functions = functions_of(plan)
    imports = sorted({line for f in functions for line in f.imports} - {"import math"})
    if plan.num_components:
        imports.append(_PREFETCH)
    parts = [_HEADER.format(name=plan.spec.name, imports="\n".join(imports))]
    helpers = {name: text for f in functions for name, text in f.helpers.items()}
    parts += [f"@inline_jit\n{text}\n" for text in helpers.values()]
    parts += [f"@inline_jit\n{lowered.source}\n" for lowered in functions]
    if plan.init is not None:
        parts.append(_init_kernel(plan))
    writer = VectorPhaseText if plan.num_components else CpuPhaseText
    for phase in plan.phases:
        parts += writer(plan, phase).kernels()
    return "\n\n".join(parts)


def _init_kernel(plan: ProgramPlan) -> str:
    init = plan.init
    assert init is not None
    kernel = KernelText("init")
    kernel.use("counter", "bounds")
    kernel.add(1, *CHUNKS)
    kernel.add(2, "for v in range(bounds[c], bounds[c + 1]):")
    if plan.num_components:
        components = ComponentLoop(plan.num_components)
        kernel.add(3, *init_lines(kernel, init, plan, components))
        return kernel.text()
    names = [f"x_{i}" for i in range(len(plan.spec.states))]
    call = call_text(kernel, init, (), {"node": ("row", "v")}, plan)
    kernel.add(3, f"{', '.join(names)} = {call}")
    for name, state in zip(names, plan.spec.states, strict=True):
        kernel.use(f"row__{state}")
        kernel.add(3, f"row__{state}[v] = {cast_text(plan.dtypes[state])}({name})")
    return kernel.text()
