"""Refuses results of programs that a state of integers could hold only without fraction."""

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphsys.core.errors import CompileError
from graphsys.engine.codegen.lowered import Input, Lowered
from graphsys.engine.codegen.message_types import inferred_types

_OF_INTEGERS = ("abs", "bool", "int", "max", "min", "range")
_FLOATING = (ast.Div, ast.Pow)


def check_results(
    function: Lowered,
    what: str,
    names: Sequence[str],
    dtype_of: Callable[[Input], Any],
    message: Sequence[Any] = (),
) -> None:
    """Refuse floats for states of integers.

    Args:
        function: A lowered ``update`` or ``init``.
        what: Its name, for messages.
        names: The states that it returns, in order.
        dtype_of: Gives the dtype of an input, so of a state.
        message: The dtypes of its message.

    Raises:
        CompileError: it returns one; the message has the line of the ``return``.
    """
    dtypes = [np.dtype(dtype_of(Input("node", name))) for name in names]
    places = [k for k, dtype in enumerate(dtypes) if dtype.kind in "iub"]
    if not places or not _may_be_float(function, dtype_of, message):
        return
    returns = [node for node in ast.walk(function.tree) if isinstance(node, ast.Return)]
    for number, node in enumerate(returns):
        found = inferred_types(function, dtype_of, message, only=number)
        if found is None or len(found) != len(names):
            continue  # the compiler says what is wrong
        for place in places:
            if found[place].kind == "f":
                name, dtype = names[place], dtypes[place]
                raise CompileError(
                    f"{function.place.at(node)}: {what} gives {found[place]} to the state "
                    f"{name!r} of {dtype}, which would cut off the fraction; write "
                    f'int(...) around it, or declare {name} = gs.state("float64")'
                )


def _may_be_float(
    function: Lowered, dtype_of: Callable[[Input], Any], message: Sequence[Any]
) -> bool:
    """Tell quickly, without inferring types, whether anything could be a float."""
    read = [np.dtype(dtype_of(given)) for given in function.inputs]
    if any(dtype.kind == "f" for dtype in (*read, *map(np.dtype, message))):
        return True
    for node in ast.walk(function.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, _FLOATING):
            return True
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", "")
            if name not in _OF_INTEGERS:
                return True
    return False
