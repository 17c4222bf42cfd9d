"""Which type a program's messages have."""

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from graphsys.core.errors import CompileError
from graphsys.engine.codegen.lowered import Input, Lowered
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
    inferred = _inferred(message, types_of)
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
        return np.dtype(np.int32) if like and max(t.itemsize for t in like) < 8 and (
            all(t != np.uint32 for t in like)
        ) else np.dtype(np.int64)  # fmt: skip
    if like and all(t.itemsize <= 4 for t in like):
        return np.dtype(np.float32)
    return dtype


def _inferred(message: Lowered, types_of: Types) -> tuple[Any, ...]:
    from numba.core import errors, types
    from numba.core.compiler import run_frontend
    from numba.core.registry import cpu_target
    from numba.core.typed_passes import type_inference_stage
    from numba.np.numpy_support import as_dtype, from_dtype

    function = _executed(message)
    cpu_target.typing_context.refresh()
    arguments = [
        types.Array(from_dtype(np.dtype(types_of(given))), 1, "C")
        if given.kind == "at"
        else from_dtype(np.dtype(types_of(given)))
        for given in message.inputs
    ]
    try:
        result = type_inference_stage(
            cpu_target.typing_context,
            cpu_target.target_context,
            run_frontend(function),
            tuple(arguments),
            None,
        )
    except errors.NumbaError as err:
        first = str(err).strip().splitlines()
        raise CompileError(f"{message.where}: numba cannot type it: {first[0]}") from err
    kind = result.return_type
    parts = list(kind) if hasattr(kind, "count") else [kind]  # a tuple type
    try:
        return tuple(as_dtype(getattr(part, "literal_type", part)) for part in parts)
    except NotImplementedError as err:
        raise CompileError(
            f"{message.where}: a message must be a number or a tuple of numbers, got {kind}"
        ) from err


class _NeverReturn(ast.NodeTransformer):
    def visit_Return(self, node: ast.Return) -> ast.stmt:
        if isinstance(node.value, ast.Name) and node.value.id == "nothing":
            # nothing is run: a loop without end has no type that could disturb
            return ast.While(test=ast.Constant(value=True), body=[ast.Pass()], orelse=[])
        return node


def _executed(message: Lowered) -> Any:
    """Run the definition, without ``return nothing``, which has no type of its own."""
    tree = ast.parse(message.source).body[0]
    assert isinstance(tree, ast.FunctionDef)  # lowering wrote it
    tree = _NeverReturn().visit(tree)
    tree.args.args = [a for a in tree.args.args if a.arg != "nothing"]
    names: dict[str, Any] = {}
    lines = [*sorted(message.imports), "import numba"]
    for text in message.helpers.values():
        lines += ["@numba.njit", text]
    lines.append(ast.unparse(ast.fix_missing_locations(tree)))
    exec(compile("\n".join(lines), message.where, "exec"), names)
    return names[message.name]
