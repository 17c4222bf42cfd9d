"""Triton's interpreter, without what it does over again at every launch and every call.

It replaces the functions of ``triton.language`` each time that a kernel is started or calls
another function; here once for each function. It computes whether integers overflow, and
tells it only with ``debug``; here it computes it only then. It describes the shape of each
tensor anew; here once for each shape. Call :func:`install` in a process that runs with
``TRITON_INTERPRET=1``.
"""

import dataclasses
import functools
from typing import Any

from triton.language import core
from triton.runtime import interpreter


def install() -> None:
    """Have the interpreter do once what it does over again."""
    prepare = interpreter._patch_lang

    @functools.cache
    def prepare_once(function: Any) -> Any:
        scope = prepare(function)
        scope._changes.clear()  # nothing is put back: all of this process is interpreted
        return scope

    interpreter._patch_lang = prepare_once
    builder = interpreter.interpreter_builder
    builder.options = dataclasses.replace(
        builder.options, sanitize_overflow=builder.options.debug
    )
    _unwrap_by_type()
    _describe_shapes_once()
    _name_dtypes_once()


def _unwrap_by_type() -> None:
    """Look at the type of what may be a constant before asking what it is one of."""
    unwrap = core._unwrap_if_constexpr
    plain = {int, float, bool, str, type(None), core.tensor, core.dtype, core.block_type}

    def unwrap_by_type(value: Any) -> Any:
        kind = type(value)
        if kind in plain:
            return value
        return value.value if kind is core.constexpr else unwrap(value)

    core._unwrap_if_constexpr = unwrap_by_type


def _describe_shapes_once() -> None:
    """Keep what the constructors of types of blocks, and of tensors, make of a shape."""
    make_type, make_tensor = core.block_type.__init__, core.tensor.__init__
    known: dict[tuple[object, ...], Any] = {}

    def describe_type(made: Any, element_ty: Any, shape: Any) -> None:
        key = (element_ty.name, *map(core._unwrap_if_constexpr, shape))
        if key in known:
            made.element_ty = element_ty
            made.shape, made.numel, made.name = known[key]
        else:
            make_type(made, element_ty, shape)
            known[key] = made.shape, made.numel, made.name

    def describe_tensor(made: Any, handle: Any, type: Any) -> None:
        found = vars(type).get("_of_tensors")
        if found is None:
            make_tensor(made, handle, type)
            type._of_tensors = made.shape, made.numel
        else:
            made.handle, made.type, made.dtype = handle, type, type.scalar
            made.shape, made.numel = found

    core.block_type.__init__, core.tensor.__init__ = describe_type, describe_tensor


def _name_dtypes_once() -> None:
    """Remember numpy's type for each of Triton's, by its name."""
    dtype_of = interpreter._get_np_dtype
    known: dict[str, Any] = {}

    def dtype_by_name(kind: Any) -> Any:
        if kind.name not in known:
            known[kind.name] = dtype_of(kind)
        return known[kind.name]

    interpreter._get_np_dtype = dtype_by_name
