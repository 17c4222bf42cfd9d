"""Which function of a program numba cannot compile.

numba types a kernel with all that it calls, and names a line of the generated module.
Here the functions are typed one by one, so that the message names the user's own line.
"""

from collections.abc import Iterator
from typing import Any

from graphsys.core.errors import CompileError
from graphsys.engine.codegen.lowered import Lowered
from graphsys.engine.codegen.message_types import check_types
from graphsys.engine.codegen.numba_errors import TAKEN, said
from graphsys.engine.codegen.plan import ProgramPlan, types_of


def compile_error(plan: ProgramPlan, err: Exception) -> CompileError:
    """Return what is wrong with a program whose kernel numba did not compile.

    Args:
        plan: The program.
        err: What numba raised.
    """
    types = types_of(plan)
    for function, message in _functions(plan):
        try:
            check_types(function, types, message)
        except CompileError as found:
            return found
    return CompileError(f"{plan.spec.name}: {said(err)}; {TAKEN}")


def _functions(plan: ProgramPlan) -> Iterator[tuple[Lowered, tuple[Any, ...]]]:
    """Yield the functions of a program, each with the dtypes of its messages' values."""
    if plan.init is not None:
        yield from _with_reductions(plan.init, ())
    for phase in plan.phases:
        for function in phase.functions.values():
            if function is not None:
                yield from _with_reductions(function, phase.message_dtypes)


def _with_reductions(
    function: Lowered, message: tuple[Any, ...]
) -> Iterator[tuple[Lowered, tuple[Any, ...]]]:
    for made in function.reductions:
        yield from _with_reductions(made.of, message)
    yield function, message
