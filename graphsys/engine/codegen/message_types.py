"""Which type a program's messages have."""

import ast
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphsys.core.compiling import parse
from graphsys.core.errors import CompileError
from graphsys.engine.codegen.lowered import Input, Lowered
from graphsys.engine.codegen.numba_errors import TAKEN, refused
from graphsys.engine.codegen.spec import PhaseSpec

Types = Callable[[Input], Any]
"""Gives the numpy dtype of an input; of an array's elements for arrays."""


def message_dtypes(
    phase: PhaseSpec, message: Lowered, types_of: Types
) -> tuple[np.dtype[Any], ...]:
    """Return the dtypes of a phase's messages, one per value.

    numba infers them; then a float64 becomes float32 where all floats it is made of are
    float32, and an int64 int32 likewise (literals are wide in numba). Sums of integers
    are int64. ``message_type`` overrides all that.

    Raises:
        CompileError: numba cannot type the function.
    """
    if phase.message_type is not None:
        given = phase.message_type
        return tuple(np.dtype(t) for t in (given if isinstance(given, tuple) else (given,)))
    inferred = _required(message, types_of)
    arrays = ("src", "dst", "edge", "reverse")
    read = [types_of(given) for given in message.inputs if given.kind in arrays]
    is_sum = phase.combine is not None and phase.combine.name in ("sum", "own")
    return tuple(_narrowed(np.dtype(dtype), read, is_sum) for dtype in inferred)


def _narrowed(dtype: np.dtype[Any], read: list[Any], is_sum: bool) -> np.dtype[Any]:
    like = [np.dtype(t) for t in read if (np.dtype(t).kind == "f") == (dtype.kind == "f")]
    if dtype.kind == "b":
        return np.dtype(np.int64) if is_sum else dtype
    if dtype.kind in "iu":
        if is_sum:
            return np.dtype(np.int64)
        return (
            np.dtype(np.int32)
            if like
            and max(t.itemsize for t in like) < 8
            and (all(t != np.uint32 for t in like))
            else np.dtype(np.int64)
        )
    if like and all(t.itemsize <= 4 for t in like):
        return np.dtype(np.float32)
    return dtype


def _required(message: Lowered, types_of: Types) -> tuple[np.dtype[Any], ...]:
    kind = _returned_or_refused(message, types_of, ())
    found = _as_dtypes(kind)
    if found is None:
        raise CompileError(
            f"{message.where}: a message must be a number or a tuple of numbers, got {kind}"
        )
    return found


def inferred_types(
    function: Lowered, types_of: Types, message: Sequence[Any] = (), *, only: int
) -> tuple[np.dtype[Any], ...] | None:
    """Return the dtypes of what one ``return`` of a function gives.

    Args:
        function: A lowered function, which may take a message.
        types_of: Gives the dtypes of its inputs.
        message: The dtypes of the message's values.
        only: Which ``return``, in the order of :func:`ast.walk`.

    Returns:
        One per value; None where numba cannot tell.
    """
    from numba.core import errors

    try:
        return _as_dtypes(_returned(function, types_of, message, only))
    except errors.NumbaError:
        return None


def check_types(function: Lowered, types_of: Types, message: Sequence[Any] = ()) -> None:
    """Refuse a function that numba cannot type, or that gives more than numbers.

    Raises:
        CompileError: it does; the message has the user's line.
    """
    kind = _returned_or_refused(function, types_of, message)
    returns = [it.value for it in ast.walk(function.tree) if isinstance(it, ast.Return)]
    is_one = not any(isinstance(value, ast.Tuple) for value in returns)
    if _as_dtypes(kind) is None or (is_one and hasattr(kind, "count")):  # a tuple type
        raise CompileError(f"{function.where}: it gives {kind}, expected numbers; {TAKEN}")


def _returned_or_refused(function: Lowered, types_of: Types, message: Sequence[Any]) -> Any:
    from numba.core import errors

    try:
        return _returned(function, types_of, message, None)
    except errors.NumbaError as err:
        raise refused(function, _text_of(function, None), err) from err


def _as_dtypes(kind: Any) -> tuple[np.dtype[Any], ...] | None:
    from numba.np.numpy_support import as_dtype

    parts = list(kind) if hasattr(kind, "count") else [kind]  # a tuple type
    try:
        return tuple(as_dtype(getattr(part, "literal_type", part)) for part in parts)
    except NotImplementedError:
        return None


def _returned(
    function: Lowered, types_of: Types, message: Sequence[Any], only: int | None
) -> Any:
    """Return the type, numba's, of what a function returns."""
    from numba.core import types
    from numba.np.numpy_support import from_dtype

    values = tuple(from_dtype(np.dtype(dtype)) for dtype in message)
    several = types.BaseTuple  # type: ignore[attr-defined]  # numba makes its names
    arguments = [values[0] if len(values) == 1 else several.from_types(values)]
    arguments *= len(function.values)  # none of init, two of combine
    arguments += [
        types.Array(from_dtype(np.dtype(types_of(given))), 1, "C")
        if given.kind == "at"
        else from_dtype(np.dtype(types_of(given)))
        for given in function.inputs
    ]
    text = _text_of(function, only)
    return _type_of(text, function.name, function.where, tuple(arguments))


@functools.lru_cache(maxsize=1024)
def _type_of(text: str, name: str, where: str, arguments: tuple[Any, ...]) -> Any:
    """Return what a function of a text returns; programs that run again are typed once."""
    from numba.core.compiler import run_frontend
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target
    from numba.core.typed_passes import type_inference_stage

    names: dict[str, Any] = {}
    exec(compile(text, where, "exec"), names)
    # numba's context of types is one for the whole process, and workers are threads.
    with global_compiler_lock:
        cpu_target.typing_context.refresh()
        result = type_inference_stage(
            cpu_target.typing_context,
            cpu_target.target_context,
            run_frontend(names[name]),
            arguments,
            None,
        )
    return result.return_type


class _NeverReturn(ast.NodeTransformer):
    """Makes loops without end of some returns: they have no type that could disturb."""

    def __init__(self, ends: Callable[[ast.Return], bool]) -> None:
        self._ends = ends

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        if self._ends(node):
            return node
        return ast.While(test=ast.Constant(value=True), body=[ast.Pass()], orelse=[])


def _text_of(message: Lowered, only: int | None) -> str:
    """Return the definition without ``return nothing``, which has no type of its own.

    Args:
        message: The function.
        only: Which ``return`` to keep; all others of the kind by default.
    """
    tree = parse(message.source).body[0]
    assert isinstance(tree, ast.FunctionDef)  # lowering wrote it
    returns = [node for node in ast.walk(tree) if isinstance(node, ast.Return)]

    def ends(node: ast.Return) -> bool:
        if only is not None:
            return node is returns[only]
        return not (isinstance(node.value, ast.Name) and node.value.id == "nothing")

    tree = _NeverReturn(ends).visit(tree)
    tree.args.args = [a for a in tree.args.args if a.arg != "nothing"]
    lines = [*sorted(message.imports), "import numba"]
    for text in message.helpers.values():
        lines += ["@numba.njit", text]
    lines.append(ast.unparse(ast.fix_missing_locations(tree)))
    return "\n".join(lines)
