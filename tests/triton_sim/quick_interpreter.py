"""Triton's interpreter, without what it does over again at every launch and every call.

It replaces the functions of ``triton.language`` each time that a kernel is started or calls
another function; here once for each function. It computes whether integers overflow, and
tells it only with ``debug``; here it computes it only then. Call :func:`install` in a
process that runs with ``TRITON_INTERPRET=1``.
"""

import dataclasses
import functools
from typing import Any

from triton.runtime import interpreter


def install() -> None:
    """Have the interpreter prepare each function once, and compute no unread assertion."""
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
